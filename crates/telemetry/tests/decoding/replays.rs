//! A decoder fix: what the decoder before it made of events is replaced by what the fixed one makes.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use chrono::{DateTime, Utc};
use expect_test::expect;
use pintail_streams::consumer::{Consumer, Existing, Landed, Range, Spec};
use pintail_streams::{Decoded, Decoder, EventColumns, Parent, ResolveError, Target};
use pintail_telemetry::decode::{CloudEventsDefault, DecoderOptions};

use super::harness::*;

/// The decoder before it was fixed: of each signal it also makes one of another name.
struct Mistaken(CloudEventsDefault);

impl Decoder for Mistaken {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn reads(&self) -> Vec<String> {
        self.0.reads()
    }

    fn targets(&self) -> Vec<Target> {
        self.0.targets()
    }

    fn parent(&self) -> Vec<Parent> {
        self.0.parent()
    }

    fn event(&self) -> EventColumns {
        self.0.event()
    }

    fn resolve(&self, batch: RecordBatch) -> Result<RecordBatch, ResolveError> {
        self.0.resolve(batch)
    }

    fn decode(&self, batch: &RecordBatch, now_micros: i64) -> Decoded {
        let mut decoded = self.0.decode(batch, now_micros);
        let (signals, schema) = (&decoded.rows[0], decoded.rows[0].schema());
        let mut columns: Vec<ArrayRef> = signals.columns().to_vec();
        let wrong = StringArray::from(vec!["powertrainRange"; signals.num_rows()]);
        columns[schema.index_of("name").unwrap()] = Arc::new(wrong);
        let wrong = RecordBatch::try_new(schema.clone(), columns).unwrap();
        decoded.rows[0] = concat_batches(&schema, [signals, &wrong]).unwrap();
        decoded
    }
}

fn version(version: u32) -> CloudEventsDefault {
    CloudEventsDefault::new(DecoderOptions::default()).with_version(version)
}

fn replay(lake: &Lake, spec: Spec, decoder: &dyn Decoder, (from, to): (&str, &str)) -> Landed {
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let range = Range::Time { column: "time".to_owned(), from: at(from), to: at(to) };
    Consumer::beside(&lake.writer, spec, decoder).unwrap().reread(&range, Existing::ReplaceOlder).unwrap()
}

const ALWAYS: (&str, &str) = ("1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z");

fn fix_a_decoder(lake: &Lake) {
    const COLLISION: &str = r#"[{"name": "safety.collision", "timestamp": "2026-01-02T03:04:05Z"}]"#;
    lake.land(&[
        Raw::speed("car-1", "e1", "2026-01-02T00:00:00Z", 50.0),
        Raw { time: "2026-03-01 00:00:00+00", ..Raw::speed("car-1", "e2", "2026-01-03T00:00:00Z", 60.0) },
        Raw::speed("car-2", "e3", "2026-01-02T00:00:00Z", 70.0),
        Raw::events("car-2", "e4", COLLISION),
    ]);
    lake.consume(decode(), &Mistaken(version(1)));
    let latest = "SELECT subject, name, value_number, count FROM signals_latest ORDER BY ALL";
    expect![[r#"
        car-1 | powertrainRange | 60.0 | 2
        car-1 | speed | 60.0 | 2
        car-2 | powertrainRange | 70.0 | 1
        car-2 | speed | 70.0 | 1
    "#]]
    .assert_eq(&lake.rows(latest));

    // First the events of January only: of `car-1`, the wrong signal of March is still there.
    let landed = replay(lake, decode_in_small_windows(), &version(2), ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"));
    assert_eq!((landed.rows, landed.replaced), (3, 5));
    expect![[r#"
        car-1 | powertrainRange | 60.0 | 1
        car-1 | speed | 60.0 | 2
        car-2 | speed | 70.0 | 1
    "#]]
    .assert_eq(&lake.rows(latest));
    lake.check(&version(2), 1);

    assert_eq!(replay(lake, decode(), &version(2), ALWAYS).replaced, 2);
    assert_eq!(lake.rows("SELECT DISTINCT name, decoder_version FROM signals"), "speed | 2\n");
    assert_eq!(lake.rows("SELECT name, decoder_version FROM events"), "safety.collision | 2\n");
    assert_eq!(lake.rows("SELECT name, count FROM events_latest"), "safety.collision | 1\n");
    assert_eq!(lake.rows("SELECT count(*) FROM signals_latest WHERE name <> 'speed'"), "0\n");
    lake.check(&version(2), 1);
}

#[test]
fn a_signal_that_the_fixed_decoder_does_not_make_is_gone_and_so_is_its_newest_value_on_sqlite() {
    fix_a_decoder(&on_sqlite());
}

#[test]
fn a_signal_that_the_fixed_decoder_does_not_make_is_gone_and_so_is_its_newest_value_on_postgres() {
    fix_a_decoder(&on_postgres());
}

/// A status and a fingerprint of one payload have one id; of the status only the rows are left.
#[test]
fn an_event_of_another_type_does_not_take_the_rows_of_one_that_has_its_id() {
    let lake = on_sqlite();
    let speed = || Raw::speed("car-1", "e1", "2026-01-02T00:00:00Z", 50.0);
    lake.land(&[speed(), Raw { event_type: "dimo.fingerprint", ..speed() }]);
    lake.consume(decode(), &version(1));
    lake.sql("DELETE FROM raw_events WHERE type = 'dimo.status'");
    let landed = replay(&lake, decode(), &version(2), ALWAYS);
    assert_eq!((landed.rows, landed.replaced), (1, 0));
    let signals = "SELECT name, type, cloud_event_time, decoder_version FROM signals";
    assert_eq!(lake.rows(signals), "speed | dimo.status | 2026-01-02 03:04:05+00:00 | 1\n");
}
