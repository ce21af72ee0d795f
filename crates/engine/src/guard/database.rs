//! Where a guard's tables are: a SQLite file beside a SQLite catalog, or the schema `pintail` of a Postgres catalog's
//! database. The SQL is the same for both; what differs is here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, SqlitePool};

use super::{GuardError, is_busy};
use crate::postgres::PostgresLocation;

/// The tables of one guard.
#[derive(Debug)]
pub(super) enum Database {
    Sqlite { pool: SqlitePool, options: Box<SqliteConnectOptions>, path: PathBuf },
    Postgres { pool: PgPool, location: PostgresLocation },
}

/// Runs the same text on either kind of pool: the types of sqlx differ, the words do not.
macro_rules! on_pool {
    ($database:expr, |$pool:ident| $work:expr) => {
        match $database {
            crate::guard::database::Database::Sqlite { pool: $pool, .. } => $work,
            crate::guard::database::Database::Postgres { pool: $pool, .. } => $work,
        }
    };
}
pub(super) use on_pool;

const SQLITE: &str = "
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
    CREATE TABLE IF NOT EXISTS consumer_progress (
        consumer TEXT PRIMARY KEY,
        -- Consumed up to and including this one.
        snapshot_id INTEGER NOT NULL,
        updated_micros INTEGER NOT NULL,
        required INTEGER NOT NULL,
        stale_after_micros INTEGER
    ) STRICT;
    CREATE TABLE IF NOT EXISTS consumer_passed (
        consumer TEXT NOT NULL,
        snapshot_id INTEGER NOT NULL,
        updated_micros INTEGER NOT NULL,
        passed_micros INTEGER NOT NULL,
        PRIMARY KEY (consumer, snapshot_id)
    ) STRICT;
";

const POSTGRES: &str = include_str!("postgres.sql");

/// The advisory lock under which the tables are made.
const MAKING: i64 = 0x7069_6e74_6169_6c02;

impl Database {
    /// Opens the file at `path`, making it when it is not there.
    pub(super) async fn open_sqlite(path: &Path) -> Result<Self, GuardError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What processes hold needs to outlive a process, not a power cut: after one, no owner is alive and its
            // rows are void. A durable pin is written more carefully.
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(Duration::from_secs(10));
        let open = || async {
            let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options.clone()).await?;
            sqlx::raw_sql(SQLITE).execute(&pool).await?;
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
            .map_err(|source| GuardError::Database {
                operation: "open the tables",
                place: path.display().to_string(),
                source,
            })?;
        Ok(Self::Sqlite { pool, options: Box::new(options.clone()), path: path.to_owned() })
    }

    /// Opens the schema `pintail` of the database at `location`, making it when it is not there.
    pub(super) async fn open_postgres(location: &PostgresLocation) -> Result<Self, GuardError> {
        let mut connection = location.connect().await.map_err(Box::new)?;
        make_schema(&mut connection).await.map_err(|error| Box::new(location.failed("make the guard", &error)))?;
        let closed = connection.close().await;
        closed.map_err(|error| Box::new(location.failed("close a connection", &error)))?;
        let pool = PgPoolOptions::new()
            .max_connections(2)
            // A server that restarts is back by then.
            .acquire_timeout(Duration::from_secs(30))
            .connect_lazy_with(location.options().map_err(Box::new)?);
        Ok(Self::Postgres { pool, location: location.clone() })
    }

    /// Returns the place as a person names it.
    pub(super) fn place(&self) -> String {
        match self {
            Database::Sqlite { path, .. } => path.display().to_string(),
            Database::Postgres { location, .. } => format!("schema `pintail` of {location}"),
        }
    }

    /// Returns the query that says whether other programs' table of progress is there, and its name.
    pub(super) fn din_progress(&self) -> (&'static str, &'static str) {
        match self {
            Database::Sqlite { .. } => (
                "SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = 'din_consumer_progress'",
                "din_consumer_progress",
            ),
            Database::Postgres { .. } => {
                ("SELECT to_regclass('public.din_consumer_progress') IS NOT NULL", "public.din_consumer_progress")
            }
        }
    }

    /// Returns the SQL that says whether the process `owner` lives: NULL where the presence files say it.
    pub(super) fn is_alive(&self) -> &'static str {
        match self {
            Database::Sqlite { .. } => "NULL",
            Database::Postgres { .. } => "pintail.is_alive(owner)",
        }
    }
}

/// Makes what is missing of the schema, by one process at a time; who finds all of it needs no right to make anything.
async fn make_schema(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if !is_complete(connection).await? {
        let mut tx = connection.begin().await?;
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MAKING).execute(&mut *tx).await?;
        sqlx::raw_sql(POSTGRES).execute(&mut *tx).await?;
        tx.commit().await?;
    }
    protect_snapshots(connection).await
}

async fn is_complete(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    const IS_COMPLETE: &str = "SELECT to_regproc('pintail.refuse_pinned') IS NOT NULL
                                     AND to_regclass('pintail.consumer_passed') IS NOT NULL";
    sqlx::query_scalar(IS_COMPLETE).fetch_one(connection).await
}

/// Lets the database itself refuse to delete a pinned snapshot, whoever asks: the last line of defence against tools that
/// do not know of pins. Without the lake there is nothing to protect; its maker does it.
pub(super) async fn protect_snapshots(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    const IS_BARE: &str = "
        SELECT to_regclass('public.ducklake_snapshot') IS NOT NULL
           AND to_regproc('pintail.refuse_pinned') IS NOT NULL
           AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass('public.ducklake_snapshot')
                                                    AND tgname = 'pintail_pins')";
    let is_bare: bool = sqlx::query_scalar(IS_BARE).fetch_one(&mut *connection).await?;
    if !is_bare {
        return Ok(());
    }
    let made = sqlx::raw_sql(
        "CREATE OR REPLACE TRIGGER pintail_pins BEFORE DELETE ON public.ducklake_snapshot
         FOR EACH ROW EXECUTE FUNCTION pintail.refuse_pinned()",
    );
    match made.execute(connection).await {
        // Only the table's owner may; the pins hold for everything that asks for them.
        Err(error) if is_denied(&error) => {
            tracing::warn!(%error, "the catalog's owner has to make the trigger that refuses to expire pinned snapshots");
            Ok(())
        }
        // Somebody else makes it just now.
        Err(error) if error.to_string().contains("tuple concurrently updated") => Ok(()),
        made => made.map(|_| ()),
    }
}

fn is_denied(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).as_deref() == Some("42501")
}
