//! The backfill job: which partitions it does next, and what becomes of each.
//!
//! Invariants, shown by the simulation over these decisions:
//! - No partition is in work twice at once, whatever dies when.
//! - Every partition ends; one that has ended well is not done again, one that failed only by a retry.
//! - Nothing is expanded before it is due: a job is ranges of the calendar plus a state for each partition that has left
//!   the queue, and a window of them at a time is in memory.
//!
//! Not here: the calendar (`partition`), why a slice is stale (`plan::stale`), storing and running (store, runner).

mod decide;
mod ranges;

pub use decide::{
    Claim, Evidence, JobEnd, JobState, Mode, PartitionEnd, PartitionState, Refusal, Tally, after_window, claim, is_due,
    settle, state_after,
};
pub use ranges::{KeyRange, Ranges, RangesBuilder};

#[cfg(test)]
mod simulation;
