//! The cases of the public conformance set of CloudEvents for JSON, in files of our own: which events and batches are
//! valid, and which are not.

use serde_json::Value;

use crate::cloudevents::{from_batch, from_json};

const VALID: &str = include_str!("../../../tests/cloudevents/valid-events.json");
const INVALID: &str = include_str!("../../../tests/cloudevents/invalid-events.json");
const VALID_BATCHES: &str = include_str!("../../../tests/cloudevents/valid-batches.json");
const INVALID_BATCHES: &str = include_str!("../../../tests/cloudevents/invalid-batches.json");

/// Returns the named samples of a file.
fn samples(file: &str) -> Vec<(String, Vec<u8>)> {
    let cases: serde_json::Map<String, Value> = serde_json::from_str(file).unwrap();
    cases.into_iter().map(|(name, sample)| (name, serde_json::to_vec_pretty(&sample).unwrap())).collect()
}

#[test]
fn valid_events_are_read() {
    let cases = samples(VALID);
    assert_eq!(cases.len(), 10);
    for (name, sample) in cases {
        let event = from_json(&sample).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!event.id.is_empty(), "{name}");
    }
}

#[test]
fn one_instant_in_several_offsets_is_one_time() {
    let times: Vec<i64> = samples(VALID)
        .into_iter()
        .filter(|(name, _)| name.starts_with("time"))
        .map(|(_, sample)| from_json(&sample).unwrap().time.unwrap().micros())
        .collect();
    assert_eq!(times.len(), 4);
    assert!(times.iter().all(|time| *time == 1_522_949_460_000_000), "{times:?}");
}

#[test]
fn invalid_events_are_refused_with_a_place() {
    let cases = samples(INVALID);
    assert_eq!(cases.len(), 24);
    for (name, sample) in cases {
        let error = from_json(&sample).expect_err(&name);
        assert!(error.place.is_some(), "{name}: {error}");
    }
}

#[test]
fn valid_batches_are_read() {
    for (name, sample) in samples(VALID_BATCHES) {
        let elements = from_batch(&sample).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(elements.iter().all(|element| element.event.is_ok()), "{name}: {elements:?}");
    }
    assert_eq!(from_batch(b"[]").unwrap(), []);
}

#[test]
fn a_bad_element_spoils_neither_its_neighbours_nor_its_own_bytes() {
    let refused = |name: &str| {
        let cases = samples(INVALID_BATCHES);
        let (_, sample) = cases.iter().find(|(found, _)| found == name).unwrap();
        let elements = from_batch(sample).unwrap();
        elements.iter().map(|element| element.event.as_ref().err().map(ToString::to_string)).collect::<Vec<_>>()
    };
    let mixed = refused("mixed versions");
    assert_eq!(mixed[0], None);
    assert_eq!(mixed[1].as_deref(), Some("line 9, column 20: `specversion` must be 1.0, found `0.9`"));
    assert_eq!(refused("no id")[0].as_deref(), Some("line 2, column 3: the event has no `id`"));
    let strange = refused("no object");
    assert_eq!(strange[0].as_deref(), Some("line 2, column 3: an event must be an object, found text"));
    assert_eq!(strange[1], None);
    let text = r#"[{"id": 1}, 2]"#;
    let raw: Vec<&str> = from_batch(text.as_bytes()).unwrap().iter().map(|element| element.raw).collect();
    assert_eq!(raw, [r#"{"id": 1}"#, "2"]);
}
