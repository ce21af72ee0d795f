//! The executor of DuckDB SQL: the write protocol, step by step, on a slot's instance.
//!
//! lease -> pins -> stage -> guards -> transaction (check, write, test, stamp, COMMIT, look-up) -> remember. What follows
//! a failure is decided in `core::write`; this file does what was decided. Each phase is timed, each statement kept.

mod atomic;
mod attempt;
mod commit;
mod data_tests;
mod execute;
mod explain;
mod group;
mod history;
mod increment;
mod lease;
mod manual;
mod remember;
mod restore;
mod shape;
mod staging;
mod stream;
mod text;
mod unchanged;
mod view;

pub use atomic::execute_atomic;
pub use attempt::strategy_of;
pub use commit::sample;
pub use data_tests::{ReadyTest, TestOutcome, TestPlace, TestRows, rows_text, run_test, store_severity, tests_of};
pub use execute::execute;
pub use explain::explain;
pub use group::{Batch, execute_group, may_share};
pub use history::Surroundings;
pub use increment::{OpenIncrement, Source, open_increment};
pub use shape::{Shape, ShapeFacts, partitions_of, shape, slice_of};
pub use staging::{deduplicate, mark_untyped, prepare_session, refuse_repeated_columns};
pub use stream::{kinds_of as stream_kinds, preview as preview_stream, spec_of as stream_spec};
pub use text::{ReadAs, rewrite};
