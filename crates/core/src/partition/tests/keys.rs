//! Which texts name a partition, and what is said of the others.

use expect_test::{Expect, expect};

use super::*;

fn check_keys(unit: TimeUnit, zone: &str, texts: &[&str], expect: Expect) {
    let spec = spec(unit, zone);
    let line = |text: &&str| match spec.parse_key(text) {
        Ok(key) => format!("{text} = {key}\n"),
        Err(error) => format!("{error}\n"),
    };
    expect.assert_eq(&texts.iter().map(line).collect::<String>());
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
