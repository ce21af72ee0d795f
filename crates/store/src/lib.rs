//! The metadata store: what ran, what it wrote, and what is waiting.
//!
//! Invariants:
//! - `materialization` is append-only; the current version of a slice is a view over it, which failures never touch.
//! - What belongs together is one transaction: [`Store::record_success`] writes the materialization, the schema, the
//!   test results, the outbox and the ends of attempt and step, or nothing.
//! - The lake wins: a stamp proves a commit, whatever the store believed ([`Store::ingest_stamps`]).
//! - Every row has its project; a [`Store`] sees the rows of one project only.
//! - Any number of tasks and processes may use one store at once: they wait, they do not fail.
//! - SQLite and Postgres behave alike; `database` alone knows which it is.
//!
//! Not here: truth about the data (that is the lake's), leases and pins (the lake's guard), clocks and ids (arguments).

mod attempt;
mod backfill;
mod backfill_partition;
mod cursor;
mod database;
mod encoding;
mod error;
mod ingest;
mod kept;
mod location;
mod log;
mod materialization;
mod open;
mod outbox;
mod record;
mod run;
mod schema;
mod script_text;
mod slice;
mod step;
mod test_result;

pub use attempt::{Attempt, AttemptEnd, AttemptStatus, NewAttempt, RecordedStatement};
pub use backfill::{Backfill, BackfillEnd, BackfillId, BackfillOptions, NewBackfill};
pub use backfill_partition::{BackfillCounts, BackfillPartition};
pub use error::{ErrorClass, OpenError, ReadError, WriteError};
pub use ingest::{Ingested, LakeStamp};
pub use kept::KeptInputs;
pub use location::StoreLocation;
pub use log::{LogLevel, LogLine};
pub use materialization::{AssetKey, Materialization, MaterializationId, MaterializationStatus, Origin};
pub use open::Store;
pub use outbox::{OutboxId, OutboxRow};
pub use record::{AfterFailure, FailureKind, FailureRecord, FailureRecorded, LakeVersion, SuccessKind, SuccessRecord};
pub use run::{NewRun, Pins, Run, RunDetail, RunEnd, RunStatus, StepDetail};
pub use schema::SchemaVersion;
pub use script_text::ScriptText;
pub use slice::SliceState;
pub use step::{NewStep, PhaseTiming, RecordedError, Step, StepEnd, StepStatus};
pub use test_result::{MAX_SAMPLE_ROWS, TestResult, TestSeverity, TestStatus};
