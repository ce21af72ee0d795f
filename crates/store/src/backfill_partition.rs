//! Table `backfill_partition`: where the partitions of a job stand that have left its queue.
//!
//! Invariant: a partition without a row is queued; going back to the queue takes the row away. `running` is written
//! before the partition's run begins, with the run's id, so that after a crash the lake's stamps can settle it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use pintail_core::id::RunId;
use pintail_core::partition::PartitionKey;
use pintail_core::plan::backfill::{Evidence, PartitionState};

use crate::backfill::{Backfill, BackfillId};
use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, Word, json, micros};
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::materialization::AssetKey;
use crate::open::Store;

/// One partition of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillPartition {
    /// The partition.
    pub partition: PartitionKey,
    /// Where it stands.
    pub state: PartitionState,
    /// The run that did it, or is at it; `None` when it was up to date.
    pub run: Option<RunId>,
    /// Why it failed, redacted by the caller.
    pub error: Option<String>,
}

/// How many partitions of a job stand where; the rest of its total is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackfillCounts {
    /// In work, or left so by a crash.
    pub running: u64,
    /// Done.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Stopped in the middle.
    pub cancelled: u64,
}

impl BackfillCounts {
    /// Returns how many of `total` have not ended.
    pub fn open(&self, total: u64) -> u64 {
        total.saturating_sub(self.done + self.failed)
    }

    /// Returns how many of `total` have not left the queue.
    pub fn queued(&self, total: u64) -> u64 {
        self.open(total).saturating_sub(self.running + self.cancelled)
    }
}

impl Word for PartitionState {
    const ALL: &'static [Self] = &[
        PartitionState::Queued,
        PartitionState::Running,
        PartitionState::Done,
        PartitionState::Failed,
        PartitionState::Cancelled,
    ];

    fn word(self) -> &'static str {
        match self {
            PartitionState::Queued => "queued",
            PartitionState::Running => "running",
            PartitionState::Done => "done",
            PartitionState::Failed => "failed",
            PartitionState::Cancelled => "cancelled",
        }
    }
}

impl Store {
    /// Records where partitions of a job stand, in one transaction.
    pub async fn record_backfill_partitions(
        &self,
        id: BackfillId,
        partitions: &[BackfillPartition],
        at: DateTime<Utc>,
    ) -> Result<(), WriteError> {
        let operation = || format!("record {} partitions of backfill {id}", partitions.len());
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            for partition in partitions {
                self.put_partition(&mut tx, id, partition, at).await.writing(operation)?;
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    async fn put_partition(
        &self,
        tx: &mut Tx,
        id: BackfillId,
        partition: &BackfillPartition,
        at: DateTime<Utc>,
    ) -> Result<(), sqlx::Error> {
        if partition.state == PartitionState::Queued {
            let sql = "DELETE FROM backfill_partition WHERE project = $1 AND backfill = $2 AND partition = $3";
            query(sql).bind(self.project_text()).bind(id.0).bind(partition.partition.as_str()).execute(tx).await?;
            return Ok(());
        }
        let sql = "
            INSERT INTO backfill_partition (project, backfill, partition, state, run, since, error)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (project, backfill, partition) DO UPDATE SET
                state = excluded.state, run = excluded.run, since = excluded.since, error = excluded.error";
        query(sql)
            .bind(self.project_text())
            .bind(id.0)
            .bind(partition.partition.as_str())
            .bind(partition.state.word())
            .bind(partition.run.as_ref().map(RunId::as_str))
            .bind(micros(at))
            .bind(partition.error.as_deref())
            .execute(tx)
            .await?;
        Ok(())
    }

    /// Returns where those of `keys` stand that have left the queue.
    pub async fn backfill_states(
        &self,
        id: BackfillId,
        keys: &[PartitionKey],
    ) -> Result<BTreeMap<PartitionKey, PartitionState>, ReadError> {
        let sql = format!(
            "SELECT partition, state FROM backfill_partition WHERE project = $1 AND backfill = $2 AND partition IN ({})",
            self.database().dialect().texts_of_json(3)
        );
        let rows = query(sql).bind(self.project_text()).bind(id.0).bind(json(&keys)).read_all(self.database()).await;
        rows.and_then(|rows| {
            rows.iter().map(|row| Ok((PartitionKey(row.text("partition")?), row.state("state")?))).collect()
        })
        .reading(|| format!("the partitions of backfill {id}"))
    }

    /// Returns at most `limit` partitions of a job in `state` that come after `after` in the order of their texts.
    pub async fn backfill_partitions_in(
        &self,
        id: BackfillId,
        state: PartitionState,
        after: Option<&PartitionKey>,
        limit: u32,
    ) -> Result<Vec<BackfillPartition>, ReadError> {
        let sql = "
            SELECT * FROM backfill_partition
            WHERE project = $1 AND backfill = $2 AND state = $3 AND $4 < partition
            ORDER BY partition LIMIT $5";
        let rows = query(sql)
            .bind(self.project_text())
            .bind(id.0)
            .bind(state.word())
            .bind(after.map_or("", PartitionKey::as_str))
            .bind(limit)
            .read_all(self.database())
            .await;
        rows.and_then(|rows| rows.iter().map(BackfillPartition::from_row).collect())
            .reading(|| format!("the partitions of backfill {id}"))
    }

    /// Returns how many partitions of a job stand where.
    pub async fn backfill_counts(&self, id: BackfillId) -> Result<BackfillCounts, ReadError> {
        let sql = "
            SELECT state, count(*) AS number FROM backfill_partition WHERE project = $1 AND backfill = $2
            GROUP BY state";
        let rows = query(sql).bind(self.project_text()).bind(id.0).read_all(self.database()).await;
        rows.and_then(|rows| {
            let mut counts = BackfillCounts::default();
            for row in &rows {
                let number = row.number("number")?;
                match row.state("state")? {
                    PartitionState::Running => counts.running = number,
                    PartitionState::Done => counts.done = number,
                    PartitionState::Failed => counts.failed = number,
                    PartitionState::Cancelled => counts.cancelled = number,
                    PartitionState::Queued => {}
                }
            }
            Ok(counts)
        })
        .reading(|| format!("the counts of backfill {id}"))
    }

    /// Returns the partitions that a dead owner left in work, with what the store knows of their runs. Take in the lake's
    /// stamps before, so that it knows all.
    pub async fn unsettled_backfill_partitions(
        &self,
        backfill: &Backfill,
    ) -> Result<Vec<(BackfillPartition, Evidence)>, ReadError> {
        let sql = "
            SELECT part.*,
                (SELECT min(CASE WHEN made.status IN ('materialized', 'unchanged') THEN 'committed' ELSE 'failed' END)
                    FROM materialization AS made
                    WHERE made.project = part.project AND made.run = part.run AND made.asset = $3
                        AND made.partition = part.partition) AS evidence
            FROM backfill_partition AS part
            WHERE part.project = $1 AND part.backfill = $2 AND part.state = 'running'
            ORDER BY part.partition";
        let rows = query(sql)
            .bind(self.project_text())
            .bind(backfill.id.0)
            .bind(backfill.job.asset.as_ref().map(AssetKey::as_str))
            .read_all(self.database())
            .await;
        rows.and_then(|rows| rows.iter().map(unsettled).collect())
            .reading(|| format!("what became of backfill {}", backfill.id))
    }
}

fn unsettled(row: &Row) -> Result<(BackfillPartition, Evidence), sqlx::Error> {
    let evidence = match row.optional_text("evidence")?.as_deref() {
        Some("committed") => Evidence::Committed,
        Some(_) => Evidence::Failed,
        None => Evidence::Nothing,
    };
    Ok((BackfillPartition::from_row(row)?, evidence))
}

impl BackfillPartition {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            partition: PartitionKey(row.text("partition")?),
            state: row.state("state")?,
            run: row.optional_text("run")?.map(RunId),
            error: row.optional_text("error")?,
        })
    }
}
