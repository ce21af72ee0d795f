//! From raw events to the newest values, whatever is delivered and however often.

use chrono::{DateTime, Utc};
use expect_test::expect;
use pintail_streams::Decoder;
use pintail_streams::consumer::{Consumer, Existing, Range, Rebuild, Shard, Spec};
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
        signals[1] | unknown signal `sped`; did you mean `speed`? | {"name": "sped", "timestamp": "2026-01-02T03:04:05Z", "value": 1} | e2 | source | car-1 | dimo.status | 2026-01-02 03:04:05+00:00
        - | expected a JSON object: expected ident at line 1 column 14 | {"signals": nonsense} | e5 | source | car-2 | dimo.status | 2026-01-02 03:04:05+00:00
    "#]]
    .assert_eq(&lake.rows(
        "SELECT part, reason, decode(raw), event_id, event_source, subject, event_type, event_time
         FROM _pintail.dead_letters ORDER BY part NULLS LAST"));
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

    let new = [Raw::speed("car-1", "e4", "2026-01-02T00:00:01Z", 60.0)];
    lake.land(&[old.as_slice(), &old, &new, &new].concat());
    let landed = lake.consume(decode(), &*decoder);
    assert_eq!(landed.iter().map(|landed| landed.duplicates).sum::<u64>(), 5);
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

/// Decodes three events with a decoder that got two of them wrong, then all of them again with a newer one.
fn replace_what_an_older_version_wrote(lake: &Lake) {
    let (older, newer) = (cloudevents_default(), CloudEventsDefault::new(DecoderOptions::default()).with_version(2));
    lake.land(&[
        Raw::speed("car-1", "e1", "2026-01-02T00:00:00Z", 50.0),
        Raw::speed("car-1", "e2", "2026-01-02T00:00:01Z", 60.0),
        Raw::speed("car-2", "e3", "2026-01-02T00:00:00Z", 70.0),
    ]);
    lake.consume(decode(), &*older);
    lake.sql("UPDATE signals SET value_number = 0 WHERE subject = 'car-1'");
    Consumer::beside(&lake.writer, decode(), &*older).unwrap().rebuild(Rebuild::All).unwrap();
    lake.check(&*older, 1);

    let to = "2100-01-01T00:00:00Z".parse::<DateTime<Utc>>().unwrap();
    let all = Range::Time { column: "time".to_owned(), from: DateTime::UNIX_EPOCH, to };
    let mut beside = Consumer::beside(&lake.writer, decode(), &newer).unwrap();
    let landed = beside.reread(&all, Existing::ReplaceOlder).unwrap();
    assert_eq!((landed.rows, landed.replaced), (3, 3));
    let shown = "SELECT subject, value_number, decoder_version FROM signals ORDER BY ALL";
    assert_eq!(lake.rows(shown), "car-1 | 50.0 | 2\ncar-1 | 60.0 | 2\ncar-2 | 70.0 | 2\n");
    assert_eq!(lake.rows("SELECT value_number, count FROM signals_latest ORDER BY ALL"), "60.0 | 2\n70.0 | 1\n");
    lake.check(&newer, 1);

    let again = beside.reread(&all, Existing::ReplaceOlder).unwrap();
    assert_eq!((again.replaced, again.duplicates), (0, 3), "nothing is older any more");
    assert_eq!(lake.consume(decode(), &newer), [], "the cursor is where it was");
}

#[test]
fn decoding_again_replaces_what_an_older_version_wrote_on_sqlite() {
    replace_what_an_older_version_wrote(&on_sqlite());
}

#[test]
fn decoding_again_replaces_what_an_older_version_wrote_on_postgres() {
    replace_what_an_older_version_wrote(&on_postgres());
}

#[test]
fn rows_whose_time_is_over_leave_the_tables_and_what_is_newest() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    lake.land(&[
        Raw::speed("car-1", "e1", "2026-01-01T00:00:00Z", 50.0),
        Raw::speed("car-1", "e2", "2026-01-03T00:00:00Z", 60.0),
        Raw::speed("car-2", "e3", "2026-01-01T00:00:00Z", 70.0),
        Raw::events("car-2", "e4", COLLISION),
    ]);
    lake.consume(decode(), &*decoder);
    let cutoff = "2026-01-02T12:00:00Z".parse::<DateTime<Utc>>().unwrap().timestamp_micros();
    let mut beside = Consumer::beside(&lake.writer, decode(), &*decoder).unwrap();
    assert_eq!(beside.retire(cutoff).unwrap(), 3);
    assert_eq!(
        lake.rows("SELECT subject, value_number, count, first_seen::DATE FROM signals_latest"),
        "car-1 | 60.0 | 1 | 2026-01-03\n"
    );
    assert_eq!(lake.rows("FROM events_latest"), "");
    lake.check(&*decoder, 1);
}

#[test]
fn another_number_of_shards_under_another_name_makes_the_rollups_anew() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    let rows: Vec<Raw> =
        (0..8).map(|car| Raw::speed(&format!("car-{car}"), &format!("e{car}"), "2026-01-02T00:00:00Z", 1.0)).collect();
    lake.land(&rows);
    for (round, shards) in (1..).zip([1_u32, 3, 2, 4, 1]) {
        let spec = Spec { name: format!("decode{round}"), ..decode() };
        match shards {
            1 => drop(lake.consume(spec, &*decoder)),
            _ => (0..shards).for_each(|index| {
                let shard = Some(Shard { index, of: shards, by: "subject".to_owned() });
                lake.consume(Spec { shard, ..spec.clone() }, &*decoder);
            }),
        }
        lake.land(&[Raw::speed("car-1", &format!("more-{round}"), &format!("2026-01-02T00:00:{round:02}Z"), 2.0)]);
        let latest = lake.rows("SELECT count(*), count(DISTINCT subject), sum(count)::BIGINT FROM signals_latest");
        assert_eq!(latest, format!("8 | 8 | {}\n", 7 + round), "round {round} with {shards} shards");
        lake.check(&*decoder, shards);
    }
}

#[test]
fn shards_by_a_column_that_is_no_part_of_the_rollups_are_refused() {
    let (lake, decoder) = (on_sqlite(), cloudevents_default());
    lake.land(&[Raw::speed("car-1", "e1", "2026-01-02T00:00:00Z", 1.0)]);
    let shard = Some(Shard { index: 0, of: 2, by: "source".to_owned() });
    let mut consumer = Consumer::open(&lake.writer, Spec { shard, ..decode() }, &*decoder).unwrap().unwrap();
    let refused = consumer.pass().unwrap_err().to_string();
    assert!(refused.contains("shards by `source` cannot have rollups of their own"), "{refused}");
}
