//! The sink: batches of arrivals into the table of raw events, with the source's position in the same commit.
//!
//! Invariant: a batch lands once. The position moves from `from` to `to` in the commit of the rows, so a batch that is
//! given again after a crash finds the position moved and is left out. One row that cannot be written does not keep the
//! others out: it goes to the dead letters in the same commit.
//!
//! Where arrivals come from is not known here: the log's loop is in [`LogSink`], the brokers' with their sources.

mod decide;
mod isolate;
mod log_sink;
#[cfg(test)]
mod simulation;

use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use pintail_core::id::SnapshotId;
use pintail_core::sql::{Relation, Statement};
use pintail_engine::batches::PLACE;
use pintail_engine::{EngineError, WriteTransaction};
use pintail_streams::dead_letter::{self, DeadLetter, EventName, StagedLetters};
use pintail_streams::{Commit, Move, Outcome, PositionTable, Writer, commit, position};

pub use decide::{Due, FlushPolicy, due};
pub use isolate::{Diagnosis, isolate};
pub use log_sink::{LakeState, LogSink, LogSinkError, SinkStatus};

use crate::cloudevents::{Event, EventTime};
use crate::letters::payload_elsewhere;
use crate::log::Arrival;
use crate::raw::{self, LayoutError, RawTable};

const STAGE: &str = "_pt_raw_events";

/// What feeds the table, and how far it has come.
#[derive(Clone, Debug)]
pub struct SourceName {
    /// Its position's table.
    pub position: PositionTable,
    /// What a position is one in: a log's id, a stream's name.
    pub source: String,
    /// The origin of its dead letters, such as `http`.
    pub origin: String,
}

/// What is to land.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events.
    pub arrivals: Vec<Arrival>,
    /// Where each of them lay in the source.
    pub positions: Vec<String>,
    /// What was refused already.
    pub letters: Vec<DeadLetter>,
    /// What else belongs into the same commit: the source's own records.
    pub records: Vec<Statement>,
    /// The table, by schema and name, of which the records change rows.
    pub changes: Option<(&'static str, &'static str)>,
}

/// What landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// The commit's snapshot; `None` when it had landed before and only its answer was lost.
    pub snapshot: Option<SnapshotId>,
    /// Rows.
    pub rows: u64,
    /// Dead letters.
    pub letters: u64,
}

/// Why a batch has not landed. In every case nothing of it is in the lake.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// Somebody else moves the position.
    #[error(
        "the position of {position} is {found}, not {expected}: another process feeds the lake from the same source"
    )]
    Moved {
        /// The position's table.
        position: PositionTable,
        /// Where it is.
        found: String,
        /// Where it should be.
        expected: String,
    },
    /// The lake is busy or away: the same batch may land later.
    #[error("the lake did not take the batch, nothing of it was written; it is tried again")]
    Later(#[source] EngineError),
    /// The lake refuses, and not because of single rows.
    #[error("the lake refuses the batch, nothing of it was written")]
    Refused(#[source] EngineError),
}

/// A lake's table of raw events, and the one source that this sink serves.
pub struct Sink {
    writer: Writer,
    table: RawTable,
    name: SourceName,
    by: String,
}

impl Sink {
    /// Makes what is missing and returns the sink with the position that the lake has; `start` is that of a source that
    /// has never fed it.
    pub fn open(writer: Writer, table: RawTable, name: SourceName, start: &str) -> Result<(Self, String), LayoutError> {
        raw::prepare(&writer, &table)?;
        dead_letter::prepare(&writer)?;
        let by = format!("sink {}", name.origin);
        let found = commit::begin_at(&writer, &by, &name.position, start, &name.source)?;
        Ok((Self { writer, table, name, by }, found.at))
    }

    /// Returns the source.
    pub fn name(&self) -> &SourceName {
        &self.name
    }

    /// Returns the lake's writer.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Writes `batch` and moves the position from `from` to `to`, in one commit; tries again for a while when the lake is
    /// busy.
    pub fn land(&self, from: &str, to: &str, batch: Batch) -> Result<Landed, LandError> {
        let started = Instant::now();
        let landed = self.land_until_known(from, to, batch);
        match &landed {
            Ok(landed) => {
                metrics::counter!("pintail_sink_commits_total").increment(1);
                metrics::counter!("pintail_sink_rows_total").increment(landed.rows);
                metrics::counter!("pintail_dead_letters_total", "origin" => self.name.origin.clone())
                    .increment(landed.letters);
                metrics::histogram!("pintail_sink_flush_seconds").record(started.elapsed().as_secs_f64());
            }
            Err(_) => metrics::counter!("pintail_sink_commit_failures_total").increment(1),
        }
        landed
    }

    fn land_until_known(&self, from: &str, to: &str, mut batch: Batch) -> Result<Landed, LandError> {
        let refused = |error| LandError::Refused(error);
        let _stage = raw::stage(self.writer.session(), STAGE, &batch.arrivals).map_err(refused)?;
        let mut letters = dead_letter::stage(self.writer.session(), &batch.letters).map_err(refused)?;
        let mut left_out: Vec<usize> = Vec::new();
        let mut pauses = pauses();
        loop {
            let change = Move { from, to, source: &self.name.source, token: 0 };
            let asked =
                Commit { by: &self.by, position: &self.name.position, change, changes: batch.changes.as_slice() };
            let insert = self.insert(&condition_without(&left_out));
            let work = |transaction: &WriteTransaction<'_>| self.write(transaction, &insert, &letters, &batch.records);
            let tell =
                |(rows, letters): &(u64, u64)| format!("{}: {rows} rows, {letters} dead letters, to {to}", self.by);
            let error = match commit::commit(&self.writer, &asked, work, tell) {
                Outcome::Committed { snapshot, value: (rows, letters) } => {
                    return Ok(Landed { snapshot: Some(snapshot), rows, letters });
                }
                Outcome::Moved { found } => return self.moved(from, to, found.map(|found| found.at)),
                Outcome::Retry(error) => error,
                Outcome::Unknown(error) => match self.settled(from, to)? {
                    Some(landed) => return Ok(landed),
                    None => error,
                },
                Outcome::Refused(error) if is_about_rows(&error) && left_out.is_empty() => {
                    let bad = self.find_bad(batch.arrivals.len(), error)?;
                    left_out = bad.iter().map(|(row, _)| *row).collect();
                    batch.letters.extend(bad.into_iter().map(|(row, reason)| DeadLetter {
                        origin: self.name.origin.clone(),
                        position: batch.positions.get(row).cloned().unwrap_or_default(),
                        part: payload_elsewhere(&batch.arrivals[row].event),
                        reason,
                        raw: batch.arrivals[row].event.to_json().into_bytes(),
                        decoder: None,
                        event: name_of(&batch.arrivals[row].event),
                    }));
                    letters = dead_letter::stage(self.writer.session(), &batch.letters).map_err(refused)?;
                    continue;
                }
                Outcome::Refused(error) => return Err(LandError::Refused(error)),
            };
            let Some(pause) = pauses.next() else { return Err(LandError::Later(error)) };
            tracing::debug!(%error, "the batch is tried again");
            std::thread::park_timeout(pause);
        }
    }

    fn write(
        &self,
        transaction: &WriteTransaction<'_>,
        insert: &Statement,
        letters: &StagedLetters,
        records: &[Statement],
    ) -> Result<(u64, u64), EngineError> {
        let rows = transaction.run(insert)?;
        for record in records {
            transaction.run(record)?;
        }
        let letters = dead_letter::write(transaction, self.writer.alias(), letters)?;
        Ok((rows, letters))
    }

    fn insert(&self, condition: &str) -> Statement {
        let (table, stage, columns) =
            (self.table.relation(self.writer.alias()), Relation::temp(STAGE), raw::column_list());
        let sql = format!("INSERT INTO {table} ({columns})\nSELECT {columns}\nFROM {stage}{condition}");
        Statement::new("insert the raw events", sql)
    }

    /// Says what a position that is not where it should be means: this very batch, landed, or another owner.
    fn moved(&self, from: &str, to: &str, found: Option<String>) -> Result<Landed, LandError> {
        match found {
            Some(found) if found == to && from != to => Ok(Landed { snapshot: None, rows: 0, letters: 0 }),
            found => Err(LandError::Moved {
                position: self.name.position.clone(),
                found: found.unwrap_or_else(|| "gone".to_owned()),
                expected: from.to_owned(),
            }),
        }
    }

    /// Reads the position after a commit whose outcome is not known; `None` when it has not landed.
    fn settled(&self, from: &str, to: &str) -> Result<Option<Landed>, LandError> {
        let found = position::read(&self.writer, &self.name.position).map_err(LandError::Later)?;
        match found.map(|found| found.at) {
            Some(at) if at == from => Ok(None),
            other => self.moved(from, to, other).map(Some),
        }
    }

    /// Finds the rows for which the batch is refused.
    fn find_bad(&self, rows: usize, error: EngineError) -> Result<Vec<(usize, String)>, LandError> {
        let probe = |range: std::ops::Range<usize>| self.probe(&range);
        match isolate(rows, probe).map_err(LandError::Later)? {
            Diagnosis::Rows(bad) if !bad.is_empty() => {
                tracing::warn!(rows = bad.len(), "rows that the lake refuses go to the dead letters");
                Ok(bad)
            }
            Diagnosis::Rows(_) | Diagnosis::Everything(_) => Err(LandError::Refused(error)),
        }
    }

    /// Tries rows in a transaction that is rolled back; returns why they are refused.
    fn probe(&self, range: &std::ops::Range<usize>) -> Result<Option<String>, EngineError> {
        let lane = self.writer.lake().lane();
        let _pass = lane.enter_within(self.writer.faults().patience(), &|| false)?;
        let transaction = WriteTransaction::begin(self.writer.session(), self.writer.alias())?;
        let tried =
            transaction.run(&self.insert(&format!("\nWHERE {} <= {PLACE} AND {PLACE} < {}", range.start, range.end)));
        transaction.roll_back();
        match tried {
            Ok(_) => Ok(None),
            Err(error) if is_about_rows(&error) => Ok(error.failure().map(|failure| failure.message.message.clone())),
            Err(error) => Err(error),
        }
    }
}

/// Returns the condition that leaves rows out; empty for none.
fn condition_without(rows: &[usize]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = rows.iter().map(ToString::to_string).collect();
    format!("\nWHERE {PLACE} NOT IN ({})", numbers.join(", "))
}

/// Returns how people name `event`.
fn name_of(event: &Event) -> EventName {
    EventName {
        id: Some(event.id.clone()),
        source: Some(event.source.clone()),
        subject: event.subject.clone(),
        event_type: Some(event.kind.clone()),
        time_micros: event.time.map(EventTime::micros),
    }
}

fn is_about_rows(error: &EngineError) -> bool {
    error.failure().is_some_and(|failure| failure.message.is_about_values() || failure.message.is_name_too_long())
}

/// A few tries at once; who calls decides about longer waits.
fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(1))
        .with_max_times(12)
        .with_jitter()
        .build()
}
