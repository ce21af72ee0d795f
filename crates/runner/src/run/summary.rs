//! How a run ended, in numbers.

use pintail_core::id::RunId;
use pintail_store::RunStatus;

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// Not begun.
    Waiting,
    /// Under way.
    Running,
    /// It committed.
    Materialized,
    /// Nothing had to be written: the table holds what the step gives, or nothing that it reads has changed.
    Unchanged,
    /// A newer run was there first; the newer version stands.
    Superseded,
    /// It was written, and taken back with its atomic run.
    RolledBack,
    /// It failed.
    Failed,
    /// Something before it failed.
    Skipped,
    /// The user stopped the run.
    Cancelled,
}

/// A run's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub status: RunStatus,
    /// Steps that committed.
    pub materialized: usize,
    /// Steps that had nothing to write.
    pub unchanged: usize,
    /// Steps that a newer run made unnecessary.
    pub superseded: usize,
    /// Steps that were taken back because another step of their atomic run failed.
    pub rolled_back: usize,
    /// Steps that failed.
    pub failed: usize,
    /// Steps that did not begin because one before them failed.
    pub skipped: usize,
    /// Steps that were stopped.
    pub cancelled: usize,
    /// Slices that were up to date when the run was planned.
    pub up_to_date: usize,
    /// Why the store does not know how the run ended, when it could not be written. The lake does, and the next start
    /// heals the store.
    pub unrecorded: Option<String>,
}

impl RunSummary {
    /// Returns the summary of `states`.
    pub fn of(run: RunId, states: &[StepState], up_to_date: usize) -> Self {
        let count = |wanted| states.iter().filter(|state| **state == wanted).count();
        let (failed, cancelled) = (count(StepState::Failed), count(StepState::Cancelled));
        let status = match (failed, cancelled) {
            (_, 1..) => RunStatus::Cancelled,
            (1.., _) => RunStatus::Failed,
            _ => RunStatus::Succeeded,
        };
        Self {
            run,
            status,
            materialized: count(StepState::Materialized),
            unchanged: count(StepState::Unchanged),
            superseded: count(StepState::Superseded),
            rolled_back: count(StepState::RolledBack),
            failed,
            skipped: count(StepState::Skipped),
            cancelled,
            up_to_date,
            unrecorded: None,
        }
    }
}
