//! SQLite: one writing connection, a few reading ones, all of them waiting for locks.
//!
//! Invariant: writes of one process queue on its single writing connection and start with `BEGIN IMMEDIATE`, so that
//! between processes only the start of a transaction waits and nothing fails half way. A file of another program is
//! recognised before anything in it is changed.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{Row as _, Sqlite, SqliteConnection, Transaction};

use super::migrate::{self, Found};
use crate::error::{OpenError, is_locked, is_no_database};

/// How long a connection waits for another one's lock; far above what any transaction here takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// How long to pause when SQLite refuses at once instead of waiting, as it does while the journal mode changes.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

const READERS: u32 = 4;

#[derive(Debug)]
pub(crate) struct Pools {
    writer: sqlx::Pool<Sqlite>,
    pub(super) readers: sqlx::Pool<Sqlite>,
}

impl Pools {
    /// Closes every connection and folds the write-ahead log into the file.
    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Opens the store in the file `path`, making the file and its folders and bringing its schema up to date where needed.
pub(super) async fn open(path: &Path) -> Result<Pools, OpenError> {
    create_folder(path)?;
    create_private_file(path);
    let options = connect_options(path);
    let writer = connect_writer(path, &options).await?;
    bring_up_to_date(path, &writer).await?;
    let readers = PoolOptions::new()
        .max_connections(READERS)
        .acquire_timeout(LOCK_TIMEOUT)
        .connect_lazy_with(options.create_if_missing(false));
    Ok(Pools { writer, readers })
}

/// Begins a transaction that holds the write lock from its start.
pub(super) async fn begin_write(pools: &Pools) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    pools.writer.begin_with("BEGIN IMMEDIATE").await
}

fn create_folder(path: &Path) -> Result<(), OpenError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|source| OpenError::Folder { path: path.to_owned(), source })
}

/// Makes the file so that only its owner can read it: failing rows, statements and logs stand in it, and SQLite gives the
/// files beside it the same rights. What cannot be made here is refused by SQLite with its reason.
fn create_private_file(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

/// Returns options without a journal mode: that is set once the file is known to be ours. `NORMAL` keeps every commit
/// through a crash of the process; a power cut may take the last ones, which the lake's stamps bring back.
fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .foreign_keys(true)
        .busy_timeout(LOCK_TIMEOUT)
        .synchronous(SqliteSynchronous::Normal)
}

async fn connect_writer(path: &Path, options: &SqliteConnectOptions) -> Result<sqlx::Pool<Sqlite>, OpenError> {
    let pool = || PoolOptions::new().max_connections(1).acquire_timeout(LOCK_TIMEOUT).connect_with(options.clone());
    retry_while_locked(pool).await.map_err(|source| database_error(path, source))
}

/// Checks that the database is ours or empty, and applies the migrations that it lacks.
async fn bring_up_to_date(path: &Path, writer: &sqlx::Pool<Sqlite>) -> Result<(), OpenError> {
    let found = migrate_if_ours(writer).await.map_err(|source| database_error(path, source))?;
    found.check(&path.display().to_string())
}

/// Returns what the store now is.
async fn migrate_if_ours(writer: &sqlx::Pool<Sqlite>) -> Result<Found, sqlx::Error> {
    let found = identify(&mut *writer.acquire().await?).await?;
    if found.is_settled() {
        return Ok(found);
    }
    retry_while_locked(|| sqlx::query("PRAGMA journal_mode = WAL").execute(writer)).await?;
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
    // Another process may have migrated between the look above and the lock.
    let found = identify(&mut tx).await?;
    if found.is_settled() {
        return Ok(found);
    }
    if found == Found::Empty {
        sqlx::raw_sql(migrate::VERSION_TABLE).execute(&mut *tx).await?;
    }
    for migration in found.lacking() {
        sqlx::raw_sql(migration.sqlite).execute(&mut *tx).await?;
        sqlx::query(migrate::RECORD_VERSION).bind(migration.version).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(Found::LATEST)
}

async fn identify(connection: &mut SqliteConnection) -> Result<Found, sqlx::Error> {
    let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table'").fetch_all(&mut *connection).await?;
    if tables.is_empty() {
        return Ok(Found::Empty);
    }
    if !tables.iter().any(|row| row.get::<String, _>("name") == "pintail_store") {
        return Ok(Found::Foreign);
    }
    let row = sqlx::query(migrate::READ_VERSION).fetch_one(connection).await?;
    Ok(Found::Store { version: row.try_get("version")? })
}

/// Repeats `operation` while it says locked without having waited.
async fn retry_while_locked<T, F>(operation: impl Fn() -> F) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let begun = Instant::now();
    loop {
        match operation().await {
            Err(error) if is_locked(&error) && begun.elapsed() < LOCK_TIMEOUT => tokio::time::sleep(RETRY_PAUSE).await,
            result => return result,
        }
    }
}

/// Returns the error of opening `path`: a file that is no database at all is no store either.
fn database_error(path: &Path, source: sqlx::Error) -> OpenError {
    let place = path.display().to_string();
    match is_no_database(&source) {
        true => OpenError::NotAStore { place },
        false => OpenError::Database { place, source },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::ConnectOptions as _;

    use super::{begin_write, connect_options, is_locked, open};
    use crate::{ErrorClass, WriteError};

    #[tokio::test]
    async fn a_write_holds_the_lock_from_its_start_and_another_one_is_transient() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let pools = open(&path).await.unwrap();
        let impatient = connect_options(&path).busy_timeout(Duration::ZERO);
        let mut other = impatient.connect().await.unwrap();
        let tx = begin_write(&pools).await.unwrap();
        let source = sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap_err();
        assert!(is_locked(&source), "{source:?}");
        let error = WriteError::Database { operation: "begin run 1".into(), source };
        assert_eq!((error.class(), error.to_string().as_str()), (ErrorClass::Transient, "begin run 1 in the store"));
        tx.commit().await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    }
}
