//! The dead letters of a window: what could not be decoded, with the event that it is of.

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};

use super::decoding::DecodedWindow;
use super::pass::Consumer;
use super::read::Window;
use crate::dead_letter::{DeadLetter, EventName};
use crate::decoder::{Dead, EventColumns};

impl Consumer<'_> {
    /// Returns the letters of what could not be decoded.
    pub(super) fn letters_of(&self, window: &Window, decoded: &DecodedWindow) -> Vec<DeadLetter> {
        let columns = self.decoder.event();
        let letter = |(batch, dead): &(usize, Dead)| {
            let snapshot = window.snapshots.get(*batch).and_then(|rows| rows.get(dead.row));
            DeadLetter {
                origin: self.by(),
                position: snapshot.map_or_else(|| "unknown".to_owned(), |snapshot| format!("snapshot {snapshot}")),
                part: dead.part.clone(),
                reason: dead.reason.clone(),
                raw: dead.raw.clone(),
                decoder: Some((self.decoder.name().to_owned(), self.decoder.version())),
                event: window.batches.get(*batch).map(|rows| event_at(rows, dead.row, &columns)).unwrap_or_default(),
            }
        };
        decoded.dead.iter().map(letter).collect()
    }
}

/// Returns how the event of a row is named; what is no text, or no time, is left out.
fn event_at(rows: &RecordBatch, row: usize, columns: &EventColumns) -> EventName {
    let value = |name: &Option<String>, wanted: &DataType| {
        let column = rows.column_by_name(name.as_deref()?)?;
        let value = (row < column.len()).then(|| cast(&column.slice(row, 1), wanted).ok())??;
        value.is_valid(0).then_some(value)
    };
    let text = |name| value(name, &DataType::Utf8).map(|value| value.as_string::<i32>().value(0).to_owned());
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let time = value(&columns.time, &utc).map(|value| value.as_primitive::<TimestampMicrosecondType>().value(0));
    EventName {
        id: text(&columns.id),
        source: text(&columns.source),
        subject: text(&columns.subject),
        event_type: text(&columns.event_type),
        time_micros: time,
    }
}
