//! The planner: facts in, an ordered list of steps with their reasons out.
//!
//! Reading order: the facts ([`Facts`]), the state of one slice ([`slice_state`]), of all slices of a script
//! ([`SliceIndex::ranges`]), which of them a request means (`choose`), and the steps ([`plan`]).
//!
//! Invariant: `plan`, `--dry-run`, the executor and every page show the same list. The planner reads nothing: scripts,
//! slices, changes and heads come in as facts, time too. Linear in scripts, partitions and edges.

pub mod backfill;
mod changes;
mod choose;
mod facts;
mod ranges;
mod reason;
mod request;
mod spared;
mod stale;
mod steps;
mod unwritten;

pub use changes::{Author, Extent, LastChanges, Part};
pub use choose::MOST_SLICES;
pub use facts::{DynamicFacts, Facts, Origin, ScriptFacts, SliceFacts, SliceVersion};
pub use ranges::{SliceIndex, SliceRange};
pub use reason::{DeferredRead, Hint, PlanError, Reason};
pub use request::{Partitions, Request};
pub use spared::is_spared;
pub use stale::{SliceState, SliceStatus, State, slice_state, slice_status};
pub use steps::{Content, Plan, Step, plan};

#[cfg(test)]
mod tests;
