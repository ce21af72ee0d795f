//! Leases: the right to stage and write one slice, or a whole asset, with a fencing token that only grows.
//!
//! A lease on the whole asset excludes every slice of it, and the other way round.

use pintail_core::id::RunId;
use pintail_core::partition::PartitionKey;

use super::{Guard, GuardError, OwnerId};

/// What is leased.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseKey {
    /// The canonical asset.
    pub asset: String,
    /// The slice; `None` for the whole asset.
    pub partition: Option<PartitionKey>,
}

/// A lease that this process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is leased.
    pub key: LeaseKey,
    /// Greater than every token given before.
    pub token: i64,
}

/// Who holds a lease that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// The holder's process id.
    pub process: u32,
    /// The holder's run.
    pub run: RunId,
    /// Since when, in microseconds since 1970 UTC.
    pub since_micros: i64,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// It is ours.
    Granted(Lease),
    /// Somebody living has it.
    Held(LeaseHolder),
}

#[derive(sqlx::FromRow)]
struct LeaseRow {
    token: i64,
    owner: String,
    process: i64,
    run: String,
    since_micros: i64,
}

impl Guard {
    /// Asks for `key` on behalf of `run`; leases of dead owners that stand in the way are taken away first.
    pub async fn try_lease(&self, key: &LeaseKey, run: &RunId, now_micros: i64) -> Result<LeaseAnswer, GuardError> {
        let failed = self.database("take a lease");
        let mut tx = self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(&failed)?;
        let partition = key.partition.as_ref().map(PartitionKey::as_str);
        let in_the_way: Vec<LeaseRow> = sqlx::query_as(
            "SELECT token, owner, process, run, since_micros FROM lease
             WHERE asset = ?1 AND (?2 IS NULL OR partition IS NULL OR partition = ?2)",
        )
        .bind(&key.asset)
        .bind(partition)
        .fetch_all(&mut *tx)
        .await
        .map_err(&failed)?;
        for row in in_the_way {
            if self.is_alive(&OwnerId(row.owner)) {
                tx.rollback().await.map_err(&failed)?;
                return Ok(LeaseAnswer::Held(LeaseHolder {
                    process: u32::try_from(row.process).unwrap_or_default(),
                    run: RunId(row.run),
                    since_micros: row.since_micros,
                }));
            }
            sqlx::query("DELETE FROM lease WHERE token = ?")
                .bind(row.token)
                .execute(&mut *tx)
                .await
                .map_err(&failed)?;
        }
        let token: i64 = sqlx::query_scalar("UPDATE token SET last = last + 1 RETURNING last")
            .fetch_one(&mut *tx)
            .await
            .map_err(&failed)?;
        sqlx::query(
            "INSERT INTO lease (asset, partition, token, owner, process, run, since_micros) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&key.asset)
        .bind(partition)
        .bind(token)
        .bind(&self.owner().0)
        .bind(i64::from(std::process::id()))
        .bind(run.as_str())
        .bind(now_micros)
        .execute(&mut *tx)
        .await
        .map_err(&failed)?;
        tx.commit().await.map_err(&failed)?;
        Ok(LeaseAnswer::Granted(Lease { key: key.clone(), token }))
    }

    /// Returns whether `lease` is still ours.
    pub async fn holds(&self, lease: &Lease) -> Result<bool, GuardError> {
        sqlx::query_scalar("SELECT count(*) > 0 FROM lease WHERE token = ? AND owner = ?")
            .bind(lease.token)
            .bind(&self.owner().0)
            .fetch_one(&self.pool)
            .await
            .map_err(self.database("look a lease up"))
    }

    /// Gives `lease` back; one that was taken away is left alone.
    pub async fn release(&self, lease: &Lease) -> Result<(), GuardError> {
        sqlx::query("DELETE FROM lease WHERE token = ? AND owner = ?")
            .bind(lease.token)
            .bind(&self.owner().0)
            .execute(&self.pool)
            .await
            .map_err(self.database("release a lease"))?;
        Ok(())
    }
}
