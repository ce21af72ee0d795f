//! Leases: the right to stage and write one slice, or a whole asset, with a fencing token that only grows.
//!
//! A lease on the whole asset excludes every slice of it, and the other way round.

use pintail_core::id::RunId;
use pintail_core::partition::PartitionKey;

use super::database::{Database, on_pool};
use super::{Guard, GuardError};

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

/// A lease that somebody holds, for people.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct HeldLease {
    /// What is leased: an asset, or `consumer <name>`.
    pub asset: String,
    /// The slice; `None` for the whole.
    pub partition: Option<String>,
    /// The fencing token.
    pub token: i64,
    /// The process that holds it, as it announced itself.
    pub owner: String,
    /// Its process id, on its own machine.
    pub process: i64,
    /// Since when, in microseconds since 1970 UTC.
    pub since_micros: i64,
}

#[derive(sqlx::FromRow)]
struct LeaseRow {
    token: i64,
    owner: String,
    process: i64,
    run: String,
    partition: Option<String>,
    since_micros: i64,
    is_alive: Option<bool>,
}

impl Guard {
    /// Asks for `key` on behalf of `run`; leases of dead owners that stand in the way are taken away first.
    pub async fn try_lease(&self, key: &LeaseKey, run: &RunId, now_micros: i64) -> Result<LeaseAnswer, GuardError> {
        let asked = self.patiently(|| self.ask_once(key, run, now_micros)).await;
        asked.map_err(self.database("take a lease"))
    }

    async fn ask_once(&self, key: &LeaseKey, run: &RunId, now_micros: i64) -> Result<LeaseAnswer, sqlx::Error> {
        let partition = key.partition.as_ref().map(PartitionKey::as_str);
        let table = self.table("lease");
        let find = format!(
            "SELECT token, owner, process, run, partition, since_micros, {} AS is_alive FROM {table}
             WHERE asset = $1 AND (CAST($2 AS TEXT) IS NULL OR partition IS NULL OR partition = $2)",
            self.database.is_alive()
        );
        let remove = format!("DELETE FROM {table} WHERE token = $1");
        let number = format!("UPDATE {} SET last = last + 1 RETURNING last", self.table("token"));
        let insert = format!(
            "INSERT INTO {table} (asset, partition, token, owner, process, run, since_micros)
             VALUES ($1, $2, $3, $4, $5, $6, $7)"
        );
        // One asks at a time: on Postgres the table is locked, on SQLite the whole file.
        let begin = match &self.database {
            Database::Sqlite { .. } => "BEGIN IMMEDIATE",
            Database::Postgres { .. } => "BEGIN; LOCK TABLE pintail.lease IN SHARE ROW EXCLUSIVE MODE",
        };
        on_pool!(&self.database, |pool| {
            let mut tx = pool.begin_with(begin).await?;
            let find = sqlx::query_as(sqlx::AssertSqlSafe(find)).bind(&key.asset).bind(partition);
            let in_the_way: Vec<LeaseRow> = find.fetch_all(&mut *tx).await?;
            if let Some(row) = in_the_way.iter().find(|row| self.lives(&row.owner, row.is_alive)) {
                tx.rollback().await?;
                // One that was given to this very request before the answer was lost.
                let is_this = row.owner == self.owner().0
                    && row.run == run.as_str()
                    && row.since_micros == now_micros
                    && row.partition.as_deref() == partition;
                return Ok(match is_this {
                    true => LeaseAnswer::Granted(Lease { key: key.clone(), token: row.token }),
                    false => LeaseAnswer::Held(row.holder()),
                });
            }
            for row in in_the_way {
                sqlx::query(sqlx::AssertSqlSafe(remove.clone())).bind(row.token).execute(&mut *tx).await?;
            }
            let token: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(number)).fetch_one(&mut *tx).await?;
            sqlx::query(sqlx::AssertSqlSafe(insert))
                .bind(&key.asset)
                .bind(partition)
                .bind(token)
                .bind(&self.owner().0)
                .bind(i64::from(std::process::id()))
                .bind(run.as_str())
                .bind(now_micros)
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            Ok(LeaseAnswer::Granted(Lease { key: key.clone(), token }))
        })
    }

    /// Returns the leases of the living, by token, and the last token that was given.
    pub async fn leases(&self) -> Result<(Vec<HeldLease>, i64), GuardError> {
        let failed = self.database("list the leases");
        self.forget_the_dead().await?;
        let list = format!(
            "SELECT asset, partition, token, owner, process, since_micros FROM {} ORDER BY token",
            self.table("lease")
        );
        let last = format!("SELECT last FROM {}", self.table("token"));
        let ask = || async {
            on_pool!(&self.database, |pool| {
                let leases = sqlx::query_as(sqlx::AssertSqlSafe(list.clone())).fetch_all(pool).await?;
                // Asked for afterwards: tokens only grow, so every listed one is at most this.
                let last: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(last.clone())).fetch_one(pool).await?;
                Ok((leases, last))
            })
        };
        self.patiently(ask).await.map_err(failed)
    }

    /// Returns who holds the whole of `asset`, if somebody living does, without asking for it.
    pub async fn holder_of(&self, asset: &str) -> Result<Option<LeaseHolder>, GuardError> {
        let sql = format!(
            "SELECT token, owner, process, run, partition, since_micros, {} AS is_alive FROM {}
             WHERE asset = $1 AND partition IS NULL",
            self.database.is_alive(),
            self.table("lease")
        );
        let look = || async {
            on_pool!(&self.database, |pool| {
                sqlx::query_as(sqlx::AssertSqlSafe(sql.clone())).bind(asset).fetch_optional(pool).await
            })
        };
        let row: Option<LeaseRow> = self.patiently(look).await.map_err(self.database("look for a lease"))?;
        Ok(row.filter(|row| self.lives(&row.owner, row.is_alive)).map(|row| row.holder()))
    }

    /// Makes every token that is given from now on greater than `least`, for a guard that was lost and counts anew.
    pub async fn raise_tokens(&self, least: i64) -> Result<(), GuardError> {
        let sql = format!("UPDATE {} SET last = $1 WHERE last < $1", self.table("token"));
        let raise = || async {
            on_pool!(&self.database, |pool| {
                sqlx::query(sqlx::AssertSqlSafe(sql.clone())).bind(least).execute(pool).await.map(|_| ())
            })
        };
        self.patiently(raise).await.map_err(self.database("raise the fencing tokens"))
    }

    /// Returns whether `lease` is still ours.
    pub async fn holds(&self, lease: &Lease) -> Result<bool, GuardError> {
        let sql = format!("SELECT count(*) > 0 FROM {} WHERE token = $1 AND owner = $2", self.table("lease"));
        let look = || async {
            on_pool!(&self.database, |pool| {
                let query =
                    sqlx::query_scalar(sqlx::AssertSqlSafe(sql.clone())).bind(lease.token).bind(&self.owner().0);
                query.fetch_one(pool).await
            })
        };
        self.patiently(look).await.map_err(self.database("look a lease up"))
    }

    /// Gives `lease` back; one that was taken away is left alone.
    pub async fn release(&self, lease: &Lease) -> Result<(), GuardError> {
        let sql = format!("DELETE FROM {} WHERE token = $1 AND owner = $2", self.table("lease"));
        let delete = || async {
            on_pool!(&self.database, |pool| {
                let query = sqlx::query(sqlx::AssertSqlSafe(sql.clone())).bind(lease.token).bind(&self.owner().0);
                query.execute(pool).await.map(|_| ())
            })
        };
        self.patiently(delete).await.map_err(self.database("release a lease"))
    }
}

impl LeaseRow {
    fn holder(&self) -> LeaseHolder {
        LeaseHolder {
            process: u32::try_from(self.process).unwrap_or_default(),
            run: RunId(self.run.clone()),
            since_micros: self.since_micros,
        }
    }
}
