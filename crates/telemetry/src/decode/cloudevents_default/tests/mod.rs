//! Whole events through the decoder: what is routed, found, salvaged, and said.

mod golden;
mod payloads;
mod properties;

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pintail_streams::{Decoded, Decoder};

use crate::decode::{CloudEventsDefault, DecoderOptions};

/// 2025-11-29T12:00:00Z.
const NOW: i64 = 1_764_417_600_000_000;

/// One row of `raw_events`; what is not said is what a good event has.
#[derive(Clone, Debug)]
struct Raw {
    subject: Option<String>,
    event_type: Option<String>,
    id: Option<String>,
    data: Option<String>,
    data_base64: Option<Vec<u8>>,
    key: Option<String>,
}

impl Raw {
    fn of(event_type: &str, data: &str) -> Self {
        Self {
            subject: Some("did:erc721:137:0xbA5738a18d83D41847dfFbDC6101d37C69c9B0cF:1".to_owned()),
            event_type: Some(event_type.to_owned()),
            id: Some("event-1".to_owned()),
            data: Some(data.to_owned()),
            data_base64: None,
            key: None,
        }
    }

    fn status(data: &str) -> Self {
        Self::of("dimo.status", data)
    }
}

/// Returns the rows as a batch with the columns that the decoder reads.
fn batch(rows: &[Raw]) -> RecordBatch {
    let text =
        |value: fn(&Raw) -> Option<&str>| -> ArrayRef { Arc::new(rows.iter().map(value).collect::<StringArray>()) };
    let base64: BinaryArray = rows.iter().map(|row| row.data_base64.as_deref()).collect();
    let times: TimestampMicrosecondArray = rows.iter().map(|_| Some(NOW)).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("subject", text(|row| row.subject.as_deref()), true),
        ("time", Arc::new(times.with_timezone("UTC")), true),
        ("type", text(|row| row.event_type.as_deref()), true),
        ("id", text(|row| row.id.as_deref()), true),
        ("source", text(|_| Some("0xF26421509Efe92861a587482100c6d728aBf1CD0")), true),
        ("producer", text(|_| None), true),
        ("data_version", text(|_| Some("v1")), true),
        ("data", text(|row| row.data.as_deref()), true),
        ("data_base64", Arc::new(base64), true),
        ("data_index_key", text(|row| row.key.as_deref()), true),
    ])
    .unwrap()
}

/// Resolves and decodes rows with the default options.
fn decode(rows: &[Raw]) -> Decoded {
    decode_with(DecoderOptions::default(), rows)
}

fn decode_with(options: DecoderOptions, rows: &[Raw]) -> Decoded {
    let decoder = CloudEventsDefault::new(options);
    decoder.decode(&decoder.resolve(batch(rows)).unwrap(), NOW)
}

/// Shows the rows of a table, a line each, with the columns that are not NULL; then the dead letters.
fn shown(decoded: &Decoded) -> String {
    let mut text = String::new();
    for (batch, table) in decoded.rows.iter().zip(["signals", "events"]) {
        for row in 0..batch.num_rows() {
            text += table;
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                let is_long = ["subject", "source", "cloud_event_time", "decoder"].contains(&field.name().as_str());
                if column.is_valid(row) && !is_long {
                    let formatter = ArrayFormatter::try_new(column, &FormatOptions::default()).unwrap();
                    text += &format!(" {}={}", field.name(), formatter.value(row));
                }
            }
            text += "\n";
        }
    }
    for dead in &decoded.dead {
        let part = dead.part.as_deref().unwrap_or("whole");
        text += &format!("dead: row {} {part}: {} ({})\n", dead.row, dead.reason, String::from_utf8_lossy(&dead.raw));
    }
    text
}
