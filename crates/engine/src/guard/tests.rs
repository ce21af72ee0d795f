//! The guard's behaviour, the same on both kinds of catalog.

use pintail_core::id::{LakeName, RunId, SnapshotId};
use pintail_testkit::services::{Database as TestDatabase, database, private_postgres};
use pintail_testkit::wait_until;
use secrecy::SecretString;

use super::database::on_pool;
use super::{ConsumerProgress, Guard, LeaseAnswer, LeaseKey, OwnerId, Pin, PinId, PinKind, is_owner_alive};
use crate::lake::{Catalog, LakeLocation};
use crate::postgres::PostgresLocation;

/// A lake that does not exist yet, with what it lies in.
struct Place {
    lake: LakeLocation,
    _folder: tempfile::TempDir,
    database: Option<TestDatabase>,
}

fn on_sqlite() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let catalog = Catalog::Sqlite(folder.path().join("main.sqlite"));
    Place { lake: lake(catalog), _folder: folder, database: None }
}

fn on_postgres() -> Place {
    let database = database();
    let catalog = catalog(&database);
    Place { lake: lake(catalog), _folder: tempfile::tempdir().unwrap(), database: Some(database) }
}

fn catalog(database: &TestDatabase) -> Catalog {
    let password = SecretString::from(database.password());
    Catalog::Postgres(PostgresLocation::parse(&database.connection_without_password(), Some(password)).unwrap())
}

fn lake(catalog: Catalog) -> LakeLocation {
    LakeLocation { name: LakeName("main".to_owned()), catalog, data: "data/".to_owned() }
}

fn wait_until_dead(place: &Place, owner: &OwnerId) {
    wait_until(&format!("{owner} is seen dead"), || !is_owner_alive(&place.lake, owner).unwrap());
}

async fn count(guard: &Guard, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {}", guard.table(table));
    on_pool!(&guard.database, |pool| sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_one(pool).await.unwrap())
}

fn seen(pins: &[Pin]) -> Vec<(PinId, i64, PinKind)> {
    pins.iter().map(|pin| (pin.id, pin.snapshot.0, pin.kind)).collect()
}

/// Makes the same test of each function for both kinds of catalog.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name(super::on_sqlite()).await; })* }
        mod postgres { $(#[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name(super::on_postgres()).await; })* }
    };
}

on_both! {
    whoever_opens_the_guard_finds_nothing_of_the_dead_and_all_of_the_living
    an_owner_is_seen_alive_although_its_lake_does_not_exist_yet
    a_lease_excludes_what_overlaps_it_and_its_token_only_grows
    a_durable_pin_outlives_its_process_and_ends_when_it_says_or_is_released
    neither_way_of_letting_go_takes_a_pin_of_the_other_kind
    one_leads_each_job_until_it_gives_up
    a_set_of_holds_is_renewed_as_a_whole_and_others_are_left_alone
    a_consumer_has_one_row_that_outlives_its_process
    a_foreign_table_of_progress_is_kept_in_step
    consumers_of_other_programs_are_known_where_they_say_where_they_are
    a_consumer_that_expiry_passes_is_remembered_once
}

async fn whoever_opens_the_guard_finds_nothing_of_the_dead_and_all_of_the_living(place: Place) {
    let living = Guard::open(&place.lake).await.unwrap();
    let killed = Guard::open(&place.lake).await.unwrap();
    for (guard, asset) in [(&living, "a"), (&killed, "b")] {
        let key = LeaseKey { asset: asset.to_owned(), partition: None };
        let answer = guard.try_lease(&key, &RunId("a run".to_owned()), 0).await.unwrap();
        assert!(matches!(answer, LeaseAnswer::Granted(_)), "{answer:?}");
        guard.pin(SnapshotId(1), "a test", 0).await.unwrap();
    }
    let owner = killed.owner().clone();
    drop(killed);
    wait_until_dead(&place, &owner);
    let next = Guard::open(&place.lake).await.unwrap();
    assert_eq!((count(&next, "lease").await, count(&next, "snapshot_pin").await), (1, 1));
    let owner = living.owner().clone();
    drop(living);
    wait_until_dead(&place, &owner);
    let last = Guard::open(&place.lake).await.unwrap();
    assert_eq!((count(&last, "lease").await, count(&last, "snapshot_pin").await), (0, 0));
}

async fn an_owner_is_seen_alive_although_its_lake_does_not_exist_yet(place: Place) {
    assert!(!is_owner_alive(&place.lake, &OwnerId("nobody".to_owned())).unwrap());
    let guard = Guard::open(&place.lake).await.unwrap();
    let owner = guard.owner().clone();
    assert!(!place.lake.exists().unwrap() && is_owner_alive(&place.lake, &owner).unwrap());
    drop(guard);
    wait_until_dead(&place, &owner);
}

async fn a_lease_excludes_what_overlaps_it_and_its_token_only_grows(place: Place) {
    let (here, there) = (Guard::open(&place.lake).await.unwrap(), Guard::open(&place.lake).await.unwrap());
    let run = RunId("a run".to_owned());
    let key = |partition: Option<&str>| LeaseKey {
        asset: "a".to_owned(),
        partition: partition.map(|key| serde_json::from_value(key.into()).unwrap()),
    };
    let LeaseAnswer::Granted(first) = here.try_lease(&key(Some("2026-01-01")), &run, 7).await.unwrap() else {
        panic!("nobody has it");
    };
    let LeaseAnswer::Granted(second) = there.try_lease(&key(Some("2026-01-02")), &run, 8).await.unwrap() else {
        panic!("another slice is free");
    };
    assert!(first.token < second.token);
    let LeaseAnswer::Held(holder) = there.try_lease(&key(None), &run, 9).await.unwrap() else {
        panic!("the whole asset overlaps both");
    };
    assert_eq!((holder.process, holder.since_micros), (std::process::id(), 7));
    assert!(here.holds(&first).await.unwrap() && !there.holds(&first).await.unwrap());
    there.release(&first).await.unwrap();
    assert!(here.has_leases().await.unwrap(), "a lease of another is left alone");
    here.release(&first).await.unwrap();
    there.release(&second).await.unwrap();
    assert!(!here.has_leases().await.unwrap());
    // To look takes nothing; who has died holds nothing.
    assert_eq!(there.holder_of("a").await.unwrap(), None);
    assert!(matches!(here.try_lease(&key(None), &run, 10).await.unwrap(), LeaseAnswer::Granted(_)));
    let holder = there.holder_of("a").await.unwrap().unwrap();
    assert_eq!((holder.process, holder.since_micros), (std::process::id(), 10));
    let owner = here.owner().clone();
    drop(here);
    wait_until_dead(&place, &owner);
    assert_eq!(there.holder_of("a").await.unwrap(), None);
}

async fn a_durable_pin_outlives_its_process_and_ends_when_it_says_or_is_released(place: Place) {
    let first = Guard::open(&place.lake).await.unwrap();
    first.pin(SnapshotId(1), "a run", 5).await.unwrap();
    let ever = first.hold(SnapshotId(2), "anna", "the audit", 6, None).await.unwrap();
    let until = first.hold(SnapshotId(3), "ben", "a report", 7, Some(100)).await.unwrap();
    let owner = first.owner().clone();
    drop(first);
    wait_until_dead(&place, &owner);
    let second = Guard::open(&place.lake).await.unwrap();
    let pins = second.pins_at(99).await.unwrap();
    let (open, ending) = (PinKind::Durable { expires_micros: None }, PinKind::Durable { expires_micros: Some(100) });
    assert_eq!(seen(&pins), [(ever, 2, open), (until, 3, ending)]);
    assert_eq!((pins[0].owner.as_str(), pins[0].reason.as_str(), pins[0].since_micros), ("anna", "the audit", 6));
    assert_eq!(seen(&second.pins_at(100).await.unwrap()), [(ever, 2, open)]);
    assert!(!second.release_hold(until).await.unwrap(), "it has ended before");
    assert!(second.release_hold(ever).await.unwrap());
    assert_eq!(second.pins().await.unwrap(), []);
}

async fn neither_way_of_letting_go_takes_a_pin_of_the_other_kind(place: Place) {
    let guard = Guard::open(&place.lake).await.unwrap();
    let process = guard.pin(SnapshotId(1), "a run", 0).await.unwrap();
    let durable = guard.hold(SnapshotId(1), "anna", "the audit", 0, None).await.unwrap();
    guard.unpin(durable).await.unwrap();
    assert!(!guard.release_hold(process).await.unwrap());
    assert_eq!(guard.pins().await.unwrap().len(), 2);
    guard.unpin(process).await.unwrap();
    assert_eq!(seen(&guard.pins().await.unwrap()), [(durable, 1, PinKind::Durable { expires_micros: None })]);
}

async fn one_leads_each_job_until_it_gives_up(place: Place) {
    let (here, there) = (Guard::open(&place.lake).await.unwrap(), Guard::open(&place.lake).await.unwrap());
    let leader = here.try_leader("upkeep").await.unwrap();
    assert!(leader.is_some());
    assert!(there.try_leader("upkeep").await.unwrap().is_none());
    assert!(there.try_leader("another-job").await.unwrap().is_some());
    drop(leader);
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        wait_until("the job is free", || handle.block_on(there.try_leader("upkeep")).unwrap().is_some());
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn case_u85_after_a_restart_of_the_server_a_living_process_keeps_its_pins_and_a_dead_one_does_not() {
    let mut server = private_postgres();
    let database = server.database();
    let lake = lake(catalog(&database));
    let (living, dead) = (Guard::open(&lake).await.unwrap(), Guard::open(&lake).await.unwrap());
    living.pin(SnapshotId(1), "a run", 0).await.unwrap();
    dead.pin(SnapshotId(2), "a run", 0).await.unwrap();
    let (here, gone) = (living.owner().clone(), dead.owner().clone());
    drop(dead);
    wait_until("the dead one is seen dead", || !is_owner_alive(&lake, &gone).unwrap());
    living.forget_the_dead().await.unwrap();
    server.kill();
    server.resume().unwrap();
    // Another process may look before the living one has noticed.
    let other = Guard::open(&lake).await.unwrap();
    assert!(is_owner_alive(&lake, &here).unwrap(), "it has half a minute to come back");
    let lock = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid::bigint = \
         (hashtextextended('{here}', 0) & 4294967295)"
    );
    wait_until("the living one has announced itself again", || database.sql(&lock) == "1");
    assert_eq!(other.pins().await.unwrap().iter().map(|pin| pin.snapshot.0).collect::<Vec<_>>(), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_refuses_to_delete_a_pinned_snapshot_and_lets_the_others_go() {
    let place = on_postgres();
    let database = place.database.as_ref().unwrap();
    database.sql("CREATE TABLE ducklake_snapshot (snapshot_id BIGINT PRIMARY KEY)");
    database.sql("INSERT INTO ducklake_snapshot VALUES (1), (2), (3)");
    let guard = Guard::open(&place.lake).await.unwrap();
    let held = guard.hold(SnapshotId(2), "anna", "the audit", 0, None).await.unwrap();
    guard.hold(SnapshotId(3), "ben", "a report that is over", 0, Some(1)).await.unwrap();
    let refused = "DO $$ BEGIN DELETE FROM ducklake_snapshot WHERE snapshot_id < 3; EXCEPTION WHEN raise_exception THEN
                   CREATE TABLE refused AS SELECT 1; END $$";
    database.sql(refused);
    assert_eq!(database.sql("SELECT count(*) FROM ducklake_snapshot"), "3", "all or nothing");
    assert_eq!(database.sql("SELECT count(*) FROM refused"), "1");
    database.sql("DELETE FROM ducklake_snapshot WHERE snapshot_id <> 2");
    guard.release_hold(held).await.unwrap();
    database.sql("DELETE FROM ducklake_snapshot");
    assert_eq!(database.sql("SELECT count(*) FROM ducklake_snapshot"), "0");
}

async fn a_set_of_holds_is_renewed_as_a_whole_and_others_are_left_alone(place: Place) {
    let guard = Guard::open(&place.lake).await.unwrap();
    guard.hold(SnapshotId(1), "anna", "the audit", 0, None).await.unwrap();
    let set = |ids: &[i64]| -> std::collections::BTreeMap<SnapshotId, String> {
        ids.iter().map(|id| (SnapshotId(*id), format!("run {id}"))).collect()
    };
    guard.keep_exactly("shop", &set(&[1, 2]), 5).await.unwrap();
    let first = guard.pins().await.unwrap();
    guard.keep_exactly("shop", &set(&[2, 3]), 6).await.unwrap();
    let second = guard.pins().await.unwrap();
    let told: Vec<(&str, i64, i64)> =
        second.iter().map(|pin| (pin.owner.as_str(), pin.snapshot.0, pin.since_micros)).collect();
    assert_eq!(told, [("anna", 1, 0), ("shop", 2, 5), ("shop", 3, 6)]);
    assert_eq!(first[2].id, second[1].id, "what stays is not written again");
    guard.keep_exactly("shop", &set(&[]), 7).await.unwrap();
    assert_eq!(guard.pins().await.unwrap().len(), 1);
}

async fn a_consumer_has_one_row_that_outlives_its_process(place: Place) {
    let first = Guard::open(&place.lake).await.unwrap();
    let row = |consumer: &str, snapshot, at| ConsumerProgress::new(consumer, SnapshotId(snapshot), at);
    first.report_progress(&row("decode.00", 5, 10)).await.unwrap();
    first.report_progress(&row("audit", 9, 11)).await.unwrap();
    let required = ConsumerProgress { required: true, stale_after_micros: Some(60), ..row("decode.00", 4, 12) };
    first.report_progress(&required).await.unwrap();
    drop(first);
    let second = Guard::open(&place.lake).await.unwrap();
    let late = ConsumerProgress { snapshot: SnapshotId(5), ..required.clone() };
    assert_eq!(second.consumers().await.unwrap(), [row("audit", 9, 11), late], "a late report takes nothing back");
    second.set_progress(&required).await.unwrap();
    assert_eq!(second.consumers().await.unwrap()[1], required);
    assert!(second.forget_consumer("audit").await.unwrap() && !second.forget_consumer("audit").await.unwrap());
    assert_eq!(second.consumers().await.unwrap(), [required]);
}

async fn a_foreign_table_of_progress_is_kept_in_step(place: Place) {
    let guard = Guard::open(&place.lake).await.unwrap();
    let (table, time) = match &guard.database {
        super::database::Database::Sqlite { .. } => ("din_consumer_progress", "updated_at"),
        super::database::Database::Postgres { .. } => (
            "public.din_consumer_progress",
            "to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')",
        ),
    };
    let make = format!("CREATE TABLE {table} (consumer VARCHAR(90), snapshot_id BIGINT, updated_at TIMESTAMPTZ)");
    on_pool!(&guard.database, |pool| sqlx::query(sqlx::AssertSqlSafe(make)).execute(pool).await.map(|_| ())).unwrap();
    for (snapshot, at) in [(3, 1_000_000), (4, 2_500_000)] {
        guard.report_progress(&ConsumerProgress::new("decode", SnapshotId(snapshot), at)).await.unwrap();
    }
    let read = format!("SELECT consumer, snapshot_id, {time} FROM {table}");
    let rows: Vec<(String, i64, String)> =
        on_pool!(&guard.database, |pool| sqlx::query_as(sqlx::AssertSqlSafe(read)).fetch_all(pool).await).unwrap();
    assert_eq!(rows, [("decode".to_owned(), 4, "1970-01-01T00:00:02.500Z".to_owned())]);
    // Who is forgotten is forgotten there too, and others are left alone.
    run_on(&guard, format!("INSERT INTO {table} VALUES ('dq', 7, '1970-01-01T00:00:02.500Z')")).await;
    assert!(guard.forget_consumer("decode").await.unwrap() && !guard.forget_consumer("dq").await.unwrap());
    let left: Vec<String> = guard.foreign_consumers().await.unwrap().into_iter().map(|row| row.consumer).collect();
    assert_eq!(left, ["dq"]);
}

async fn run_on(guard: &Guard, sql: String) {
    on_pool!(&guard.database, |pool| sqlx::query(sqlx::AssertSqlSafe(sql)).execute(pool).await.map(|_| ())).unwrap();
}

async fn consumers_of_other_programs_are_known_where_they_say_where_they_are(place: Place) {
    let guard = Guard::open(&place.lake).await.unwrap();
    assert_eq!(guard.foreign_consumers().await.unwrap(), []);
    let table = match &guard.database {
        super::database::Database::Sqlite { .. } => "din_consumer_progress",
        super::database::Database::Postgres { .. } => "public.din_consumer_progress",
    };
    run_on(&guard, format!("CREATE TABLE {table} (consumer VARCHAR(90), snapshot_id BIGINT, updated_at TIMESTAMPTZ)"))
        .await;
    run_on(&guard, format!("INSERT INTO {table} VALUES ('dq', 7, '1970-01-01T00:00:02.500Z')")).await;
    // One of ours is in that table, too, and is not counted twice.
    guard.report_progress(&ConsumerProgress::new("decode", SnapshotId(4), 5)).await.unwrap();
    assert_eq!(guard.foreign_consumers().await.unwrap(), [ConsumerProgress::new("dq", SnapshotId(7), 2_500_000)]);
}

async fn a_consumer_that_expiry_passes_is_remembered_once(place: Place) {
    let guard = Guard::open(&place.lake).await.unwrap();
    let lost = ConsumerProgress::new("lost", SnapshotId(3), 10);
    assert!(guard.note_passed(&lost, 100).await.unwrap());
    assert!(!guard.note_passed(&lost, 200).await.unwrap());
    let passed =
        super::PassedConsumer { consumer: "lost".into(), snapshot_id: 3, updated_micros: 10, passed_micros: 100 };
    assert_eq!(guard.passed_consumers().await.unwrap(), [passed]);
}
