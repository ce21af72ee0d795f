//! What each kind of signal takes, and what is said of the rest.

use expect_test::{Expect, expect};

use super::*;

const NOW: i64 = 1_764_417_600_000_000;

/// Decodes an array of signals; shows rows as name, microseconds after 2025-11-29T00:00, value; then faults.
fn check(json: &str, expected: Expect) {
    let raw: Vec<&RawValue> = serde_json::from_str(json).unwrap();
    let mut faults = Vec::new();
    let signals = decode_signals(&raw, NOW, &mut NearNames::default(), &mut faults);
    let mut shown = String::new();
    for signal in signals {
        let value = match &signal.value {
            Value::Number(number) => format!("{number:?}"),
            Value::Text(text) => format!("{text:?}"),
            Value::Location(place) => format!("{}/{} {:?}", place.latitude, place.longitude, place.hdop),
        };
        shown += &format!("{} {} {value}\n", signal.name, signal.timestamp - 1_764_374_400_000_000);
    }
    for fault in faults {
        shown += &format!("{}: {}\n", fault.part.unwrap(), fault.reason);
    }
    expected.assert_eq(&shown);
}

/// Decodes one signal with the value `json`.
fn check_value(name: &str, json: &str, expected: Expect) {
    check(&format!(r#"[{{"name": "{name}", "timestamp": "2025-11-29T00:00:00Z", "value": {json}}}]"#), expected);
}

#[test]
fn numbers_are_numbers_and_texts_that_are_numbers() {
    check_value("speed", "50", expect![["speed 0 50.0\n"]]);
    check_value("speed", "0", expect![["speed 0 0.0\n"]]);
    check_value("speed", "-1.5e1", expect![["speed 0 -15.0\n"]]);
    check_value("speed", r#""12.50""#, expect![["speed 0 12.5\n"]]);
    check_value("speed", "9007199254740993", expect![["speed 0 9007199254740992.0\n"]]);
}

#[test]
fn what_is_no_number_is_said() {
    check_value(
        "speed",
        "true",
        expect![["signals[0]: `speed`: expected a finite number, found true (a switch that is on is 1)\n"]],
    );
    check_value(
        "isIgnitionOn",
        "false",
        expect![["signals[0]: `isIgnitionOn`: expected a finite number, found false (a switch that is off is 0)\n"]],
    );
    check_value("speed", "null", expect![["signals[0]: `speed`: expected a finite number, found null\n"]]);
    check_value("speed", "1e999", expect![["signals[0]: `speed`: expected a finite number, found the number 1e999\n"]]);
    check_value(
        "speed",
        r#""NaN""#,
        expect![[r#"
        signals[0]: `speed`: expected a finite number, found the text "NaN"
    "#]],
    );
    check_value(
        "speed",
        r#"" 1""#,
        expect![[r#"
        signals[0]: `speed`: expected a finite number, found the text " 1"
    "#]],
    );
    check_value("speed", "{}", expect![["signals[0]: `speed`: expected a finite number, found an object\n"]]);
}

#[test]
fn texts_are_kept_as_they_are() {
    check_value(
        "powertrainType",
        r#""HYBR\u0049D""#,
        expect![[r#"
        powertrainType 0 "HYBRID"
    "#]],
    );
    check_value(
        "powertrainType",
        r#""""#,
        expect![[r#"
        powertrainType 0 ""
    "#]],
    );
    check_value(
        "powertrainType",
        "5",
        expect![["signals[0]: `powertrainType`: expected a text, found the number 5\n"]],
    );
    check_value("powertrainType", "null", expect![["signals[0]: `powertrainType`: expected a text, found null\n"]]);
}

#[test]
fn lists_of_texts_are_stored_as_json() {
    check_value(
        "obdDTCList",
        r#"["P0101", "P\u0030202"]"#,
        expect![[r#"
        obdDTCList 0 "[\"P0101\",\"P0202\"]"
    "#]],
    );
    check_value(
        "obdDTCList",
        r#""[\"P0101\"]""#,
        expect![[r#"
        obdDTCList 0 "[\"P0101\"]"
    "#]],
    );
    check_value("obdDTCList", "[1]", expect![["signals[0]: `obdDTCList`: expected a list of texts, found an array\n"]]);
}

#[test]
fn good_signals_do_not_suffer_from_bad_ones() {
    check(
        r#"[
          {"name": "speed", "timestamp": "2025-11-29T00:00:01Z", "value": 50},
          {"name": "sped", "timestamp": "2025-11-29T00:00:01Z", "value": 50},
          {"timestamp": "2025-11-29T00:00:01Z", "value": 50},
          17,
          {"name": "obdRunTime", "timestamp": "2025-11-29T13:00:00Z", "value": 50},
          {"name": "obdRunTime", "timestamp": "yesterday", "value": 50},
          {"name": "obdRunTime", "value": 50},
          {"name": "obdRunTime", "timestamp": "2025-11-29T00:00:01Z"},
          {"name": "currentLocationCoordinates", "timestamp": "2025-11-29T00:00:02Z", "value": {"latitude": 1}},
          {"name": "obdRunTime", "timestamp": "2025-11-29T00:00:00.0000019Z", "value": 60}
        ]"#,
        expect![[r#"
            obdRunTime 1 60.0
            speed 1000000 50.0
            signals[1]: unknown signal `sped`; did you mean `speed`?
            signals[2]: expected a text as `name`, found none
            signals[3]: expected an object with name, timestamp and value, found the number 17
            signals[4]: `obdRunTime`: the timestamp 2025-11-29T13:00:00Z is more than 5 minutes ahead of the clock
            signals[5]: `obdRunTime`: expected an RFC 3339 timestamp, found the text "yesterday": a year of four digits was expected at character 1
            signals[6]: `obdRunTime`: expected an RFC 3339 timestamp, found none
            signals[7]: `obdRunTime`: expected a finite number, found none
            signals[8]: `currentLocationCoordinates`: expected a number as `longitude`, found none; is it `latitude`?
        "#]],
    );
}

#[test]
fn the_last_value_of_a_name_and_time_counts_and_the_first_of_two_keys() {
    check(
        r#"[
          {"name": "speed", "timestamp": "2025-11-29T00:00:01Z", "value": 1},
          {"name": "speed", "timestamp": "2025-11-29T01:00:01+01:00", "value": 2, "value": 3},
          {"name": "speed", "timestamp": "2025-11-29T00:00:02Z", "value": 4}
        ]"#,
        expect![[r#"
            speed 1000000 2.0
            speed 2000000 4.0
        "#]],
    );
}

#[test]
fn a_place_that_is_said_as_one_counts_more_than_its_parts() {
    check(
        r#"[
          {"name": "currentLocationCoordinates", "timestamp": "2025-11-29T00:00:01Z", "value": {"latitude": 1, "longitude": 2}},
          {"name": "currentLocationLatitude", "timestamp": "2025-11-29T00:00:01Z", "value": 52.1},
          {"name": "currentLocationLongitude", "timestamp": "2025-11-29T00:00:01.2Z", "value": "13.4"},
          {"name": "dimoAftermarketHDOP", "timestamp": "2025-11-29T00:00:05Z", "value": 0.7},
          {"name": "currentLocationLatitude", "timestamp": "2025-11-29T00:00:09Z", "value": 52.2},
          {"name": "currentLocationLongitude", "timestamp": "2025-11-29T00:00:09Z", "value": 13.5},
          {"name": "dimoAftermarketHDOP", "timestamp": "2025-11-29T00:00:09.4Z", "value": 0.8}
        ]"#,
        expect![[r#"
            currentLocationCoordinates 1000000 52.1/13.4 None
            currentLocationCoordinates 9000000 52.2/13.5 Some(0.8)
            signals[3]: `dimoAftermarketHDOP` has no `currentLocationLatitude` and `currentLocationLongitude` within 500 ms
        "#]],
    );
}
