//! Rows of `signals`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Builder, Int32Builder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder};

use super::{Header, Origin, UTC, arrow_schema, signal_columns};
use crate::decode::location::Location;
use crate::decode::signal::{Signal, Value};

/// Rows, column by column, in the order of the table.
#[derive(Default)]
pub struct SignalRows {
    subject: StringBuilder,
    bucket: Int32Builder,
    name: StringBuilder,
    timestamp: TimestampMicrosecondBuilder,
    source: StringBuilder,
    producer: StringBuilder,
    event_id: StringBuilder,
    number: Float64Builder,
    text: StringBuilder,
    latitude: Float64Builder,
    longitude: Float64Builder,
    hdop: Float64Builder,
    heading: Float64Builder,
    event_type: StringBuilder,
    event_time: TimestampMicrosecondBuilder,
    decoder: StringBuilder,
    version: Int32Builder,
}

impl SignalRows {
    /// Adds the row of one signal.
    pub fn push(&mut self, header: &Header<'_>, signal: &Signal<'_>, origin: Origin) {
        self.subject.append_value(header.subject);
        self.bucket.append_value(header.bucket);
        self.name.append_value(signal.name);
        self.timestamp.append_value(signal.timestamp);
        self.source.append_option(header.row.source);
        self.producer.append_option(header.row.producer);
        self.event_id.append_value(header.id);
        let (number, text, place) = match &signal.value {
            Value::Number(number) => (Some(*number), None, None),
            Value::Text(text) => (None, Some(text), None),
            Value::Location(place) => (None, None, Some(place)),
        };
        self.number.append_option(number);
        self.text.append_option(text);
        self.push_place(place);
        self.event_type.append_option(header.row.event_type);
        self.event_time.append_option(header.row.time);
        self.decoder.append_value(origin.decoder);
        self.version.append_value(origin.version);
    }

    fn push_place(&mut self, place: Option<&Location>) {
        self.latitude.append_option(place.map(|place| place.latitude));
        self.longitude.append_option(place.map(|place| place.longitude));
        self.hdop.append_option(place.and_then(|place| place.hdop));
        self.heading.append_option(place.and_then(|place| place.heading));
    }

    /// Returns the rows.
    pub fn finish(mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.subject.finish()),
            Arc::new(self.bucket.finish()),
            Arc::new(self.name.finish()),
            Arc::new(self.timestamp.finish().with_timezone(UTC)),
            Arc::new(self.source.finish()),
            Arc::new(self.producer.finish()),
            Arc::new(self.event_id.finish()),
            Arc::new(self.number.finish()),
            Arc::new(self.text.finish()),
            Arc::new(self.latitude.finish()),
            Arc::new(self.longitude.finish()),
            Arc::new(self.hdop.finish()),
            Arc::new(self.heading.finish()),
            Arc::new(self.event_type.finish()),
            Arc::new(self.event_time.finish().with_timezone(UTC)),
            Arc::new(self.decoder.finish()),
            Arc::new(self.version.finish()),
        ];
        RecordBatch::try_new(arrow_schema(signal_columns()), columns).expect("every push adds one value to each column")
    }
}
