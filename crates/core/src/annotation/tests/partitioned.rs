//! Kinds of partitions and their options.

use expect_test::expect;

use super::check;

#[test]
fn time_partitions() {
    check(
        "materialize ducklake://main/x
partitioned daily by=ordered_at tz=Europe/Berlin start=2026-01-31",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: Some("ordered_at"), tz: Some(Europe/Berlin), start: Some(2026-01-31), retention: None })
            materialize: ("ducklake://main/x", Replace)
        "#]],
    );
}

#[test]
fn an_hour() {
    check(
        "materialize ducklake://main/x
partitioned hourly",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Hour, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
        "#]],
    );
}

#[test]
fn a_week() {
    check(
        "materialize ducklake://main/x
partitioned weekly tz=America/New_York",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Week, by: None, tz: Some(America/New_York), start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
        "#]],
    );
}

#[test]
fn a_month() {
    check(
        "materialize ducklake://main/x
partitioned monthly start=2026-01-01",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Month, by: None, tz: None, start: Some(2026-01-01), retention: None })
            materialize: ("ducklake://main/x", Replace)
        "#]],
    );
}

#[test]
fn dynamic_by_payload() {
    check(
        "materialize ducklake://main/x
partitioned dynamic key=$.order.country",
        expect![[r#"
            partitioned: Dynamic { key: "$.order.country", tolerance: None }
            materialize: ("ducklake://main/x", Replace)
        "#]],
    );
}

#[test]
fn dynamic_by_column() {
    check(
        "materialize ducklake://main/x
partitioned dynamic key=loaded_at",
        expect![[r#"
            partitioned: Dynamic { key: "loaded_at", tolerance: None }
            materialize: ("ducklake://main/x", Replace)
        "#]],
    );
}

#[test]
fn dynamic_needs_a_key() {
    check(
        "materialize ducklake://main/x
partitioned dynamic",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            error P104 at "partitioned dynamic": `partitioned` needs `key=` when it is dynamic
              help: write `partitioned daily|hourly|weekly|monthly [by=<column>] [tz=<zone>] [start=YYYY-MM-DD]` or `partitioned dynamic key=<$.path|column> [tolerance=1h]`; a line of prose must not start with `partitioned`
        "#]],
    );
}

#[test]
fn dynamic_has_no_calendar() {
    check(
        "materialize ducklake://main/x
partitioned dynamic key=a by=b tz=UTC start=2026-01-01",
        expect![[r#"
            partitioned: Dynamic { key: "a", tolerance: None }
            materialize: ("ducklake://main/x", Replace)
            error P123 at "b": `by=` does not apply here: a dynamic partition has no window; its column is `key=`
              help: remove `by=b`
            error P123 at "UTC": `tz=` does not apply here: a dynamic partition has no calendar
              help: remove `tz=UTC`
            error P123 at "2026-01-01": `start=` does not apply here: a dynamic partition has no calendar
              help: remove `start=2026-01-01`
        "#]],
    );
}

#[test]
fn time_partitions_have_no_key() {
    check(
        "materialize ducklake://main/x
partitioned daily key=a",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
            error P123 at "a": `key=` does not apply here: a time partition has no key; the column is `by=`
              help: remove `key=a`
        "#]],
    );
}

#[test]
fn wrong_values_are_positioned() {
    check(
        "materialize ducklake://main/x
partitioned daily tz=Europe/Berln start=2026-1-31 by=a,b",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
            error P113 at "Europe/Berln": unknown time zone `Europe/Berln`
              help: did you mean `Europe/Berlin`?
            error P115 at "2026-1-31": `2026-1-31` is not a date
              help: write `YYYY-MM-DD`, such as `2026-01-31`
            error P116 at "a,b": expected one column, found 2
        "#]],
    );
}

#[test]
fn dates_must_exist() {
    check(
        "materialize ducklake://main/x
partitioned daily start=2026-02-30 tz=+02:00",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
            error P115 at "2026-02-30": `2026-02-30` is not a date
              help: write `YYYY-MM-DD`, such as `2026-01-31`
            error P113 at "+02:00": unknown time zone `+02:00`
              help: write an IANA name, such as `Europe/Berlin` or `UTC`
        "#]],
    );
}

#[test]
fn unknown_kinds_are_helped() {
    check(
        "materialize ducklake://main/x
partitioned dayly",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            error P108 at "dayly": `dayly` is not a kind of partition; expected `daily`, `hourly`, `weekly`, `monthly` or `dynamic`
              help: did you mean `daily`?
        "#]],
    );
}

#[test]
fn payload_paths_are_checked() {
    check(
        "materialize ducklake://main/x
partitioned dynamic key=$..a",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            error P108 at "$..a": `$..a` is not a path into a payload
              help: write `$.` and names separated by dots, such as `$.order.country`
        "#]],
    );
}

#[test]
fn windmill_s_format_has_no_meaning() {
    check(
        "materialize ducklake://main/x
partitioned daily format=%Y-%m-%d",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
            info P127 at "%Y-%m-%d": `format=` has no meaning: each kind of partition has one form of identity
        "#]],
    );
}

#[test]
fn views_cannot_be_partitioned() {
    check(
        "materialize view ducklake://main/x
partitioned daily",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", View)
            error P120 at "partitioned": `materialize view` cannot be partitioned
              label at "view": declared here
              help: remove `partitioned`, or materialize a plain table
        "#]],
    );
}

#[test]
fn history_cannot_be_partitioned() {
    check(
        "partitioned daily
materialize history ducklake://main/x key=a",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", History { key: ["a"], track: [], updated_at: None, close_deleted: false, order_by: None })
            error P120 at "partitioned": `materialize history` cannot be partitioned
              label at "history": declared here
              help: remove `partitioned`, or materialize a plain table
        "#]],
    );
}

#[test]
fn partitioned_needs_materialize() {
    check(
        "partitioned daily",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            warning P122 at "partitioned": `partitioned` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
        "#]],
    );
}

#[test]
fn the_identity_column_may_be_named() {
    check(
        "materialize ducklake://main/x column=_wm_partition
partitioned daily",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
            column: "_wm_partition"
        "#]],
    );
}

#[test]
fn the_identity_column_needs_partitions() {
    check(
        "materialize ducklake://main/x column=_wm_partition",
        expect![[r#"
        materialize: ("ducklake://main/x", Replace)
        column: "_wm_partition"
        error P123 at "_wm_partition": `column=` names the identity column of a partitioned table, and this one is not partitioned
          help: remove `column=`
    "#]],
    );
}

#[test]
fn retention_is_a_part_of_partitions_of_time_in_a_lake() {
    check(
        "partitioned daily\nretention 400d\nmaterialize ducklake://main/t",
        expect![[r#"
        retention: 34560000s
        partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: Some(34560000s) })
        materialize: ("ducklake://main/t", Replace)
    "#]],
    );
    check(
        "retention 400d\nmaterialize ducklake://main/t",
        expect![[r#"
        retention: 34560000s
        materialize: ("ducklake://main/t", Replace)
        error P123 at "retention 400d": `retention` needs partitions of time
          help: add `partitioned daily`, or delete old rows in the query
    "#]],
    );
    check(
        "retention 4 hundred\npartitioned daily\nmaterialize ducklake://main/t",
        expect![[r#"
        partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
        materialize: ("ducklake://main/t", Replace)
        error P114 at "4": the duration `4` has no unit
          help: write a whole number and a unit: `30s`, `10m`, `1h`, `2d`
    "#]],
    );
}
