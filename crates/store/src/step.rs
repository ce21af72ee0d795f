//! Table `step`: one script for one partition inside a run.
//!
//! Invariant: a step ends once; only a stamp of the lake turns a failed or cancelled step into a materialized one.

use chrono::{DateTime, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{RunId, ScriptName, SnapshotId, StepId};
use pintail_core::partition::PartitionKey;
use serde::{Deserialize, Serialize};

use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, count, json, micros, words};
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::materialization::AssetKey;
use crate::open::Store;

words! {
    /// Where a step stands.
    StepStatus {
        /// Not begun.
        Planned = "planned",
        /// An attempt is under way, or waits to be repeated.
        Running = "running",
        /// It committed.
        Materialized = "materialized",
        /// It ran and found nothing to change.
        Unchanged = "unchanged",
        /// Its inputs are what they were; it did not run.
        UpToDate = "up_to_date",
        /// Its last attempt failed.
        Failed = "failed",
        /// Something it needs failed; it did not run.
        Skipped = "skipped",
        /// The run was stopped.
        Cancelled = "cancelled",
    }
}

/// How long one phase of a step took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTiming {
    /// The phase, such as `stage` or `commit`.
    pub phase: String,
    /// Its length in microseconds.
    pub micros: u64,
}

/// A failure in the four parts that a reader needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedError {
    /// The stage that failed.
    pub stage: String,
    /// What happened, redacted by the caller.
    pub message: String,
    /// The statement's purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// What is committed now.
    pub committed: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A step of a plan that will be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStep {
    /// The id.
    pub id: StepId,
    /// Its place in the plan.
    pub position: u32,
    /// The script.
    pub script: ScriptName,
    /// What it writes; `None` when it writes nothing that is known.
    pub asset: Option<Asset>,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// Why it is in the plan.
    pub reason: String,
}

/// How a step ended without a write of its own: up to date, failed, skipped or cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepEnd {
    /// Any status but `planned` and `running`.
    pub status: StepStatus,
    /// When.
    pub finished: DateTime<Utc>,
    /// Rows, when known.
    pub rows: Option<u64>,
    /// The snapshot of the version that is current after it, when known.
    pub snapshot: Option<SnapshotId>,
    /// How long each phase took.
    pub timings: Vec<PhaseTiming>,
    /// What failed.
    pub error: Option<RecordedError>,
}

/// A step as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The id.
    pub id: StepId,
    /// The run.
    pub run: RunId,
    /// Its place in the plan.
    pub position: u32,
    /// The script.
    pub script: ScriptName,
    /// What it writes.
    pub asset: Option<AssetKey>,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// Why it was in the plan.
    pub reason: String,
    /// Where it stands.
    pub status: StepStatus,
    /// Rows in the slice after it, when known.
    pub rows: Option<u64>,
    /// The snapshot of the version that is current after it.
    pub snapshot: Option<SnapshotId>,
    /// How long each phase took.
    pub timings: Vec<PhaseTiming>,
    /// When its first attempt began.
    pub started: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished: Option<DateTime<Utc>>,
    /// What failed.
    pub error: Option<RecordedError>,
}

impl Store {
    /// Records all steps of a run as planned, in one transaction.
    pub async fn insert_steps(&self, run: &RunId, steps: &[NewStep]) -> Result<(), WriteError> {
        let operation = || format!("record {} planned steps of run {run}", steps.len());
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            for step in steps {
                self.insert_step(&mut tx, run, step).await.writing(operation)?;
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    async fn insert_step(&self, tx: &mut Tx, run: &RunId, step: &NewStep) -> Result<(), sqlx::Error> {
        let sql = "
            INSERT INTO step (project, id, run, position, script, asset, partition, reason, status, timings)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'planned', '[]')";
        query(sql)
            .bind(self.project_text())
            .bind(step.id.as_str())
            .bind(run.as_str())
            .bind(step.position)
            .bind(step.script.as_str())
            .bind(step.asset.as_ref().map(Asset::to_string))
            .bind(step.partition.as_ref().map(PartitionKey::as_str))
            .bind(&step.reason)
            .execute(tx)
            .await?;
        Ok(())
    }

    /// Records how a step ended that wrote nothing; a write ends its step by `record_success` or `record_failure`.
    pub async fn finish_step(&self, id: &StepId, end: &StepEnd) -> Result<(), WriteError> {
        let operation = || format!("finish step {id}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let found = self.end_step(&mut tx, id, end).await.writing(operation)?;
            if !found {
                return Err(WriteError::NotOpen { operation: operation() });
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    /// Ends an open step; returns whether there was one.
    pub(crate) async fn end_step(&self, tx: &mut Tx, id: &StepId, end: &StepEnd) -> Result<bool, sqlx::Error> {
        debug_assert!(!matches!(end.status, StepStatus::Planned | StepStatus::Running), "a step ends in an end state");
        let sql = "
            UPDATE step SET status = $3, finished = $4, rows = $5, snapshot = $6, timings = $7, error = $8
            WHERE project = $1 AND id = $2 AND status IN ('planned', 'running')";
        let changed = query(sql)
            .bind(self.project_text())
            .bind(id.as_str())
            .bind(end.status.as_str())
            .bind(micros(end.finished))
            .bind(end.rows.map(count))
            .bind(end.snapshot.map(|snapshot| snapshot.0))
            .bind(json(&end.timings))
            .bind(end.error.as_ref().map(json))
            .execute(tx)
            .await?;
        Ok(0 < changed)
    }

    /// Returns the steps of a run in the order of the plan.
    pub async fn run_steps(&self, run: &RunId) -> Result<Vec<Step>, ReadError> {
        let subject = || format!("the steps of run {run}");
        let mut tx = self.database().begin_read().await.reading(subject)?;
        self.read_steps(&mut tx, run).await.reading(subject)
    }

    pub(crate) async fn read_steps(&self, tx: &mut Tx, run: &RunId) -> Result<Vec<Step>, sqlx::Error> {
        let sql = "SELECT * FROM step WHERE project = $1 AND run = $2 ORDER BY position";
        let rows = query(sql).bind(self.project_text()).bind(run.as_str()).fetch_all(tx).await?;
        rows.iter().map(Step::from_row).collect()
    }
}

impl Step {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: StepId(row.text("id")?),
            run: RunId(row.text("run")?),
            position: row.number("position")?,
            script: ScriptName(row.text("script")?),
            asset: row.optional_text("asset")?.map(AssetKey::from_stored),
            partition: row.partition()?,
            reason: row.text("reason")?,
            status: row.state("status")?,
            rows: row.optional_number("rows")?,
            snapshot: row.optional_integer("snapshot")?.map(SnapshotId),
            timings: row.json("timings")?,
            started: row.optional_time("started")?,
            finished: row.optional_time("finished")?,
            error: row.optional_json("error")?,
        })
    }
}
