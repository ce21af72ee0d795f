//! Table `log`: what a run, its steps and its scripts said, line by line.

use chrono::{DateTime, Utc};
use pintail_core::id::{AttemptId, RunId, StepId};

use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, micros, words};
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::open::Store;

words! {
    /// How much a line matters.
    LogLevel {
        /// For finding a fault.
        Debug = "debug",
        /// Worth knowing.
        Info = "info",
        /// Probably not what was meant.
        Warning = "warning",
        /// Something failed.
        Error = "error",
    }
}

/// One line of a run's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The run.
    pub run: RunId,
    /// The step, for a line of one.
    pub step: Option<StepId>,
    /// The attempt, for a line of one.
    pub attempt: Option<AttemptId>,
    /// When.
    pub at: DateTime<Utc>,
    /// How much it matters.
    pub level: LogLevel,
    /// The line, redacted by the caller.
    pub text: String,
}

impl Store {
    /// Appends lines in their order, in one transaction.
    pub async fn append_log(&self, lines: &[LogLine]) -> Result<(), WriteError> {
        let operation = || format!("append {} log lines", lines.len());
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            for line in lines {
                self.insert_line(&mut tx, line).await.writing(operation)?;
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    async fn insert_line(&self, tx: &mut Tx, line: &LogLine) -> Result<(), sqlx::Error> {
        let sql = "
            INSERT INTO log (project, run, step, attempt, at, level, text)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        query(sql)
            .bind(self.project_text())
            .bind(line.run.as_str())
            .bind(line.step.as_ref().map(StepId::as_str))
            .bind(line.attempt.as_ref().map(AttemptId::as_str))
            .bind(micros(line.at))
            .bind(line.level.as_str())
            .bind(&line.text)
            .execute(tx)
            .await?;
        Ok(())
    }

    /// Returns the log of a run in the order in which it was appended.
    pub async fn run_log(&self, run: &RunId) -> Result<Vec<LogLine>, ReadError> {
        let sql = "SELECT * FROM log WHERE project = $1 AND run = $2 ORDER BY id";
        let rows = query(sql).bind(self.project_text()).bind(run.as_str()).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(LogLine::from_row).collect()).reading(|| format!("the log of run {run}"))
    }
}

impl LogLine {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            run: RunId(row.text("run")?),
            step: row.optional_text("step")?.map(StepId),
            attempt: row.optional_text("attempt")?.map(AttemptId),
            at: row.time("at")?,
            level: row.state("level")?,
            text: row.text("text")?,
        })
    }
}
