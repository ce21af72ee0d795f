//! A run: the plan made real. One linear event loop owns the state of the steps; slots are threads that do one step at a
//! time and answer over a channel.

mod dispatch;
mod events;
mod summary;

pub use dispatch::dispatch;
pub use events::RunEvent;
pub use summary::{RunSummary, StepState};
