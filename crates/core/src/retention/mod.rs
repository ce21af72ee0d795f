//! Retention: which snapshots of a lake may go, and who holds the others.
//!
//! Invariants: the head stays; a pin holds its own snapshot and nothing else, so one old pin does not stop retention; what
//! is at or above the snapshot of work in progress stays, because a writer that began before loses its deletes when
//! snapshots after its own are expired. Only explicit lists of ids come out of here, never "everything older than".
//!
//! Deliberately not here: how pins are kept (the lake's guard), and how a snapshot is expired (the engine).

mod bytes;
mod compact;
mod decide;

#[cfg(test)]
mod simulation;

pub use bytes::{FileSpan, bytes_freed, bytes_held};
pub use compact::{KnownConsumer, Ramp, RewriteRefused, TableFiles, may_rewrite, unread_changes};
pub use decide::{Decision, Hold, Kept, RetentionFacts, Snapshot, Why, decide, delete_before, still_free};
