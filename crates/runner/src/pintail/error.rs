//! What can go wrong around a run: not inside a step, which reports its own failure.

use pintail_core::id::{RunId, ScriptName};
use pintail_core::plan::PlanError;
use pintail_core::select::SelectFailure;
use pintail_engine::EngineError;
use pintail_store::{OpenError, ReadError, WriteError};

use crate::executors::StepFailure;

/// A command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The engine failed outside a step.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The selection is wrong.
    #[error("the selection is wrong")]
    Select(SelectFailure),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The user asked for something that is not there.
    #[error("{message}")]
    NotFound {
        /// What is not there, with a near name.
        message: String,
    },
    /// The user asked for something that does not make sense.
    #[error("{message}")]
    Usage {
        /// What and why.
        message: String,
    },
    /// A lake is not as it must be.
    #[error("{message}")]
    Damaged {
        /// What is wrong, what was done, and what to do.
        message: String,
    },
    /// A question failed as a step would.
    #[error("{}", .0.message)]
    Step(Box<StepFailure>),
    /// The project has errors.
    #[error("the project has errors: `pintail check` shows them")]
    ProjectHasErrors,
    /// The asynchronous runtime did not start.
    #[error("could not start the runtime")]
    Runtime(#[source] std::io::Error),
    /// A run is not there.
    #[error("there is no run `{0}`; `pintail history` lists the newest")]
    NoRun(RunId),
    /// A script is not there.
    #[error("there is no script `{name}`{hint}")]
    NoScript {
        /// What was named.
        name: ScriptName,
        /// `; did you mean …`, or empty.
        hint: String,
    },
}

impl From<StepFailure> for RunnerError {
    fn from(failure: StepFailure) -> Self {
        Self::Step(Box::new(failure))
    }
}
