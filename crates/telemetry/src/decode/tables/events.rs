//! Rows of `events`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int32Builder, ListBuilder, RecordBatch, StringBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};

use super::{Header, Origin, UTC, arrow_schema, event_columns};
use crate::decode::event::Event;

/// Rows, column by column, in the order of the table.
#[derive(Default)]
pub struct EventRows {
    subject: StringBuilder,
    bucket: Int32Builder,
    source: StringBuilder,
    producer: StringBuilder,
    event_id: StringBuilder,
    event_type: StringBuilder,
    data_version: StringBuilder,
    name: StringBuilder,
    timestamp: TimestampMicrosecondBuilder,
    duration: UInt64Builder,
    metadata: StringBuilder,
    tags: ListBuilder<StringBuilder>,
    event_time: TimestampMicrosecondBuilder,
    decoder: StringBuilder,
    version: Int32Builder,
}

impl EventRows {
    /// Adds the row of one event.
    pub fn push(&mut self, header: &Header<'_>, event: &Event<'_>, origin: Origin) {
        self.subject.append_value(header.subject);
        self.bucket.append_value(header.bucket);
        self.source.append_option(header.row.source);
        self.producer.append_option(header.row.producer);
        self.event_id.append_value(header.id);
        self.event_type.append_option(header.row.event_type);
        self.data_version.append_option(header.row.data_version);
        self.name.append_value(event.name);
        self.timestamp.append_value(event.timestamp);
        self.duration.append_option(event.duration);
        self.metadata.append_option(event.metadata.as_deref());
        self.tags.append_option(event.tags.as_ref().map(|tags| tags.iter().map(Some)));
        self.event_time.append_option(header.row.time);
        self.decoder.append_value(origin.decoder);
        self.version.append_value(origin.version);
    }

    /// Returns the rows.
    pub fn finish(mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.subject.finish()),
            Arc::new(self.bucket.finish()),
            Arc::new(self.source.finish()),
            Arc::new(self.producer.finish()),
            Arc::new(self.event_id.finish()),
            Arc::new(self.event_type.finish()),
            Arc::new(self.data_version.finish()),
            Arc::new(self.name.finish()),
            Arc::new(self.timestamp.finish().with_timezone(UTC)),
            Arc::new(self.duration.finish()),
            Arc::new(self.metadata.finish()),
            Arc::new(self.tags.finish()),
            Arc::new(self.event_time.finish().with_timezone(UTC)),
            Arc::new(self.decoder.finish()),
            Arc::new(self.version.finish()),
        ];
        RecordBatch::try_new(arrow_schema(event_columns()), columns).expect("every push adds one value to each column")
    }
}
