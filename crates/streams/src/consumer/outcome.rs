//! What a pass came to, and why one could not be made.

use std::time::Duration;

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::stream::Gap;
use pintail_engine::{EngineError, ErrorClass};

use crate::decoder::ResolveError;

/// What a pass came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The source is not there yet.
    NoSource {
        /// The table of its schema that was perhaps meant.
        near: Option<String>,
    },
    /// Nothing new.
    Idle,
    /// Rows, or a gap that was passed, and the cursor has moved.
    Landed(Landed),
    /// Another process has written the cursor, or it is not known whether this one has: look again.
    Again,
}

/// What was consumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Landed {
    /// The cursor before and after.
    pub range: (i64, i64),
    /// The snapshot of the last commit.
    pub snapshot: i64,
    /// Rows read from the source.
    pub rows: u64,
    /// Rows written, by table.
    pub written: Vec<(String, u64)>,
    /// Decoded rows that were there already.
    pub duplicates: u64,
    /// Rows that an older version of the decoder had written and that were replaced.
    pub replaced: u64,
    /// New dead letters.
    pub letters: u64,
    /// Commits.
    pub windows: u64,
    /// The gap that was passed.
    pub gap: Option<String>,
    /// Whether more is known to wait.
    pub has_more: bool,
    /// How long reading, decoding and committing took.
    pub phases: Phases,
}

/// Where the time of a pass went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// Reading the span.
    pub read: Duration,
    /// Decoding.
    pub decode: Duration,
    /// Putting rows into temp tables.
    pub stage: Duration,
    /// From BEGIN to the proof.
    pub commit: Duration,
}

impl PartialEq for Phases {
    fn eq(&self, _: &Self) -> bool {
        // How long something took is no part of what was done.
        true
    }
}

impl Eq for Phases {}

/// Why a consumer cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The lake or its guard.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A payload outside the table cannot be read for now.
    #[error("{0}; nothing was written, and the cursor stays at snapshot {cursor}", cursor = .1)]
    Resolve(#[source] ResolveError, SnapshotId),
    /// What is needed is expired.
    #[error(
        "{gap} of {asset} are needed and expired; the cursor stays at snapshot {cursor}. Set `gap = \"rescan\"` to read again what \
         the table still holds of them, or `gap = \"skip\"` to leave them out on record, or run `pintail consume reset {consumer} --to head`"
    )]
    Gap {
        /// The consumer.
        consumer: String,
        /// What it reads.
        asset: String,
        /// What is lost.
        gap: Gap,
        /// Where it is.
        cursor: SnapshotId,
    },
    /// The lake is older than the cursor.
    #[error(
        "the cursor is at snapshot {cursor} and the lake's newest is {head}: the lake is an older copy than the one that was consumed; \
         restore the newer one, or run `pintail consume reset {consumer} --to <snapshot>`"
    )]
    Ahead {
        /// The consumer.
        consumer: String,
        /// Where it is.
        cursor: SnapshotId,
        /// The newest snapshot.
        head: SnapshotId,
    },
    /// The table was made anew.
    #[error(
        "{asset} was made anew since snapshot {cursor} (table {} instead of {}), so its change feed begins anew; run `pintail consume reset \
         {consumer} --to earliest` to read the new table from its beginning", .found.0, .was.0
    )]
    Replaced {
        /// The consumer.
        consumer: String,
        /// What it reads.
        asset: String,
        /// Where it is.
        cursor: SnapshotId,
        /// The table that it read.
        was: TableId,
        /// The table now.
        found: TableId,
    },
    /// The cursor is one in something else.
    #[error(
        "the cursor of `{consumer}` is one in {was}, not in {is}; give the consumer another name, or run `pintail consume reset {consumer}`"
    )]
    OtherSource {
        /// The consumer.
        consumer: String,
        /// What the cursor says.
        was: String,
        /// What is configured.
        is: String,
    },
    /// The source is no table that can be read.
    #[error("{asset} {what}")]
    SourceShape {
        /// What is read.
        asset: String,
        /// What is wrong.
        what: String,
    },
    /// The consumer has no cursor yet.
    #[error(
        "consumer `{consumer}` has never run, so there is nothing to read again; run `pintail consume run {consumer}` first"
    )]
    NeverRun {
        /// The consumer.
        consumer: String,
    },
    /// A target cannot take the rows.
    #[error("table `{table}` cannot take the decoded rows: {what}; nothing was written")]
    TargetShape {
        /// The table.
        table: String,
        /// What is wrong.
        what: String,
    },
    /// Somebody asked for the end.
    #[error("`{consumer}` was stopped; what is not committed is read again the next time")]
    Stopped {
        /// The consumer.
        consumer: String,
    },
    /// Another process has the lease now.
    #[error("another process has taken `{consumer}` over; nothing was written since")]
    LeaseLost {
        /// The consumer.
        consumer: String,
    },
}

impl PassError {
    /// Returns how to react.
    pub fn class(&self) -> ErrorClass {
        match self {
            PassError::Engine(error) => error.class(),
            PassError::Resolve(..) => ErrorClass::Transient,
            PassError::LeaseLost { .. } => ErrorClass::Conflict,
            PassError::Stopped { .. } => ErrorClass::Cancelled,
            PassError::Gap { .. }
            | PassError::Ahead { .. }
            | PassError::Replaced { .. }
            | PassError::OtherSource { .. }
            | PassError::SourceShape { .. }
            | PassError::NeverRun { .. }
            | PassError::TargetShape { .. } => ErrorClass::User,
        }
    }
}
