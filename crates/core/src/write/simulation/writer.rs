//! Who writes: one step, several steps in one commit, or a run in one transaction; and what each has learned so far.

use super::lake::{Row, Shape, Transaction};
use crate::id::SnapshotId;

/// How an asset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Replace the slice.
    Replace,
    /// Replace the rows with the same keys.
    Merge,
    /// Insert only.
    Append,
}

/// An asset of the simulated project.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// How it is written.
    pub strategy: Strategy,
    /// Whether its script reads what it writes: then it counts one further than it has read.
    pub reads_target: bool,
    /// Whether it has slices.
    pub is_sliced: bool,
}

const fn asset(strategy: Strategy, reads_target: bool, is_sliced: bool) -> Asset {
    Asset { strategy, reads_target, is_sliced }
}

/// The project: slices and whole tables of every strategy, and readers of themselves. The first two share a fence with
/// others.
pub const ASSETS: [Asset; 7] = [
    asset(Strategy::Replace, false, true),
    asset(Strategy::Merge, false, true),
    asset(Strategy::Append, false, true),
    asset(Strategy::Replace, true, false),
    asset(Strategy::Append, true, false),
    asset(Strategy::Append, false, false),
    asset(Strategy::Replace, false, false),
];

/// How the parts of a writer are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One step by itself.
    Alone,
    /// Several steps that share a commit as long as all is well.
    Group,
    /// A run in one transaction, staged inside it.
    Atomic,
}

/// The next thing that a writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Take the leases.
    Idle,
    /// Stage.
    Leased,
    /// Begin the transaction.
    Staged,
    /// Read the commits since.
    Begun,
    /// Write.
    Checked,
    /// Send COMMIT.
    Written,
    /// Look the attempt up.
    Sent {
        /// Whether COMMIT returned well.
        returned_well: bool,
    },
    /// Tell the store.
    Committed(SnapshotId),
    /// Nothing.
    Ended,
}

/// What a step says in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It committed, or an attempt before it had.
    Landed,
    /// Something newer was there.
    Superseded,
    /// It left nothing.
    Failed,
    /// Whether it committed could not be learned.
    Unknown,
}

/// One slice that a writer writes.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its step, unlike any other.
    pub step: String,
    /// The asset.
    pub asset: usize,
    /// The slice; empty for an asset without.
    pub slice: String,
    /// How the write shapes the table.
    pub shape: Shape,
    /// Which attempt of the step it is.
    pub attempt: u32,
    /// The head that the write is prepared against.
    pub base: SnapshotId,
    /// What the stage was read from.
    pub read: SnapshotId,
    /// The stage.
    pub staged: Vec<Row>,
    /// Whether the outcome of a COMMIT was never learned.
    pub is_in_doubt: bool,
    /// What the step said.
    pub told: Option<Told>,
}

impl Part {
    /// Returns the attempt's name.
    pub fn attempt_name(&self) -> String {
        format!("{}#{}", self.step, self.attempt)
    }

    /// Returns what the part's lease is for.
    pub fn lease(&self) -> (usize, String) {
        (self.asset, if ASSETS[self.asset].is_sliced { self.slice.clone() } else { String::new() })
    }
}

/// A process at work on the steps of one run.
#[derive(Debug)]
pub struct Writer {
    /// Its number, which the rows carry.
    pub name: usize,
    /// How it commits.
    pub mode: Mode,
    /// The snapshot at which its run was planned; never moves.
    pub pin: SnapshotId,
    /// What it does next.
    pub state: State,
    /// What it writes.
    pub parts: Vec<Part>,
    /// The open transaction.
    pub transaction: Option<Transaction>,
    /// How often it has tried.
    pub tries: u32,
    /// Whether it died.
    pub is_dead: bool,
}

impl Writer {
    /// Returns whether it has anything left to do.
    pub fn is_at_work(&self) -> bool {
        !self.is_dead && self.state != State::Ended
    }
}
