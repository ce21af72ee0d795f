//! Windows where clocks change, and what is open, closed and expected.

use expect_test::{Expect, expect};

use super::*;

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
