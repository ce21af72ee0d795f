//! The locks of a lane on Postgres: advisory locks in the catalog's own database, on one connection of their own.
//!
//! Everybody in the lane holds the lake's lock, shared or, to be alone, exclusively. Besides it a table has one: whoever
//! changes or deletes its rows holds it shared, whoever compacts its files exclusively, because DuckLake refuses the
//! later of the two, and does so only at COMMIT, after all the work. Two that append, or that change rows, do not wait for
//! each other here.
//!
//! Invariant: locks are taken in one order (the lake's, then tables by name), and all of them are held to the end or given
//! back at once, so nobody waits in a circle. They save work; that no two commits of one table's rows and files both
//! land is DuckLake's doing, so a lock that ends with a lost connection costs another attempt and nothing else.

use std::collections::BTreeSet;
use std::fmt;

use sqlx::postgres::PgConnection;

use super::{Purpose, Wait};
use crate::error::EngineError;
use crate::postgres::{self, PostgresLocation};

/// The lock of a lake's transactions, and the seed of the locks of its tables.
const TRANSACTIONS: i64 = 0x7069_6e74_6169_6c01;

/// Postgres's code for a lock that did not come in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Locks that are held until this is dropped, or the connection ends.
#[derive(Debug)]
pub struct Locks {
    location: PostgresLocation,
    connection: Option<PgConnection>,
}

/// A lock that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Lake,
    /// By schema and name, as SQL compares them.
    Table(String, String),
}

/// Whether others may hold it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Shared,
    Exclusive,
}

/// Takes what `purpose` needs.
pub fn lock(location: &PostgresLocation, purpose: Purpose<'_>, wait: &Wait<'_>) -> Result<Locks, EngineError> {
    let place = location.clone();
    let connection = postgres::wait(async move { postgres::take(&place).await })??;
    // From here on whatever was locked is freed, also when the next lock does not come.
    let mut locks = Locks { location: location.clone(), connection: Some(connection) };
    for (key, mode) in wanted(purpose) {
        locks.lock(&key, mode, wait)?;
    }
    Ok(locks)
}

fn wanted(purpose: Purpose<'_>) -> Vec<(Key, Mode)> {
    let key = |(schema, table): (&str, &str)| Key::Table(schema.to_lowercase(), table.to_lowercase());
    let (lake, tables) = match purpose {
        Purpose::Alone => return vec![(Key::Lake, Mode::Exclusive)],
        Purpose::Write => (Mode::Shared, Vec::new()),
        Purpose::Compact(table) => (Mode::Shared, vec![(key(table), Mode::Exclusive)]),
        Purpose::Change(tables) => {
            let ordered: BTreeSet<Key> = tables.iter().copied().map(key).collect();
            (Mode::Shared, ordered.into_iter().map(|key| (key, Mode::Shared)).collect())
        }
    };
    std::iter::once((Key::Lake, lake)).chain(tables).collect()
}

impl Locks {
    fn lock(&mut self, key: &Key, mode: Mode, wait: &Wait<'_>) -> Result<(), EngineError> {
        loop {
            let connection = self.connection.take().expect("it is put back after each use, and taken for good by drop");
            let (connection, locked) = postgres::wait(try_lock(connection, key.clone(), mode))?;
            self.connection = Some(connection);
            match locked {
                Ok(()) => return Ok(()),
                Err(error) if is_not_available(&error) => wait.go_on(&key.to_string())?,
                Err(error) => return Err(self.location.failed("take the lake's lock", &error)),
            }
        }
    }
}

/// Asks for a lock for a moment: long enough to be queued before those who come later, short enough to be stopped.
async fn try_lock(mut connection: PgConnection, key: Key, mode: Mode) -> (PgConnection, Result<(), sqlx::Error>) {
    let locked = async {
        sqlx::query("SET lock_timeout = '250ms'").execute(&mut connection).await?;
        let function = match mode {
            Mode::Shared => "pg_advisory_lock_shared",
            Mode::Exclusive => "pg_advisory_lock",
        };
        let number = match key {
            Key::Lake => "$1",
            Key::Table(..) => "hashtextextended($2, $1)",
        };
        let sql = format!("SELECT {function}({number})");
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(TRANSACTIONS);
        if let Key::Table(schema, table) = key {
            query = query.bind(format!("{schema}.{table}"));
        }
        query.execute(&mut connection).await.map(drop)
    };
    let locked = locked.await;
    (connection, locked)
}

fn is_not_available(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).as_deref() == Some(LOCK_NOT_AVAILABLE)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Lake => f.write_str("an advisory lock of the catalog's database"),
            Key::Table(schema, table) => {
                write!(f, "an advisory lock of the catalog's database, for the rows or files of {schema}.{table}")
            }
        }
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let location = self.location.clone();
        let freed = postgres::wait(async move {
            let freed = sqlx::query("SELECT pg_advisory_unlock_all()").execute(&mut connection).await;
            // A connection whose locks are in doubt is closed, which frees them.
            if freed.is_ok() {
                postgres::put_back(&location, connection);
            }
            freed
        });
        if let Ok(Err(error)) = freed {
            tracing::warn!(%error, "the connection that held the lake's locks was lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Mode, wanted};
    use crate::lane::Purpose;

    #[test]
    fn locks_are_taken_in_one_order_and_each_once() {
        let table = |name: &str| Key::Table("main".to_owned(), name.to_owned());
        let asked = [("main", "b"), ("Main", "A"), ("main", "a")];
        let taken = [(Key::Lake, Mode::Shared), (table("a"), Mode::Shared), (table("b"), Mode::Shared)];
        assert_eq!(wanted(Purpose::Change(&asked)), taken);
        assert_eq!(wanted(Purpose::Change(&[])), wanted(Purpose::Write));
        let compacting = [(Key::Lake, Mode::Shared), (table("b"), Mode::Exclusive)];
        assert_eq!(wanted(Purpose::Compact(("main", "B"))), compacting);
    }
}
