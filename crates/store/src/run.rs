//! Table `run`: one execution of a plan.
//!
//! Invariant: a finished run has no open step and no open attempt. When a run ends as failed, cancelled or crashed, its
//! planned steps become skipped (or cancelled), and each attempt that was under way ends by evidence: committed when the
//! lake proved it, else as the run did.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use pintail_core::id::{LakeName, PresenceId, RunId, SnapshotId, StepId};

use crate::attempt::Attempt;
use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, json, micros, words};
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::open::Store;
use crate::step::Step;
use crate::test_result::TestResult;

/// Pinned inputs: one snapshot per lake.
pub type Pins = BTreeMap<LakeName, SnapshotId>;

words! {
    /// Where a run stands.
    RunStatus {
        /// Under way, or left open by a process that died.
        Running = "running",
        /// Every step ended well.
        Succeeded = "succeeded",
        /// A step failed.
        Failed = "failed",
        /// The user stopped it.
        Cancelled = "cancelled",
        /// Its process died; found by a later one.
        Crashed = "crashed",
    }
}

/// A run that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The id.
    pub id: RunId,
    /// The command line, word by word, redacted by the caller.
    pub command: Vec<String>,
    /// What started it, such as `manual` or `schedule "0 2 * * *"`.
    pub triggered_by: String,
    /// The snapshot of each lake that the run reads.
    pub pins: Pins,
    /// The process that does it.
    pub owner: PresenceId,
    /// When it began.
    pub started: DateTime<Utc>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Any status but `running`.
    pub status: RunStatus,
    /// When.
    pub finished: DateTime<Utc>,
    /// Why it did not succeed.
    pub error: Option<String>,
}

/// A run as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The id.
    pub id: RunId,
    /// Where it stands.
    pub status: RunStatus,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// What started it.
    pub triggered_by: String,
    /// The snapshot of each lake that the run reads.
    pub pins: Pins,
    /// The process that does it.
    pub owner: PresenceId,
    /// When it began.
    pub started: DateTime<Utc>,
    /// When it ended.
    pub finished: Option<DateTime<Utc>>,
    /// Why it did not succeed.
    pub error: Option<String>,
}

/// A run with everything below it, steps in the order of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDetail {
    /// The run.
    pub run: Run,
    /// Its steps.
    pub steps: Vec<StepDetail>,
}

/// A step with its attempts and the test results of all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDetail {
    /// The step.
    pub step: Step,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Its test results, oldest first.
    pub tests: Vec<TestResult>,
}

impl Store {
    /// Records that a run began.
    pub async fn begin_run(&self, run: &NewRun) -> Result<(), WriteError> {
        self.insert_run(run).await.writing(|| format!("begin run {}", run.id))
    }

    async fn insert_run(&self, run: &NewRun) -> Result<(), sqlx::Error> {
        retry(|| async {
            let mut tx = self.begin_write().await?;
            let sql = "
                INSERT INTO run (project, id, status, command, triggered_by, pins, owner, started)
                VALUES ($1, $2, 'running', $3, $4, $5, $6, $7)";
            query(sql)
                .bind(self.project_text())
                .bind(run.id.as_str())
                .bind(json(&run.command))
                .bind(&run.triggered_by)
                .bind(json(&run.pins))
                .bind(run.owner.as_str())
                .bind(micros(run.started))
                .execute(&mut tx)
                .await?;
            tx.commit().await
        })
        .await
    }

    /// Records how a run ended, and ends what it left open. A run ends once.
    pub async fn finish_run(&self, id: &RunId, end: &RunEnd) -> Result<(), WriteError> {
        debug_assert!(end.status != RunStatus::Running, "a run does not end as running");
        let operation = || format!("finish run {id}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            self.close_open_steps(&mut tx, id, end).await.writing(operation)?;
            let open = self.count_open_steps(&mut tx, id).await.writing(operation)?;
            if 0 < open {
                return Err(WriteError::OpenSteps { run: id.to_string(), open });
            }
            let sql = "
                UPDATE run SET status = $3, finished = $4, error = $5
                WHERE project = $1 AND id = $2 AND status = 'running'";
            let changed = query(sql)
                .bind(self.project_text())
                .bind(id.as_str())
                .bind(end.status.as_str())
                .bind(micros(end.finished))
                .bind(end.error.as_deref())
                .execute(&mut tx)
                .await
                .writing(operation)?;
            if changed == 0 {
                return Err(WriteError::NotOpen { operation: operation() });
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    /// Ends the open steps of a run that did not succeed; does nothing for one that did.
    async fn close_open_steps(&self, tx: &mut Tx, run: &RunId, end: &RunEnd) -> Result<(), sqlx::Error> {
        let (planned, under_way, attempt) = match end.status {
            RunStatus::Running | RunStatus::Succeeded => return Ok(()),
            RunStatus::Cancelled => ("cancelled", "cancelled", "cancelled"),
            RunStatus::Failed | RunStatus::Crashed => ("skipped", "failed", "failed"),
        };
        self.settle_attempts_of_run(tx, run).await?;
        let sql = "
            UPDATE attempt SET status = $3, finished = $4, error = coalesce(error, $5)
            WHERE project = $1 AND status IN ('running', 'committing')
                AND step IN (SELECT id FROM step WHERE project = $1 AND run = $2)";
        query(sql)
            .bind(self.project_text())
            .bind(run.as_str())
            .bind(attempt)
            .bind(micros(end.finished))
            .bind(format!("the run ended as {}", end.status))
            .execute(tx)
            .await?;
        let sql = "
            UPDATE step SET status = CASE status WHEN 'planned' THEN $3 ELSE $4 END, finished = $5
            WHERE project = $1 AND run = $2 AND status IN ('planned', 'running')";
        query(sql)
            .bind(self.project_text())
            .bind(run.as_str())
            .bind(planned)
            .bind(under_way)
            .bind(micros(end.finished))
            .execute(tx)
            .await?;
        Ok(())
    }

    async fn count_open_steps(&self, tx: &mut Tx, run: &RunId) -> Result<i64, sqlx::Error> {
        let sql = "
            SELECT count(*) AS open FROM step
            WHERE project = $1 AND run = $2 AND status IN ('planned', 'running')";
        let row = query(sql).bind(self.project_text()).bind(run.as_str()).fetch_one(tx).await?;
        row.integer("open")
    }

    /// Returns the runs that are under way, oldest first; those whose owner is dead have crashed.
    pub async fn running_runs(&self) -> Result<Vec<Run>, ReadError> {
        let sql = "SELECT * FROM run WHERE project = $1 AND status = 'running' ORDER BY started, id";
        let rows = query(sql).bind(self.project_text()).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(Run::from_row).collect()).reading(|| "the running runs".into())
    }

    /// Returns the newest runs, newest first.
    pub async fn list_runs(&self, limit: u32) -> Result<Vec<Run>, ReadError> {
        let sql = "SELECT * FROM run WHERE project = $1 ORDER BY started DESC, id DESC LIMIT $2";
        let rows = query(sql).bind(self.project_text()).bind(limit).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(Run::from_row).collect()).reading(|| "the list of runs".into())
    }

    /// Returns a run with its steps, attempts and test results, or `None` when there is no such run.
    pub async fn show_run(&self, id: &RunId) -> Result<Option<RunDetail>, ReadError> {
        self.read_run_detail(id).await.reading(|| format!("run {id}"))
    }

    /// Reads in one transaction, so that the parts belong to one moment.
    async fn read_run_detail(&self, id: &RunId) -> Result<Option<RunDetail>, sqlx::Error> {
        let mut tx = self.database().begin_read().await?;
        let sql = "SELECT * FROM run WHERE project = $1 AND id = $2";
        let row = query(sql).bind(self.project_text()).bind(id.as_str()).fetch_optional(&mut tx).await?;
        let Some(row) = row else { return Ok(None) };
        let run = Run::from_row(&row)?;
        let steps = self.read_steps(&mut tx, id).await?;
        let mut attempts = group_by_step(self.read_attempts_of_run(&mut tx, id).await?, |attempt| &attempt.step);
        let mut tests = group_by_step(self.read_tests_of_run(&mut tx, id).await?, |test| &test.step);
        let with_parts = |step: Step| {
            let attempts = attempts.remove(&step.id).unwrap_or_default();
            let tests = tests.remove(&step.id).unwrap_or_default();
            StepDetail { step, attempts, tests }
        };
        Ok(Some(RunDetail { run, steps: steps.into_iter().map(with_parts).collect() }))
    }
}

fn group_by_step<T>(parts: Vec<T>, step_of: impl Fn(&T) -> &StepId) -> BTreeMap<StepId, Vec<T>> {
    let mut groups: BTreeMap<StepId, Vec<T>> = BTreeMap::new();
    for part in parts {
        groups.entry(step_of(&part).clone()).or_default().push(part);
    }
    groups
}

impl Run {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: RunId(row.text("id")?),
            status: row.state("status")?,
            command: row.json("command")?,
            triggered_by: row.text("triggered_by")?,
            pins: row.json("pins")?,
            owner: PresenceId(row.text("owner")?),
            started: row.time("started")?,
            finished: row.optional_time("finished")?,
            error: row.optional_text("error")?,
        })
    }
}
