//! The calendar as tables of small facts, and the tiling of time as a property over many zones.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::annotation::PartitionMap;

fn spec(unit: TimeUnit, zone: &str) -> TimeSpec {
    let tz = if zone.is_empty() { None } else { Some(zone.parse().expect("a known zone")) };
    TimeSpec { unit, by: None, tz, start: None }
}

fn key(text: &str) -> PartitionKey {
    PartitionKey(text.to_owned())
}

fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).expect("a valid instant").to_utc()
}

fn date(text: &str) -> NaiveDate {
    text.parse().expect("a valid date")
}

fn texts(partitions: Partitions) -> String {
    partitions.map(|key| key.0).collect::<Vec<_>>().join(" ")
}

/// Checks the window of each key: its bounds in UTC and its length.
fn check_windows(unit: TimeUnit, zone: &str, keys: &[&str], expect: Expect) {
    let spec = spec(unit, zone);
    let line = |text: &&str| match spec.window(&key(text)) {
        Ok(window) => {
            let length = window.end - window.start;
            let minutes = length.num_minutes() % 60;
            let length = if minutes == 0 {
                format!("{} h", length.num_hours())
            } else {
                format!("{} min", length.num_minutes())
            };
            format!("{text}: {} .. {} ({length})\n", window.start.format("%F %H:%M"), window.end.format("%F %H:%M"))
        }
        Err(error) => format!("{text}: {error}\n"),
    };
    expect.assert_eq(&keys.iter().map(line).collect::<String>());
}

fn check_keys(unit: TimeUnit, zone: &str, texts: &[&str], expect: Expect) {
    let spec = spec(unit, zone);
    let line = |text: &&str| match spec.parse_key(text) {
        Ok(key) => format!("{text} = {key}\n"),
        Err(error) => format!("{error}\n"),
    };
    expect.assert_eq(&texts.iter().map(line).collect::<String>());
}

#[test]
fn days_have_23_or_25_hours_where_clocks_change() {
    check_windows(
        TimeUnit::Day,
        "America/New_York",
        &["2026-03-07", "2026-03-08", "2026-11-01"],
        expect![[r#"
        2026-03-07: 2026-03-07 05:00 .. 2026-03-08 05:00 (24 h)
        2026-03-08: 2026-03-08 05:00 .. 2026-03-09 04:00 (23 h)
        2026-11-01: 2026-11-01 04:00 .. 2026-11-02 05:00 (25 h)
    "#]],
    );
}

#[test]
fn a_day_whose_midnight_does_not_exist_starts_at_one() {
    check_windows(
        TimeUnit::Day,
        "America/Santiago",
        &["2026-09-05", "2026-09-06", "2026-04-04"],
        expect![[r#"
        2026-09-05: 2026-09-05 04:00 .. 2026-09-06 04:00 (24 h)
        2026-09-06: 2026-09-06 04:00 .. 2026-09-07 03:00 (23 h)
        2026-04-04: 2026-04-04 03:00 .. 2026-04-05 04:00 (25 h)
    "#]],
    );
}

#[test]
fn a_day_whose_midnight_happens_twice_starts_at_the_first() {
    check_windows(
        TimeUnit::Day,
        "Atlantic/Azores",
        &["2026-10-24", "2026-10-25"],
        expect![[r#"
        2026-10-24: 2026-10-24 00:00 .. 2026-10-25 00:00 (24 h)
        2026-10-25: 2026-10-25 00:00 .. 2026-10-26 01:00 (25 h)
    "#]],
    );
    check_windows(
        TimeUnit::Day,
        "America/St_Johns",
        &["2006-10-28", "2006-10-29"],
        expect![[r#"
        2006-10-28: 2006-10-28 02:30 .. 2006-10-29 02:30 (24 h)
        2006-10-29: 2006-10-29 02:30 .. 2006-10-30 03:30 (25 h)
    "#]],
    );
}

#[test]
fn a_date_that_the_zone_skipped_is_no_partition() {
    check_windows(
        TimeUnit::Day,
        "Pacific/Apia",
        &["2011-12-29", "2011-12-30", "2011-12-31"],
        expect![[r#"
        2011-12-29: 2011-12-29 10:00 .. 2011-12-30 10:00 (24 h)
        2011-12-30: there is no partition `2011-12-30`: the clock of Pacific/Apia skipped that date
        2011-12-31: 2011-12-30 10:00 .. 2011-12-31 10:00 (24 h)
    "#]],
    );
    let apia = spec(TimeUnit::Day, "Pacific/Apia");
    assert_eq!(apia.next(&key("2011-12-29")), Ok(key("2011-12-31")));
    assert_eq!(apia.previous(&key("2011-12-31")), Ok(key("2011-12-29")));
    let range = apia.range(&key("2011-12-28"), &key("2012-01-01")).unwrap();
    assert_eq!(range.remaining(), 4);
    assert_eq!(texts(range), "2011-12-28 2011-12-29 2011-12-31 2012-01-01");
}

#[test]
fn hours_that_repeat_are_distinct_and_those_that_vanish_are_none() {
    check_windows(
        TimeUnit::Hour,
        "America/New_York",
        &["2026-11-01T01-0400", "2026-11-01T01-0500", "2026-03-08T01-0500", "2026-03-08T02-0500", "2026-03-08T03-0400"],
        expect![[r#"
            2026-11-01T01-0400: 2026-11-01 05:00 .. 2026-11-01 06:00 (1 h)
            2026-11-01T01-0500: 2026-11-01 06:00 .. 2026-11-01 07:00 (1 h)
            2026-03-08T01-0500: 2026-03-08 06:00 .. 2026-03-08 07:00 (1 h)
            2026-03-08T02-0500: there is no partition `2026-03-08T02-0500`: the clock of America/New_York never showed that hour with that offset; the hour at that time is `2026-03-08T03-0400`
            2026-03-08T03-0400: 2026-03-08 07:00 .. 2026-03-08 08:00 (1 h)
        "#]],
    );
}

#[test]
fn hours_of_half_and_quarter_hour_zones_begin_on_the_local_hour() {
    check_windows(
        TimeUnit::Hour,
        "Asia/Kolkata",
        &["2026-05-16T09+0530"],
        expect![[r#"
        2026-05-16T09+0530: 2026-05-16 03:30 .. 2026-05-16 04:30 (1 h)
    "#]],
    );
    check_windows(
        TimeUnit::Hour,
        "Asia/Kathmandu",
        &["2026-05-16T09+0545"],
        expect![[r#"
        2026-05-16T09+0545: 2026-05-16 03:15 .. 2026-05-16 04:15 (1 h)
    "#]],
    );
}

#[test]
fn a_change_by_half_an_hour_makes_half_hours_of_their_own() {
    let zone = "Australia/Lord_Howe";
    check_windows(
        TimeUnit::Hour,
        zone,
        &[
            "2026-04-05T01+1100",
            "2026-04-05T01+1030",
            "2026-04-05T02+1030",
            "2026-10-04T01+1030",
            "2026-10-04T02+1100",
            "2026-10-04T03+1100",
        ],
        expect![[r#"
            2026-04-05T01+1100: 2026-04-04 14:00 .. 2026-04-04 15:00 (1 h)
            2026-04-05T01+1030: 2026-04-04 15:00 .. 2026-04-04 15:30 (30 min)
            2026-04-05T02+1030: 2026-04-04 15:30 .. 2026-04-04 16:30 (1 h)
            2026-10-04T01+1030: 2026-10-03 14:30 .. 2026-10-03 15:30 (1 h)
            2026-10-04T02+1100: 2026-10-03 15:30 .. 2026-10-03 16:00 (30 min)
            2026-10-04T03+1100: 2026-10-03 16:00 .. 2026-10-03 17:00 (1 h)
        "#]],
    );
    let hours = spec(TimeUnit::Hour, zone);
    let day = spec(TimeUnit::Day, zone).window(&key("2026-04-05")).unwrap();
    assert_eq!(day.end - day.start, TimeDelta::minutes(24 * 60 + 30));
    assert_eq!(hours.overlapping(day).remaining(), 25);
}

#[test]
fn the_number_of_hours_of_a_day_is_that_of_its_clock() {
    for (zone, day, hours) in [
        ("", "2026-03-08", 24),
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        ("America/New_York", "2026-06-01", 24),
        ("America/Santiago", "2026-09-06", 23),
    ] {
        let window = spec(TimeUnit::Day, zone).window(&key(day)).unwrap();
        assert_eq!(spec(TimeUnit::Hour, zone).overlapping(window).remaining(), hours, "{zone} {day}");
    }
}

#[test]
fn iso_weeks_belong_to_the_year_of_their_thursday() {
    check_windows(
        TimeUnit::Week,
        "",
        &["2026-W01", "2026-W53", "2020-W53", "2025-W53"],
        expect![[r#"
        2026-W01: 2025-12-29 00:00 .. 2026-01-05 00:00 (168 h)
        2026-W53: 2026-12-28 00:00 .. 2027-01-04 00:00 (168 h)
        2020-W53: 2020-12-28 00:00 .. 2021-01-04 00:00 (168 h)
        2025-W53: there is no partition `2025-W53`: the ISO year has no such week
    "#]],
    );
    let weeks = spec(TimeUnit::Week, "");
    for (instant, week) in [("2027-01-01T00:00:00Z", "2026-W53"), ("2024-12-30T00:00:00Z", "2025-W01")] {
        assert_eq!(weeks.key_of(at(instant)), key(week));
    }
}

#[test]
fn months_follow_the_calendar() {
    check_windows(
        TimeUnit::Month,
        "Europe/Berlin",
        &["2026-02", "2026-03", "2026-12"],
        expect![[r#"
        2026-02: 2026-01-31 23:00 .. 2026-02-28 23:00 (672 h)
        2026-03: 2026-02-28 23:00 .. 2026-03-31 22:00 (743 h)
        2026-12: 2026-11-30 23:00 .. 2026-12-31 23:00 (744 h)
    "#]],
    );
}

#[test]
fn identities_are_canonical_and_exact_starts_are_accepted() {
    check_keys(
        TimeUnit::Day,
        "",
        &[
            "2026-05-16",
            "2026-05-16T00:00:00Z",
            "2026-05-16T02:00:00+02:00",
            "2026-05-16T00:00:01Z",
            "2026-5-16",
            "2026-02-30",
            "0000-01-01",
            "today",
            "",
            "2026-05",
            "２０２６-05-16",
        ],
        expect![[r#"
            2026-05-16 = 2026-05-16
            2026-05-16T00:00:00Z = 2026-05-16
            2026-05-16T02:00:00+02:00 = 2026-05-16
            `2026-05-16T00:00:01Z` is not the start of a daily partition; the one that holds it is `2026-05-16`
            `2026-5-16` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`
            there is no partition `2026-02-30`: the calendar has no such date
            there is no partition `0000-01-01`: years are 0001 to 9999
            `today` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`
            `` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`
            `2026-05` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`
            `２０２６-05-16` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`
        "#]],
    );
    check_keys(
        TimeUnit::Day,
        "America/New_York",
        &["2026-05-16T04:00:00Z", "2026-05-16T00:00:00-04:00", "2026-05-16T00:00:00Z"],
        expect![[r#"
            2026-05-16T04:00:00Z = 2026-05-16
            2026-05-16T00:00:00-04:00 = 2026-05-16
            `2026-05-16T00:00:00Z` is not the start of a daily partition; the one that holds it is `2026-05-15`
        "#]],
    );
    check_keys(
        TimeUnit::Week,
        "",
        &["2026-W20", "2026-W54", "2025-W53", "2026-W00", "2026-w20", "2026-05-11", "2026-05-16"],
        expect![[r#"
            2026-W20 = 2026-W20
            there is no partition `2026-W54`: the ISO year has no such week
            there is no partition `2025-W53`: the ISO year has no such week
            there is no partition `2026-W00`: the ISO year has no such week
            `2026-w20` is no weekly partition: expected `YYYY-Www`, the ISO week, such as `2026-W20`
            2026-05-11 = 2026-W20
            `2026-05-16` is not the start of a weekly partition; the one that holds it is `2026-W20`
        "#]],
    );
    check_keys(
        TimeUnit::Month,
        "",
        &["2026-05", "2026-13", "2026-05-01", "2026-05-02", "2026-05-01T00:00:00Z"],
        expect![[r#"
            2026-05 = 2026-05
            there is no partition `2026-13`: months are 01 to 12
            2026-05-01 = 2026-05
            `2026-05-02` is not the start of a monthly partition; the one that holds it is `2026-05`
            2026-05-01T00:00:00Z = 2026-05
        "#]],
    );
}

#[test]
fn an_hour_in_a_zone_needs_its_offset() {
    check_keys(
        TimeUnit::Hour,
        "",
        &["2026-05-16T09", "2026-05-16T09:00:00Z", "2026-05-16T24", "2026-05-16T09-0400", "2026-05-16"],
        expect![[r#"
            2026-05-16T09 = 2026-05-16T09
            2026-05-16T09:00:00Z = 2026-05-16T09
            there is no partition `2026-05-16T24`: hours are 00 to 23
            `2026-05-16T09-0400` is no hourly partition: expected `YYYY-MM-DDTHH` in UTC, such as `2026-05-16T12`
            `2026-05-16` is no hourly partition: expected `YYYY-MM-DDTHH` in UTC, such as `2026-05-16T12`
        "#]],
    );
    check_keys(
        TimeUnit::Hour,
        "America/New_York",
        &[
            "2026-05-16T09-0400",
            "2026-05-16T09-0500",
            "2026-05-16T09",
            "2026-11-01T01",
            "2026-03-08T02",
            "2026-05-16T13:00:00Z",
            "2026-05-16",
        ],
        expect![[r#"
            2026-05-16T09-0400 = 2026-05-16T09-0400
            there is no partition `2026-05-16T09-0500`: the clock of America/New_York never showed that hour with that offset; the hour at that time is `2026-05-16T10-0400`
            `2026-05-16T09` has no offset and the script counts in America/New_York: write `2026-05-16T09-0400`
            `2026-11-01T01` has no offset and the script counts in America/New_York: write `2026-11-01T01-0400` or `2026-11-01T01-0500`
            there is no partition `2026-03-08T02`: the clock of America/New_York skipped that hour
            2026-05-16T13:00:00Z = 2026-05-16T09-0400
            `2026-05-16` is no hourly partition: expected `YYYY-MM-DDTHH±HHMM`, the local hour with its offset, such as `2026-05-16T08-0400`
        "#]],
    );
    check_keys(
        TimeUnit::Hour,
        "Australia/Lord_Howe",
        &["2026-10-04T02", "2026-04-05T01"],
        expect![[r#"
        `2026-10-04T02` has no offset and the script counts in Australia/Lord_Howe: write `2026-10-04T02+1100`
        `2026-04-05T01` has no offset and the script counts in Australia/Lord_Howe: write `2026-04-05T01+1100` or `2026-04-05T01+1030`
    "#]],
    );
    check_keys(
        TimeUnit::Hour,
        "UTC",
        &["2026-05-16T09"],
        expect![[r#"
        2026-05-16T09 = 2026-05-16T09
    "#]],
    );
    check_keys(
        TimeUnit::Hour,
        "Europe/London",
        &["2026-01-16T09+0000", "2026-01-16T09-0000", "2026-01-16T09+000000"],
        expect![[r#"
            2026-01-16T09+0000 = 2026-01-16T09+0000
            `2026-01-16T09-0000` is no hourly partition: expected `YYYY-MM-DDTHH±HHMM`, the local hour with its offset, such as `2026-05-16T13+0100`
            `2026-01-16T09+000000` is no hourly partition: expected `YYYY-MM-DDTHH±HHMM`, the local hour with its offset, such as `2026-05-16T13+0100`
        "#]],
    );
}

#[test]
fn hours_of_local_mean_time_carry_seconds() {
    let hours = spec(TimeUnit::Hour, "America/New_York");
    let hour = hours.key_of(at("1850-01-01T12:00:00Z"));
    assert_eq!(hour, key("1850-01-01T07-045602"));
    assert_eq!(hours.parse_key(hour.as_str()), Ok(hour));
}

#[test]
fn local_dates_bound_a_date_column() {
    for (unit, text, first, after) in [
        (TimeUnit::Day, "2026-12-31", "2026-12-31", "2027-01-01"),
        (TimeUnit::Week, "2026-W53", "2026-12-28", "2027-01-04"),
        (TimeUnit::Month, "2026-12", "2026-12-01", "2027-01-01"),
    ] {
        assert_eq!(spec(unit, "America/New_York").local_dates(&key(text)), Ok((date(first), date(after))));
    }
    assert_eq!(spec(TimeUnit::Hour, "").local_dates(&key("2026-05-16T09")), Err(PartitionError::NoDates));
}

#[test]
fn the_day_that_just_closed_is_the_local_one() {
    let newest = |zone: &str, now: &str| spec(TimeUnit::Day, zone).last_closed(at(now)).0;
    assert_eq!(newest("", "2026-05-16T00:00:00Z"), "2026-05-15");
    assert_eq!(newest("", "2026-05-15T23:59:59Z"), "2026-05-14");
    assert_eq!(newest("America/New_York", "2026-05-16T02:00:00Z"), "2026-05-14");
    assert_eq!(newest("Asia/Kolkata", "2026-05-15T18:30:00Z"), "2026-05-15");
}

#[test]
fn a_partition_is_open_from_its_start_until_its_end() {
    let days = spec(TimeUnit::Day, "America/New_York");
    let day = key("2026-05-16");
    let state = |now: &str| (days.is_future(&day, at(now)).unwrap(), days.is_open(&day, at(now)).unwrap());
    assert_eq!(state("2026-05-16T03:59:59Z"), (true, false));
    assert_eq!(state("2026-05-16T04:00:00Z"), (false, true));
    assert_eq!(state("2026-05-17T03:59:59Z"), (false, true));
    assert_eq!(state("2026-05-17T04:00:00Z"), (false, false));
}

#[test]
fn expected_runs_from_the_start_to_the_last_closed_partition() {
    let expected = |unit, start: Option<&str>| {
        let spec = TimeSpec { start: start.map(date), ..spec(unit, "America/New_York") };
        texts(spec.expected(at("2026-05-16T02:00:00Z")))
    };
    assert_eq!(expected(TimeUnit::Day, Some("2026-05-12")), "2026-05-12 2026-05-13 2026-05-14");
    assert_eq!(expected(TimeUnit::Week, Some("2026-05-01")), "2026-W18 2026-W19");
    assert_eq!(expected(TimeUnit::Month, Some("2026-02-14")), "2026-02 2026-03 2026-04");
    assert_eq!(expected(TimeUnit::Day, Some("2026-05-15")), "");
    assert_eq!(expected(TimeUnit::Day, Some("2030-01-01")), "");
    assert_eq!(expected(TimeUnit::Day, None), "");
}

#[test]
fn a_range_includes_both_ends_and_does_not_run_backwards() {
    let days = spec(TimeUnit::Day, "");
    let range = days.range(&key("2026-02-27"), &key("2026-03-01")).unwrap();
    assert_eq!(texts(range), "2026-02-27 2026-02-28 2026-03-01");
    let backwards = days.range(&key("2026-03-01"), &key("2026-02-27")).unwrap_err();
    assert_eq!(backwards.to_string(), "the range `2026-03-01` to `2026-02-27` runs backwards");
}

#[test]
fn long_ranges_are_counted_without_being_walked() {
    for (unit, from, to, count) in [
        (TimeUnit::Day, "0001-01-01", "9999-12-31", 3_652_059),
        (TimeUnit::Week, "2020-W53", "2021-W01", 2),
        (TimeUnit::Month, "0001-01", "9999-12", 119_988),
        (TimeUnit::Hour, "0001-01-01T00", "9999-12-31T23", 87_649_416),
    ] {
        let range = spec(unit, "").range(&key(from), &key(to)).unwrap();
        assert_eq!(range.remaining(), count);
        assert_eq!(range.into_iter().next(), Some(key(from)));
    }
}

#[test]
fn instants_outside_the_calendar_have_keys_that_no_window_holds() {
    for unit in [TimeUnit::Hour, TimeUnit::Day, TimeUnit::Week, TimeUnit::Month] {
        let spec = spec(unit, "America/New_York");
        for instant in [DateTime::<Utc>::MAX_UTC, DateTime::<Utc>::MIN_UTC, at("0000-12-31T00:00:00Z")] {
            assert!(spec.window(&spec.key_of(instant)).is_err(), "{unit:?} {instant}");
        }
    }
}

fn check_map_of(up: Option<&TimeSpec>, upstream: &str, down: &TimeSpec, map: PartitionMap, expect: Expect) {
    let text = match map_partitions(up, Some(&key(upstream)), down, map) {
        Ok(Mapping { targets: Targets::These(partitions), awaits_all }) => {
            format!("{}{}", texts(partitions), if awaits_all { " when all are present" } else { "" })
        }
        Ok(mapping) => format!("{:?}", mapping.targets),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&text);
}

#[test]
fn mappings_are_inferred_from_the_kinds_and_zones() {
    let hourly = spec(TimeUnit::Hour, "");
    let daily = spec(TimeUnit::Day, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    assert_eq!(infer_map(Some(&daily), &daily), PartitionMap::Identity);
    assert_eq!(infer_map(Some(&spec(TimeUnit::Day, "Etc/UTC")), &daily), PartitionMap::Identity);
    assert_eq!(infer_map(Some(&hourly), &daily), PartitionMap::Coarsen);
    assert_eq!(infer_map(Some(&daily), &hourly), PartitionMap::FanOut);
    assert_eq!(infer_map(Some(&daily), &local), PartitionMap::Coarsen);
    assert_eq!(infer_map(None, &daily), PartitionMap::Latest);
}

#[test]
fn an_upstream_partition_maps_to_all_that_share_its_time() {
    let hourly = spec(TimeUnit::Hour, "");
    let daily = spec(TimeUnit::Day, "");
    let weekly = spec(TimeUnit::Week, "");
    let monthly = spec(TimeUnit::Month, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    let day = "2026-05-16";
    check_map_of(Some(&daily), day, &daily, PartitionMap::Identity, expect!["2026-05-16"]);
    check_map_of(
        Some(&hourly),
        "2026-05-16T23",
        &daily,
        PartitionMap::Coarsen,
        expect!["2026-05-16 when all are present"],
    );
    check_map_of(Some(&hourly), "2026-05-16T23", &daily, PartitionMap::Partial, expect!["2026-05-16"]);
    check_map_of(
        Some(&monthly),
        "2026-02",
        &weekly,
        PartitionMap::FanOut,
        expect!["2026-W05 2026-W06 2026-W07 2026-W08 2026-W09"],
    );
    check_map_of(
        Some(&weekly),
        "2026-W18",
        &monthly,
        PartitionMap::Coarsen,
        expect!["2026-04 2026-05 when all are present"],
    );
    check_map_of(
        Some(&daily),
        day,
        &local,
        PartitionMap::Coarsen,
        expect!["2026-05-15 2026-05-16 when all are present"],
    );
    check_map_of(Some(&daily), day, &daily, PartitionMap::Lookback(2), expect!["2026-05-16 2026-05-17 2026-05-18"]);
    check_map_of(Some(&daily), day, &daily, PartitionMap::All, expect!["All"]);
    check_map_of(Some(&daily), day, &daily, PartitionMap::Latest, expect!["Latest"]);
}

#[test]
fn a_mapping_that_does_not_fit_says_what_would() {
    let hourly = spec(TimeUnit::Hour, "");
    let daily = spec(TimeUnit::Day, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    check_map_of(
        Some(&hourly),
        "2026-05-16T23",
        &daily,
        PartitionMap::Identity,
        expect!["`map=identity` does not fit: the upstream is hourly and the script daily"],
    );
    check_map_of(
        Some(&daily),
        "2026-05-16",
        &local,
        PartitionMap::Identity,
        expect!["`map=identity` does not fit: the upstream counts in UTC and the script in America/New_York"],
    );
    check_map_of(
        Some(&daily),
        "2026-05-16",
        &hourly,
        PartitionMap::Coarsen,
        expect!["`map=coarsen` does not fit: the upstream is daily, coarser than the hourly script; use `fan_out`"],
    );
    check_map_of(
        Some(&hourly),
        "2026-05-16T23",
        &daily,
        PartitionMap::FanOut,
        expect![
            "`map=fan_out` does not fit: the upstream is hourly, finer than the daily script; use `coarsen` or `partial`"
        ],
    );
    check_map_of(
        None,
        "eu",
        &daily,
        PartitionMap::Lookback(2),
        expect!["`map=lookback=2` does not fit: the upstream has no time partitions; use `all` or `latest`"],
    );
}

#[test]
fn an_upstream_written_as_a_whole_touches_every_partition() {
    let daily = spec(TimeUnit::Day, "");
    let mapping = map_partitions(Some(&daily), None, &daily, PartitionMap::Identity).unwrap();
    assert_eq!(mapping.targets, Targets::All);
}

#[test]
fn required_partitions_are_what_a_slice_reads() {
    let required =
        |up: &TimeSpec, down: &TimeSpec, text: &str, map| match required_partitions(up, down, &key(text), map) {
            Ok(Targets::These(partitions)) => format!("{} {}", partitions.remaining(), texts(partitions)),
            other => format!("{other:?}"),
        };
    let daily = spec(TimeUnit::Day, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    let hours = required(&spec(TimeUnit::Hour, "America/New_York"), &local, "2026-03-08", PartitionMap::Coarsen);
    assert!(hours.starts_with("23 2026-03-08T00-0500 2026-03-08T01-0500 2026-03-08T03-0400 "), "{hours}");
    assert_eq!(required(&daily, &local, "2026-05-16", PartitionMap::Coarsen), "2 2026-05-16 2026-05-17");
    assert_eq!(required(&daily, &daily, "2026-03-01", PartitionMap::Lookback(2)), "3 2026-02-27 2026-02-28 2026-03-01");
    assert_eq!(required(&daily, &daily, "2026-03-01", PartitionMap::All), "Ok(All)");
}

#[test]
fn symbolic_targets_are_resolved_against_the_clock() {
    let daily = TimeSpec { start: Some(date("2026-05-13")), ..spec(TimeUnit::Day, "") };
    let resolve = |targets: Targets| texts(targets.resolve(&daily, at("2026-05-16T12:00:00Z")).unwrap());
    assert_eq!(resolve(Targets::Latest), "2026-05-15");
    assert_eq!(resolve(Targets::All), "2026-05-13 2026-05-14 2026-05-15");
}

#[test]
fn an_argument_of_another_kind_is_translated() {
    let translate = |unit, zone: &str, text: &str| match translate_argument(text, &spec(unit, zone)) {
        Ok(partitions) if 6 < partitions.remaining() => {
            let count = partitions.remaining();
            let mut partitions = partitions;
            format!("{} … {count} in all\n", partitions.next().unwrap())
        }
        Ok(partitions) => format!("{}\n", texts(partitions)),
        Err(error) => format!("{error}\n"),
    };
    let ny = "America/New_York";
    let lines = [
        translate(TimeUnit::Day, "", "2026-05-16"),
        translate(TimeUnit::Day, "", "2026-05-16T09"),
        translate(TimeUnit::Day, "", "2026-05-16T23-0400"),
        translate(TimeUnit::Day, "", "2026-05"),
        translate(TimeUnit::Hour, ny, "2026-11-01"),
        translate(TimeUnit::Month, ny, "2026-05-16"),
        translate(TimeUnit::Week, "", "2026-05-16"),
        translate(TimeUnit::Month, "", "2026-W18"),
        translate(TimeUnit::Hour, "Asia/Kolkata", "2026-05-16T09-0400"),
        translate(TimeUnit::Hour, "", "2026-05-16T09-0400"),
        translate(TimeUnit::Hour, ny, "2026-05-16T09"),
        translate(TimeUnit::Day, ny, "2026-05-16T09"),
        translate(TimeUnit::Day, ny, "2026-05-16T02"),
        translate(TimeUnit::Day, "Pacific/Apia", "2011-12-30"),
        translate(TimeUnit::Hour, "Pacific/Apia", "2011-12-30"),
        translate(TimeUnit::Day, "", "yesterday"),
    ];
    expect![[r#"
        2026-05-16
        2026-05-16
        2026-05-17
        2026-05-01 … 31 in all
        2026-11-01T00-0400 … 25 in all
        2026-05
        2026-W20
        2026-04 2026-05
        2026-05-16T18+0530 2026-05-16T19+0530
        2026-05-16T13
        `2026-05-16T09` has no offset and the script counts in America/New_York: write `2026-05-16T09-0400`
        2026-05-16
        `2026-05-16T02` has no offset and the script counts in America/New_York: write `2026-05-16T02-0400`
        there is no partition `2011-12-30`: the clock of Pacific/Apia skipped that date
        there is no partition `2011-12-30`: the clock of Pacific/Apia skipped that date
        `yesterday` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`
    "#]]
    .assert_eq(&lines.concat());
}

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

fn any_zone() -> impl Strategy<Value = Tz> {
    // The odd ones as often as all others together.
    let odd = [
        "Pacific/Apia",
        "America/Santiago",
        "Australia/Lord_Howe",
        "America/St_Johns",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ];
    let odd: Vec<Tz> = odd.iter().map(|name| name.parse().expect("a known zone")).collect();
    prop_oneof![prop::sample::select(TZ_VARIANTS.to_vec()), prop::sample::select(odd)]
}

fn any_unit() -> impl Strategy<Value = TimeUnit> {
    prop::sample::select(vec![TimeUnit::Hour, TimeUnit::Day, TimeUnit::Week, TimeUnit::Month])
}

/// Instants from 1800 to 2150, in milliseconds.
fn any_instant() -> impl Strategy<Value = DateTime<Utc>> {
    (-5_364_662_400_000_i64..5_680_281_600_000)
        .prop_map(|millis| DateTime::from_timestamp_millis(millis).expect("in range"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_instant_lies_in_the_window_of_its_key(unit in any_unit(), zone in any_zone(), instant in any_instant()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None };
        let key = spec.key_of(instant);
        let window = spec.window(&key).unwrap();
        prop_assert!(window.start <= instant && instant < window.end);
        prop_assert_eq!(spec.parse_key(key.as_str()), Ok(key.clone()));
        prop_assert_eq!(spec.key_of(window.start), key.clone());
        prop_assert_eq!(spec.key_of(window.end - TimeDelta::nanoseconds(1)), key);
    }

    #[test]
    fn windows_tile_time(unit in any_unit(), zone in any_zone(), instant in any_instant()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None };
        let mut key = spec.key_of(instant);
        for _ in 0..40 {
            let next = spec.next(&key).unwrap();
            prop_assert_eq!(spec.window(&key).unwrap().end, spec.window(&next).unwrap().start);
            prop_assert_eq!(spec.previous(&next).unwrap(), key);
            key = next;
        }
    }

    #[test]
    fn counting_equals_walking(unit in any_unit(), zone in any_zone(), start in any_instant(), steps in 0_i64..60) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None };
        let length = match unit {
            TimeUnit::Hour => TimeDelta::hours(steps),
            TimeUnit::Day => TimeDelta::days(steps),
            TimeUnit::Week => TimeDelta::weeks(steps),
            TimeUnit::Month => TimeDelta::days(30 * steps),
        };
        let partitions = spec.overlapping(Window { start, end: start + length });
        prop_assert_eq!(partitions.remaining(), partitions.fold(0, |count, _| count + 1));
    }

    #[test]
    fn keys_are_safe_in_paths_and_shells(unit in any_unit(), zone in any_zone(), instant in any_instant()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None };
        let key = spec.key_of(instant);
        prop_assert!(key.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'+'));
    }

    #[test]
    fn a_required_partition_maps_back(
        up in (any_unit(), any_zone()), down in (any_unit(), any_zone()), instant in any_instant(), before in 0_u32..3,
    ) {
        let upstream = TimeSpec { unit: up.0, by: None, tz: Some(up.1), start: None };
        let downstream = TimeSpec { unit: down.0, by: None, tz: Some(down.1), start: None };
        let map = if before == 0 { infer_map(Some(&upstream), &downstream) } else { PartitionMap::Lookback(before) };
        let slice = downstream.key_of(instant);
        let Targets::These(required) = required_partitions(&upstream, &downstream, &slice, map).unwrap() else {
            return Err(TestCaseError::fail("inferred maps are explicit"));
        };
        for key in required.take(5) {
            let mapping = map_partitions(Some(&upstream), Some(&key), &downstream, map).unwrap();
            let Targets::These(mut targets) = mapping.targets else { return Err(TestCaseError::fail("explicit")) };
            prop_assert!(targets.any(|target| target == slice), "{key} does not lead back to {slice}");
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,24}", unit in any_unit(), zone in any_zone()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None };
        let _ = spec.parse_key(&text);
        let _ = translate_argument(&text, &spec);
    }
}

#[test]
fn every_change_of_every_clock_lies_between_windows_or_inside_one() {
    // The days around every change of offset, where tiling is most easily broken.
    for zone in TZ_VARIANTS {
        let days = TimeSpec { unit: TimeUnit::Day, by: None, tz: Some(zone), start: None };
        let hours = TimeSpec { unit: TimeUnit::Hour, ..days.clone() };
        let mut day = at("1990-01-01T00:00:00Z");
        let mut offset = zone::offset_at(zone, day);
        while day < at("2030-01-01T00:00:00Z") {
            let next = day + TimeDelta::days(1);
            let next_offset = zone::offset_at(zone, next);
            if offset != next_offset {
                assert_tiles(&days, day - TimeDelta::days(1), next + TimeDelta::days(1));
                assert_tiles(&hours, day, next);
            }
            (day, offset) = (next, next_offset);
        }
    }
}

fn assert_tiles(spec: &TimeSpec, from: DateTime<Utc>, to: DateTime<Utc>) {
    let mut end: Option<DateTime<Utc>> = None;
    for key in spec.overlapping(Window { start: from, end: to }) {
        let window = spec.window(&key).unwrap();
        assert!(window.start < window.end, "{key} is empty in {}", spec.zone());
        assert_eq!(spec.key_of(window.start), key, "in {}", spec.zone());
        if let Some(end) = end {
            assert_eq!(end, window.start, "{key} does not follow in {}", spec.zone());
        }
        end = Some(window.end);
    }
    assert!(end.is_some_and(|end| to <= end));
}
