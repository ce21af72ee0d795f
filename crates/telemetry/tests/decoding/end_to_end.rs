//! From raw events to the newest values, whatever is delivered and however often.

use expect_test::expect;
use pintail_streams::Decoder;
use pintail_streams::consumer::{Consumer, Shard, Spec};
use pintail_telemetry::decode::{CloudEventsDefault, DecoderOptions, decoder};

use super::harness::*;

fn cloudevents_default() -> Box<dyn Decoder> {
    decoder("cloudevents-default", DecoderOptions::default()).unwrap()
}

const COLLISION: &str = r#"[{"name": "safety.collision", "timestamp": "2026-01-02T03:04:05Z", "tags": ["front"]}]"#;

/// Lands a bit of everything, in two commits, and looks at what has come of it.
fn decode_a_bit_of_everything(lake: &Lake) {
    let decoder = cloudevents_default();
    lake.land(&[
        Raw::speed("car-1", "e1", "2026-01-02T03:04:05.123456Z", 50.0),
        Raw::status(
            "car-1",
            "e2",
            r#"[{"name": "currentLocationCoordinates", "timestamp": "2026-01-02T03:04:05Z",
                 "value": {"latitude": 52.1, "longitude": 13.4}},
                {"name": "sped", "timestamp": "2026-01-02T03:04:05Z", "value": 1}]"#,
        ),
        Raw::events("car-1", "e3", COLLISION),
        Raw { event_type: "dimo.fingerprint", ..Raw::status("car-1", "e4", "[]") },
        Raw::status("car-2", "e5", "nonsense"),
    ]);
    lake.consume(decode(), &*decoder);
    lake.land(&[
        Raw::speed("car-1", "e6", "2026-01-03T00:00:00Z", 60.0),
        Raw::speed("car-1", "e7", "2026-01-01T00:00:00Z", 40.0),
        Raw::speed("car-2", "e8", "2026-01-01T00:00:00Z", 0.0),
    ]);
    let landed = lake.consume(decode(), &*decoder);
    assert_eq!(landed.iter().map(|landed| landed.rows).sum::<u64>(), 3);
    assert_eq!(lake.consume(decode(), &*decoder), [], "nothing is left");

    expect![[r#"
        car-1 | speed | 60.0 | - | 2026-01-03 00:00:00+00:00 | 3 | 2026-01-01 00:00:00+00:00
        car-1 | currentLocationCoordinates | - | 52.1 | 2026-01-02 03:04:05+00:00 | 1 | 2026-01-02 03:04:05+00:00
        car-2 | speed | 0.0 | - | 2026-01-01 00:00:00+00:00 | 1 | 2026-01-01 00:00:00+00:00
    "#]]
    .assert_eq(&lake.rows(
        "SELECT subject, name, value_number, loc_lat, \"timestamp\", count, first_seen FROM signals_latest
         ORDER BY subject, name DESC",
    ));
    assert_eq!(
        lake.rows(
            "SELECT subject, name, tags, decoder, decoder_version FROM events JOIN events_latest USING (subject, name)"
        ),
        "car-1 | safety.collision | [front] | cloudevents-default | 1\n"
    );
    expect![[r#"
        signals[1] | unknown signal `sped`; did you mean `speed`? | {"name": "sped", "timestamp": "2026-01-02T03:04:05Z", "value": 1}
        - | expected a JSON object: expected ident at line 1 column 14 | {"signals": nonsense}
    "#]]
    .assert_eq(&lake.rows("SELECT part, reason, decode(raw) FROM _pintail.dead_letters ORDER BY part NULLS LAST"));
    lake.check(&*decoder, 1);
}

#[test]
fn raw_events_become_signals_events_and_what_is_newest_on_sqlite() {
    decode_a_bit_of_everything(&on_sqlite());
}

#[test]
fn raw_events_become_signals_events_and_what_is_newest_on_postgres() {
    decode_a_bit_of_everything(&on_postgres());
}

#[test]
fn raw_events_become_signals_events_and_what_is_newest_on_s3() {
    decode_a_bit_of_everything(&on_s3());
}

#[test]
fn what_is_delivered_again_sixty_days_later_changes_nothing() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    let old = [
        Raw::speed("car-1", "e1", "2025-11-03T00:00:00Z", 50.0),
        Raw::events("car-1", "e2", &COLLISION.replace("2026-01-02", "2025-11-03")),
    ];
    lake.land(&old);
    lake.land(&[Raw::speed("car-1", "e3", "2026-01-02T00:00:00Z", 60.0)]);
    lake.consume(decode(), &*decoder);
    let before = lake.rows("FROM signals_latest");

    lake.land(&[old.as_slice(), &old, &[Raw::speed("car-1", "e4", "2026-01-02T00:00:01Z", 60.0)]].concat());
    let landed = lake.consume(decode(), &*decoder);
    assert_eq!(landed.iter().map(|landed| landed.duplicates).sum::<u64>(), 4);
    assert_eq!(lake.rows("SELECT count(*) FROM signals"), "3\n");
    assert_eq!(lake.rows("SELECT count(*) FROM events"), "1\n");
    assert_ne!(lake.rows("FROM signals_latest"), before, "the new one counts");
    lake.check(&*decoder, 1);
}

#[test]
fn rows_with_equal_keys_on_both_sides_of_a_window_are_all_decoded() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    // One id and time for many rows, as siblings of one payload and redeliveries have.
    let same = |second: u32| Raw::speed("car-1", "same", &format!("2026-01-02T00:00:{second:02}Z"), f64::from(second));
    let mut rows: Vec<Raw> = (0..9).map(same).collect();
    rows.push(Raw::events("car-1", "same", COLLISION));
    rows.extend((0..3).map(same));
    lake.land(&rows);
    let landed = lake.consume(decode_in_small_windows(), &*decoder);
    assert!(landed.iter().map(|landed| landed.rows).sum::<u64>() == 13);
    assert_eq!(lake.rows("SELECT count(*), max(value_number) FROM signals"), "9 | 8.0\n");
    assert_eq!(
        lake.rows("SELECT count FROM signals_latest UNION ALL SELECT count FROM events_latest ORDER BY 1"),
        "1\n9\n"
    );
    lake.check(&*decoder, 1);
}

#[test]
fn shards_decode_their_own_subjects_into_rollups_of_their_own() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    let rows: Vec<Raw> =
        (0..12).map(|car| Raw::speed(&format!("car-{car}"), &format!("e{car}"), "2026-01-02T00:00:00Z", 1.0)).collect();
    lake.land(&rows);
    for index in 0..3 {
        let shard = Some(Shard { index, of: 3, by: "subject".to_owned() });
        lake.consume(Spec { shard, ..decode() }, &*decoder);
    }
    assert_eq!(lake.rows("SELECT count(*), count(DISTINCT subject) FROM signals"), "12 | 12\n");
    assert_eq!(lake.rows("SELECT count(*) FROM signals_latest"), "12\n");
    lake.check(&*decoder, 3);
}

#[test]
fn a_newer_version_of_the_decoder_marks_the_rows_that_it_writes() {
    let lake = on_sqlite();
    let newer = CloudEventsDefault::new(DecoderOptions::default()).with_version(2);
    lake.land(&[Raw::speed("car-1", "e1", "2026-01-02T00:00:00Z", 50.0)]);
    lake.consume(decode(), &*cloudevents_default());
    lake.land(&[Raw::speed("car-1", "e2", "2026-01-02T00:00:01Z", 50.0)]);
    lake.consume(decode(), &newer);
    assert_eq!(lake.rows("SELECT decoder_version FROM signals ORDER BY 1"), "1\n2\n");
    lake.check(&newer, 1);
}

#[test]
fn rows_whose_time_is_over_go_and_what_sums_them_up_follows() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    let speed =
        |car: &str, id: &str, day: u32, value: f64| Raw::speed(car, id, &format!("2026-01-{day:02}T00:00:00Z"), value);
    lake.land(&[
        speed("car-1", "e1", 1, 10.0),
        speed("car-1", "e2", 2, 20.0),
        speed("car-1", "e3", 3, 30.0),
        speed("car-2", "e4", 1, 40.0),
        Raw::events("car-1", "e5", &COLLISION.replace("2026-01-02", "2026-01-01")),
    ]);
    lake.consume(decode(), &*decoder);
    let third = 1_767_398_400_000_000;
    assert_eq!(lake.rows(&format!("SELECT make_timestamptz({third}::BIGINT)")), "2026-01-03 00:00:00+00:00\n");
    let mut consumer = Consumer::open(&lake.writer, decode(), &*decoder).unwrap().expect("nobody else has it");
    assert_eq!(consumer.retire(third).unwrap(), 4);
    let head = lake.rows("SELECT max(snapshot_id) FROM snapshots()");
    assert_eq!(consumer.retire(third).unwrap(), 0);
    assert_eq!(lake.rows("SELECT max(snapshot_id) FROM snapshots()"), head, "nothing to delete is no commit");
    drop(consumer);
    assert_eq!(
        lake.rows("SELECT subject, value_number, count, first_seen FROM signals_latest"),
        "car-1 | 30.0 | 1 | 2026-01-03 00:00:00+00:00\n"
    );
    assert_eq!(lake.rows("SELECT count(*) FROM events"), "0\n");
    assert_eq!(lake.rows("SELECT count(*) FROM events_latest"), "0\n");
    // What comes late for a time that is over is kept until the next look.
    lake.land(&[speed("car-1", "e6", 2, 50.0)]);
    lake.consume(decode(), &*decoder);
    lake.check(&*decoder, 1);
}
