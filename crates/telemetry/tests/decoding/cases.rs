//! Faults that others have met with devices, their clocks and their payloads, from the raw event to what is newest.

use expect_test::expect;
use pintail_telemetry::decode::{CloudEventsDefault, DecoderOptions};

use super::harness::*;

fn cloudevents_default() -> CloudEventsDefault {
    CloudEventsDefault::new(DecoderOptions::default())
}

#[test]
fn case_b12_a_row_that_comes_days_late_is_decoded_and_counted_and_not_the_newest() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    lake.land(&[Raw::speed("car-1", "e1", "2026-01-15T00:00:00Z", 50.0)]);
    lake.consume(decode(), &decoder);
    lake.land(&[Raw::speed("car-1", "e2", "2026-01-13T00:00:00Z", 40.0)]);
    lake.consume(decode(), &decoder);
    assert_eq!(lake.rows("SELECT \"timestamp\"::DATE FROM signals ORDER BY 1"), "2026-01-13\n2026-01-15\n");
    let latest = lake.rows("SELECT value_number, count, first_seen::DATE, last_seen::DATE FROM signals_latest");
    assert_eq!(latest, "50.0 | 2 | 2026-01-13 | 2026-01-15\n");
    lake.check(&decoder, 1);
}

#[test]
fn case_b13_a_clock_in_the_future_never_makes_the_newest_value() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    let at = |days: i64| (chrono::Utc::now() + chrono::TimeDelta::days(days)).to_rfc3339();
    lake.land(&[Raw::speed("car-1", "e1", &at(300), 10.0)]);
    lake.consume(decode(), &decoder);
    lake.land(&[Raw::speed("car-1", "e2", &at(0), 20.0)]);
    lake.consume(decode(), &decoder);
    assert_eq!(lake.rows("SELECT value_number, count FROM signals_latest"), "20.0 | 1\n");
    // What the device said is not lost: it is in the raw event and in the letter.
    let letters = "SELECT event_id, part, reason LIKE '%ahead of the clock' FROM _pintail.dead_letters";
    assert_eq!(lake.rows(letters), "e1 | signals[0] | true\n");
    lake.check(&decoder, 1);
}

#[test]
fn case_d25_two_events_of_equal_payloads_are_two_and_one_that_comes_twice_is_one() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    let event = |id: &str| Raw::speed("car-1", id, "2026-01-02T00:00:00Z", 50.0);
    lake.land(&[event("e1"), event("e2")]);
    lake.land(&[event("e2")]);
    lake.consume(decode(), &decoder);
    assert_eq!(lake.rows("SELECT cloud_event_id FROM signals ORDER BY 1"), "e1\ne2\n");
    lake.check(&decoder, 1);
}

#[test]
fn case_o72_a_time_that_is_none_is_dead_with_its_reason_and_never_now() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    lake.land(&[
        Raw::speed("car-1", "e1", "2026-01-02t03:04:05z", 1.0),
        Raw::speed("car-1", "e2", "2026-01-02T05:04:05.000000999+02:00", 2.0),
        Raw::speed("car-1", "e3", "2026-01-02 03:04:05Z", 3.0),
        Raw::speed("car-1", "e4", "2026-01-02T03:04:05+0000", 4.0),
        Raw::speed("car-1", "e5", "", 5.0),
    ]);
    lake.consume(decode(), &decoder);
    assert_eq!(
        lake.rows("SELECT cloud_event_id, \"timestamp\" FROM signals ORDER BY 1"),
        "e1 | 2026-01-02 03:04:05+00:00\ne2 | 2026-01-02 03:04:05+00:00\n"
    );
    expect![[r#"
        e3 | `speed`: expected an RFC 3339 timestamp, found the text "2026-01-02 03:04:05Z": `T` between date and time was expected at character 11
        e4 | `speed`: expected an RFC 3339 timestamp, found the text "2026-01-02T03:04:05+0000": `:` between hours and minutes of the offset was expected at character 23
        e5 | `speed`: expected an RFC 3339 timestamp, found the text "": a year of four digits was expected at character 1
    "#]].assert_eq(&lake.rows("SELECT event_id, reason FROM _pintail.dead_letters ORDER BY event_id"));
}

#[test]
fn case_p76_only_the_exact_null_island_is_never_the_newest_place() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    let place = |id: &str, second: u32, latitude: f64, longitude: f64| {
        let value = format!(r#"{{"latitude": {latitude}, "longitude": {longitude}}}"#);
        let time = format!("2026-01-02T00:00:{second:02}Z");
        let signal = format!(r#"[{{"name": "currentLocationCoordinates", "timestamp": "{time}", "value": {value}}}]"#);
        Raw::status("car-1", id, &signal)
    };
    lake.land(&[place("e1", 1, 52.1, 0.0), place("e2", 2, 0.0, 13.4), place("e3", 3, 0.0, 0.0)]);
    lake.consume(decode(), &decoder);
    assert_eq!(
        lake.rows("SELECT loc_lat, loc_lon FROM signals ORDER BY \"timestamp\""),
        "52.1 | 0.0\n0.0 | 13.4\n0.0 | 0.0\n",
        "what was sent is kept"
    );
    assert_eq!(lake.rows("SELECT loc_lat, loc_lon FROM signals_latest"), "0.0 | 13.4\n");
    lake.land(&[place("e4", 4, 91.0, 13.4), place("e5", 5, 52.1, -180.5)]);
    lake.consume(decode(), &decoder);
    assert_eq!(lake.rows("SELECT loc_lat, loc_lon FROM signals_latest"), "0.0 | 13.4\n");
    assert_eq!(lake.rows("SELECT event_id FROM _pintail.dead_letters ORDER BY 1"), "e4\ne5\n");
    lake.check(&decoder, 1);
}
