//! Rows of `raw_events` as a decoder reads them: columns found by name, values borrowed from the batch.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, AsArray as _, BinaryArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::blobs;
use super::tables::UTC;

/// The columns that are read, of the thirteen that there are.
pub const READS: [&str; 10] =
    ["subject", "time", "type", "id", "source", "producer", "data_version", "data", "data_base64", "data_index_key"];

/// Base64 as people write it, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The columns of a batch.
pub struct RawRows {
    subject: StringArray,
    time: TimestampMicrosecondArray,
    event_type: StringArray,
    id: StringArray,
    source: StringArray,
    producer: StringArray,
    data_version: StringArray,
    data: StringArray,
    data_base64: BinaryArray,
    key: StringArray,
    blob: Option<BinaryArray>,
    unusable: Option<StringArray>,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct RawRow<'a> {
    /// Whom it is about.
    pub subject: Option<&'a str>,
    /// When it happened, in UTC microseconds.
    pub time: Option<i64>,
    /// The event's type.
    pub event_type: Option<&'a str>,
    /// The event's id.
    pub id: Option<&'a str>,
    /// Who sent it.
    pub source: Option<&'a str>,
    /// The device.
    pub producer: Option<&'a str>,
    /// The version of the payload's form.
    pub data_version: Option<&'a str>,
    /// The payload as text.
    pub data: Option<&'a str>,
    /// The payload as base64.
    pub data_base64: Option<&'a [u8]>,
    /// The key of the payload in the blob store.
    pub key: Option<&'a str>,
    /// The payload that was fetched from there.
    pub blob: Option<&'a [u8]>,
    /// Why none could be.
    pub unusable: Option<&'a str>,
}

/// A payload, or what is wrong with it.
pub type Payload<'a> = Result<Cow<'a, [u8]>, String>;

impl<'a> RawRow<'a> {
    /// Returns the payload that is in the row itself.
    pub fn inline(&self) -> Option<Payload<'a>> {
        if let Some(data) = self.data.filter(|data| !data.is_empty()) {
            return Some(Ok(Cow::Borrowed(data.as_bytes())));
        }
        let encoded = self.data_base64.filter(|data| !data.is_empty())?;
        let without_space: Vec<u8> = encoded.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let decoded = BASE64.decode(without_space);
        Some(decoded.map(Cow::Owned).map_err(|error| format!("expected base64 in `data_base64`: {error}")))
    }

    /// Returns the payload, wherever it is.
    pub fn payload(&self) -> Payload<'a> {
        if let Some(payload) = self.inline() {
            return payload;
        }
        match (self.key, self.blob, self.unusable) {
            (None, ..) => Err("the event has no payload".to_owned()),
            (Some(_), Some(blob), _) => Ok(Cow::Borrowed(blob)),
            (Some(key), None, reason) => {
                Err(format!("the payload is the blob `{key}`: {}", reason.unwrap_or("it was not fetched")))
            }
        }
    }

    /// Returns the bytes that are kept when the row cannot be decoded: the payload, or what leads to it.
    pub fn raw(&self) -> &'a [u8] {
        let data = self.data.map(str::as_bytes).filter(|data| !data.is_empty());
        data.or(self.data_base64).or(self.key.map(str::as_bytes)).unwrap_or_default()
    }
}

impl RawRows {
    /// Finds the columns of a batch; the error names the one that is missing or of another type.
    pub fn of(batch: &RecordBatch) -> Result<Self, String> {
        Ok(Self {
            subject: text(batch, "subject")?,
            time: time(batch, "time")?,
            event_type: text(batch, "type")?,
            id: text(batch, "id")?,
            source: text(batch, "source")?,
            producer: text(batch, "producer")?,
            data_version: text(batch, "data_version")?,
            data: text(batch, "data")?,
            data_base64: bytes(batch, "data_base64")?,
            key: text(batch, "data_index_key")?,
            blob: batch.column_by_name(blobs::PAYLOAD).map(|_| bytes(batch, blobs::PAYLOAD)).transpose()?,
            unusable: batch.column_by_name(blobs::UNUSABLE).map(|_| text(batch, blobs::UNUSABLE)).transpose()?,
        })
    }

    /// Returns the row at `index`.
    pub fn row(&self, index: usize) -> RawRow<'_> {
        fn text(column: &StringArray, index: usize) -> Option<&str> {
            column.is_valid(index).then(|| column.value(index))
        }
        fn bytes(column: &BinaryArray, index: usize) -> Option<&[u8]> {
            column.is_valid(index).then(|| column.value(index))
        }
        RawRow {
            subject: text(&self.subject, index),
            time: self.time.is_valid(index).then(|| self.time.value(index)),
            event_type: text(&self.event_type, index),
            id: text(&self.id, index),
            source: text(&self.source, index),
            producer: text(&self.producer, index),
            data_version: text(&self.data_version, index),
            data: text(&self.data, index),
            data_base64: bytes(&self.data_base64, index),
            key: text(&self.key, index).filter(|key| !key.is_empty()),
            blob: self.blob.as_ref().and_then(|blob| bytes(blob, index)),
            unusable: self.unusable.as_ref().and_then(|unusable| text(unusable, index)),
        }
    }
}

fn text(batch: &RecordBatch, name: &str) -> Result<StringArray, String> {
    let column = column(batch, name, &DataType::Utf8)?;
    Ok(column.as_any().downcast_ref::<StringArray>().expect("the column was cast to text").clone())
}

fn bytes(batch: &RecordBatch, name: &str) -> Result<BinaryArray, String> {
    let column = column(batch, name, &DataType::Binary)?;
    Ok(column.as_any().downcast_ref::<BinaryArray>().expect("the column was cast to bytes").clone())
}

fn time(batch: &RecordBatch, name: &str) -> Result<TimestampMicrosecondArray, String> {
    let column = column(batch, name, &DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())))?;
    Ok(column.as_primitive::<TimestampMicrosecondType>().clone())
}

/// Returns a column as `wanted`; its wide and dictionary forms are the same to us, and cost nothing when it is that already.
fn column(batch: &RecordBatch, name: &str, wanted: &DataType) -> Result<ArrayRef, String> {
    let Some(column) = batch.column_by_name(name) else {
        return Err(format!("the source has no column `{name}`, which the decoder reads"));
    };
    cast(column, wanted).map_err(|_| format!("the column `{name}` is {}, expected {wanted}", column.data_type()))
}
