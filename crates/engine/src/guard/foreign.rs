//! Consumers that expiry has to know of although they are no longer, or never were, kept by Pintail: those of programs
//! that only know `din_consumer_progress`, and those that were silent for so long that expiry has passed them.

use pintail_core::id::SnapshotId;

use super::database::{Database, on_pool};
use super::progress::ConsumerProgress;
use super::{Guard, GuardError};

/// A consumer that expiry has passed.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct PassedConsumer {
    /// Its name.
    pub consumer: String,
    /// The last snapshot that it said it had consumed.
    pub snapshot_id: i64,
    /// When it said so, in microseconds since 1970 UTC.
    pub updated_micros: i64,
    /// When expiry passed it, in microseconds since 1970 UTC.
    pub passed_micros: i64,
}

impl Guard {
    /// Returns the consumers in `din_consumer_progress` that are none of ours; none where there is no such table.
    pub async fn foreign_consumers(&self) -> Result<Vec<ConsumerProgress>, GuardError> {
        let failed = self.database("read the progress of other programs' consumers");
        let (exists, table) = self.database.din_progress();
        let micros = match &self.database {
            Database::Sqlite { .. } => "CAST(round((julianday(updated_at) - 2440587.5) * 86400000) AS INTEGER) * 1000",
            Database::Postgres { .. } => "(extract(epoch FROM updated_at) * 1000000)::BIGINT",
        };
        let look = || async { on_pool!(&self.database, |pool| sqlx::query_scalar(exists).fetch_one(pool).await) };
        let is_there: bool = self.patiently(look).await.map_err(&failed)?;
        if !is_there {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT consumer, min(snapshot_id) AS snapshot_id, max({micros}) AS updated_micros FROM {table}
             WHERE consumer NOT IN (SELECT consumer FROM {}) GROUP BY consumer ORDER BY consumer",
            self.table("consumer_progress")
        );
        let list = || async {
            on_pool!(&self.database, |pool| sqlx::query_as(sqlx::AssertSqlSafe(sql.clone())).fetch_all(pool).await)
        };
        let rows: Vec<(String, i64, Option<i64>)> = self.patiently(list).await.map_err(&failed)?;
        // A time that cannot be read counts as just now: in doubt, a consumer holds.
        let progress = |(consumer, snapshot, updated): (String, i64, Option<i64>)| {
            ConsumerProgress::new(consumer, SnapshotId(snapshot), updated.unwrap_or(i64::MAX))
        };
        Ok(rows.into_iter().map(progress).collect())
    }

    /// Remembers that expiry passes `consumer` at `now_micros`, before it does; returns whether that is news.
    pub async fn note_passed(&self, consumer: &ConsumerProgress, now_micros: i64) -> Result<bool, GuardError> {
        let sql = format!(
            "INSERT INTO {} (consumer, snapshot_id, updated_micros, passed_micros) VALUES ($1, $2, $3, $4)
             ON CONFLICT (consumer, snapshot_id) DO NOTHING",
            self.table("consumer_passed")
        );
        let insert = || async {
            on_pool!(&self.database, |pool| {
                let query = sqlx::query(sqlx::AssertSqlSafe(sql.clone())).bind(&consumer.consumer);
                let query = query.bind(consumer.snapshot.0).bind(consumer.updated_micros).bind(now_micros);
                Ok(0 < query.execute(pool).await?.rows_affected())
            })
        };
        self.patiently(insert).await.map_err(self.database("note that expiry passes a consumer"))
    }

    /// Returns the consumers that expiry has passed, newest first.
    pub async fn passed_consumers(&self) -> Result<Vec<PassedConsumer>, GuardError> {
        let sql = format!(
            "SELECT consumer, snapshot_id, updated_micros, passed_micros FROM {} ORDER BY passed_micros DESC, consumer",
            self.table("consumer_passed")
        );
        let list = || async {
            on_pool!(&self.database, |pool| sqlx::query_as(sqlx::AssertSqlSafe(sql.clone())).fetch_all(pool).await)
        };
        self.patiently(list).await.map_err(self.database("read which consumers expiry has passed"))
    }
}
