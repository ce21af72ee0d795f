//! Table `attempt`: one try of a step.
//!
//! Invariant: a committed attempt never becomes anything else. `committing` is written before the lake's COMMIT is sent,
//! so that after a crash the attempts in doubt are known and the lake's stamps can settle them.

use chrono::{DateTime, Utc};
use pintail_core::id::{AttemptId, RunId, StepId};
use pintail_core::sql::Statement;
use serde::{Deserialize, Serialize};

use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, json, micros, words};
use crate::error::{ErrorClass, ReadContext, ReadError, WriteContext, WriteError};
use crate::open::Store;
use crate::run::Pins;

words! {
    /// Where an attempt stands.
    AttemptStatus {
        /// Under way, before the lake's COMMIT.
        Running = "running",
        /// The COMMIT was or will be sent; only a look-up says how it went.
        Committing = "committing",
        /// It ended well: its commit was found, or there was nothing to commit.
        Committed = "committed",
        /// It failed and left nothing.
        Failed = "failed",
        /// It was stopped and left nothing.
        Cancelled = "cancelled",
    }
}

/// One statement as it was sent, redacted by the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStatement {
    /// What it was for.
    pub purpose: String,
    /// Its text.
    pub sql: String,
}

impl From<&Statement> for RecordedStatement {
    fn from(statement: &Statement) -> Self {
        Self { purpose: statement.purpose.to_owned(), sql: statement.sql.clone() }
    }
}

/// An attempt that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAttempt {
    /// The id; the lake's commit will carry it.
    pub id: AttemptId,
    /// The step.
    pub step: StepId,
    /// 1 for the first try.
    pub number: u32,
    /// The snapshot of each lake that the attempt reads.
    pub pins: Pins,
    /// When it began.
    pub started: DateTime<Utc>,
}

/// How an attempt ended that recorded no materialization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Any status but `running` and `committing`.
    pub status: AttemptStatus,
    /// When.
    pub finished: DateTime<Utc>,
    /// What a retry policy reads, when it failed.
    pub error_class: Option<ErrorClass>,
    /// What happened, redacted by the caller.
    pub error: Option<String>,
    /// What was sent.
    pub statements: Vec<RecordedStatement>,
}

/// An attempt as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The id.
    pub id: AttemptId,
    /// The step.
    pub step: StepId,
    /// 1 for the first try.
    pub number: u32,
    /// Where it stands.
    pub status: AttemptStatus,
    /// The snapshot of each lake that it read.
    pub pins: Pins,
    /// When it began.
    pub started: DateTime<Utc>,
    /// When it ended.
    pub finished: Option<DateTime<Utc>>,
    /// What a retry policy reads.
    pub error_class: Option<ErrorClass>,
    /// What happened.
    pub error: Option<String>,
    /// What was sent.
    pub statements: Vec<RecordedStatement>,
}

impl Store {
    /// Records that an attempt began; its step is running from now on.
    pub async fn start_attempt(&self, attempt: &NewAttempt) -> Result<(), WriteError> {
        let operation = || format!("start attempt {} of step {}", attempt.number, attempt.step);
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let sql = "
                UPDATE step SET status = 'running', started = coalesce(started, $3)
                WHERE project = $1 AND id = $2 AND status IN ('planned', 'running')";
            let changed = query(sql)
                .bind(self.project_text())
                .bind(attempt.step.as_str())
                .bind(micros(attempt.started))
                .execute(&mut tx)
                .await
                .writing(operation)?;
            if changed == 0 {
                return Err(WriteError::NotOpen { operation: operation() });
            }
            self.insert_attempt(&mut tx, attempt).await.writing(operation)?;
            tx.commit().await.writing(operation)
        })
        .await
    }

    async fn insert_attempt(&self, tx: &mut Tx, attempt: &NewAttempt) -> Result<(), sqlx::Error> {
        let sql = "
            INSERT INTO attempt (project, id, step, number, status, pins, started, statements)
            VALUES ($1, $2, $3, $4, 'running', $5, $6, '[]')";
        query(sql)
            .bind(self.project_text())
            .bind(attempt.id.as_str())
            .bind(attempt.step.as_str())
            .bind(attempt.number)
            .bind(json(&attempt.pins))
            .bind(micros(attempt.started))
            .execute(tx)
            .await?;
        Ok(())
    }

    /// Records that the attempt's COMMIT is about to be sent. Call it before the COMMIT: it is what healing looks for.
    pub async fn mark_committing(&self, id: &AttemptId) -> Result<(), WriteError> {
        let operation = || format!("mark attempt {id} as committing");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let sql = "
                UPDATE attempt SET status = 'committing'
                WHERE project = $1 AND id = $2 AND status IN ('running', 'committing')";
            let query = query(sql).bind(self.project_text()).bind(id.as_str());
            let changed = query.execute(&mut tx).await.writing(operation)?;
            if changed == 0 {
                return Err(WriteError::NotOpen { operation: operation() });
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    /// Records how an attempt ended that has no materialization to record, such as a script that writes nothing.
    pub async fn finish_attempt(&self, id: &AttemptId, end: &AttemptEnd) -> Result<(), WriteError> {
        let operation = || format!("finish attempt {id}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let found = self.end_attempt(&mut tx, id, end).await.writing(operation)?;
            if !found {
                return Err(WriteError::NotOpen { operation: operation() });
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    /// Ends an attempt unless it is committed; returns whether there was one.
    pub(crate) async fn end_attempt(&self, tx: &mut Tx, id: &AttemptId, end: &AttemptEnd) -> Result<bool, sqlx::Error> {
        debug_assert!(
            !matches!(end.status, AttemptStatus::Running | AttemptStatus::Committing),
            "an attempt ends in an end state"
        );
        let sql = "
            UPDATE attempt SET status = $3, finished = $4, error_class = $5, error = $6, statements = $7
            WHERE project = $1 AND id = $2 AND status <> 'committed'";
        let changed = query(sql)
            .bind(self.project_text())
            .bind(id.as_str())
            .bind(end.status.as_str())
            .bind(micros(end.finished))
            .bind(end.error_class.map(ErrorClass::as_str))
            .bind(end.error.as_deref())
            .bind(json(&end.statements))
            .execute(tx)
            .await?;
        Ok(0 < changed)
    }

    /// Returns an attempt, or `None` when there is no such attempt.
    pub async fn attempt(&self, id: &AttemptId) -> Result<Option<Attempt>, ReadError> {
        let sql = "SELECT * FROM attempt WHERE project = $1 AND id = $2";
        let row = query(sql).bind(self.project_text()).bind(id.as_str()).read_optional(self.database()).await;
        row.and_then(|row| row.as_ref().map(Attempt::from_row).transpose()).reading(|| format!("attempt {id}"))
    }

    pub(crate) async fn read_attempts_of_run(&self, tx: &mut Tx, run: &RunId) -> Result<Vec<Attempt>, sqlx::Error> {
        let sql = "
            SELECT attempt.* FROM step JOIN attempt ON attempt.project = step.project AND attempt.step = step.id
            WHERE step.project = $1 AND step.run = $2
            ORDER BY step.position, attempt.number";
        let rows = query(sql).bind(self.project_text()).bind(run.as_str()).fetch_all(tx).await?;
        rows.iter().map(Attempt::from_row).collect()
    }
}

impl Attempt {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: AttemptId(row.text("id")?),
            step: StepId(row.text("step")?),
            number: row.number("number")?,
            status: row.state("status")?,
            pins: row.json("pins")?,
            started: row.time("started")?,
            finished: row.optional_time("finished")?,
            error_class: row.optional_state("error_class")?,
            error: row.optional_text("error")?,
            statements: row.json("statements")?,
        })
    }
}
