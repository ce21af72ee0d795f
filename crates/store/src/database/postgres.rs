//! Postgres: one small pool, the schema `pintail_store`, and an advisory lock for each project's writer.
//!
//! Invariant: the lock belongs to the transaction, so that nothing of it outlives a lost connection. Every write
//! transaction leaves a token of its own; whoever holds the lock after it and does not find the token knows that it did
//! not commit. (The server's own word on a transaction id would not do: after a crash an id that left no trace is given
//! to another one.)

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
    project: String,
    token: String,
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
    forget_old_proofs(&mut first).await.map_err(refused)?;
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
    let sql = "
        WITH proof AS (INSERT INTO write_proof (token) VALUES (gen_random_uuid()::text) RETURNING token)
        SELECT token, pg_advisory_xact_lock($1, hashtext($2)) FROM proof";
    let row = sqlx::query(sql).bind(LOCK_CLASS).bind(project).fetch_one(&mut *tx).await?;
    let settlement = Settlement { pool: pool.clone(), project: project.to_owned(), token: row.try_get("token")? };
    Ok(Tx::postgres(tx, Some(settlement)))
}

/// Begins a transaction that reads one moment.
pub(super) async fn begin_read(pool: &Pool<Postgres>) -> Result<Tx, sqlx::Error> {
    let tx = pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    Ok(Tx::postgres(tx, None))
}

/// Finds out what became of a transaction whose COMMIT failed with `error`. When the server cannot be asked for long, the
/// outcome stays unknown, and that is not an error that is tried again.
pub(super) async fn settle(settlement: Settlement, error: sqlx::Error) -> Result<(), sqlx::Error> {
    let is_committed = (|| has_committed(&settlement)).retry(schedule()).await;
    match is_committed {
        Ok(true) => Ok(()),
        Ok(false) => Err(error),
        Err(unanswered) => Err(sqlx::Error::AnyDriverError(
            format!(
                "the connection was lost at COMMIT ({error}) and the server did not say what became of it: {unanswered}"
            )
            .into(),
        )),
    }
}

/// Returns whether a transaction has left its token. Under its lock, which it holds until it is over: a COMMIT may still
/// be on its way when its connection is gone.
async fn has_committed(settlement: &Settlement) -> Result<bool, sqlx::Error> {
    let mut tx = settlement.pool.begin().await?;
    let sql = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
    sqlx::query(sql).bind(LOCK_CLASS).bind(&settlement.project).execute(&mut *tx).await?;
    let sql = "SELECT token FROM write_proof WHERE token = $1";
    let found = sqlx::query(sql).bind(&settlement.token).fetch_optional(&mut *tx).await?;
    tx.rollback().await?;
    Ok(found.is_some())
}

/// Forgets the tokens of transactions that nobody can be asking for any more.
async fn forget_old_proofs(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let sql = "DELETE FROM write_proof WHERE at < now() - INTERVAL '1 day'";
    sqlx::query(sql).execute(connection).await.map(drop)
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
