//! The guard of a lake: leases, pins and the progress of consumers in `<catalog>.guard.sqlite`, and who of their owners is
//! alive.
//!
//! It lies beside the lake, so that two projects that share a lake share its guard. Opened by sqlx only, never by DuckDB.
//! A lease keeps two runs from staging the same slice; it does not make a commit safe: the check inside the transaction
//! does. An owner that died (its presence lock is free) loses its leases and pins at once, so nothing waits for a timeout
//! after a kill.

mod database;
mod foreign;
mod kept;
mod leader;
mod lease;
mod pin;
mod presence;
mod progress;
mod session;
mod standing;

use std::path::{Path, PathBuf};

use backon::Retryable as _;

pub use foreign::PassedConsumer;
pub use leader::Leader;
pub use lease::{HeldLease, Lease, LeaseAnswer, LeaseHolder, LeaseKey};
pub use pin::{Pin, PinId, PinKind};
pub use presence::{OwnerId, Presence};
pub use progress::ConsumerProgress;
pub use standing::StandingGuard;

use crate::classify::ErrorClass;
use crate::error::EngineError;
use crate::lake::{Catalog, LakeLocation};
use crate::postgres::{self, PostgresLocation};

use database::{Database, on_pool};
use session::Session;

/// A failed guard operation.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard's database failed.
    #[error("could not {operation} in the guard {place}")]
    Database {
        /// What was being done.
        operation: &'static str,
        /// The guard's file or schema.
        place: String,
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
    /// The server of a guard on Postgres was not reached, or refused.
    #[error(transparent)]
    Server(#[from] Box<EngineError>),
}

impl GuardError {
    /// Returns how the caller should react.
    pub fn class(&self) -> ErrorClass {
        match self {
            GuardError::Database { source, .. } if is_busy(source) => ErrorClass::Transient,
            GuardError::Database { source, .. } => match postgres::class_of(source) {
                ErrorClass::Transient => ErrorClass::Transient,
                _ => ErrorClass::Bug,
            },
            GuardError::Presence { .. } => ErrorClass::User,
            GuardError::Server(error) => error.class(),
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
    database: Database,
    here: Here,
}

/// How this process shows that it lives.
#[derive(Debug)]
enum Here {
    File(Presence),
    Session(Session),
}

impl Guard {
    /// Opens the guard of `lake`, making it when it is not there, and announces this process.
    pub async fn open(lake: &LakeLocation) -> Result<Self, GuardError> {
        let guard = match &lake.catalog {
            Catalog::Sqlite(catalog) => {
                let here = Here::File(Presence::announce(&beside(catalog, ".owners"))?);
                Self { database: Database::open_sqlite(&beside(catalog, ".guard.sqlite")).await?, here }
            }
            Catalog::Postgres(location) => {
                let database = Database::open_postgres(location).await?;
                Self { database, here: Here::Session(Session::announce(location).await?) }
            }
        };
        guard.forget_the_dead().await?;
        Ok(guard)
    }

    /// Removes the leases and pins of owners that have died, so that what is listed is what is held. Durable pins have no
    /// owner that could die.
    pub async fn forget_the_dead(&self) -> Result<(), GuardError> {
        let failed = self.database("forget dead owners");
        let sql = format!(
            "SELECT owner, {} FROM (SELECT owner FROM {lease} UNION SELECT owner FROM {pin} WHERE durable = 0) AS owners",
            self.database.is_alive(),
            lease = self.table("lease"),
            pin = self.table("snapshot_pin")
        );
        let list = || async {
            on_pool!(&self.database, |pool| sqlx::query_as(sqlx::AssertSqlSafe(sql.clone())).fetch_all(pool).await)
        };
        let owners: Vec<(String, Option<bool>)> = self.patiently(list).await.map_err(&failed)?;
        for (owner, is_alive) in owners {
            if self.lives(&owner, is_alive) {
                continue;
            }
            let leases = format!("DELETE FROM {} WHERE owner = $1", self.table("lease"));
            let pins = format!("DELETE FROM {} WHERE owner = $1 AND durable = 0", self.table("snapshot_pin"));
            for sql in [leases, pins] {
                self.execute_for(sql, &owner).await.map_err(&failed)?;
            }
            if let Database::Postgres { .. } = self.database {
                let sql = "DELETE FROM pintail.owner WHERE name = $1".to_owned();
                self.execute_for(sql, &owner).await.map_err(&failed)?;
            }
        }
        Ok(())
    }

    async fn execute_for(&self, sql: String, owner: &str) -> Result<(), sqlx::Error> {
        let delete = || async {
            on_pool!(&self.database, |pool| {
                sqlx::query(sqlx::AssertSqlSafe(sql.clone())).bind(owner).execute(pool).await.map(|_| ())
            })
        };
        self.patiently(delete).await
    }

    /// Returns whether anyone holds a lease.
    pub async fn has_leases(&self) -> Result<bool, GuardError> {
        let sql = format!("SELECT count(*) > 0 FROM {}", self.table("lease"));
        on_pool!(&self.database, |pool| sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(pool).await)
            .map_err(self.database("look for leases"))
    }

    /// Returns this process's identity in the guard.
    pub fn owner(&self) -> &OwnerId {
        match &self.here {
            Here::File(presence) => presence.owner(),
            Here::Session(session) => session.owner(),
        }
    }

    /// Returns whether `owner` lives; `is_alive` is what the database says, which knows on Postgres only.
    fn lives(&self, owner: &str, is_alive: Option<bool>) -> bool {
        match (&self.here, is_alive) {
            (_, Some(is_alive)) => is_alive,
            (Here::File(presence), None) => presence.is_alive(&OwnerId(owner.to_owned())),
            // To wait for a process in doubt is safe, to rob it is not.
            (Here::Session(_), None) => true,
        }
    }

    /// Does `work` again while the guard's server is away for a moment, as it is when it restarts.
    async fn patiently<T, F>(&self, work: impl FnMut() -> F) -> Result<T, sqlx::Error>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        let is_away = |error: &sqlx::Error| {
            matches!(self.database, Database::Postgres { .. }) && postgres::class_of(error) == ErrorClass::Transient
        };
        work.retry(postgres::patience()).sleep(tokio::time::sleep).when(is_away).await
    }

    /// Returns the name of a table of the guard.
    fn table(&self, name: &str) -> String {
        match &self.database {
            Database::Sqlite { .. } => name.to_owned(),
            Database::Postgres { .. } => format!("pintail.{name}"),
        }
    }

    fn database(&self, operation: &'static str) -> impl Fn(sqlx::Error) -> GuardError + '_ {
        move |source| GuardError::Database { operation, place: self.database.place(), source }
    }
}

/// Lets the catalog of a lake that was just made refuse to delete pinned snapshots, where its database can.
pub(crate) fn protect_snapshots(location: &PostgresLocation) -> Result<(), EngineError> {
    let place = location.clone();
    postgres::wait(async move {
        let mut connection = postgres::take(&place).await?;
        let protected = database::protect_snapshots(&mut connection).await;
        protected.map_err(|error| place.failed("protect the pinned snapshots", &error))?;
        postgres::put_back(&place, connection);
        Ok(())
    })?
}

/// Returns whether the process that announced itself as `owner` in the guard of `lake` lives, without opening that
/// guard: it and the lake need not exist.
pub fn is_owner_alive(lake: &LakeLocation, owner: &OwnerId) -> Result<bool, EngineError> {
    match &lake.catalog {
        Catalog::Sqlite(catalog) => Ok(presence::is_locked(&beside(catalog, ".owners").join(&owner.0))),
        Catalog::Postgres(location) => {
            let (place, owner) = (location.clone(), owner.0.clone());
            postgres::wait(async move {
                let mut connection = postgres::take(&place).await?;
                let failed = |error: sqlx::Error| place.failed("look for a process", &error);
                let has_guard: bool = sqlx::query_scalar("SELECT to_regproc('pintail.is_alive') IS NOT NULL")
                    .fetch_one(&mut connection)
                    .await
                    .map_err(failed)?;
                let is_alive = has_guard
                    && sqlx::query_scalar("SELECT pintail.is_alive($1)")
                        .bind(owner)
                        .fetch_one(&mut connection)
                        .await
                        .map_err(failed)?;
                postgres::put_back(&place, connection);
                Ok(is_alive)
            })?
        }
    }
}

fn beside(catalog: &Path, ending: &str) -> PathBuf {
    let mut path = catalog.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests;
