//! Postgres: one small pool, the schema `pintail_store`, and an advisory lock for each project's writer.
//!
//! Invariant: the lock belongs to the transaction, so that nothing of it outlives a lost connection. Every write
//! transaction knows its id, by which the server tells after a lost COMMIT whether it happened.

mod connection;

use std::time::Duration;

use backon::Retryable as _;
use secrecy::SecretString;
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection, Pool, Postgres, Row as _};

use super::Tx;
use super::migrate::{self, Found};
use super::retry::schedule;
use crate::error::{OpenError, SERVER_PLACE, is_starting};

/// How long to wait for another writer of the project, or for a connection. Lower than on a file of one machine: here a
/// lock is held by a network away, and what waits too long can be tried again.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections of one process: a writer and a few readers.
const CONNECTIONS: u32 = 4;

/// The first half of the advisory locks' keys, so that they do not meet those of another program.
const LOCK_CLASS: i32 = 0x7069_6e74;

/// Where to ask what became of a transaction.
#[derive(Debug)]
pub(super) struct Settlement {
    pool: Pool<Postgres>,
    transaction: i64,
}

/// Opens the store in the database that `connection` names, making its schema and bringing it up to date where needed.
pub(super) async fn open(connection: &str, password: Option<&SecretString>) -> Result<Pool<Postgres>, OpenError> {
    let place = format!("{SERVER_PLACE} ({connection})");
    let refused = |source| OpenError::Database { place: place.clone(), source };
    let options = connection::parse(connection, password)
        .map_err(|reason| OpenError::Connection { place: place.clone(), reason })?
        .application_name("pintail")
        .options([
            ("search_path", "pintail_store".to_owned()),
            ("lock_timeout", LOCK_TIMEOUT.as_millis().to_string()),
            ("default_transaction_isolation", "read committed".to_owned()),
        ]);
    // One that is refused is told at once; one that is starting is waited for.
    let connect = || async { options.connect().await };
    let mut first = connect.retry(schedule()).when(is_starting).await.map_err(refused)?;
    let found = migrate_if_ours(&mut first).await.map_err(refused)?;
    found.check(&place)?;
    Ok(pool(options))
}

fn pool(options: PgConnectOptions) -> Pool<Postgres> {
    PoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(LOCK_TIMEOUT)
        .idle_timeout(Duration::from_secs(60))
        .connect_lazy_with(options)
}

/// Begins a transaction that holds the project's lock. Read committed: each of its statements sees what the last holder
/// committed, which one snapshot for all, taken before the wait, would not.
pub(super) async fn begin_write(pool: &Pool<Postgres>, project: &str) -> Result<Tx, sqlx::Error> {
    let mut tx = pool.begin().await?;
    let sql = "SELECT pg_advisory_xact_lock($1, hashtext($2)), txid_current() AS id";
    let row = sqlx::query(sql).bind(LOCK_CLASS).bind(project).fetch_one(&mut *tx).await?;
    let settlement = Settlement { pool: pool.clone(), transaction: row.try_get("id")? };
    Ok(Tx::postgres(tx, Some(settlement)))
}

/// Begins a transaction that reads one moment.
pub(super) async fn begin_read(pool: &Pool<Postgres>) -> Result<Tx, sqlx::Error> {
    let tx = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    Ok(Tx::postgres(tx, None))
}

/// Finds out what became of a transaction whose COMMIT failed with `error`. When the server cannot be asked for long, the
/// error of asking is returned: the outcome is unknown then, and that is not an error that is tried again.
pub(super) async fn settle(settlement: Settlement, error: sqlx::Error) -> Result<(), sqlx::Error> {
    let ask = || async {
        let sql = "SELECT coalesce(txid_status($1), 'unknown') AS status";
        let row = sqlx::query(sql).bind(settlement.transaction).fetch_one(&settlement.pool).await;
        match row.and_then(|row| row.try_get::<String, _>("status")) {
            Ok(status) if status == "in progress" => Err(Undecided::InProgress),
            Ok(status) => Ok(status),
            Err(error) => Err(Undecided::Unreachable(error)),
        }
    };
    match ask.retry(schedule()).await {
        Ok(status) if status == "committed" => Ok(()),
        Ok(status) if status == "aborted" => Err(error),
        _ => Err(sqlx::Error::AnyDriverError(
            format!("the connection was lost at COMMIT and the server could not be asked what became of it: {error}")
                .into(),
        )),
    }
}

/// Why it is not known yet what became of a transaction.
#[derive(Debug)]
enum Undecided {
    InProgress,
    Unreachable(#[expect(dead_code, reason = "for the debugger: every reason is tried again")] sqlx::Error),
}

/// Returns what the store now is.
async fn migrate_if_ours(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let found = identify(connection).await?;
    if found.is_settled() {
        return Ok(found);
    }
    let mut tx = sqlx::Connection::begin(connection).await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1, 0)").bind(LOCK_CLASS).execute(&mut *tx).await?;
    // Another process may have migrated between the look above and the lock.
    let found = identify(&mut tx).await?;
    if found.is_settled() {
        return Ok(found);
    }
    if found == Found::Empty {
        sqlx::raw_sql("CREATE SCHEMA IF NOT EXISTS pintail_store").execute(&mut *tx).await?;
        sqlx::raw_sql(migrate::VERSION_TABLE).execute(&mut *tx).await?;
    }
    for migration in found.lacking() {
        sqlx::raw_sql(migration.postgres).execute(&mut *tx).await?;
        sqlx::query(migrate::RECORD_VERSION).bind(migration.version).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(Found::LATEST)
}

async fn identify(connection: &mut PgConnection) -> Result<Found, sqlx::Error> {
    let sql = "SELECT relname::text AS name FROM pg_class WHERE relnamespace = to_regnamespace('pintail_store')";
    let tables = sqlx::query(sql).fetch_all(&mut *connection).await?;
    if tables.is_empty() {
        return Ok(Found::Empty);
    }
    if !tables.iter().any(|row| row.get::<String, _>("name") == "pintail_store") {
        return Ok(Found::Foreign);
    }
    let row = sqlx::query(migrate::READ_VERSION).fetch_one(connection).await?;
    Ok(Found::Store { version: row.try_get("version")? })
}
