//! Payloads that lie in a blob store: where a row has a key instead of a payload, its bytes are fetched before decoding.
//!
//! The store is somebody else's; here is only what a decoder asks of it. A blob that is missing or damaged for good is a
//! dead letter with its key; anything else that goes wrong ends the pass, because it may be different the next time.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema};
use pintail_streams::ResolveError;

use super::rows::{RawRow, RawRows};

/// What a key led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The payload, unsealed.
    Payload(Vec<u8>),
    /// It is missing, too large, or cannot be unsealed; in words, such as `no such blob`.
    Unusable(String),
}

/// A blob store, for reading.
pub trait Blobs: Send + Sync {
    /// Fetches the payloads of `keys`, in their order, several at a time; an error when the store could not be asked.
    fn fetch(&self, keys: &[&str]) -> Result<Vec<Fetched>, ResolveError>;
}

/// The store of those who have none: whatever is asked ends the pass, since a setting is missing and not a blob.
#[derive(Clone, Copy, Debug)]
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn fetch(&self, keys: &[&str]) -> Result<Vec<Fetched>, ResolveError> {
        match keys.first() {
            None => Ok(Vec::new()),
            Some(key) => {
                Err(ResolveError { what: format!("the blob `{key}`"), source: "no blob store is configured".into() })
            }
        }
    }
}

/// The column of fetched payloads.
pub const PAYLOAD: &str = "_pt_blob";
/// The column of reasons why there is none.
pub const UNUSABLE: &str = "_pt_blob_unusable";

/// Returns the rows of `batch` that `wants` and that have only a key.
pub fn wanted(batch: &RecordBatch, wants: impl Fn(&RawRow<'_>) -> bool) -> Vec<usize> {
    let Ok(rows) = RawRows::of(batch) else { return Vec::new() };
    let is_wanted = |index: &usize| {
        let row = rows.row(*index);
        row.key.is_some() && row.inline().is_none() && wants(&row)
    };
    (0..batch.num_rows()).filter(is_wanted).collect()
}

/// Returns `batch` with the payloads of the rows that `wants` and that have only a key; as it is when there are none.
pub fn resolve(
    batch: RecordBatch,
    blobs: &dyn Blobs,
    wants: impl Fn(&RawRow<'_>) -> bool,
) -> Result<RecordBatch, ResolveError> {
    // What is no batch of raw events is said row by row when it is decoded.
    let Ok(rows) = RawRows::of(&batch) else { return Ok(batch) };
    let keys: Vec<Option<&str>> = (0..batch.num_rows())
        .map(|index| {
            let row = rows.row(index);
            row.key.filter(|_| row.inline().is_none() && wants(&row))
        })
        .collect();
    let wanted: Vec<&str> = keys.iter().copied().flatten().collect();
    if wanted.is_empty() {
        return Ok(batch);
    }
    let fetched = blobs.fetch(&wanted)?;
    debug_assert_eq!(fetched.len(), wanted.len(), "a store answers for each key");
    let columns = columns_of(&keys, fetched);
    Ok(with_columns(&batch, columns))
}

fn columns_of(keys: &[Option<&str>], fetched: Vec<Fetched>) -> [ArrayRef; 2] {
    let (mut payloads, mut reasons) = (BinaryBuilder::new(), StringBuilder::new());
    let mut fetched = fetched.into_iter();
    for key in keys {
        let (payload, reason) = match key.map(|_| fetched.next()) {
            None => (None, None),
            Some(Some(Fetched::Payload(payload))) => (Some(payload), None),
            Some(Some(Fetched::Unusable(reason))) => (None, Some(reason)),
            Some(None) => (None, Some("the blob store gave no answer".to_owned())),
        };
        payloads.append_option(payload);
        reasons.append_option(reason);
    }
    [Arc::new(payloads.finish()), Arc::new(reasons.finish())]
}

fn with_columns(batch: &RecordBatch, added: [ArrayRef; 2]) -> RecordBatch {
    let added_fields =
        [Field::new(PAYLOAD, DataType::Binary, true), Field::new(UNUSABLE, DataType::Utf8, true)].map(Arc::new);
    let fields: Vec<Arc<Field>> = batch.schema().fields().iter().cloned().chain(added_fields).collect();
    let columns: Vec<ArrayRef> = batch.columns().iter().cloned().chain(added).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .expect("the columns were built row by row for this batch")
}
