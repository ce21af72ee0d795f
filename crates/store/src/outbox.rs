//! Table `outbox`: materializations whose subscribers have not been told yet.
//!
//! Invariant: a row is written in the transaction of its materialization, once per attempt; it is delivered once. It is
//! keyed by the attempt, so that it outlives a rebuild of the materializations.

use chrono::{DateTime, Utc};
use pintail_core::id::{AttemptId, SnapshotId};
use pintail_core::partition::PartitionKey;

use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, micros};
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::materialization::AssetKey;
use crate::open::Store;

/// A row of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxId(pub i64);

/// One materialization that waits for delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// The row.
    pub id: OutboxId,
    /// The attempt that made the materialization.
    pub attempt: AttemptId,
    /// What was written.
    pub asset: AssetKey,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// The producer's snapshot; `None` for an asset outside a lake.
    pub snapshot: Option<SnapshotId>,
}

/// What a materialization leaves in the outbox.
#[derive(Debug)]
pub(crate) struct Announcement<'a> {
    pub(crate) attempt: &'a AttemptId,
    pub(crate) asset: &'a str,
    pub(crate) partition: Option<&'a PartitionKey>,
    pub(crate) snapshot: Option<SnapshotId>,
}

impl Store {
    /// Puts a materialization into the outbox unless it is or was there.
    pub(crate) async fn announce(&self, tx: &mut Tx, announcement: Announcement<'_>) -> Result<(), sqlx::Error> {
        let sql = "
            INSERT INTO outbox (project, attempt, asset, partition, snapshot)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (project, attempt) DO NOTHING";
        query(sql)
            .bind(self.project_text())
            .bind(announcement.attempt.as_str())
            .bind(announcement.asset)
            .bind(announcement.partition.map(PartitionKey::as_str))
            .bind(announcement.snapshot.map(|snapshot| snapshot.0))
            .execute(tx)
            .await?;
        Ok(())
    }

    /// Returns what waits for delivery, oldest first.
    pub async fn undelivered(&self, limit: u32) -> Result<Vec<OutboxRow>, ReadError> {
        let sql = "SELECT * FROM outbox WHERE project = $1 AND delivered IS NULL ORDER BY id LIMIT $2";
        let rows = query(sql).bind(self.project_text()).bind(limit).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(OutboxRow::from_row).collect()).reading(|| "the outbox".into())
    }

    /// Records a delivery; returns whether this call made it, so that of two deliverers one goes on.
    pub async fn mark_delivered(&self, id: OutboxId, at: DateTime<Utc>) -> Result<bool, WriteError> {
        let operation = || format!("mark outbox row {} as delivered", id.0);
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let sql = "UPDATE outbox SET delivered = $3 WHERE project = $1 AND id = $2 AND delivered IS NULL";
            let query = query(sql).bind(self.project_text()).bind(id.0).bind(micros(at));
            let changed = query.execute(&mut tx).await.writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(0 < changed)
        })
        .await
    }
}

impl OutboxRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: OutboxId(row.integer("id")?),
            attempt: AttemptId(row.text("attempt")?),
            asset: AssetKey::from_stored(row.text("asset")?),
            partition: row.partition()?,
            snapshot: row.optional_integer("snapshot")?.map(SnapshotId),
        })
    }
}
