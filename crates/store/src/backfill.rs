//! Table `backfill`: durable jobs that make a set of partitions of one script.
//!
//! Invariant: a job that is running has one owner; another process becomes it by a compare-and-swap only, after it has
//! found the owner dead. A job's partitions are ranges, so that its row is small however many there are.

use chrono::{DateTime, TimeDelta, Utc};
use pintail_core::id::{PresenceId, ScriptName};
use pintail_core::plan::backfill::{JobState, Ranges};
use serde::{Deserialize, Serialize};

use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, Word, count, json, micros};
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::materialization::AssetKey;
use crate::open::Store;

/// A job; counts from 1 in each project, so that people can name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackfillId(pub i64);

impl std::fmt::Display for BackfillId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// How a job does its partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillOptions {
    /// What the script reads, too.
    #[serde(default)]
    pub upstream: bool,
    /// What is up to date, too.
    #[serde(default)]
    pub force: bool,
    /// Partitions at once; as many as there are slots when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

/// A job that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBackfill {
    /// The script.
    pub script: ScriptName,
    /// What it writes.
    pub asset: Option<AssetKey>,
    /// The calendar of its partitions, by which a resumed job knows that they are still the same ones.
    pub calendar: String,
    /// What was asked for, for people.
    pub request: String,
    /// How.
    pub options: BackfillOptions,
    /// The partitions.
    pub ranges: Ranges,
    /// How many they are.
    pub total: u64,
    /// The process that does it.
    pub owner: PresenceId,
    /// When it began.
    pub created: DateTime<Utc>,
}

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfill {
    /// The job.
    pub id: BackfillId,
    /// What it is.
    pub job: NewBackfill,
    /// Where it stands; a running one whose owner is dead was interrupted.
    pub state: JobState,
    /// Whether somebody has asked its owner to stop.
    pub is_stopping: bool,
    /// When it ended.
    pub finished: Option<DateTime<Utc>>,
    /// Why it ended as it did.
    pub error: Option<String>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillEnd {
    /// Any state but running.
    pub state: JobState,
    /// When.
    pub finished: DateTime<Utc>,
    /// Why it ended so.
    pub error: Option<String>,
}

impl Word for JobState {
    const ALL: &'static [Self] = &[JobState::Running, JobState::Done, JobState::Failed, JobState::Cancelled];

    fn word(self) -> &'static str {
        match self {
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }
}

impl Store {
    /// Records that a job began, and returns its number.
    pub async fn begin_backfill(&self, job: &NewBackfill) -> Result<BackfillId, WriteError> {
        let operation = || format!("begin a backfill of {}", job.script);
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let id = self.insert_backfill(&mut tx, job).await.writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(id)
        })
        .await
    }

    async fn insert_backfill(&self, tx: &mut Tx, job: &NewBackfill) -> Result<BackfillId, sqlx::Error> {
        // Safe without a sequence: the transaction is the project's only writing one.
        let sql = "SELECT coalesce(max(id), 0) + 1 AS id FROM backfill WHERE project = $1";
        let id = query(sql).bind(self.project_text()).fetch_one(tx).await?.integer("id")?;
        let sql = "
            INSERT INTO backfill (project, id, script, asset, calendar, request, options, ranges, total, state, owner,
                is_stopping, created)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'running', $10, 0, $11)";
        query(sql)
            .bind(self.project_text())
            .bind(id)
            .bind(job.script.as_str())
            .bind(job.asset.as_ref().map(AssetKey::as_str))
            .bind(&job.calendar)
            .bind(&job.request)
            .bind(json(&job.options))
            .bind(json(&job.ranges))
            .bind(count(job.total))
            .bind(job.owner.as_str())
            .bind(micros(job.created))
            .execute(tx)
            .await?;
        Ok(BackfillId(id))
    }

    /// Makes `owner` the owner of `seen` and the job a running one, if it is still as it was seen; returns whether it was.
    pub async fn claim_backfill(&self, seen: &Backfill, owner: &PresenceId) -> Result<bool, WriteError> {
        let operation = || format!("take up backfill {}", seen.id);
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let sql = "
                UPDATE backfill SET state = 'running', owner = $3, is_stopping = 0, finished = NULL, error = NULL
                WHERE project = $1 AND id = $2 AND owner = $4 AND state = $5";
            let changed = query(sql)
                .bind(self.project_text())
                .bind(seen.id.0)
                .bind(owner.as_str())
                .bind(seen.job.owner.as_str())
                .bind(seen.state.word())
                .execute(&mut tx)
                .await
                .writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(0 < changed)
        })
        .await
    }

    /// Records how a job ended, unless it is another owner's by now; returns whether it was still `owner`'s.
    pub async fn finish_backfill(
        &self,
        id: BackfillId,
        owner: &PresenceId,
        end: &BackfillEnd,
    ) -> Result<bool, WriteError> {
        debug_assert!(end.state != JobState::Running, "a job does not end as running");
        let operation = || format!("finish backfill {id}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let sql = "
                UPDATE backfill SET state = $4, finished = $5, error = $6, is_stopping = 0
                WHERE project = $1 AND id = $2 AND owner = $3 AND state = 'running'";
            let changed = query(sql)
                .bind(self.project_text())
                .bind(id.0)
                .bind(owner.as_str())
                .bind(end.state.word())
                .bind(micros(end.finished))
                .bind(end.error.as_deref())
                .execute(&mut tx)
                .await
                .writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(0 < changed)
        })
        .await
    }

    /// Asks the owner of a running job to stop; returns whether it is running.
    pub async fn stop_backfill(&self, id: BackfillId) -> Result<bool, WriteError> {
        let operation = || format!("stop backfill {id}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let sql = "UPDATE backfill SET is_stopping = 1 WHERE project = $1 AND id = $2 AND state = 'running'";
            let asked = query(sql).bind(self.project_text()).bind(id.0);
            let changed = asked.execute(&mut tx).await.writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(0 < changed)
        })
        .await
    }

    /// Returns a job, or `None` when there is no such job.
    pub async fn backfill(&self, id: BackfillId) -> Result<Option<Backfill>, ReadError> {
        let sql = "SELECT * FROM backfill WHERE project = $1 AND id = $2";
        let row = query(sql).bind(self.project_text()).bind(id.0).read_optional(self.database()).await;
        row.and_then(|row| row.as_ref().map(Backfill::from_row).transpose()).reading(|| format!("backfill {id}"))
    }

    /// Returns the newest jobs, newest first.
    pub async fn list_backfills(&self, limit: u32) -> Result<Vec<Backfill>, ReadError> {
        let sql = "SELECT * FROM backfill WHERE project = $1 ORDER BY id DESC LIMIT $2";
        let rows = query(sql).bind(self.project_text()).bind(limit).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(Backfill::from_row).collect()).reading(|| "the list of backfills".into())
    }

    /// Returns the jobs of `script` that say that they are running, oldest first.
    pub async fn running_backfills(&self, script: &ScriptName) -> Result<Vec<Backfill>, ReadError> {
        let sql = "SELECT * FROM backfill WHERE project = $1 AND script = $2 AND state = 'running' ORDER BY id";
        let rows = query(sql).bind(self.project_text()).bind(script.as_str()).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(Backfill::from_row).collect())
            .reading(|| format!("the running backfills of {script}"))
    }

    /// Returns how long the newest materializations of `asset` took that this store recorded, newest first.
    pub async fn past_durations(&self, asset: &AssetKey, limit: u32) -> Result<Vec<TimeDelta>, ReadError> {
        let sql = "
            SELECT finished - started AS duration FROM materialization
            WHERE project = $1 AND asset = $2 AND status = 'materialized' AND origin = 'recorded'
            ORDER BY finished DESC, id DESC LIMIT $3";
        let rows =
            query(sql).bind(self.project_text()).bind(asset.as_str()).bind(limit).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(|row| row.integer("duration").map(TimeDelta::microseconds)).collect())
            .reading(|| format!("how long {asset} took"))
    }
}

impl Backfill {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: BackfillId(row.integer("id")?),
            job: NewBackfill {
                script: ScriptName(row.text("script")?),
                asset: row.optional_text("asset")?.map(AssetKey::from_stored),
                calendar: row.text("calendar")?,
                request: row.text("request")?,
                options: row.json("options")?,
                ranges: row.json("ranges")?,
                total: row.number("total")?,
                owner: PresenceId(row.text("owner")?),
                created: row.time("created")?,
            },
            state: row.state("state")?,
            is_stopping: row.integer("is_stopping")? != 0,
            finished: row.optional_time("finished")?,
            error: row.optional_text("error")?,
        })
    }
}
