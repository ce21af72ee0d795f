//! Decisions of the write protocol: what a commit conflicts with, and what follows when something goes wrong.
//!
//! Facts in, decision out: nothing here reads a lake. The order of the steps themselves is runner's; each of its
//! branches is decided here, so that a simulation can drive the same decisions without an engine.

mod check;
mod class;
mod next;

pub use check::{Check, CheckFacts, SeenCommit, check};
pub use class::ErrorClass;
pub use next::{Facts, MAX_ATTEMPTS, Next, next_after_failure};

#[cfg(test)]
mod simulation;
