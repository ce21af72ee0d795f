//! Events as rows: Arrow columns in the order of the table, and the stage from which they are inserted.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array};
use indoc::formatdoc;
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_engine::{EngineError, Session};

use super::COLUMNS;
use crate::cloudevents::{EventTime, Payload};
use crate::log::Arrival;

/// The stage's own column: the number of the row, by which a bad one is found and left out.
pub const ROW_NUMBER: &str = "_pt_row";

/// Rows of one Arrow batch; a larger one would be one more copy of everything.
const CHUNK: usize = 8_192;

/// Puts `arrivals` into the temp table `name`, numbered from 0.
pub fn stage(session: &Session, name: &str, arrivals: &[Arrival]) -> Result<(), EngineError> {
    let stage = Relation::temp(name);
    let columns = COLUMNS.map(|(name, data_type)| format!("{} {data_type}", Ident::new(name))).join(", ");
    session.run(&Statement::new(
        "make the stage of raw events",
        formatdoc! {"CREATE OR REPLACE TEMP TABLE {stage} ({columns}, {row} UINTEGER)", row = Ident::new(ROW_NUMBER)},
    ))?;
    let numbered = arrivals.chunks(CHUNK).zip((0_u32..).step_by(CHUNK));
    let batches: Vec<RecordBatch> = numbered.map(|(chunk, first)| rows(chunk, first)).collect();
    session.append("stage the raw events", &stage, &batches)
}

/// Returns `arrivals` as columns of the table and their numbers from `first`.
pub fn rows(arrivals: &[Arrival], first: u32) -> RecordBatch {
    let text = |get: &dyn Fn(&Arrival) -> Option<&str>| -> ArrayRef {
        Arc::new(arrivals.iter().map(get).collect::<StringArray>())
    };
    let times = arrivals.iter().map(|arrival| {
        let received = EventTime::from_micros(arrival.received_micros);
        arrival.event.time.unwrap_or(received).micros_of_millisecond()
    });
    let extras = arrivals.iter().map(|arrival| Some(arrival.event.extras_json()));
    let base64 = arrivals.iter().map(|arrival| match &arrival.event.data {
        Payload::Base64(text) => Some(text.as_bytes()),
        _ => None,
    });
    let columns: [ArrayRef; 13] = [
        text(&|arrival| arrival.event.subject.as_deref()),
        Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
        text(&|arrival| Some(&arrival.event.kind)),
        text(&|arrival| Some(&arrival.event.id)),
        text(&|arrival| Some(&arrival.event.source)),
        text(&|arrival| arrival.event.producer.as_deref()),
        text(&|arrival| arrival.event.data_content_type.as_deref()),
        text(&|arrival| arrival.event.data_version.as_deref()),
        Arc::new(extras.collect::<StringArray>()),
        text(&|arrival| match &arrival.event.data {
            Payload::Json(text) => Some(text),
            _ => None,
        }),
        Arc::new(base64.collect::<BinaryArray>()),
        text(&|arrival| match &arrival.event.data {
            Payload::Stored { key } => Some(key),
            _ => None,
        }),
        text(&|_| None),
    ];
    let count = u32::try_from(arrivals.len()).expect("a batch has fewer than 2^32 rows");
    let numbers: ArrayRef = Arc::new(UInt32Array::from_iter_values(first..first + count));
    let named = COLUMNS.iter().map(|(name, _)| *name).zip(columns).chain([(ROW_NUMBER, numbers)]);
    RecordBatch::try_from_iter_with_nullable(named.map(|(name, column)| (name, column, true)))
        .expect("every column has one value per event")
}
