//! One connection of an instance: it sends single statements, times them, keeps their text, and gives typed answers.
//!
//! A session stays on one thread. It never receives several statements in one text, save our own settings: DuckDB's
//! prepare runs all but the last of them.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use duckdb::{Connection, InterruptHandle, Row};
use pintail_core::sql::{Ident, Relation, Statement};

use crate::batches::{Shelf, Stage};
use crate::error::EngineError;
use crate::redact::Redactor;
use crate::result::ResultSet;

/// A statement that was sent, redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentStatement {
    /// What it was for.
    pub purpose: String,
    /// The text.
    pub sql: String,
    /// How long it took.
    pub elapsed: Duration,
}

/// One connection.
pub struct Session {
    connection: Connection,
    redactor: Redactor,
    sent: RefCell<Vec<SentStatement>>,
    used: RefCell<Option<String>>,
    shelf: Shelf,
}

impl Session {
    pub(crate) fn new(connection: Connection, redactor: Redactor, shelf: Shelf) -> Self {
        Self { connection, redactor, sent: RefCell::default(), used: RefCell::default(), shelf }
    }

    /// Returns the handle that interrupts whatever this session is doing, from any thread.
    pub fn interrupt_handle(&self) -> Arc<InterruptHandle> {
        self.connection.interrupt_handle()
    }

    /// Returns the redactor of the session.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns what was sent since the last call, in order.
    pub fn take_sent(&self) -> Vec<SentStatement> {
        self.sent.take()
    }

    /// Makes the attached database `alias` the one in which unqualified names are looked for, unless it is so already.
    pub fn use_database(&self, alias: &str) -> Result<(), EngineError> {
        if self.used.borrow().as_deref() == Some(alias) {
            return Ok(());
        }
        self.batch("use the default lake", &format!("USE {}", Ident::new(alias)))?;
        self.used.replace(Some(alias.to_owned()));
        Ok(())
    }

    /// Runs one statement and returns the number of rows that it says it changed (0 for DDL).
    pub fn run(&self, statement: &Statement) -> Result<u64, EngineError> {
        self.timed(statement.purpose, &statement.sql, || {
            let mut prepared = self.connection.prepare(&statement.sql)?;
            let mut rows = prepared.query([])?;
            let count = match rows.next()? {
                // Only counting statements answer with one BIGINT; anything else changed nothing that we count.
                Some(row) => row.get::<_, i64>(0).unwrap_or(0),
                None => 0,
            };
            Ok(u64::try_from(count).unwrap_or(0))
        })
    }

    /// Runs statements in order and returns their counts.
    pub fn run_all(&self, statements: &[Statement]) -> Result<Vec<u64>, EngineError> {
        statements.iter().map(|statement| self.run(statement)).collect()
    }

    /// Sends our own settings or transaction words; the only place where a text may hold several statements.
    pub fn batch(&self, purpose: &'static str, sql: &str) -> Result<(), EngineError> {
        self.timed(purpose, sql, || self.connection.execute_batch(sql))
    }

    /// Runs a query and maps each row.
    pub fn rows<T>(
        &self,
        purpose: &'static str,
        sql: &str,
        mut map: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<Vec<T>, EngineError> {
        self.timed(purpose, sql, || {
            let mut prepared = self.connection.prepare(sql)?;
            let mut rows = prepared.query([])?;
            let mut values = Vec::new();
            while let Some(row) = rows.next()? {
                values.push(map(row)?);
            }
            Ok(values)
        })
    }

    /// Runs a query that answers with exactly one row.
    pub fn one<T>(
        &self,
        purpose: &'static str,
        sql: &str,
        map: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<T, EngineError> {
        let mut rows = self.rows(purpose, sql, map)?;
        match (rows.pop(), rows.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(EngineError::Answer { purpose, detail: "expected exactly one row".to_owned() }),
        }
    }

    /// Runs a query with bound text parameters and maps each row.
    pub fn rows_with<T>(
        &self,
        purpose: &'static str,
        sql: &str,
        parameters: &[&str],
        mut map: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<Vec<T>, EngineError> {
        self.timed(purpose, sql, || {
            let mut prepared = self.connection.prepare(sql)?;
            let mut rows = prepared.query(duckdb::params_from_iter(parameters))?;
            let mut values = Vec::new();
            while let Some(row) = rows.next()? {
                values.push(map(row)?);
            }
            Ok(values)
        })
    }

    /// Runs a query and returns its whole result as Arrow batches; the caller bounds it by LIMIT.
    pub fn query(&self, purpose: &'static str, sql: &str) -> Result<ResultSet, EngineError> {
        self.timed(purpose, sql, || {
            let mut prepared = self.connection.prepare(sql)?;
            let batches: Vec<RecordBatch> = prepared.query_arrow([])?.collect();
            Ok(ResultSet { schema: prepared.schema(), batches })
        })
    }

    /// Hands the batches of a query to `each` one by one, without holding the whole result; a failure in the middle of the
    /// stream, an interrupt too, is an error. The session can send nothing else until this returns.
    pub fn stream<E>(
        &self,
        purpose: &'static str,
        sql: &str,
        mut each: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<Result<(), E>, EngineError> {
        self.timed(purpose, sql, || {
            let mut prepared = self.connection.prepare(sql)?;
            // The iterator that this returns panics where the query fails after its beginning; stepping does not.
            drop(prepared.stream_arrow([])?);
            while let Some(rows) = prepared.step()? {
                if let Err(stopped) = each(RecordBatch::from(&rows)) {
                    return Ok(Err(stopped));
                }
            }
            Ok(Ok(()))
        })
    }

    /// Makes the temp view `view` over `batches`, which are read where they lie, without a copy, until the stage is dropped. It
    /// has the columns of `schema`, which all batches have, and [`crate::batches::PLACE`].
    pub fn stage(
        &self,
        purpose: &'static str,
        view: &Relation,
        schema: &Schema,
        batches: &[RecordBatch],
    ) -> Result<Stage, EngineError> {
        let lent = self.shelf.lend(view, schema, batches);
        let (stage, query) = lent.map_err(|detail| EngineError::Answer { purpose, detail })?;
        self.run(&Statement::new(purpose, format!("CREATE OR REPLACE TEMP VIEW {view} AS\n{query}")))?;
        Ok(stage)
    }

    /// Returns the columns of `query` as `(name, type)`, without running it.
    pub fn describe(&self, query: &str) -> Result<Vec<(String, String)>, EngineError> {
        self.rows("describe the columns", &format!("DESCRIBE {query}"), |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn timed<T>(
        &self,
        purpose: &'static str,
        sql: &str,
        work: impl FnOnce() -> duckdb::Result<T>,
    ) -> Result<T, EngineError> {
        let started = Instant::now();
        let outcome = work();
        let elapsed = started.elapsed();
        tracing::debug!(purpose, elapsed_ms = elapsed.as_secs_f64() * 1e3, "statement");
        self.sent.borrow_mut().push(SentStatement {
            purpose: purpose.to_owned(),
            sql: self.redactor.redact(sql),
            elapsed,
        });
        outcome.map_err(|error| EngineError::statement(purpose, sql, &error, &self.redactor))
    }
}
