//! Migrating SQLite files; what Postgres does is in `tests/postgres.rs`.

use std::path::Path;

use pintail_core::id::ProjectName;
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::{MIGRATIONS, NEWEST};
use crate::{ErrorClass, OpenError, Store, StoreLocation};

async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", path.display())).await.unwrap()
}

async fn open(path: &Path) -> Result<Store, OpenError> {
    Store::open(&StoreLocation::Sqlite { path: path.to_owned() }, ProjectName("shop".into())).await
}

/// Everything that the database declares, one object a line, with white space and comments taken out.
async fn declared(connection: &mut SqliteConnection) -> Vec<String> {
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
    sqlx::raw_sql(include_str!("../../../schema/sqlite.sql")).execute(&mut full).await.unwrap();
    let migrated = declared(&mut connect(&migrated).await).await;
    assert_eq!(migrated, declared(&mut full).await);
    assert!(migrated.len() > 15, "the comparison sees the tables: {migrated:#?}");
}

#[test]
fn migrations_are_numbered_without_gaps() {
    let versions: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
    assert_eq!(versions, (1..=NEWEST).collect::<Vec<_>>());
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
    assert!(error.to_string().ends_with("is not a Pintail store; name another place in `[store] url`"), "{error}");
}

#[tokio::test]
async fn a_newer_store_is_refused_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    open(&path).await.unwrap().close().await;
    let mut connection = connect(&path).await;
    sqlx::query("INSERT INTO pintail_store (version) VALUES (99)").execute(&mut connection).await.unwrap();
    let error = open(&path).await.unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, known: NEWEST, .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::User);
}
