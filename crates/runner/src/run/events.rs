//! What a face is told while a run goes on.

use std::time::Duration;

use pintail_core::id::RunId;
use pintail_core::plan::Step;

use super::{RunSummary, StepState};
use crate::executors::StepReport;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// The run began.
    Started {
        /// The run.
        run: RunId,
        /// Its steps.
        steps: Vec<Step>,
    },
    /// A step began.
    StepStarted {
        /// Its place in the plan.
        index: usize,
    },
    /// A step came to another phase.
    StepPhase {
        /// Its place in the plan.
        index: usize,
        /// The phase.
        phase: &'static str,
    },
    /// A step ended.
    StepFinished {
        /// How it ended.
        state: StepState,
        /// What it says; `None` for a step that never began.
        report: Option<Box<StepReport>>,
        /// Its place in the plan.
        index: usize,
    },
    /// The run ended.
    Finished {
        /// How.
        summary: RunSummary,
        /// How long it took.
        elapsed: Duration,
    },
}
