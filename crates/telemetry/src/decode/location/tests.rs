//! What is a place, and which parts make one.

use expect_test::{Expect, expect};

use super::*;

fn check_value(json: &str, expected: Expect) {
    let raw = RawValue::from_string(json.to_owned()).unwrap();
    let shown = match Location::parse(&raw) {
        Ok(place) => format!("{} {} {:?} {:?}", place.latitude, place.longitude, place.hdop, place.heading),
        Err(reason) => format!("error: {reason}"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn case_p76_a_place_has_both_coordinates_on_the_globe() {
    check_value(r#"{"latitude": 52.1, "longitude": -13.4, "hdop": 0.7}"#, expect!["52.1 -13.4 Some(0.7) None"]);
    check_value(r#"{"latitude": 0, "longitude": 13.4, "heading": 90}"#, expect!["0 13.4 None Some(90.0)"]);
    check_value(r#"{"latitude": 90, "longitude": -180, "hdop": null}"#, expect!["90 -180 None None"]);
    check_value(r#"{"latitude": 0, "longitude": 0}"#, expect!["0 0 None None"]);
}

#[test]
fn nothing_else_is_a_place() {
    check_value("{}", expect!["error: expected a number as `latitude`, found none"]);
    check_value(
        r#"{"latitud": 1, "longitude": 2}"#,
        expect!["error: expected a number as `latitude`, found none; is it `latitud`?"],
    );
    check_value(r#"{"hdop": 1}"#, expect!["error: expected a number as `latitude`, found none"]);
    check_value(
        r#"{"latitude": 1}"#,
        expect!["error: expected a number as `longitude`, found none; is it `latitude`?"],
    );
    check_value(
        r#"{"latitude": "1", "longitude": 2}"#,
        expect![[r#"error: expected a number as `latitude`, found the text "1""#]],
    );
    check_value(
        r#"{"latitude": 1, "longitude": 2, "hdop": "x"}"#,
        expect![[r#"error: expected a number as `hdop`, found the text "x""#]],
    );
    check_value(r#"{"latitude": 90.01, "longitude": 2}"#, expect!["error: the latitude 90.01 is outside -90 to 90"]);
    check_value(r#"{"latitude": 1, "longitude": 181}"#, expect!["error: the longitude 181 is outside -180 to 180"]);
    check_value(
        r#"{"latitude": 1e999, "longitude": 0}"#,
        expect!["error: expected a number as `latitude`, found the number 1e999"],
    );
    check_value("7", expect!["error: expected an object with latitude and longitude, found the number 7"]);
}

/// Merges parts given as (name, milliseconds, number), and shows places, then what was refused.
fn check_merge(parts: &[(&'static str, i64, f64)], expected: Expect) {
    let signal = |(index, &(name, millis, number)): (usize, &(&'static str, i64, f64))| Signal {
        index,
        name,
        timestamp: millis * 1_000,
        value: Value::Number(number),
    };
    let mut signals: Vec<Signal<'_>> = parts.iter().enumerate().map(signal).collect();
    signals.sort_by_key(|signal| (signal.timestamp, signal.name));
    let refused = merge_coordinates(&mut signals);
    let mut shown = String::new();
    for signal in &signals {
        shown += &match signal.value {
            Value::Location(place) => {
                format!("{} ms: {} {} {:?}\n", signal.timestamp / 1_000, place.latitude, place.longitude, place.hdop)
            }
            _ => format!("{} ms: {}\n", signal.timestamp / 1_000, signal.name),
        };
    }
    for (index, reason) in refused {
        shown += &format!("part {index}: {reason}\n");
    }
    expected.assert_eq(&shown);
}

#[test]
fn parts_less_than_half_a_second_apart_are_one_place_at_its_first_part() {
    check_merge(
        &[(LONGITUDE, 1_000, 13.4), (LATITUDE, 1_499, 52.1), (HDOP, 1_200, 0.7), ("speed", 1_100, 50.0)],
        expect![[r#"
            1100 ms: speed
            1000 ms: 52.1 13.4 Some(0.7)
        "#]],
    );
    check_merge(
        &[(LATITUDE, 1_000, 52.1), (LONGITUDE, 1_500, 13.4)],
        expect![[r#"
            part 0: `currentLocationLatitude` has no `currentLocationLongitude` within 500 ms
            part 1: `currentLocationLongitude` has no `currentLocationLatitude` within 500 ms
        "#]],
    );
}

#[test]
fn a_part_that_is_there_already_opens_the_next_place() {
    check_merge(
        &[(LATITUDE, 0, 1.0), (LONGITUDE, 1, 2.0), (LATITUDE, 100, 3.0), (LONGITUDE, 101, 4.0)],
        expect![[r#"
            0 ms: 1 2 None
            100 ms: 3 4 None
        "#]],
    );
}

#[test]
fn precision_without_a_place_is_no_place() {
    check_merge(
        &[(HDOP, 0, 0.7)],
        expect![[r#"
            part 0: `dimoAftermarketHDOP` has no `currentLocationLatitude` and `currentLocationLongitude` within 500 ms
        "#]],
    );
}

#[test]
fn case_p76_parts_off_the_globe_or_both_zero_are_no_place() {
    check_merge(
        &[(LATITUDE, 0, 91.0), (LONGITUDE, 0, 13.4), (HDOP, 0, 0.7)],
        expect![[r#"
            part 0: the latitude 91 is outside -90 to 90
            part 1: the latitude 91 is outside -90 to 90
            part 2: the latitude 91 is outside -90 to 90
        "#]],
    );
    check_merge(
        &[(LATITUDE, 0, 0.0), (LONGITUDE, 0, -0.0)],
        expect![[r#"
            part 0: latitude and longitude are both 0, which stands for no place
            part 1: latitude and longitude are both 0, which stands for no place
        "#]],
    );
    check_merge(
        &[(LATITUDE, 0, 0.0), (LONGITUDE, 0, 13.4)],
        expect![[r#"
            0 ms: 0 13.4 None
        "#]],
    );
}
