//! What a consumer asks of a decoder: pure, and the same every time for the same rows.
//!
//! Who reads the rows, and who writes what came of them, is not known here.

use arrow::array::RecordBatch;
use pintail_core::schema::Column;

use crate::rollup::Rollup;

/// Turns rows of a source table into rows of targets.
///
/// The same batch gives the same result, on any thread and at any time: a window that is read again after a crash must
/// come to what it came to before.
pub trait Decoder: Send + Sync {
    /// The name, as `pintail.toml` gives it, such as `cloudevents-default`.
    fn name(&self) -> &str;

    /// The version; each row that is written carries it, and a replay replaces rows of older ones.
    fn version(&self) -> u32;

    /// The columns of the source that are read, in the order in which batches bring them.
    fn reads(&self) -> Vec<String>;

    /// The tables that are written, in the order of [`Decoded::rows`].
    fn targets(&self) -> Vec<Target>;

    /// The columns by which a row of any target says which event it came from; the source's are among [`Self::reads`], and at
    /// least one is in the identity of every target. A replay takes out by them what an older version wrote, so they are all
    /// that makes two events different ones, also where producers give both the same id.
    fn parent(&self) -> Vec<Parent>;

    /// The columns of the source by which people name an event; those that are named are among [`Self::reads`].
    fn event(&self) -> EventColumns {
        EventColumns::default()
    }

    /// Brings in what rows only point to, such as a payload in a blob store; the one place where a decoder does IO.
    ///
    /// Called once per part of a batch, before [`Self::decode`], which gets what this returns; columns may be added behind those of
    /// [`Self::reads`]. What is missing or damaged for good is left for `decode` to report as dead; an error means that
    /// the answer may differ later, and the pass is given up and repeated.
    fn resolve(&self, batch: RecordBatch) -> Result<RecordBatch, ResolveError> {
        Ok(batch)
    }

    /// Returns the rows of `batch` whose payload [`Self::resolve`] will fetch, in order: only so many of them are resolved
    /// and decoded at once that their payloads fit into memory.
    fn payloads_elsewhere(&self, _batch: &RecordBatch) -> Vec<usize> {
        Vec::new()
    }

    /// Decodes `batch`, whose columns are those of [`Self::reads`]; `now_micros` is the time of the pass, in UTC
    /// microseconds, against which clocks that run ahead are measured.
    fn decode(&self, batch: &RecordBatch, now_micros: i64) -> Decoded;
}

/// Why a payload outside the table could not be read for now.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}")]
pub struct ResolveError {
    /// What was read, such as the blob by its key.
    pub what: String,
    /// What the store answered.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A table that a decoder writes.
pub struct Target {
    /// The name, without its schema.
    pub table: String,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// What makes two rows the same event.
    pub identity: Identity,
    /// The list of `ALTER TABLE … SET PARTITIONED BY (…)`, such as `bucket(16, subject), day("timestamp")`; empty for none.
    pub partitioned_by: Vec<String>,
    /// The list of `ALTER TABLE … SET SORTED BY (…)`; empty for none.
    pub sorted_by: Vec<String>,
    /// What is kept of this table in the same transaction.
    pub rollup: Option<Box<dyn Rollup>>,
}

/// A column in which a row says which event it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its name in the target.
    pub target: String,
    /// Its name in the source.
    pub source: String,
}

/// Columns of a source in which an event says how it is named, for dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventColumns {
    /// Its id.
    pub id: Option<String>,
    /// Who sent it.
    pub source: Option<String>,
    /// Whom it is about.
    pub subject: Option<String>,
    /// Its type.
    pub event_type: Option<String>,
    /// Its time.
    pub time: Option<String>,
}

/// The columns by which a row is the same event, without a limit of time.
pub struct Identity {
    /// The columns; compared so that NULL equals NULL.
    pub columns: Vec<String>,
    /// The column of the row's time, for which files of other times need not be read; part of `columns`.
    pub time: Option<String>,
    /// The column that holds the version of the decoder.
    pub version: Option<String>,
}

/// What a decoder made of a batch.
#[derive(Debug, Default)]
pub struct Decoded {
    /// One batch per target, in their order; a target without rows has an empty batch.
    pub rows: Vec<RecordBatch>,
    /// What could not be decoded, whole rows and parts of rows.
    pub dead: Vec<Dead>,
}

/// Something that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// The row of the batch, from 0.
    pub row: usize,
    /// The part of the payload, such as `signals[3]`; the whole row when absent.
    pub part: Option<String>,
    /// Why, for people: what was expected and what is there.
    pub reason: String,
    /// The bytes of the part, or of the payload.
    pub raw: Vec<u8>,
    /// Whether the payload could not be had at all, so that nothing is known of what it would have come to. A replay leaves
    /// what was made of such a row before.
    pub is_unread: bool,
}
