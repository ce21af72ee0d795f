//! Executors: what does a step. `duckdb` writes lake tables; `datatable` and `object` write what lies outside, and share
//! `outside`.
//!
//! An executor is handed a step that was planned and says what became of it; it decides nothing about other steps.

pub mod context;
pub mod datatable;
pub mod duckdb;
pub mod failure;
mod keepers;
pub mod object;
pub mod outside;
pub mod slot;

pub use context::{AssetMemory, Cancel, RunContext, StepJob, StepOutcome, StepReport};
pub use failure::StepFailure;
pub use keepers::Keepers;
pub use slot::Slot;
