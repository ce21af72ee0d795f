//! The guard of a lake: leases and pins in `<catalog>.guard.sqlite`, and who of their owners is alive.
//!
//! It lies beside the lake, so that two projects that share a lake share its guard. Opened by sqlx only, never by DuckDB.
//! A lease keeps two runs from staging the same slice; it does not make a commit safe: the check inside the transaction
//! does. An owner that died (its presence lock is free) loses its leases and pins at once, so nothing waits for a timeout
//! after a kill.

mod leader;
mod lease;
mod pin;
mod presence;

use std::path::{Path, PathBuf};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

pub use leader::Leader;
pub use lease::{Lease, LeaseAnswer, LeaseHolder, LeaseKey};
pub use pin::{Pin, PinId, PinKind};
pub use presence::{OwnerId, Presence};

use crate::classify::ErrorClass;
use crate::lake::LakeLocation;

/// A failed guard operation.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard's database failed.
    #[error("could not {operation} in the guard {}", .path.display())]
    Database {
        /// What was being done.
        operation: &'static str,
        /// The guard's file.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// A presence file failed.
    #[error("could not {operation} {}", .path.display())]
    Presence {
        /// What was being done.
        operation: &'static str,
        /// The presence file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl GuardError {
    /// Returns how the caller should react.
    pub fn class(&self) -> ErrorClass {
        match self {
            GuardError::Database { source, .. } if is_busy(source) => ErrorClass::Transient,
            GuardError::Database { .. } => ErrorClass::Bug,
            GuardError::Presence { .. } => ErrorClass::User,
        }
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    // 5 is SQLITE_BUSY and 6 SQLITE_LOCKED; the extended codes carry them in their low byte.
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// The guard of one lake, opened by one process.
#[derive(Debug)]
pub struct Guard {
    path: PathBuf,
    options: SqliteConnectOptions,
    pool: SqlitePool,
    presence: Presence,
}

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS lease (
        asset TEXT NOT NULL,
        partition TEXT,
        token INTEGER NOT NULL,
        owner TEXT NOT NULL,
        process INTEGER NOT NULL,
        run TEXT NOT NULL,
        since_micros INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX IF NOT EXISTS lease_key ON lease (asset, coalesce(partition, ''));
    CREATE TABLE IF NOT EXISTS token (last INTEGER NOT NULL) STRICT;
    INSERT INTO token SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM token);
    CREATE TABLE IF NOT EXISTS snapshot_pin (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        snapshot INTEGER NOT NULL,
        -- A process that announced itself, or, when durable, whoever asked for it.
        owner TEXT NOT NULL,
        durable INTEGER NOT NULL,
        reason TEXT NOT NULL,
        since_micros INTEGER NOT NULL,
        expires_micros INTEGER
    ) STRICT;
";

impl Guard {
    /// Opens the guard of `lake`, making it when it is not there, and announces this process.
    pub async fn open(lake: &LakeLocation) -> Result<Self, GuardError> {
        let path = beside(lake.catalog_file(), ".guard.sqlite");
        let presence = Presence::announce(&beside(lake.catalog_file(), ".owners"))?;
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What processes hold needs to outlive a process, not a power cut: after one, no owner is alive and its
            // rows are void. A durable pin is written more carefully.
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(10));
        let open = || async {
            let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options.clone()).await?;
            sqlx::raw_sql(SCHEMA).execute(&pool).await?;
            Ok(pool)
        };
        // Switching a fresh file to WAL fails at once when another process does the same.
        let pool = open
            .retry(
                ExponentialBuilder::default().with_min_delay(Duration::from_millis(5)).with_max_times(12).with_jitter(),
            )
            .sleep(tokio::time::sleep)
            .when(is_busy)
            .await
            .map_err(|source| GuardError::Database { operation: "open the tables", path: path.clone(), source })?;
        let guard = Self { path, options, pool, presence };
        guard.forget_the_dead().await?;
        Ok(guard)
    }

    /// Removes the leases and pins of owners that have died, so that what is listed is what is held. Durable pins have no
    /// owner that could die.
    pub async fn forget_the_dead(&self) -> Result<(), GuardError> {
        let failed = self.database("forget dead owners");
        let owners: Vec<String> =
            sqlx::query_scalar("SELECT owner FROM lease UNION SELECT owner FROM snapshot_pin WHERE durable = 0")
                .fetch_all(&self.pool)
                .await
                .map_err(&failed)?;
        for owner in owners {
            if self.is_alive(&OwnerId(owner.clone())) {
                continue;
            }
            for sql in ["DELETE FROM lease WHERE owner = ?", "DELETE FROM snapshot_pin WHERE owner = ? AND durable = 0"]
            {
                sqlx::query(sql).bind(&owner).execute(&self.pool).await.map_err(&failed)?;
            }
        }
        Ok(())
    }

    /// Returns whether anyone holds a lease.
    pub async fn has_leases(&self) -> Result<bool, GuardError> {
        sqlx::query_scalar("SELECT count(*) > 0 FROM lease")
            .fetch_one(&self.pool)
            .await
            .map_err(self.database("look for leases"))
    }

    /// Returns this process's identity in the guard.
    pub fn owner(&self) -> &OwnerId {
        self.presence.owner()
    }

    /// Returns whether the process that announced itself as `owner` still lives.
    pub fn is_alive(&self, owner: &OwnerId) -> bool {
        self.presence.is_alive(owner)
    }

    fn database(&self, operation: &'static str) -> impl Fn(sqlx::Error) -> GuardError + '_ {
        move |source| GuardError::Database { operation, path: self.path.clone(), source }
    }
}

/// Returns whether the process that announced itself as `owner` in the guard of `lake` lives, without opening that
/// guard: it and the lake need not exist.
pub fn is_owner_alive(lake: &LakeLocation, owner: &OwnerId) -> bool {
    presence::is_locked(&beside(lake.catalog_file(), ".owners").join(&owner.0))
}

fn beside(catalog: &Path, ending: &str) -> PathBuf {
    let mut path = catalog.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use pintail_core::id::{LakeName, RunId, SnapshotId};

    use super::{Guard, LeaseAnswer, LeaseKey, OwnerId, is_owner_alive};
    use crate::lake::{Catalog, LakeLocation};

    pub(super) fn lake(folder: &std::path::Path) -> LakeLocation {
        LakeLocation {
            name: LakeName("main".to_owned()),
            catalog: Catalog::Sqlite(folder.join("main.sqlite")),
            data: "data/".to_owned(),
        }
    }

    async fn count(guard: &Guard, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(&guard.pool).await.unwrap()
    }

    #[tokio::test]
    async fn whoever_opens_the_guard_finds_nothing_of_the_dead_and_all_of_the_living() {
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(folder.path());
        let living = Guard::open(&lake).await.unwrap();
        let run = RunId("a run".to_owned());
        for asset in ["a", "b"] {
            let key = LeaseKey { asset: asset.to_owned(), partition: None };
            let answer = living.try_lease(&key, &run, 0).await.unwrap();
            assert!(matches!(answer, LeaseAnswer::Granted(_)), "{answer:?}");
            living.pin(SnapshotId(1), "a test", 0).await.unwrap();
        }
        for table in ["lease", "snapshot_pin"] {
            // One of the two rows is that of a process which was killed.
            let sql = format!("UPDATE {table} SET owner = 'dead' WHERE rowid = 1");
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&living.pool).await.unwrap();
        }
        let next = Guard::open(&lake).await.unwrap();
        assert_eq!((count(&next, "lease").await, count(&next, "snapshot_pin").await), (1, 1));
        drop(living);
        let last = Guard::open(&lake).await.unwrap();
        assert_eq!((count(&last, "lease").await, count(&last, "snapshot_pin").await), (0, 0));
    }

    #[tokio::test]
    async fn an_owner_is_seen_alive_although_its_lake_does_not_exist_yet() {
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(folder.path());
        assert!(!is_owner_alive(&lake, &OwnerId("nobody".to_owned())));
        let guard = Guard::open(&lake).await.unwrap();
        let owner = guard.owner().clone();
        assert!(!lake.exists() && is_owner_alive(&lake, &owner));
        drop(guard);
        assert!(!is_owner_alive(&lake, &owner));
    }
}
