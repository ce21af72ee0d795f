//! What a plan says besides its steps: why each is in it, what else there would be to do, and why there is no plan.

use std::fmt;

use super::State;
use crate::asset::Asset;
use crate::id::{ScriptName, SnapshotId};
use crate::partition::{PartitionError, PartitionKey};

/// Why a step is in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The slice was never written.
    Missing,
    /// The newest attempt failed.
    Failed,
    /// The script's text is another one.
    ScriptChanged,
    /// What it reads has changed.
    InputChanged(Asset),
    /// A step before it writes what it reads.
    Upstream(ScriptName),
    /// What it reads is not known, so it cannot be up to date.
    UnknownReads,
    /// Its period was open when it was written, and is closed now.
    PeriodClosed,
    /// Its period is still open; nothing to do until it closes or an input changes.
    PeriodOpen,
    /// Rows that lay in the future when it last ran may be taken now.
    TimeHasCome,
    /// The table that is there was made by something else.
    UnknownOrigin,
    /// The table was taken over, and this slice of it was never written.
    TakenOver,
    /// The user asked for it.
    Forced,
    /// The user asked for a full refresh.
    FullRefresh,
    /// The user named the partition.
    Requested,
    /// The user asked for the content of an older snapshot.
    RolledBack(SnapshotId),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Missing => f.write_str("never written"),
            Reason::Failed => f.write_str("failed last time"),
            Reason::ScriptChanged => f.write_str("the script changed"),
            Reason::InputChanged(asset) => write!(f, "{asset} changed"),
            Reason::Upstream(script) => write!(f, "after {script}"),
            Reason::UnknownReads => f.write_str("what it reads is not known"),
            Reason::PeriodClosed => f.write_str("its period was still open last time"),
            Reason::PeriodOpen => f.write_str("its period is still open"),
            Reason::TimeHasCome => f.write_str("rows that lay in the future are due"),
            Reason::UnknownOrigin => f.write_str("the table there was made by something else: `pintail adopt`"),
            Reason::TakenOver => f.write_str("taken over, never written"),
            Reason::Forced => f.write_str("forced"),
            Reason::FullRefresh => f.write_str("full refresh"),
            Reason::Requested => f.write_str("requested"),
            Reason::RolledBack(snapshot) => write!(f, "rolled back to snapshot {snapshot}"),
        }
    }
}

/// Something the user may want to do besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Earlier periods of a script were never written.
    Backfill {
        /// The script.
        script: ScriptName,
        /// How many partitions are missing.
        missing: u64,
        /// The first of them.
        from: PartitionKey,
        /// The last of them.
        to: PartitionKey,
    },
    /// A place outside lakes could not be asked; what is remembered of it stands.
    Unreachable {
        /// Which, and why.
        message: String,
    },
    /// A selected script is not in the plan.
    LeftOut {
        /// The script.
        script: ScriptName,
        /// Why.
        reason: String,
    },
    /// Partitions that a planned script reads were never written, and this plan does not write them.
    UnwrittenUpstream {
        /// The script that reads them.
        script: ScriptName,
        /// The script that would write them.
        upstream: ScriptName,
        /// How many there are.
        missing: u64,
        /// The first of them.
        first: PartitionKey,
    },
    /// More slices are in the wanted states than one plan takes.
    More {
        /// The script.
        script: ScriptName,
        /// How many are left for the next time.
        left: u64,
        /// The states that were asked for.
        states: Vec<State>,
    },
}

/// A read that goes to another profile's table, because this profile has not built its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredRead {
    /// The script that reads.
    pub script: ScriptName,
    /// What it reads, as the other profile calls it.
    pub asset: Asset,
    /// The other profile.
    pub profile: String,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The named partition fits no selected script.
    #[error("the partition `{text}` fits no selected script")]
    PartitionFitsNothing {
        /// What was named.
        text: String,
    },
    /// The named partition is not one.
    #[error("`{script}`: {source}")]
    Partition {
        /// The script.
        script: ScriptName,
        /// Why.
        source: PartitionError,
    },
    /// The partition lies before `start=`.
    #[error("`{script}`: the partition {key} lies before its start {start}; move `start=` to write it")]
    BeforeStart {
        /// The script.
        script: ScriptName,
        /// The partition.
        key: PartitionKey,
        /// The declared start.
        start: chrono::NaiveDate,
    },
    /// The partition lies in the future.
    #[error("`{script}`: the partition {key} has not begun yet")]
    Future {
        /// The script.
        script: ScriptName,
        /// The partition.
        key: PartitionKey,
    },
}
