//! The one way in which streams write a lake: begin, move the position, write, stamp, COMMIT, prove.
//!
//! Invariant: rows and position land together or not at all, and nothing upstream may be forgotten before
//! [`Outcome::Committed`]. The position is moved first, so that an owner who was overtaken writes nothing; every commit
//! updates it, so that two owners conflict even where DuckLake sees two plain inserts. A COMMIT whose answer was lost is
//! settled by its stamp and by its files: DuckLake removes the files of a commit that it takes for failed.

use std::time::Duration;

use backon::{BlockingRetryable as _, ExponentialBuilder};
use pintail_core::id::{AttemptId, SnapshotId};
use pintail_core::sql::{Relation, Statement};
use pintail_engine::fault::FaultPoint;
use pintail_engine::lake::{self, OWN_SCHEMA, Settled};
use pintail_engine::lane::Purpose;
use pintail_engine::transaction::CommitWords;
use pintail_engine::{EngineError, ErrorClass, Instance, WriteTransaction};
use serde_json::json;

use crate::position::{self, Move, Position, PositionTable};
use crate::writer::Writer;

/// A commit that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// Who writes, for people and for the stamp, such as `consumer decode` or `sink http`.
    pub by: &'a str,
    /// Whose position moves.
    pub position: &'a PositionTable,
    /// How.
    pub change: Move<'a>,
    /// The tables, by schema and name, of which the work changes or deletes rows: their files are not compacted meanwhile.
    /// Tables that it only inserts into are none of them.
    pub changes: &'a [(&'a str, &'a str)],
}

/// What became of a commit.
#[derive(Debug)]
pub enum Outcome<T> {
    /// It is in the lake, with its files.
    Committed {
        /// Its snapshot.
        snapshot: SnapshotId,
        /// What the work returned.
        value: T,
    },
    /// Another owner has moved the position, or a newer one has begun: nothing was written, observe again.
    Moved {
        /// Where the position is now; `None` when its table is gone.
        found: Option<Position>,
    },
    /// Nothing was written because of another writer or of something that passes: do the whole again.
    Retry(EngineError),
    /// It was sent, and whether it landed could not be read: read the position before anything else.
    Unknown(EngineError),
    /// Nothing was written, and the same would fail again.
    Refused(EngineError),
}

impl<T> Outcome<T> {
    /// Returns the outcome of a failure before COMMIT, or of one that has stored nothing.
    fn of(error: EngineError) -> Self {
        match error.class() {
            _ if matches!(error, EngineError::OutcomeUnknown { .. }) => Outcome::Unknown(error),
            ErrorClass::Conflict | ErrorClass::Transient => Outcome::Retry(error),
            ErrorClass::User | ErrorClass::Cancelled | ErrorClass::Bug => Outcome::Refused(error),
        }
    }
}

/// Returns the position, after making it at `start` where there is none. Two that make it at once find the same one.
pub fn begin_at(
    writer: &Writer,
    by: &str,
    table: &PositionTable,
    start: &str,
    source: &str,
) -> Result<Position, EngineError> {
    let begin = || {
        if let Some(found) = position::read(writer, table)? {
            return Ok(found);
        }
        let lane = writer.lake().lane();
        let pass = lane.enter_within(writer.faults().patience(), &|| false)?;
        let transaction = WriteTransaction::begin(writer.session(), writer.alias())?;
        let base = transaction.snapshot();
        if let Some(first) = before_making(writer, OWN_SCHEMA, table.name())? {
            writer.session().run_all(&first)?;
            transaction.run(&position::create(writer.alias(), table, start, source))?;
            let attempt = new_attempt();
            let text = stamp(by, &attempt, table, None, start);
            let message = format!("{by}: begins at {start}");
            let words = CommitWords { attempt: &attempt, message: &message, extra_info: &text };
            known(writer, base, &attempt, transaction.commit(&words, || {}))?;
        }
        drop(pass);
        position::read(writer, table)?.ok_or_else(|| EngineError::Answer {
            purpose: "begin a stream",
            detail: format!("{table} was made and is not there"),
        })
    };
    begin.retry(patience()).when(may_pass).call()
}

/// Makes `schema.table` by `statements` where it is missing, in a commit of its own; two that do it at once make one.
pub fn make_table(writer: &Writer, schema: &str, table: &str, statements: &[Statement]) -> Result<(), EngineError> {
    let make = || {
        if before_making(writer, schema, table)?.is_none() {
            return Ok(());
        }
        let lane = writer.lake().lane();
        let _pass = lane.enter_within(writer.faults().patience(), &|| false)?;
        let transaction = WriteTransaction::begin(writer.session(), writer.alias())?;
        if let Some(first) = before_making(writer, schema, table)? {
            let statements: Vec<Statement> = first.into_iter().chain(statements.iter().cloned()).collect();
            commit_tables(writer, transaction, &format!("make {schema}.{table}"), &statements)?;
        }
        Ok(())
    };
    make.retry(patience()).when(may_pass).call()
}

/// Returns what must be sent before `schema.table` can be made; `None` when it is there. One that was made by a commit that
/// was taken back lacks the rows that it was made with, and goes.
fn before_making(writer: &Writer, schema: &str, table: &str) -> Result<Option<Vec<Statement>>, EngineError> {
    let (session, alias) = writer.place();
    if !lake::absent_names(session, alias, &[(schema, table)])?.is_empty() {
        return Ok(Some(Vec::new()));
    }
    if !lake::was_made_in_vain(session, alias, schema, table)? {
        return Ok(None);
    }
    let drop = format!("DROP TABLE {}", Relation::in_catalog(alias, schema, table));
    Ok(Some(vec![Statement::new("drop a table that was made in vain", drop)]))
}

/// Sends statements that make or drop tables in one commit, which nobody's position is part of.
pub fn change_tables(writer: &Writer, message: &str, statements: &[Statement]) -> Result<(), EngineError> {
    let change = || {
        let lane = writer.lake().lane();
        let _pass = lane.enter_within(writer.faults().patience(), &|| false)?;
        let transaction = WriteTransaction::begin(writer.session(), writer.alias())?;
        commit_tables(writer, transaction, message, statements)
    };
    change.retry(patience()).when(may_pass).call()
}

fn commit_tables(
    writer: &Writer,
    transaction: WriteTransaction<'_>,
    message: &str,
    statements: &[Statement],
) -> Result<(), EngineError> {
    let base = transaction.snapshot();
    writer.session().run_all(statements)?;
    let attempt = new_attempt();
    let text = json!({"pintail": 1, "entries": [], "stream": {"attempt": attempt}}).to_string();
    let words = CommitWords { attempt: &attempt, message, extra_info: &text };
    known(writer, base, &attempt, transaction.commit(&words, || {}))
}

/// Finds out what became of a commit whose outcome is not known; one that has not landed passes, and is done again.
fn known(
    writer: &Writer,
    base: SnapshotId,
    attempt: &AttemptId,
    committed: Result<SnapshotId, EngineError>,
) -> Result<(), EngineError> {
    match committed {
        Err(EngineError::OutcomeUnknown { source, .. }) => match settle(writer, base, attempt)? {
            Some(_) => Ok(()),
            None => Err(*source),
        },
        committed => committed.map(drop),
    }
}

/// Commits what `work` writes together with the move of the position. `tell` says, for the lake's history, what was done.
///
/// `work` runs inside the transaction; it writes one lake, and temp tables that exist already may be read.
pub fn commit<T>(
    writer: &Writer,
    asked: &Commit<'_>,
    work: impl FnOnce(&WriteTransaction<'_>) -> Result<T, EngineError>,
    tell: impl FnOnce(&T) -> String,
) -> Outcome<T> {
    let attempt = new_attempt();
    let lane = writer.lake().lane();
    let _pass = match lane.enter_to(Purpose::Change(asked.changes), writer.faults().patience(), &|| false) {
        Ok(pass) => pass,
        Err(error) => return Outcome::of(error),
    };
    let transaction = match WriteTransaction::begin(writer.session(), writer.alias()) {
        Ok(transaction) => transaction,
        Err(error) => return Outcome::of(error),
    };
    let base = transaction.snapshot();
    match transaction.run(&position::swap(writer.alias(), asked.position, &asked.change)) {
        Ok(1) => {}
        Ok(_) => {
            transaction.roll_back();
            return moved(writer, asked.position);
        }
        Err(error) => return Outcome::of(error),
    }
    writer.faults().reach(FaultPoint::Checked);
    let value = match work(&transaction) {
        Ok(value) => value,
        Err(error) => return Outcome::of(error),
    };
    writer.faults().reach(FaultPoint::Written);
    let message = tell(&value);
    let extra_info = stamp(asked.by, &attempt, asked.position, Some(asked.change.from), asked.change.to);
    let words = CommitWords { attempt: &attempt, message: &message, extra_info: &extra_info };
    match transaction.commit(&words, || writer.faults().reach(FaultPoint::Stamped)) {
        Ok(snapshot) => {
            writer.faults().reach(FaultPoint::Committed);
            // The rows are safe; that the catalog could not be kept open costs time only.
            if let Err(error) = writer.keep_open() {
                tracing::warn!(%error, "the catalog is not kept open");
            }
            Outcome::Committed { snapshot, value }
        }
        Err(EngineError::OutcomeUnknown { attempt: text, source }) => match settle(writer, base, &attempt) {
            Ok(Some(snapshot)) => Outcome::Committed { snapshot, value },
            Ok(None) => Outcome::Retry(*source),
            Err(error @ EngineError::FilesLost { .. }) => Outcome::Refused(error),
            Err(error) => Outcome::Unknown(EngineError::OutcomeUnknown { attempt: text, source: Box::new(error) }),
        },
        Err(error) => Outcome::of(error),
    }
}

fn moved<T>(writer: &Writer, table: &PositionTable) -> Outcome<T> {
    match position::read(writer, table) {
        Ok(found) => Outcome::Moved { found },
        Err(error) => Outcome::of(error),
    }
}

/// Looks an attempt up through an instance of its own, since the session may have lost its server for good. A commit that
/// is still under way when it is looked for cannot be doubled: the next one finds the position moved.
fn settle(writer: &Writer, base: SnapshotId, attempt: &AttemptId) -> Result<Option<SnapshotId>, EngineError> {
    let look = || {
        let instance = Instance::open(writer.options().clone())?;
        let session = instance.session()?;
        writer.lake().attach_existing(&instance, &session)?;
        let Some(snapshot) = lake::find_attempt(&session, writer.alias(), base, attempt)? else { return Ok(None) };
        match lake::settle_lost(&session, writer.alias(), snapshot)? {
            Settled::Whole => Ok(Some(snapshot)),
            Settled::Undone => Ok(None),
            Settled::Broken(file) => Err(EngineError::FilesLost { snapshot, file }),
        }
    };
    look.retry(patience()).when(|error: &EngineError| error.class() == ErrorClass::Transient).call()
}

fn may_pass(error: &EngineError) -> bool {
    matches!(error.class(), ErrorClass::Conflict | ErrorClass::Transient)
}

/// How long something that passes is waited for: a minute, often at first.
pub(crate) fn patience() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(2))
        .with_max_times(100)
        .with_total_delay(Some(Duration::from_secs(60)))
        .with_jitter()
}

fn new_attempt() -> AttemptId {
    AttemptId(uuid::Uuid::now_v7().to_string())
}

/// Returns the commit's `extra_info`: one of Pintail's that makes no version of an asset, with the stream's own part.
fn stamp(by: &str, attempt: &AttemptId, table: &PositionTable, from: Option<&str>, to: &str) -> String {
    let stream = json!({"attempt": attempt, "by": by, "position": table.name(), "from": from, "to": to});
    json!({"pintail": 1, "entries": [], "stream": stream}).to_string()
}
