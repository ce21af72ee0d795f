//! Leaders: at most one process at a time does a job of a lake that nobody else may do meanwhile, such as its upkeep.
//!
//! Leadership is a lock that the kernel frees when its holder dies, so there is no time limit to wait for.

use std::fs::{File, OpenOptions, TryLockError};

use sqlx::postgres::PgConnection;

use super::database::Database;
use super::{Guard, GuardError, Here};
use crate::postgres::PostgresLocation;

/// The right to do one job alone; given back when it is dropped.
#[derive(Debug)]
pub struct Leader {
    _lock: Lock,
}

/// What ends with its holder.
#[derive(Debug)]
#[expect(dead_code, reason = "a lock is held, not read")]
enum Lock {
    File(File),
    Session(PgConnection),
}

impl Guard {
    /// Asks to lead the job `name`; `None` when another process leads it. `name` is of letters, digits and dashes.
    pub async fn try_leader(&self, name: &str) -> Result<Option<Leader>, GuardError> {
        debug_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "`{name}` is part of a file's name");
        let lock = match (&self.here, &self.database) {
            (_, Database::Postgres { location, .. }) => lock_session(location, name).await?.map(Lock::Session),
            (Here::File(presence), _) => lock_file(&presence.folder().join(format!("leader.{name}")))?.map(Lock::File),
            (Here::Session(_), Database::Sqlite { .. }) => unreachable!("a guard in a file has presence files"),
        };
        Ok(lock.map(|lock| Leader { _lock: lock }))
    }
}

fn lock_file(path: &std::path::Path) -> Result<Option<File>, GuardError> {
    let failed = |operation| {
        let path = path.to_owned();
        move |source| GuardError::Presence { operation, path, source }
    };
    // The file stays: one that is removed while somebody else opens it would let two lead.
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = opened.map_err(failed("open the leader's lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed("take the leader's lock")(source)),
    }
}

/// Takes the lock of `name` on a connection of its own; the server frees it when the connection ends.
async fn lock_session(location: &PostgresLocation, name: &str) -> Result<Option<PgConnection>, GuardError> {
    let mut connection = location.connect().await.map_err(Box::new)?;
    let is_ours: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended($1, 0))")
        .bind(format!("leader {name}"))
        .fetch_one(&mut connection)
        .await
        .map_err(|error| Box::new(location.failed("ask to lead", &error)))?;
    Ok(is_ours.then_some(connection))
}
