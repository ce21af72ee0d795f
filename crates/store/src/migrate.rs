//! Brings a store's schema up to date: numbered migrations, each applied once, all in one transaction.
//!
//! Invariant: after opening, the schema equals `schema.sql`, whoever migrated and however many opened at once. A file
//! with tables but without ours is refused untouched.

use std::path::Path;

use sqlx::Row as _;

use crate::encoding::{Backend, Connection};
use crate::error::OpenError;
use crate::open::{database_error, retry_while_locked};

/// One numbered directory under `migrations/`.
struct Migration {
    version: i64,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: include_str!("../migrations/0001_initial/sqlite.sql") },
    Migration { version: 2, sql: include_str!("../migrations/0002_replay_and_backfill/sqlite.sql") },
];

const LATEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

const VERSION_TABLE: &str = "CREATE TABLE pintail_store (version BIGINT NOT NULL PRIMARY KEY)";

/// What a database turned out to be.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Empty,
    Store { version: i64 },
    Foreign,
}

/// Checks that the database is ours or empty, and applies the migrations that it lacks.
pub(crate) async fn bring_up_to_date(path: &Path, writer: &sqlx::Pool<Backend>) -> Result<(), OpenError> {
    let version = migrate_if_ours(writer).await.map_err(|source| database_error(path, source))?;
    match version {
        None => Err(OpenError::NotAStore { path: path.to_owned() }),
        Some(found) if LATEST < found => Err(OpenError::Newer { path: path.to_owned(), found, known: LATEST }),
        Some(_) => Ok(()),
    }
}

/// Returns the version that the store now has, or `None` when the file is another program's.
async fn migrate_if_ours(writer: &sqlx::Pool<Backend>) -> Result<Option<i64>, sqlx::Error> {
    match identify(&mut *writer.acquire().await?).await? {
        Found::Foreign => return Ok(None),
        Found::Store { version } if LATEST <= version => return Ok(Some(version)),
        Found::Store { .. } | Found::Empty => {}
    }
    retry_while_locked(|| sqlx::query("PRAGMA journal_mode = WAL").execute(writer)).await?;
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
    // Another process may have migrated between the look above and the lock.
    let version = match identify(&mut tx).await? {
        Found::Foreign => return Ok(None),
        Found::Store { version } => version,
        Found::Empty => {
            sqlx::raw_sql(VERSION_TABLE).execute(&mut *tx).await?;
            0
        }
    };
    for migration in MIGRATIONS.iter().filter(|migration| version < migration.version) {
        sqlx::raw_sql(migration.sql).execute(&mut *tx).await?;
        sqlx::query("INSERT INTO pintail_store (version) VALUES ($1)")
            .bind(migration.version)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(Some(version.max(LATEST)))
}

async fn identify(connection: &mut Connection) -> Result<Found, sqlx::Error> {
    let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table'").fetch_all(&mut *connection).await?;
    if tables.is_empty() {
        return Ok(Found::Empty);
    }
    if !tables.iter().any(|row| row.get::<String, _>("name") == "pintail_store") {
        return Ok(Found::Foreign);
    }
    let row =
        sqlx::query("SELECT coalesce(max(version), 0) AS version FROM pintail_store").fetch_one(connection).await?;
    Ok(Found::Store { version: row.try_get("version")? })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pintail_core::id::ProjectName;
    use sqlx::{Connection as _, Row as _};

    use super::{Connection, LATEST, MIGRATIONS};
    use crate::{ErrorClass, OpenError, Store};

    async fn connect(path: &Path) -> Connection {
        Connection::connect(&format!("sqlite:{}?mode=rwc", path.display())).await.unwrap()
    }

    async fn open(path: &Path) -> Result<Store, OpenError> {
        Store::open(path, ProjectName("shop".into())).await
    }

    /// Everything that the database declares, one object a line, with white space and comments taken out.
    async fn declared(connection: &mut Connection) -> Vec<String> {
        let sql = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let rows = sqlx::query(sql).fetch_all(connection).await.unwrap();
        rows.iter().map(|row| row.get::<String, _>("sql").split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[tokio::test]
    async fn migrations_applied_twice_equal_the_full_schema() {
        let folder = tempfile::tempdir().unwrap();
        let migrated = folder.path().join("migrated.sqlite");
        open(&migrated).await.unwrap().close().await;
        open(&migrated).await.unwrap().close().await;
        let mut full = connect(&folder.path().join("full.sqlite")).await;
        sqlx::raw_sql(include_str!("../schema.sql")).execute(&mut full).await.unwrap();
        let migrated = declared(&mut connect(&migrated).await).await;
        assert_eq!(migrated, declared(&mut full).await);
        assert!(migrated.len() > 15, "the comparison sees the tables: {migrated:#?}");
    }

    #[test]
    fn migrations_are_numbered_without_gaps() {
        let versions: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (1..=LATEST).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn many_can_create_one_store_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/store.sqlite");
        let opened: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move { open(&path).await.map(drop) })
            })
            .collect();
        for task in opened {
            task.await.unwrap().unwrap();
        }
        let mut connection = connect(&path).await;
        let versions = sqlx::query("SELECT version FROM pintail_store").fetch_all(&mut connection).await.unwrap();
        assert_eq!(versions.len(), MIGRATIONS.len());
        let journal = sqlx::query("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
        assert_eq!(journal.get::<String, _>(0), "wal");
    }

    #[tokio::test]
    async fn another_programs_database_is_refused_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.sqlite");
        let mut connection = connect(&path).await;
        sqlx::raw_sql("CREATE TABLE bookmark (url TEXT)").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = open(&path).await.unwrap_err();
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::User);
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "to do: buy bread. ".repeat(100)).unwrap();
        let error = open(&path).await.unwrap_err();
        assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
        assert!(error.to_string().ends_with("is not a Pintail store; name another file in `[store] url`"), "{error}");
    }

    #[tokio::test]
    async fn a_newer_store_is_refused_with_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        open(&path).await.unwrap().close().await;
        let mut connection = connect(&path).await;
        sqlx::query("INSERT INTO pintail_store (version) VALUES (99)").execute(&mut connection).await.unwrap();
        let error = open(&path).await.unwrap_err();
        assert!(matches!(error, OpenError::Newer { found: 99, known: LATEST, .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::User);
    }
}
