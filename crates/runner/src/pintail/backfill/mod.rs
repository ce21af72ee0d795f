//! Backfills: durable jobs that make a set of partitions of one script, a window at a time.
//!
//! Invariant: what a job has done is in the store before the next thing is begun, so that a killed job is resumed where
//! it was. Each window is a run of its own, planned from fresh facts: what became up to date meanwhile is not done twice.
//! A job never moves a schedule's cursor.

mod job;
mod jobs;
mod plan;
mod range;
mod window;

pub use job::{BackfillEvent, BackfillSummary};
pub use jobs::{BackfillInfo, CancelledBackfill};
pub use plan::{BackfillPlan, BackfillRequest, Estimate, UnwrittenUpstream};
pub use range::BackfillRange;
