//! What makes an event, and what is said of the rest.

use expect_test::{Expect, expect};

use super::*;

const NOW: i64 = 1_764_417_600_000_000;

fn check(json: &str, expected: Expect) {
    let raw: Vec<&RawValue> = serde_json::from_str(json).unwrap();
    let mut faults = Vec::new();
    let mut shown = String::new();
    for event in decode_events(&raw, NOW, &mut NearNames::default(), &mut faults) {
        shown += &format!("{} {:?} {:?} {:?}\n", event.name, event.duration, event.metadata, event.tags);
    }
    for fault in faults {
        shown += &format!("{}: {}\n", fault.part.unwrap(), fault.reason);
    }
    expected.assert_eq(&shown);
}

/// Decodes one event with the further fields `fields`.
fn check_fields(fields: &str, expected: Expect) {
    check(&format!(r#"[{{"name": "safety.collision", "timestamp": "2025-11-29T00:00:00Z"{fields}}}]"#), expected);
}

#[test]
fn what_is_absent_is_absent_and_what_is_zero_is_zero() {
    check_fields("", expect![["safety.collision None None None\n"]]);
    check_fields(
        r#", "durationNs": 0, "metadata": "{\"g\": 1.10}", "tags": []"#,
        expect![[r#"
            safety.collision Some(0) Some("{\"g\": 1.10}") Some([])
        "#]],
    );
    check_fields(
        r#", "durationNs": null, "metadata": "", "tags": null"#,
        expect![["safety.collision None None None\n"]],
    );
    check_fields(
        r#", "durationNs": 18446744073709551615, "metadata": {"g": 1.10}, "tags": ["front", "größe"]"#,
        expect![[r#"
            safety.collision Some(18446744073709551615) Some("{\"g\": 1.10}") Some(["front", "größe"])
        "#]],
    );
}

#[test]
fn each_bad_field_is_said() {
    for (fields, reason) in [
        (r#", "durationNs": -1"#, "expected whole nanoseconds, 0 or more, as `durationNs`, found the number -1"),
        (r#", "durationNs": "5""#, "expected whole nanoseconds, 0 or more, as `durationNs`, found the text \"5\""),
        (r#", "durationNs": 1.5"#, "expected whole nanoseconds, 0 or more, as `durationNs`, found the number 1.5"),
        (r#", "metadata": 5"#, "expected JSON text as `metadata`, found the number 5"),
        (r#", "tags": ["Front"]"#, "expected lower case in `tags`, found \"Front\""),
        (r#", "tags": "front""#, "expected a list of texts as `tags`, found the text \"front\""),
        (r#", "tags": [1]"#, "expected texts in `tags`, found the number 1"),
    ] {
        let json = format!(r#"[{{"name": "safety.collision", "timestamp": "2025-11-29T00:00:00Z"{fields}}}]"#);
        let raw: Vec<&RawValue> = serde_json::from_str(&json).unwrap();
        let mut faults = Vec::new();
        assert!(decode_events(&raw, NOW, &mut NearNames::default(), &mut faults).is_empty(), "{fields}");
        assert_eq!(faults[0].reason, format!("`safety.collision`: {reason}"));
    }
    check_fields(
        r#", "metadata": "{""#,
        expect![[r#"
            events[0]: `safety.collision`: expected JSON text as `metadata`, found the text "{": EOF while parsing an object at line 1 column 1
        "#]],
    );
}

#[test]
fn good_events_do_not_suffer_from_bad_ones() {
    check(
        r#"[
          {"name": "behavior.harshBraking", "timestamp": "2025-11-29T00:00:02Z", "durationNs": 5},
          {"name": "behavior.harshBreaking", "timestamp": "2025-11-29T00:00:02Z"},
          {"name": "", "timestamp": "2025-11-29T00:00:02Z"},
          {"name": "safety.collision"},
          {"name": "safety.collision", "timestamp": "0001-01-01T00:00:00Z"},
          "x",
          {"name": "behavior.harshBraking", "timestamp": "2025-11-29T00:00:02Z", "durationNs": 6}
        ]"#,
        expect![[r#"
            behavior.harshBraking Some(6) None None
            events[1]: unknown event `behavior.harshBreaking`; did you mean `behavior.harshBraking`?
            events[2]: expected a text as `name`, found the text ""
            events[3]: `safety.collision`: expected an RFC 3339 timestamp, found none
            events[4]: `safety.collision`: the timestamp 0001-01-01T00:00:00Z is that of a clock that was never set
            events[5]: expected an object with name and timestamp, found the text "x"
        "#]],
    );
}
