//! Events as rows: Arrow columns in the order of the table, and the stage from which they are inserted.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use pintail_core::sql::Relation;
use pintail_engine::{EngineError, Session, Stage};

use super::COLUMNS;
use crate::cloudevents::{EventTime, Payload};
use crate::log::Arrival;

/// Rows of one Arrow batch; a larger one would be one more copy of everything.
const CHUNK: usize = 8_192;

/// Makes `arrivals` readable as `name` for statements of `session`, numbered from 0 in the stage's own column.
pub fn stage(session: &Session, name: &str, arrivals: &[Arrival]) -> Result<Stage, EngineError> {
    let batches: Vec<RecordBatch> = arrivals.chunks(CHUNK).map(rows).collect();
    session.stage("stage the raw events", &Relation::temp(name), &rows(&[]).schema(), &batches)
}

/// Returns `arrivals` as columns of the table.
pub fn rows(arrivals: &[Arrival]) -> RecordBatch {
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
    let named = COLUMNS.iter().map(|(name, _)| *name).zip(columns);
    RecordBatch::try_from_iter_with_nullable(named.map(|(name, column)| (name, column, true)))
        .expect("every column has one value per event")
}
