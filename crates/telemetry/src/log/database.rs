//! The log's file: SQLite in WAL mode with an fsync for every commit.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Row as _};

use super::index::Index;
use super::writer::NewEntry;
use super::{Entry, LogError, LogPosition};

/// The number of the file's format.
pub(super) const FORMAT: &str = "1";

/// So many entries are bound to one INSERT.
const ROWS: usize = 128;

/// So many entries are removed in one transaction, so that appends need not wait long.
const FORGOTTEN: u64 = 2_000;

/// AUTOINCREMENT: a position is never given twice, also after the entries are gone.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS entry (
      position INTEGER PRIMARY KEY AUTOINCREMENT,
      records INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      at_micros INTEGER NOT NULL,
      body BLOB NOT NULL
    ) STRICT;";

/// The open file.
#[derive(Clone, Debug)]
pub(super) struct Database {
    pool: SqlitePool,
    path: PathBuf,
}

impl Database {
    /// Opens the file and returns the log's id with it.
    pub(super) async fn open(path: &Path) -> Result<(Self, String), LogError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            // What was written once need not stay big for ever.
            .pragma("journal_size_limit", "67108864")
            .busy_timeout(Duration::from_secs(10));
        let failed = |source| LogError::Database { operation: "open", path: path.to_owned(), source };
        // One that writes, and one that reads what is written.
        let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.map_err(failed)?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await.map_err(failed)?;
        let database = Self { pool, path: path.to_owned() };
        let format = database.meta("format", FORMAT).await.map_err(failed)?;
        if format != FORMAT {
            return Err(LogError::Newer { path: path.to_owned(), found: format });
        }
        let id = database.meta("id", &uuid::Uuid::now_v7().to_string()).await.map_err(failed)?;
        Ok((database, id))
    }

    /// Returns the value of `key`, which is `fresh` from now on when there was none.
    async fn meta(&self, key: &str, fresh: &str) -> Result<String, sqlx::Error> {
        let insert = sqlx::query("INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        insert.bind(key).bind(fresh).execute(&self.pool).await?;
        sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(key).fetch_one(&self.pool).await
    }

    pub(super) async fn load_index(&self) -> Result<Index, LogError> {
        let mut index = Index::default();
        let last = self.last_given().await?;
        let mut rows =
            sqlx::query("SELECT position, records, bytes, at_micros FROM entry ORDER BY position").fetch(&self.pool);
        while let Some(row) = rows.try_next().await.map_err(|source| self.failed("read", source))? {
            let [position, records, bytes] = [0, 1, 2].map(|column| row.get::<i64, _>(column).cast_unsigned());
            index.push(LogPosition(position), records, bytes, row.get(3));
        }
        index.set_head(last);
        Ok(index)
    }

    /// Returns the newest position that was given to anything.
    async fn last_given(&self) -> Result<LogPosition, LogError> {
        let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'entry'";
        let last: i64 =
            sqlx::query_scalar(sql).fetch_one(&self.pool).await.map_err(|source| self.failed("read", source))?;
        Ok(LogPosition(last.cast_unsigned()))
    }

    /// Writes `entries` in one transaction and returns the position of the first; the others follow without a gap.
    pub(super) async fn append(&self, entries: &[NewEntry], at_micros: i64) -> Result<LogPosition, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        match append_all(&mut connection, entries, at_micros).await {
            Ok(last) => Ok(LogPosition(last.cast_unsigned() + 1 - entries.len() as u64)),
            Err(error) => {
                // SQLite may have rolled back by itself, as it does on a full disk; a new connection knows nothing of it.
                // What its end has to say does not matter beside the error.
                let _ = connection.close().await;
                Err(error)
            }
        }
    }

    pub(super) async fn read(&self, after: LogPosition, upto: LogPosition) -> Result<Vec<Entry>, LogError> {
        let rows =
            sqlx::query("SELECT position, body FROM entry WHERE ? < position AND position <= ? ORDER BY position")
                .bind(after.0.cast_signed())
                .bind(upto.0.cast_signed())
                .fetch_all(&self.pool)
                .await
                .map_err(|source| self.failed("read", source))?;
        let entry = |row: &sqlx::sqlite::SqliteRow| Entry {
            position: LogPosition(row.get::<i64, _>(0).cast_unsigned()),
            body: row.get(1),
        };
        Ok(rows.iter().map(entry).collect())
    }

    /// Removes some of the entries up to `upto`; returns whether all of them are gone.
    pub(super) async fn forget_some(&self, upto: LogPosition) -> Result<bool, sqlx::Error> {
        let sql = "DELETE FROM entry WHERE position IN (SELECT position FROM entry WHERE position <= ? ORDER BY position LIMIT ?)";
        let delete = sqlx::query(sql).bind(upto.0.cast_signed()).bind(FORGOTTEN.cast_signed());
        Ok(delete.execute(&self.pool).await?.rows_affected() < FORGOTTEN)
    }

    /// Closes the file, which moves what SQLite has in its own log into it.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    fn failed(&self, operation: &'static str, source: sqlx::Error) -> LogError {
        LogError::Database { operation, path: self.path.clone(), source }
    }
}

/// Returns the position of the last entry.
async fn append_all(
    connection: &mut SqliteConnection,
    entries: &[NewEntry],
    at_micros: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut *connection).await?;
    let mut last = 0;
    for chunk in entries.chunks(ROWS) {
        let values = vec!["(?, ?, ?, ?)"; chunk.len()].join(", ");
        let sql = format!("INSERT INTO entry (records, bytes, at_micros, body) VALUES {values}");
        let mut insert = sqlx::query(AssertSqlSafe(sql));
        for entry in chunk {
            insert = insert.bind(entry.records.cast_signed()).bind(entry.bytes.cast_signed()).bind(at_micros);
            insert = insert.bind(entry.body.as_slice());
        }
        last = insert.execute(&mut *connection).await?.last_insert_rowid();
    }
    sqlx::raw_sql("COMMIT").execute(&mut *connection).await?;
    Ok(last)
}

#[cfg(test)]
impl Database {
    /// Makes the file that of another format.
    pub(super) async fn set_format(&self, format: &str) {
        sqlx::query("UPDATE meta SET value = ? WHERE key = 'format'").bind(format).execute(&self.pool).await.unwrap();
    }

    /// Lets the file have so many pages and no more, which is to SQLite what a full disk is.
    pub(super) async fn limit_pages(&self, pages: Option<u32>) {
        let sql = format!("PRAGMA max_page_count = {}", pages.unwrap_or(u32::MAX - 1));
        // The limit is of a connection, and there are two.
        let (mut first, mut second) = (self.pool.acquire().await.unwrap(), self.pool.acquire().await.unwrap());
        sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut *first).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *second).await.unwrap();
    }
}
