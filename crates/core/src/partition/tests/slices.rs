//! SQL of identities, layouts and bounds.

use expect_test::{Expect, expect};

use super::*;

#[test]
fn the_sql_expression_names_its_zone() {
    expect!["strftime(timezone('UTC', CAST(ts AS TIMESTAMPTZ)), '%Y-%m-%d')"]
        .assert_eq(&spec(TimeUnit::Day, "").sql_key_expression("ts"));
    expect!["strftime(timezone('Asia/Kolkata', CAST(ts AS TIMESTAMPTZ)), '%G-W%V')"]
        .assert_eq(&spec(TimeUnit::Week, "Asia/Kolkata").sql_key_expression("ts"));
    expect!["strftime(timezone('UTC', CAST(ts AS TIMESTAMPTZ)), '%Y-%m-%dT%H')"]
        .assert_eq(&spec(TimeUnit::Hour, "").sql_key_expression("ts"));
    expect![[r#"
        strftime(timezone('America/New_York', CAST(ts AS TIMESTAMPTZ)), '%Y-%m-%dT%H')
        || CASE WHEN timezone('America/New_York', CAST(ts AS TIMESTAMPTZ)) < timezone('UTC', CAST(ts AS TIMESTAMPTZ)) THEN '-' ELSE '+' END
        || strftime(TIMESTAMP '2000-01-01' + (greatest(timezone('America/New_York', CAST(ts AS TIMESTAMPTZ)), timezone('UTC', CAST(ts AS TIMESTAMPTZ))) - least(timezone('America/New_York', CAST(ts AS TIMESTAMPTZ)), timezone('UTC', CAST(ts AS TIMESTAMPTZ)))), '%H%M')"#]].assert_eq(&spec(TimeUnit::Hour, "America/New_York").sql_key_expression("ts"));
}

fn check_layout(unit: TimeUnit, zone: &str, by_type: Option<&str>, expect: Expect) {
    let spec = TimeSpec { by: by_type.map(|_| "ts".into()), ..spec(unit, zone) };
    let text = match layout(&spec, by_type, "_partition") {
        Ok(SliceLayout::Transforms { column, transforms }) => format!("{column}: {}", transforms.join(", ")),
        Ok(SliceLayout::Identity { column }) => column,
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&text);
}

#[test]
fn utc_windows_and_dates_are_laid_out_by_their_parts_and_the_rest_by_identity() {
    let ny = "America/New_York";
    check_layout(TimeUnit::Day, "", None, expect!["_partition"]);
    check_layout(TimeUnit::Day, "", Some("TIMESTAMP WITH TIME ZONE"), expect!["ts: year, month, day"]);
    check_layout(TimeUnit::Week, "", Some("TIMESTAMP_NS"), expect!["ts: year, month, day"]);
    check_layout(TimeUnit::Month, "Etc/UTC", Some("TIMESTAMP"), expect!["ts: year, month"]);
    check_layout(TimeUnit::Hour, "", Some("TIMESTAMP_S"), expect!["ts: year, month, day, hour"]);
    check_layout(TimeUnit::Day, ny, Some("TIMESTAMP"), expect!["_partition"]);
    check_layout(TimeUnit::Day, ny, Some("DATE"), expect!["ts: year, month, day"]);
    check_layout(
        TimeUnit::Hour,
        "",
        Some("DATE"),
        expect!["`by=ts` is DATE, which cannot tell the hours of an hourly script: expected a timestamp"],
    );
    check_layout(
        TimeUnit::Hour,
        ny,
        Some("DATE"),
        expect!["`by=ts` is DATE, which cannot tell the hours of an hourly script: expected a timestamp"],
    );
    check_layout(
        TimeUnit::Day,
        ny,
        Some("VARCHAR"),
        expect!["`by=ts` is VARCHAR, which holds no time: expected TIMESTAMP WITH TIME ZONE, TIMESTAMP or DATE"],
    );
    let without_column = TimeSpec { by: Some("ts".into()), ..spec(TimeUnit::Day, "") };
    expect!["the query has no column `ts`, which `by=` names"]
        .assert_eq(&layout(&without_column, None, "_partition").unwrap_err().to_string());
}

#[test]
fn slice_bounds_are_typed_literals() {
    let bounds = |unit, zone: &str, text: &str, by_type: &str| {
        let spec = TimeSpec { by: Some("ts".into()), ..spec(unit, zone) };
        match slice_bounds(&spec, &key(text), by_type) {
            Ok((lower, upper)) => format!("{lower} .. {upper}"),
            Err(error) => error.to_string(),
        }
    };
    let ny = "America/New_York";
    expect!["TIMESTAMPTZ '2026-03-08 05:00:00+00' .. TIMESTAMPTZ '2026-03-09 04:00:00+00'"].assert_eq(&bounds(
        TimeUnit::Day,
        ny,
        "2026-03-08",
        "TIMESTAMPTZ",
    ));
    expect!["TIMESTAMP '2026-03-08 05:00:00' .. TIMESTAMP '2026-03-09 04:00:00'"].assert_eq(&bounds(
        TimeUnit::Day,
        ny,
        "2026-03-08",
        "TIMESTAMP_MS",
    ));
    expect!["DATE '2026-12-28' .. DATE '2027-01-04'"].assert_eq(&bounds(TimeUnit::Week, ny, "2026-W53", "DATE"));
    expect!["there is no partition `2026-13-01`: the calendar has no such date"].assert_eq(&bounds(
        TimeUnit::Day,
        ny,
        "2026-13-01",
        "DATE",
    ));
}
