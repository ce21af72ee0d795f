//! The planner: facts in, an ordered list of steps with their reasons out.
//!
//! Invariant: `plan`, `--dry-run`, the executor and every page show the same list. The planner reads nothing: scripts,
//! slices, changes and heads come in as facts, time too. Linear in scripts, partitions and edges.

pub mod backfill;
mod changes;
mod facts;
mod request;
mod spared;
mod stale;
mod steps;

pub use changes::LastChanges;
pub use facts::{Facts, ScriptFacts, SliceFacts, SliceVersion};
pub use request::{Partitions, Request};
pub use spared::is_spared;
pub use stale::{SliceStatus, slice_status};
pub use steps::{Hint, Plan, PlanError, Reason, Step, plan};

#[cfg(test)]
mod tests;
