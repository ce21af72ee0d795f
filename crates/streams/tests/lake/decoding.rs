//! A decoder small enough to see what it does: `data` is `name=value;name=value`, and each pair is a reading, of the event's time
//! or of the day in January that stands behind it, as in `name=value@3`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray as _, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, Utc};
use pintail_core::schema::{Column, Schema};
use pintail_core::sql::Statement;
use pintail_streams::{Dead, Decoded, Decoder, EventColumns, Identity, Parent, ResolveError, Rollup, Target};

/// The source: what the decoder reads, and a column more.
pub const SOURCE: &str =
    "CREATE TABLE lake.main.raw (subject VARCHAR, \"time\" TIMESTAMPTZ, id VARCHAR, data VARCHAR, note VARCHAR)";

/// Reads pairs. A value that is no number is a dead part; `panic` panics, `lost` does so when its payload is fetched, and
/// `unread` is a payload that cannot be had.
pub struct Pairs {
    pub version: u32,
    pub has_rollup: bool,
    /// Whether each event also comes to a reading that it does not have.
    pub is_wrong: bool,
}

impl Default for Pairs {
    fn default() -> Self {
        Self { version: 1, has_rollup: true, is_wrong: false }
    }
}

fn columns() -> Vec<Column> {
    let columns = [
        ("subject", "VARCHAR"),
        ("id", "VARCHAR"),
        ("name", "VARCHAR"),
        ("timestamp", "TIMESTAMP WITH TIME ZONE"),
        ("value", "DOUBLE"),
        ("event_time", "TIMESTAMP WITH TIME ZONE"),
        ("decoder_version", "UINTEGER"),
    ];
    Schema::of(&columns).columns
}

impl Decoder for Pairs {
    fn name(&self) -> &str {
        "pairs"
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn reads(&self) -> Vec<String> {
        ["subject", "time", "id", "data"].map(str::to_owned).into()
    }

    fn targets(&self) -> Vec<Target> {
        let identity = ["subject", "id", "name", "timestamp"].map(str::to_owned).into();
        vec![Target {
            table: "readings".to_owned(),
            columns: columns(),
            identity: Identity {
                columns: identity,
                time: Some("timestamp".to_owned()),
                version: Some("decoder_version".to_owned()),
            },
            partitioned_by: ["year", "month", "day"].map(|part| format!("{part}(\"timestamp\")")).into(),
            sorted_by: vec!["subject".to_owned()],
            rollup: self.has_rollup.then(|| Box::new(Counts) as Box<dyn Rollup>),
        }]
    }

    fn parent(&self) -> Vec<Parent> {
        let column = |(target, source): (&str, &str)| Parent { target: target.to_owned(), source: source.to_owned() };
        [("subject", "subject"), ("id", "id"), ("event_time", "time")].map(column).into()
    }

    fn event(&self) -> EventColumns {
        let column = |name: &str| Some(name.to_owned());
        EventColumns { id: column("id"), subject: column("subject"), time: column("time"), ..EventColumns::default() }
    }

    fn resolve(&self, batch: RecordBatch) -> Result<RecordBatch, ResolveError> {
        assert!(!batch.column(3).as_string::<i32>().iter().flatten().any(|data| data == "lost"), "no way to it");
        Ok(batch)
    }

    fn decode(&self, batch: &RecordBatch, _: i64) -> Decoded {
        let text = |index: usize| batch.column(index).as_string::<i32>();
        let times = batch.column(1).as_primitive::<TimestampMicrosecondType>();
        let (mut rows, mut dead) = (Vec::new(), Vec::new());
        for row in 0..batch.num_rows() {
            let data = text(3).value(row);
            assert!(data != "panic", "the data says so");
            let mut push = |name, time, value| {
                rows.push(Row { subject: text(0).value(row), id: text(2).value(row), name, time, value, row });
            };
            if self.is_wrong {
                push("wrong", times.value(row), 0.0);
            }
            if data == "unread" {
                dead.push(Dead { row, part: None, reason: "gone".to_owned(), raw: Vec::new(), is_unread: true });
                continue;
            }
            for (index, pair) in data.split(';').enumerate() {
                let (pair, day) = pair.split_once('@').map_or((pair, None), |(pair, day)| (pair, Some(day)));
                match pair.split_once('=').map(|(name, value)| (name, value.parse::<f64>())) {
                    Some((name, Ok(value))) => push(name, day.map_or(times.value(row), in_january), value),
                    _ => dead.push(Dead {
                        row,
                        part: Some(format!("pairs[{index}]")),
                        reason: format!("expected name=number, not `{pair}`"),
                        raw: pair.as_bytes().to_vec(),
                        is_unread: false,
                    }),
                }
            }
        }
        let strings = |of: fn(&Row<'_>) -> String| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(of(row))).collect::<StringArray>())
        };
        let instants = |of: &dyn Fn(&Row<'_>) -> i64| -> ArrayRef {
            let instants: TimestampMicrosecondArray = rows.iter().map(|row| Some(of(row))).collect();
            Arc::new(instants.with_timezone("UTC"))
        };
        let decoded = RecordBatch::try_from_iter([
            ("subject", strings(|row| row.subject.to_owned())),
            ("id", strings(|row| row.id.to_owned())),
            ("name", strings(|row| row.name.to_owned())),
            ("timestamp", instants(&|row| row.time)),
            ("value", Arc::new(rows.iter().map(|row| row.value).collect::<Float64Array>())),
            ("event_time", instants(&|row| times.value(row.row))),
            ("decoder_version", Arc::new(rows.iter().map(|_| self.version).collect::<UInt32Array>())),
        ]);
        Decoded { rows: vec![decoded.unwrap()], dead }
    }
}

/// A reading, and the row of the batch that it comes from.
struct Row<'a> {
    subject: &'a str,
    id: &'a str,
    name: &'a str,
    time: i64,
    value: f64,
    row: usize,
}

/// Midnight of a day in January 2026, in UTC microseconds.
fn in_january(day: &str) -> i64 {
    let day: DateTime<Utc> = format!("2026-01-{day:0>2}T00:00:00Z").parse().expect("a day of January");
    day.timestamp_micros()
}

/// Counts the readings of each subject.
pub struct Counts;

impl Rollup for Counts {
    fn table(&self) -> &str {
        "counts"
    }

    fn columns(&self) -> Vec<Column> {
        Schema::of(&[("subject", "VARCHAR"), ("readings", "BIGINT")]).columns
    }

    fn key(&self) -> Vec<String> {
        vec!["subject".to_owned()]
    }

    fn sorted_by(&self) -> Vec<String> {
        vec!["subject".to_owned()]
    }

    fn fold(&self, _: &str, fresh: &str, rollup: &str) -> Vec<Statement> {
        let sum = format!(
            "CREATE OR REPLACE TEMP TABLE _pt_sum AS SELECT subject, sum(readings)::BIGINT AS readings FROM (
             SELECT subject, count(*) AS readings FROM {fresh} GROUP BY subject
             UNION ALL SELECT subject, readings FROM {rollup} WHERE subject IN (SELECT subject FROM {fresh})
             ) GROUP BY subject"
        );
        let delete = format!("DELETE FROM {rollup} WHERE subject IN (SELECT subject FROM {fresh})");
        let insert = format!("INSERT INTO {rollup} SELECT * FROM _pt_sum");
        let check = format!(
            "SELECT CASE WHEN count(*) = count(DISTINCT subject) THEN 0 ELSE error('a subject has two rows') END FROM {rollup}"
        );
        vec![
            Statement::new("add up", sum),
            Statement::new("take the older rows out", delete),
            Statement::new("put the sums in", insert),
            Statement::new("check", check),
        ]
    }

    fn retire(&self, _: &str, _: &str, _: &str) -> Vec<Statement> {
        Vec::new()
    }

    fn recompute(&self, base: &str) -> String {
        format!("SELECT subject, count(*) AS readings FROM {base} AS b GROUP BY subject")
    }
}
