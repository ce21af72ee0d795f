//! The behavioural suite on Postgres: each case gets a database of its own on the server that `cargo xtask test` starts.

#![expect(clippy::unwrap_used, reason = "a failed step of a case is a failed test")]

mod suite;

use std::time::{Duration, Instant};

use pintail_core::id::ProjectName;
use pintail_store::{ErrorClass, OpenError, RunEnd, RunStatus, Store, StoreLocation};
use pintail_testkit::services::{Database, database, private_postgres};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, Row as _};
use suite::sample::{begin, entry, minute, new_run, run_id, slices, success, write};

/// The database of one case.
struct Fresh(Database);

impl suite::Backend for Fresh {
    async fn fresh() -> Self {
        Self(database())
    }

    async fn open(&self) -> Store {
        open(&self.0).await.unwrap()
    }
}

fn location(database: &Database) -> StoreLocation {
    let password = Some(database.password()).filter(|password| !password.is_empty()).map(Into::into);
    StoreLocation::Postgres { connection: database.connection_without_password(), password }
}

async fn open(database: &Database) -> Result<Store, OpenError> {
    Store::open(&location(database), ProjectName("shop".into())).await
}

async fn connect(database: &Database) -> PgConnection {
    let options: PgConnectOptions = database.url().parse().unwrap();
    PgConnection::connect_with(&options).await.unwrap()
}

suite::run_on!(Fresh);

/// Everything that the schema declares, one line for each column, constraint, index and view.
async fn declared(database: &Database) -> Vec<String> {
    let sql = "
        SELECT concat_ws(' ', 'column', table_name, ordinal_position, column_name, data_type, is_nullable,
            is_identity) AS line
        FROM information_schema.columns WHERE table_schema = 'pintail_store'
        UNION ALL
        SELECT concat_ws(' ', 'constraint', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
        WHERE connamespace = 'pintail_store'::regnamespace
        UNION ALL
        SELECT concat_ws(' ', 'index', indexdef) FROM pg_indexes WHERE schemaname = 'pintail_store'
        UNION ALL
        SELECT concat_ws(' ', 'view', viewname, definition) FROM pg_views WHERE schemaname = 'pintail_store'
        ORDER BY 1";
    let mut connection = connect(database).await;
    let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
    rows.iter().map(|row| row.get("line")).collect()
}

#[tokio::test]
async fn migrations_applied_twice_equal_the_full_schema() {
    let migrated = database();
    open(&migrated).await.unwrap().close().await;
    open(&migrated).await.unwrap().close().await;
    let full = database();
    let mut connection = connect(&full).await;
    sqlx::raw_sql("CREATE SCHEMA pintail_store; SET search_path = pintail_store")
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::raw_sql(include_str!("../schema/postgres.sql")).execute(&mut connection).await.unwrap();
    let declared_by_migrations = declared(&migrated).await;
    assert_eq!(declared_by_migrations, declared(&full).await);
    assert!(declared_by_migrations.len() > 100, "the comparison sees the tables: {declared_by_migrations:#?}");
}

/// But for the proofs of commits, which SQLite does not need.
#[tokio::test]
async fn both_backends_have_the_same_tables_and_columns() {
    let database = database();
    open(&database).await.unwrap();
    let sql = "
        SELECT table_name::text AS name, string_agg(column_name, ' ' ORDER BY ordinal_position) AS columns
        FROM information_schema.columns WHERE table_schema = 'pintail_store' AND table_name <> 'write_proof'
        GROUP BY table_name
        ORDER BY table_name COLLATE \"C\"";
    let rows = sqlx::query(sql).fetch_all(&mut connect(&database).await).await.unwrap();
    let of_postgres: Vec<(String, String)> = rows.iter().map(|row| (row.get("name"), row.get("columns"))).collect();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let location = StoreLocation::Sqlite { path: path.clone() };
    Store::open(&location, ProjectName("shop".into())).await.unwrap().close().await;
    let mut file = sqlx::SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
    let sql = "
        SELECT name, (SELECT group_concat(name, ' ') FROM (SELECT name FROM pragma_table_info(object.name) ORDER BY cid))
            AS columns
        FROM sqlite_master AS object
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let rows = sqlx::query(sql).fetch_all(&mut file).await.unwrap();
    let of_sqlite: Vec<(String, String)> = rows.iter().map(|row| (row.get("name"), row.get("columns"))).collect();
    assert_eq!(of_postgres, of_sqlite);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_can_create_one_store_at_once() {
    let database = database();
    let opened: Vec<_> = (0..8)
        .map(|_| {
            let location = location(&database);
            tokio::spawn(async move { Store::open(&location, ProjectName("shop".into())).await.map(drop) })
        })
        .collect();
    for task in opened {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn another_programs_schema_is_refused_and_left_as_it_was() {
    let database = database();
    let mut connection = connect(&database).await;
    let sql = "CREATE SCHEMA pintail_store; CREATE TABLE pintail_store.bookmark (url TEXT)";
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    let error = open(&database).await.unwrap_err();
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::User);
    let tables = declared(&database).await;
    assert_eq!(tables, ["column bookmark 1 url text YES NO"]);
}

#[tokio::test]
async fn a_newer_store_is_refused_with_both_versions() {
    let database = database();
    open(&database).await.unwrap().close().await;
    let sql = "INSERT INTO pintail_store.pintail_store (version) VALUES (99)";
    sqlx::query(sql).execute(&mut connect(&database).await).await.unwrap();
    let error = open(&database).await.unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error:?}");
}

#[tokio::test]
async fn a_place_that_is_not_there_is_named_without_its_password() {
    let database = database();
    let connection = database.connection_without_password().replace(&database.name, "no_such_database");
    let location = StoreLocation::Postgres { connection, password: Some("hunter2".into()) };
    let error = Store::open(&location, ProjectName("shop".into())).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::User, "{error:?}");
    assert!(!format!("{error} {error:?} {location:?}").contains("hunter2"), "{error:?}");

    let location = StoreLocation::Postgres { connection: "host=127.0.0.1 port=1 user=u".into(), password: None };
    let error = Store::open(&location, ProjectName("shop".into())).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient, "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn projects_of_one_store_do_not_wait_for_each_other() {
    let database = database();
    let shop = open(&database).await.unwrap();
    let mut holder = connect(&database).await;
    let mut tx = holder.begin().await.unwrap();
    let sql = "SELECT pg_advisory_xact_lock(1885957748, hashtext('cellar'))";
    sqlx::query(sql).execute(&mut *tx).await.unwrap();
    shop.begin_run(&new_run("r1", 0)).await.unwrap();
    let cellar = shop.for_project(ProjectName("cellar".into()));
    let waiting = tokio::spawn(async move { cellar.begin_run(&new_run("r1", 0)).await });
    // It waits for the lock, which the server can tell; then it goes on.
    let waiting_for_locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let begun = Instant::now();
    while database.sql(waiting_for_locks) != "1" {
        assert!(begun.elapsed() < Duration::from_secs(60), "the other project never waited");
    }
    tx.rollback().await.unwrap();
    waiting.await.unwrap().unwrap();
}

/// Ends every other connection to the database, as an administrator would.
fn end_connections(database: &Database) {
    database.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_server_ends_are_replaced() {
    let database = database();
    let store = open(&database).await.unwrap();
    begin(&store, &[("s1", "orders", None)]).await;
    end_connections(&database);
    write(&store, entry("a1", "s1", "orders", None), 5, 3).await;
    end_connections(&database);
    assert_eq!(slices(&store).await, "orders materialized@5 attempt=a1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_in_the_middle_of_writes_loses_and_doubles_nothing() {
    const STEPS: i64 = 40;
    let mut own = private_postgres();
    let database = own.database();
    let store = open(&database).await.unwrap();
    let steps: Vec<(String, String)> = (0..STEPS).map(|at| (format!("s{at}"), format!("t{at}"))).collect();
    let planned: Vec<(&str, &str, Option<&str>)> =
        steps.iter().map(|(step, asset)| (step.as_str(), asset.as_str(), None)).collect();
    begin(&store, &planned).await;
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for at in 0..STEPS {
                let entry = entry(&format!("a{at}"), &format!("s{at}"), &format!("t{at}"), None);
                write(&store, entry, at + 1, 3).await;
            }
        })
    };
    while store.current_slices(None).await.unwrap().len() < 5 {
        tokio::task::yield_now().await;
    }
    own.kill();
    own.resume().unwrap();
    writer.await.unwrap();
    assert_eq!(i64::try_from(store.current_slices(None).await.unwrap().len()).unwrap(), STEPS);
    assert_eq!(i64::try_from(store.undelivered(1000).await.unwrap().len()).unwrap(), STEPS);
    let end = RunEnd { status: RunStatus::Succeeded, finished: minute(9), error: None };
    store.finish_run(&run_id("r1"), &end).await.unwrap();
}

#[tokio::test]
async fn text_that_postgres_cannot_hold_is_kept_but_for_its_nul() {
    let database = database();
    let store = open(&database).await.unwrap();
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&suite::sample::new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let mut record = success(entry("a1", "s1", "orders", None), 5, 3);
    record.entry.script = "a\0b".into();
    store.record_success(&record).await.unwrap();
    let row = store.materialization_of(&suite::sample::attempt_id("a1")).await.unwrap().unwrap();
    assert_eq!(row.script.as_str(), "a\u{fffd}b");
}
