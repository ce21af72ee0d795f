//! The holds that an owner keeps as one set: what its past runs read, so that nobody's upkeep takes it away.
//!
//! Invariant: the set changes in one transaction, so that whoever looks sees the old one or the new one.

use std::collections::BTreeMap;

use pintail_core::id::SnapshotId;
use sqlx::sqlite::SqliteSynchronous;
use sqlx::{ConnectOptions as _, Connection as _};

use super::database::Database;
use super::{Guard, GuardError};

/// Makes the set inside an open transaction of either kind of database.
macro_rules! renew {
    ($guard:expr, $tx:expr, $owner:expr, $wanted:expr, $now_micros:expr) => {{
        let table = $guard.table("snapshot_pin");
        let list = format!("SELECT id, snapshot FROM {table} WHERE durable = 1 AND owner = $1");
        let held: Vec<(i64, i64)> = sqlx::query_as(sqlx::AssertSqlSafe(list)).bind($owner).fetch_all(&mut *$tx).await?;
        for (id, snapshot) in &held {
            if !$wanted.contains_key(&SnapshotId(*snapshot)) {
                let delete = format!("DELETE FROM {table} WHERE id = $1");
                sqlx::query(sqlx::AssertSqlSafe(delete)).bind(*id).execute(&mut *$tx).await?;
            }
        }
        for (snapshot, reason) in $wanted {
            if held.iter().any(|(_, held)| *held == snapshot.0) {
                continue;
            }
            let insert = format!(
                "INSERT INTO {table} (snapshot, owner, durable, reason, since_micros) VALUES ($1, $2, 1, $3, $4)"
            );
            sqlx::query(sqlx::AssertSqlSafe(insert))
                .bind(snapshot.0)
                .bind($owner)
                .bind(reason)
                .bind($now_micros)
                .execute(&mut *$tx)
                .await?;
        }
    }};
}

impl Guard {
    /// Makes `wanted`, snapshots with their reasons, the durable pins of `owner`; what it held besides is let go.
    pub async fn keep_exactly(
        &self,
        owner: &str,
        wanted: &BTreeMap<SnapshotId, String>,
        now_micros: i64,
    ) -> Result<(), GuardError> {
        self.renew(owner, wanted, now_micros).await.map_err(self.database("renew the pins of past runs"))
    }

    async fn renew(
        &self,
        owner: &str,
        wanted: &BTreeMap<SnapshotId, String>,
        now_micros: i64,
    ) -> Result<(), sqlx::Error> {
        match &self.database {
            Database::Sqlite { options, .. } => {
                // Of its own, because the pool's connections do not wait for the disk.
                let mut connection = options.clone().synchronous(SqliteSynchronous::Full).connect().await?;
                let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
                renew!(self, tx, owner, wanted, now_micros);
                tx.commit().await?;
                connection.close().await
            }
            Database::Postgres { pool, .. } => {
                let mut tx = pool.begin_with("BEGIN; SET LOCAL synchronous_commit = on").await?;
                renew!(self, tx, owner, wanted, now_micros);
                tx.commit().await
            }
        }
    }
}
