//! Takes the stamps of a lake in: what a crash kept from being recorded, and the whole state after the store was lost.
//!
//! Invariant: idempotent; a stamp adds a materialization by its attempt, and an attempt that the store believed to be in
//! doubt or failed ends as committed, with its step, and is announced once. Attempts that the store never knew (another
//! machine's, or a lost store's) are not announced: their subscribers were told when they happened.

use chrono::{DateTime, Utc};
use pintail_core::id::{AttemptId, LakeName, RunId, SnapshotId, StepId};
use pintail_core::partition::PartitionKey;
use pintail_core::sql::stamp::StampEntry;

use crate::database::{Row, Tx, query, retry};
use crate::encoding::Fields;
use crate::error::{WriteContext, WriteError};
use crate::materialization::{MaterializationStatus, NewMaterialization, OnKnownAttempt, Origin};
use crate::open::Store;
use crate::outbox::Announcement;

/// One entry of a commit's stamp, with the commit's place in the lake.
#[derive(Clone, Debug, PartialEq)]
pub struct LakeStamp {
    /// The snapshot that the commit made.
    pub snapshot: SnapshotId,
    /// The snapshot's time.
    pub at: DateTime<Utc>,
    /// What the commit says about itself.
    pub entry: StampEntry,
}

/// What taking stamps in changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingested {
    /// Materializations that were missing or not complete.
    pub materializations: u64,
    /// Attempts that the store did not know to be committed.
    pub healed_attempts: u64,
}

/// An attempt that a materialization proves, though its own row does not say so.
struct ProvenAttempt {
    attempt: AttemptId,
    step: StepId,
    asset: String,
    partition: Option<PartitionKey>,
    snapshot: Option<SnapshotId>,
}

impl Store {
    /// Takes in the stamps of `lake` from its cursor up to and including the snapshot `upto`, and moves the cursor.
    pub async fn ingest_stamps(
        &self,
        lake: &LakeName,
        stamps: &[LakeStamp],
        upto: SnapshotId,
    ) -> Result<Ingested, WriteError> {
        let operation = || format!("take in the stamps of lake {lake} up to snapshot {upto}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let ingested = self.ingest(&mut tx, lake, stamps, upto).await.writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(ingested)
        })
        .await
    }

    /// Forgets what the lake itself knows: its materializations, schemas and cursor. Failures stay, they are nowhere else.
    pub async fn forget_lake_state(&self, lake: &LakeName) -> Result<(), WriteError> {
        let operation = || format!("forget the state of lake {lake}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            self.forget(&mut tx, lake).await.writing(operation)?;
            tx.commit().await.writing(operation)
        })
        .await
    }

    /// Replaces the state of `lake` by what all its stamps say, in one transaction: a crash leaves the old state.
    /// `stamps` are all of the lake's, up to and including `upto`.
    pub async fn rebuild_lake_state(
        &self,
        lake: &LakeName,
        stamps: &[LakeStamp],
        upto: SnapshotId,
    ) -> Result<Ingested, WriteError> {
        let operation = || format!("rebuild the state of lake {lake} up to snapshot {upto}");
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            self.forget(&mut tx, lake).await.writing(operation)?;
            let ingested = self.ingest(&mut tx, lake, stamps, upto).await.writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(ingested)
        })
        .await
    }

    async fn ingest(
        &self,
        tx: &mut Tx,
        lake: &LakeName,
        stamps: &[LakeStamp],
        upto: SnapshotId,
    ) -> Result<Ingested, sqlx::Error> {
        let mut in_order: Vec<&LakeStamp> = stamps.iter().collect();
        in_order.sort_by_key(|stamp| stamp.snapshot);
        let mut ingested = Ingested::default();
        for stamp in in_order {
            let row = NewMaterialization {
                entry: &stamp.entry,
                status: MaterializationStatus::Materialized,
                origin: Origin::Rebuilt,
                lake: Some(lake),
                snapshot: Some(stamp.snapshot),
                started: stamp.at,
                finished: stamp.at,
                error: None,
            };
            let changed = self.insert_materialization(tx, &row, OnKnownAttempt::AddCommit).await?;
            ingested.materializations += u64::from(changed);
        }
        ingested.healed_attempts = self.settle_attempts_in_doubt(tx).await?;
        self.advance_cursor(tx, lake, upto).await?;
        Ok(ingested)
    }

    async fn forget(&self, tx: &mut Tx, lake: &LakeName) -> Result<(), sqlx::Error> {
        const STATEMENTS: [&str; 3] = [
            "DELETE FROM materialization WHERE project = $1 AND lake = $2 AND status IN ('materialized', 'unchanged')",
            "DELETE FROM asset_schema WHERE project = $1 AND lake = $2",
            "DELETE FROM lake_cursor WHERE project = $1 AND lake = $2",
        ];
        for sql in STATEMENTS {
            query(sql).bind(self.project_text()).bind(lake.as_str()).execute(tx).await?;
        }
        Ok(())
    }

    /// Ends the attempts that a stamp proves and that are not running: a running one may have more commits to come, and
    /// its own process, or whoever finds the run crashed, ends it.
    async fn settle_attempts_in_doubt(&self, tx: &mut Tx) -> Result<u64, sqlx::Error> {
        let sql = "
            SELECT attempt.id, attempt.step, made.asset, made.partition, made.snapshot
            FROM attempt
            JOIN materialization AS made ON made.project = attempt.project AND made.attempt = attempt.id
            WHERE attempt.project = $1 AND attempt.status IN ('committing', 'failed', 'cancelled')
                AND made.status = 'materialized' AND made.strategy <> 'part'";
        let rows = query(sql).bind(self.project_text()).fetch_all(tx).await?;
        self.settle(tx, &rows).await
    }

    /// Ends every attempt of a run that a stamp proves, running ones too: call it when the run has ended.
    pub(crate) async fn settle_attempts_of_run(&self, tx: &mut Tx, run: &RunId) -> Result<u64, sqlx::Error> {
        let sql = "
            SELECT attempt.id, attempt.step, made.asset, made.partition, made.snapshot
            FROM step
            JOIN attempt ON attempt.project = step.project AND attempt.step = step.id
            JOIN materialization AS made ON made.project = attempt.project AND made.attempt = attempt.id
            WHERE step.project = $1 AND step.run = $2
                AND attempt.status <> 'committed' AND made.status = 'materialized' AND made.strategy <> 'part'";
        let rows = query(sql).bind(self.project_text()).bind(run.as_str()).fetch_all(tx).await?;
        self.settle(tx, &rows).await
    }

    async fn settle(&self, tx: &mut Tx, rows: &[Row]) -> Result<u64, sqlx::Error> {
        let mut settled = 0;
        for row in rows {
            let proven = ProvenAttempt::from_row(row)?;
            self.settle_one(tx, &proven).await?;
            settled += 1;
        }
        Ok(settled)
    }

    async fn settle_one(&self, tx: &mut Tx, proven: &ProvenAttempt) -> Result<(), sqlx::Error> {
        // The sub-queries read the materialization, so that times and counts come from one place.
        const END_ATTEMPT: &str = "
            UPDATE attempt SET status = 'committed', error_class = NULL, error = NULL,
                finished = (SELECT made.finished FROM materialization AS made
                    WHERE made.project = attempt.project AND made.attempt = attempt.id)
            WHERE project = $1 AND id = $2";
        const END_STEP: &str = "
            UPDATE step SET status = 'materialized', error = NULL,
                (finished, rows, snapshot) = (SELECT made.finished, made.rows, made.snapshot
                    FROM materialization AS made WHERE made.project = step.project AND made.attempt = $3)
            WHERE project = $1 AND id = $2 AND status NOT IN ('materialized', 'unchanged')";
        let attempt = proven.attempt.as_str();
        query(END_ATTEMPT).bind(self.project_text()).bind(attempt).execute(tx).await?;
        let step = query(END_STEP).bind(self.project_text()).bind(proven.step.as_str()).bind(attempt);
        step.execute(tx).await?;
        let announcement = Announcement {
            attempt: &proven.attempt,
            asset: &proven.asset,
            partition: proven.partition.as_ref(),
            snapshot: proven.snapshot,
        };
        self.announce(tx, announcement).await
    }
}

impl ProvenAttempt {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            attempt: AttemptId(row.text("id")?),
            step: StepId(row.text("step")?),
            asset: row.text("asset")?,
            partition: row.partition()?,
            snapshot: row.optional_integer("snapshot")?.map(SnapshotId),
        })
    }
}
