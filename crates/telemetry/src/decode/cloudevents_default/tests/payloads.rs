//! Payloads in all the places and shapes in which they come.

use std::sync::Arc;

use expect_test::{Expect, expect};
use pintail_streams::ResolveError;

use super::*;
use crate::decode::{Blobs, Fetched, VehicleGate};

const SPEED: &str = r#"{"signals": [{"name": "speed", "timestamp": "2025-11-29T11:00:00Z", "value": 50}]}"#;

fn check(rows: &[Raw], expected: Expect) {
    expected.assert_eq(&shown(&decode(rows)));
}

#[test]
fn a_row_carries_its_event_and_its_decoder() {
    check(
        &[
            Raw::status(SPEED),
            Raw::of(
                "dimo.events",
                r#"{"events": [{"name": "safety.collision", "timestamp": "2025-11-29T11:00:00Z", "tags": ["front"]}]}"#,
            ),
        ],
        expect![[r#"
            signals subject_bucket=219 name=speed timestamp=2025-11-29T11:00:00Z cloud_event_id=event-1 value_number=50.0 type=dimo.status decoder_version=1
            events subject_bucket=219 cloud_event_id=event-1 type=dimo.events data_version=v1 name=safety.collision timestamp=2025-11-29T11:00:00Z tags=[front] decoder_version=1
        "#]],
    );
}

#[test]
fn the_type_says_what_is_read_and_other_types_have_no_rows() {
    let both = r#"{"vin": "X",
        "signals": [{"name": "speed", "timestamp": "2025-11-29T11:00:00Z", "value": 0}],
        "events": [{"name": "safety.collision", "timestamp": "2025-11-29T11:00:00Z"}]}"#;
    let types = ["dimo.status", "dimo.events", "dimo.fingerprint", "dimo.tombstone"];
    check(
        &types.map(|event_type| Raw::of(event_type, both)),
        expect![[r#"
            signals subject_bucket=219 name=speed timestamp=2025-11-29T11:00:00Z cloud_event_id=event-1 value_number=0.0 type=dimo.status decoder_version=1
            events subject_bucket=219 cloud_event_id=event-1 type=dimo.events data_version=v1 name=safety.collision timestamp=2025-11-29T11:00:00Z decoder_version=1
        "#]],
    );
}

#[test]
fn types_are_a_setting() {
    let options = DecoderOptions { signal_types: vec!["com.example.reading".to_owned()], ..DecoderOptions::default() };
    let decoded = decode_with(options, &[Raw::of("com.example.reading", SPEED), Raw::status(SPEED)]);
    assert_eq!((decoded.rows[0].num_rows(), decoded.dead.len()), (1, 0));
}

#[test]
fn a_gate_keeps_signals_of_other_contracts_out_and_lets_events_pass() {
    let contract = "0xbA5738a18d83D41847dfFbDC6101d37C69c9B0cF".to_owned();
    let vehicles = Some(VehicleGate { chain_id: 137, contract });
    let options = DecoderOptions { vehicles, ..DecoderOptions::default() };
    let event = r#"{"events": [{"name": "safety.collision", "timestamp": "2025-11-29T11:00:00Z"}]}"#;
    let device = Some("did:erc721:137:0x5e31bBc786D7bEd95216383787deA1ab0f1c1897:1".to_owned());
    let rows = [
        Raw::status(SPEED),
        Raw { subject: device.clone(), ..Raw::status(SPEED) },
        Raw { subject: device, ..Raw::of("dimo.events", event) },
    ];
    let decoded = decode_with(options, &rows);
    assert_eq!(decoded.rows.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [1, 1]);
    assert!(decoded.dead.is_empty());
}

#[test]
fn what_is_no_payload_is_dead_as_a_whole_with_its_bytes() {
    let no_subject = Raw { subject: None, ..Raw::status(SPEED) };
    let no_id = Raw { id: Some(String::new()), ..Raw::status("{}") };
    check(
        &[
            Raw { data: None, ..Raw::status("") },
            Raw { subject: no_subject.subject, ..Raw::status("{}") },
            no_id,
            Raw::status(r#"{"signals": ["#),
            Raw::status("[]"),
            Raw::status("{}"),
            Raw::status(r#"{"signal": []}"#),
            Raw::status(r#"{"signals": null}"#),
            Raw::status(r#"{"signals": {"name": "speed"}}"#),
        ],
        expect![[r#"
            dead: row 0 whole: the event has no payload ()
            dead: row 1 whole: the event has no subject ({})
            dead: row 2 whole: the event has no id ({})
            dead: row 3 whole: expected a JSON object: EOF while parsing a list at line 1 column 13 ({"signals": [)
            dead: row 4 whole: expected a JSON object: invalid type: sequence, expected an object at line 1 column 0 ([])
            dead: row 5 whole: expected an array `signals`, found none ({})
            dead: row 6 whole: expected an array `signals`, found none; is it `signal`? ({"signal": []})
            dead: row 7 whole: expected an array `signals`, found null ({"signals": null})
            dead: row 8 signals: expected an array, found an object ({"name": "speed"})
        "#]],
    );
}

#[test]
fn no_signals_are_no_fault_and_the_first_of_two_arrays_counts() {
    check(
        &[
            Raw::status(r#"{"signals": []}"#),
            Raw::status(
                r#"{"signals": [], "signals": [{"name": "speed", "timestamp": "2025-11-29T11:00:00Z", "value": 1}]}"#,
            ),
        ],
        expect![[""]],
    );
}

#[test]
fn base64_is_read_with_line_breaks_and_without_padding() {
    let encoded = |text: &str| Raw { data: None, data_base64: Some(text.as_bytes().to_vec()), ..Raw::status("") };
    // {"signals": 5} and {"signals":5}
    let good = [encoded("eyJzaWdu\r\nYWxzIjogNX0="), encoded("eyJzaWduYWxzIjogNX0"), encoded("eyJzaWduYWxzIjo1fQ==")];
    for decoded in good.map(|row| decode(&[row])) {
        assert_eq!(decoded.dead[0].reason, "expected an array, found the number 5");
        assert_eq!(decoded.dead[0].raw, b"5");
    }
    check(
        &[encoded("e*"), encoded("/w==")],
        expect![[r#"
            dead: row 0 whole: expected base64 in `data_base64`: Invalid symbol 42, offset 1. (e*)
            dead: row 1 whole: expected JSON in UTF-8: invalid utf-8 sequence of 1 bytes from index 0 (/w==)
        "#]],
    );
}

/// A store in memory; one key stands for a store that does not answer.
struct Store;

impl Blobs for Store {
    fn fetch(&self, keys: &[&str]) -> Result<Vec<Fetched>, ResolveError> {
        let fetch = |key: &&str| match *key {
            "blobs/good" => Ok(Fetched::Payload(SPEED.as_bytes().to_vec())),
            "blobs/away" => Err(ResolveError { what: format!("the blob `{key}`"), source: "timed out".into() }),
            _ => Ok(Fetched::Unusable("no such blob".to_owned())),
        };
        keys.iter().map(fetch).collect()
    }
}

#[test]
fn large_payloads_come_from_the_blob_store_and_a_missing_one_is_dead_with_its_key() {
    let blob = |key: &str| Raw { data: Some(String::new()), key: Some(key.to_owned()), ..Raw::status("") };
    let options = DecoderOptions { blobs: Arc::new(Store), ..DecoderOptions::default() };
    let other_type = Raw { event_type: Some("dimo.attestation".to_owned()), ..blob("blobs/away") };
    let rows = [Raw::status(SPEED), blob("blobs/good"), blob("blobs/gone"), other_type];
    expect![[r#"
        signals subject_bucket=219 name=speed timestamp=2025-11-29T11:00:00Z cloud_event_id=event-1 value_number=50.0 type=dimo.status decoder_version=1
        signals subject_bucket=219 name=speed timestamp=2025-11-29T11:00:00Z cloud_event_id=event-1 value_number=50.0 type=dimo.status decoder_version=1
        dead: row 2 whole: the payload is the blob `blobs/gone`: no such blob (blobs/gone)
    "#]]
    .assert_eq(&shown(&decode_with(options.clone(), &rows)));
    // What cannot be read is told from what reads as nonsense.
    let dead = decode_with(options.clone(), &[blob("blobs/gone"), Raw::status("nonsense")]).dead;
    assert_eq!(dead.iter().map(|dead| dead.is_unread).collect::<Vec<_>>(), [true, false]);

    let decoder = CloudEventsDefault::new(options);
    let error = decoder.resolve(batch(&[blob("blobs/away")])).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the blob `blobs/away`");
    let without_store = CloudEventsDefault::new(DecoderOptions::default());
    let error = without_store.resolve(batch(&[blob("blobs/good")])).unwrap_err();
    assert_eq!(error.source.to_string(), "no blob store is configured");
}

#[test]
fn a_source_with_other_columns_is_said_for_each_row() {
    let without_type = batch(&[Raw::status(SPEED), Raw::status(SPEED)]).project(&[0, 1, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    let decoded = CloudEventsDefault::new(DecoderOptions::default()).decode(&without_type, NOW);
    expect![[r#"
        dead: row 0 whole: the source has no column `type`, which the decoder reads ()
        dead: row 1 whole: the source has no column `type`, which the decoder reads ()
    "#]]
    .assert_eq(&shown(&decoded));
}
