//! The database below the store: SQLite or Postgres, which everything above this folder does not tell apart.
//!
//! Invariants:
//! - One writer at a time for each project, on either backend: SQLite by `BEGIN IMMEDIATE` on a single connection,
//!   Postgres by an advisory lock that ends with the transaction. So a write transaction sees the last one's rows, and
//!   what it read stays true until it commits.
//! - A COMMIT whose answer was lost is settled, never guessed: see [`Tx::commit`].
//! - Statements are one text for both: `$1` placeholders, text and 64-bit integers only. What cannot be is a function of
//!   [`Dialect`].

mod migrate;
mod postgres;
mod query;
mod retry;
mod row;
mod sqlite;
mod transaction;

use sqlx::Postgres;

pub(crate) use query::{Query, query};
pub(crate) use retry::retry;
pub(crate) use row::Row;
pub(crate) use transaction::Tx;

use crate::error::OpenError;
use crate::location::StoreLocation;

/// The open connections of one process.
#[derive(Debug)]
pub(crate) enum Database {
    Sqlite(sqlite::Pools),
    Postgres(sqlx::Pool<Postgres>),
}

/// What the two understand differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Database {
    /// Opens the database at `location` and brings its schema up to date.
    pub(crate) async fn open(location: &StoreLocation) -> Result<Self, OpenError> {
        match location {
            StoreLocation::Sqlite { path } => Ok(Self::Sqlite(sqlite::open(path).await?)),
            StoreLocation::Postgres { connection, password } => {
                Ok(Self::Postgres(postgres::open(connection, password.as_ref()).await?))
            }
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Database::Sqlite(_) => Dialect::Sqlite,
            Database::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Begins a transaction that is the only writing one of `project` from its start.
    pub(crate) async fn begin_write(&self, project: &str) -> Result<Tx, sqlx::Error> {
        match self {
            Database::Sqlite(pools) => sqlite::begin_write(pools).await.map(Tx::sqlite),
            Database::Postgres(pool) => postgres::begin_write(pool, project).await,
        }
    }

    /// Begins a transaction that reads one moment.
    pub(crate) async fn begin_read(&self) -> Result<Tx, sqlx::Error> {
        match self {
            Database::Sqlite(pools) => pools.readers.begin().await.map(Tx::sqlite),
            Database::Postgres(pool) => postgres::begin_read(pool).await,
        }
    }

    /// Closes every connection after the operations that hold one.
    pub(crate) async fn close(&self) {
        match self {
            Database::Sqlite(pools) => pools.close().await,
            Database::Postgres(pool) => pool.close().await,
        }
    }

    #[cfg(test)]
    pub(crate) fn sqlite_readers(&self) -> &sqlx::Pool<sqlx::Sqlite> {
        match self {
            Database::Sqlite(pools) => &pools.readers,
            Database::Postgres(_) => panic!("the test is about SQLite"),
        }
    }
}

impl Dialect {
    /// Returns a query of the texts in the JSON array that placeholder `number` holds.
    pub(crate) fn texts_of_json(self, number: usize) -> String {
        match self {
            Dialect::Sqlite => format!("SELECT value FROM json_each(${number})"),
            Dialect::Postgres => format!("SELECT jsonb_array_elements_text(${number}::jsonb)"),
        }
    }
}
