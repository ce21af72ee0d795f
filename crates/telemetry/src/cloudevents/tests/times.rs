//! RFC 3339, strictly.

use expect_test::expect;
use proptest::prelude::*;

use crate::cloudevents::EventTime;

fn micros(text: &str) -> i64 {
    EventTime::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).micros()
}

#[test]
fn case_o72_every_way_of_writing_an_instant_is_that_instant() {
    let expected = 1_767_323_045_000_000;
    for text in [
        "2026-01-02T03:04:05Z",
        "2026-01-02t03:04:05z",
        "2026-01-02T03:04:05.0Z",
        "2026-01-02T03:04:05.000000000Z",
        "2026-01-02T03:04:05-00:00",
        "2026-01-02T08:34:05+05:30",
        "2026-01-01T19:04:05-08:00",
        "2026-01-03T03:03:05+23:59",
    ] {
        assert_eq!(micros(text), expected, "{text}");
    }
}

#[test]
fn an_instant_that_has_no_year_of_four_digits_in_utc_is_none() {
    for text in ["0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59-23:00", "9999-12-31T23:59:60Z"] {
        let error = EventTime::parse(text).unwrap_err().to_string();
        assert_eq!(error, "a time from year 0000 to 9999 in UTC was expected at character 1", "{text}");
    }
    for text in ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0000-01-01T01:00:00+01:00"] {
        let time = EventTime::parse(text).unwrap();
        assert_eq!(EventTime::parse(&time.to_rfc3339()), Ok(time), "{text}");
    }
}

#[test]
fn digits_beyond_microseconds_are_cut_off_also_before_1970() {
    assert_eq!(micros("2026-01-02T03:04:05.123456999Z") % 1_000_000, 123_456);
    assert_eq!(micros("1969-12-31T23:59:59.999999999Z"), -1);
    assert_eq!(EventTime::from_micros(-1).micros_of_millisecond(), -1_000);
    assert_eq!(EventTime::from_micros(1_999).micros_of_millisecond(), 1_000);
    // A leap second runs on into the next minute.
    assert_eq!(micros("2016-12-31T23:59:60Z"), micros("2017-01-01T00:00:00Z"));
}

#[test]
fn case_o72_what_is_not_quite_a_time_says_where() {
    let mut told = String::new();
    for text in [
        "",
        "lunchtime",
        "2026-01-02",
        "2026-01-02T03:04Z",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05+0000",
        "2026-01-02T03:04:05+05",
        "2026-01-02T03:04:05+25:00",
        "2026-01-02T03:04:05.Z",
        "2026-02-30T03:04:05Z",
        "2026-13-01T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:04:05Z ",
        "2026-01-02T03:04:05é",
    ] {
        told += &format!("{text:?}: {}\n", EventTime::parse(text).expect_err(text));
    }
    expect![[r#"
        "": a year of four digits was expected at character 1
        "lunchtime": a year of four digits was expected at character 1
        "2026-01-02": `T` between date and time was expected at character 11
        "2026-01-02T03:04Z": `:` and the seconds were expected at character 17
        "2026-01-02 03:04:05Z": `T` between date and time was expected at character 11
        "2026-01-02T03:04:05": an offset, `Z` or such as `+01:00`, was expected at character 20
        "2026-01-02T03:04:05+0000": `:` between hours and minutes of the offset was expected at character 23
        "2026-01-02T03:04:05+05": `:` between hours and minutes of the offset was expected at character 23
        "2026-01-02T03:04:05+25:00": hours of the offset from 00 to 23 were expected at character 21
        "2026-01-02T03:04:05.Z": digits after the point were expected at character 21
        "2026-02-30T03:04:05Z": a day of that month was expected at character 9
        "2026-13-01T03:04:05Z": a month from 01 to 12 was expected at character 6
        "2026-01-02T24:00:00Z": an hour from 00 to 23 was expected at character 12
        "2026-01-02T03:04:05Z ": the end was expected at character 21
        "2026-01-02T03:04:05é": an offset, `Z` or such as `+01:00`, was expected at character 20
    "#]]
    .assert_eq(&told);
}

proptest! {
    #[test]
    fn a_time_that_is_written_is_read_back(micros in -62_135_596_800_000_000_i64..253_402_300_799_000_000) {
        let time = EventTime::from_micros(micros);
        prop_assert_eq!(EventTime::parse(&time.to_rfc3339()), Ok(time));
    }

    #[test]
    fn no_text_panics(text in ".{0,40}") {
        let _ = EventTime::parse(&text);
    }
}
