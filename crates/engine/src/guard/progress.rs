//! How far each consumer of a lake has come: what expiry may not pass.
//!
//! Invariant: a row never says more than the consumer's cursor in the lake does. It is written after the commit that moved
//! the cursor, so a crash between the two leaves the floor too low, which costs room and no rows. A table
//! `din_consumer_progress`, where somebody made one, is kept in step for programs that only know that one.

use pintail_core::id::SnapshotId;

use super::database::{Database, on_pool};
use super::{Guard, GuardError};

/// How far one consumer has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerProgress {
    /// The consumer, with its shard when it has several, such as `decode.03`.
    pub consumer: String,
    /// The last snapshot that it has consumed: everything after it is still needed.
    pub snapshot: SnapshotId,
    /// When it said so, in microseconds since 1970 UTC.
    pub updated_micros: i64,
    /// Whether expiry waits for it however long it is silent.
    pub required: bool,
    /// After how long a silence it no longer counts, unless it is required; in microseconds.
    pub stale_after_micros: Option<i64>,
}

impl ConsumerProgress {
    /// Returns the progress of `consumer`, which has consumed everything up to and including `snapshot`.
    pub fn new(consumer: impl Into<String>, snapshot: SnapshotId, updated_micros: i64) -> Self {
        let (required, stale_after_micros) = (false, None);
        Self { consumer: consumer.into(), snapshot, updated_micros, required, stale_after_micros }
    }

    /// Returns whether it still keeps expiry waiting at `now_micros`, where `default_stale_micros` counts for those that
    /// say nothing themselves.
    pub fn holds_at(&self, now_micros: i64, default_stale_micros: i64) -> bool {
        let limit = self.stale_after_micros.unwrap_or(default_stale_micros);
        self.required || now_micros.saturating_sub(self.updated_micros) <= limit
    }
}

/// Writes one row inside an open transaction of either kind of database.
macro_rules! write_row {
    ($guard:expr, $tx:expr, $row:expr, $may_go_back:expr, $din:expr) => {{
        let sql = format!(
            "INSERT INTO {} (consumer, snapshot_id, updated_micros, required, stale_after_micros)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (consumer) DO UPDATE SET
                snapshot_id = CASE WHEN consumer_progress.snapshot_id < excluded.snapshot_id OR $6
                                   THEN excluded.snapshot_id ELSE consumer_progress.snapshot_id END,
                updated_micros = excluded.updated_micros, required = excluded.required,
                stale_after_micros = excluded.stale_after_micros
             RETURNING snapshot_id",
            $guard.table("consumer_progress")
        );
        let snapshot: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(&$row.consumer)
            .bind($row.snapshot.0)
            .bind($row.updated_micros)
            .bind($row.required)
            .bind($row.stale_after_micros)
            .bind($may_go_back)
            .fetch_one(&mut *$tx)
            .await?;
        if let Some((table, time)) = $din {
            let delete = format!("DELETE FROM {table} WHERE consumer = $1");
            sqlx::query(sqlx::AssertSqlSafe(delete)).bind(&$row.consumer).execute(&mut *$tx).await?;
            let insert = format!("INSERT INTO {table} (consumer, snapshot_id, updated_at) VALUES ($1, $2, {time})");
            let insert = sqlx::query(sqlx::AssertSqlSafe(insert)).bind(&$row.consumer).bind(snapshot);
            insert.bind($row.updated_micros).execute(&mut *$tx).await?;
        }
    }};
}

impl Guard {
    /// Writes how far a consumer has come. A report that is late and says less than an earlier one changes nothing of
    /// that: expiry has relied on it.
    pub async fn report_progress(&self, row: &ConsumerProgress) -> Result<(), GuardError> {
        self.write_progress(row, false).await
    }

    /// Sets how far a consumer has come, also back to less: what a person who resets it means.
    pub async fn set_progress(&self, row: &ConsumerProgress) -> Result<(), GuardError> {
        self.write_progress(row, true).await
    }

    async fn write_progress(&self, row: &ConsumerProgress, may_go_back: bool) -> Result<(), GuardError> {
        let (find, din) = self.database.din_progress();
        let report = || async {
            match &self.database {
                Database::Sqlite { pool, .. } => {
                    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
                    let found: bool = sqlx::query_scalar(find).fetch_one(&mut *tx).await?;
                    let time = "strftime('%Y-%m-%dT%H:%M:%fZ', $3 / 1000000.0, 'unixepoch')";
                    write_row!(self, tx, row, may_go_back, found.then_some((din, time)));
                    tx.commit().await
                }
                Database::Postgres { pool, .. } => {
                    let mut tx = pool.begin().await?;
                    let found: bool = sqlx::query_scalar(find).fetch_one(&mut *tx).await?;
                    let time = "to_timestamp($3::DOUBLE PRECISION / 1000000)";
                    write_row!(self, tx, row, may_go_back, found.then_some((din, time)));
                    tx.commit().await
                }
            }
        };
        self.patiently(report).await.map_err(self.database("report a consumer's progress"))
    }

    /// Forgets `consumer`, also where other programs read of it, so that it holds nothing any more; returns whether it was
    /// known.
    pub async fn forget_consumer(&self, consumer: &str) -> Result<bool, GuardError> {
        let (find, foreign) = self.database.din_progress();
        let delete = format!("DELETE FROM {} WHERE consumer = $1", self.table("consumer_progress"));
        let forget = || async {
            on_pool!(&self.database, |pool| {
                let mut tx = pool.begin().await?;
                let deleted = sqlx::query(sqlx::AssertSqlSafe(delete.clone())).bind(consumer).execute(&mut *tx).await?;
                let has_foreign: bool = sqlx::query_scalar(find).fetch_one(&mut *tx).await?;
                if has_foreign && 0 < deleted.rows_affected() {
                    let delete = format!("DELETE FROM {foreign} WHERE consumer = $1");
                    sqlx::query(sqlx::AssertSqlSafe(delete)).bind(consumer).execute(&mut *tx).await?;
                }
                tx.commit().await?;
                Ok(0 < deleted.rows_affected())
            })
        };
        self.patiently(forget).await.map_err(self.database("forget a consumer"))
    }

    /// Returns how far every consumer has come, by name.
    pub async fn consumers(&self) -> Result<Vec<ConsumerProgress>, GuardError> {
        let sql = format!(
            "SELECT consumer, snapshot_id, updated_micros, required, stale_after_micros FROM {} ORDER BY consumer",
            self.table("consumer_progress")
        );
        type Row = (String, i64, i64, bool, Option<i64>);
        let list = || async {
            on_pool!(&self.database, |pool| sqlx::query_as(sqlx::AssertSqlSafe(sql.clone())).fetch_all(pool).await)
        };
        let rows: Vec<Row> = self.patiently(list).await.map_err(self.database("read the progress of consumers"))?;
        let progress = |(consumer, snapshot, updated_micros, required, stale_after_micros)| ConsumerProgress {
            consumer,
            snapshot: SnapshotId(snapshot),
            updated_micros,
            required,
            stale_after_micros,
        };
        Ok(rows.into_iter().map(progress).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_consumer_holds_until_its_own_limit_and_a_required_one_for_ever() {
        let silent = ConsumerProgress::new("a", SnapshotId(3), 100);
        assert!(silent.holds_at(150, 50) && !silent.holds_at(151, 50));
        let patient = ConsumerProgress { stale_after_micros: Some(500), ..silent.clone() };
        assert!(patient.holds_at(600, 50) && !patient.holds_at(601, 50));
        let required = ConsumerProgress { required: true, ..patient };
        assert!(required.holds_at(i64::MAX, 0));
    }
}
