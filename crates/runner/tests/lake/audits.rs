//! What an audit finds, and what the health of a lake says.

use std::path::PathBuf;

use pintail_core::id::{LakeName, RunId, SnapshotId};
use pintail_engine::fault::Faults;
use pintail_engine::guard::{ConsumerProgress, Guard, LeaseAnswer, LeaseKey};
use pintail_runner::Pintail;
use pintail_runner::pintail::{Check, PlanRequest, Question};
use pintail_streams::commit::begin_at;
use pintail_streams::{PositionTable, Writer, dead_letter};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::harness::{Folder, facts, foreign, options, query, run};

const TWO: &str = "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT i FROM range(10) t(i)
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT max(i) AS most FROM a
";

fn made() -> (Folder, Pintail) {
    let folder = Folder::new(TWO);
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    (folder, pintail)
}

/// One line for each finding: its check, its place, and its first words.
fn findings(pintail: &Pintail) -> Vec<String> {
    let audit = pintail.audit(None, &|_, _| Vec::new()).unwrap().remove(0);
    assert_eq!(audit.checks, Check::ALL.map(Check::word));
    let words = |message: &str| message.split([':', ';']).next().unwrap_or_default().to_owned();
    audit.findings.iter().map(|found| format!("{} {}: {}", found.check, found.place, words(&found.message))).collect()
}

fn data_files(folder: &Folder, table: &str) -> Vec<PathBuf> {
    let table = folder.path().join(".pintail/data/main/main").join(table);
    std::fs::read_dir(table).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_lake_in_use_is_clean_with_old_versions_deleted_rows_and_renamed_tables() {
    let (folder, pintail) = made();
    foreign(&pintail, "CREATE SCHEMA \"odd [name]\"");
    foreign(&pintail, "CREATE TABLE \"odd [name]\".\"t*\" AS SELECT 'x y/z' AS part, i FROM range(5) t(i)");
    foreign(&pintail, "ALTER TABLE \"odd [name]\".\"t*\" SET PARTITIONED BY (part)");
    foreign(&pintail, "INSERT INTO \"odd [name]\".\"t*\" SELECT 'p=%[1]*?' AS part, 1");
    foreign(&pintail, "ALTER TABLE \"odd [name]\".\"t*\" RENAME TO u");
    foreign(&pintail, "DELETE FROM \"odd [name]\".u WHERE i < 2");
    // Deletions of a file that has gone since: their own file does not end with it.
    foreign(&pintail, "DELETE FROM \"odd [name]\".u WHERE i >= 2");
    foreign(&pintail, "INSERT INTO \"odd [name]\".u SELECT 'x', 9");
    run(&folder.open(), &crate::harness::forced()).assert_good();
    assert_eq!(findings(&folder.open()), Vec::<String>::new());
}

#[test]
fn a_file_that_is_gone_is_found_and_the_table_that_cannot_be_read_any_more() {
    let (folder, pintail) = made();
    std::fs::remove_file(data_files(&folder, "a").remove(0)).unwrap();
    let found = findings(&pintail);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("files main.a: ") && found[0].ends_with("is not there"), "{found:?}");
    assert_eq!(found[1], "rows main.a: it cannot be read");
}

#[test]
fn a_partitioned_table_without_a_file_keeps_no_other_question_from_its_answer() {
    let (_folder, pintail) = made();
    foreign(&pintail, "CREATE TABLE parted (part VARCHAR, i INTEGER)");
    foreign(&pintail, "ALTER TABLE parted SET PARTITIONED BY (part)");
    foreign(&pintail, "INSERT INTO parted VALUES ('x', 1)");
    let file = query(&pintail, "SELECT data_file FROM ducklake_list_files('lake', 'parted')", None).remove(0);
    std::fs::remove_file(file).unwrap();
    let found = findings(&pintail);
    assert!(found[0].starts_with("files main.parted: "), "{found:?}");
    assert_eq!(found[1..], ["rows main.parted: it cannot be read", "partitions main.parted: it cannot be read"]);
}

#[test]
fn on_local_files_a_lake_whose_data_were_moved_is_clean_and_looked_after() {
    let config = |data: &str| format!("//- pintail.toml\n[lake.main]\ndata = \"{data}\"\n");
    let folder = Folder::new(&format!("{}{TWO}", config("[first]")));
    run(&folder.open(), &PlanRequest::default()).assert_good();
    std::fs::rename(folder.path().join("[first]"), folder.path().join("sec*nd")).unwrap();
    folder.write(&config("sec*nd"));
    let pintail = folder.open();
    run(&pintail, &crate::harness::forced()).assert_good();
    assert_eq!(findings(&pintail), Vec::<String>::new());
    assert!(!pintail.maintain(&crate::harness::upkeep()).unwrap().remove(0).is_led_elsewhere);
    assert_eq!(findings(&pintail), Vec::<String>::new());
}

#[test]
fn a_question_that_has_no_answer_is_a_finding_and_the_others_are_asked() {
    let (_folder, pintail) = made();
    let ask = |query: &str| Question {
        check: Check::Decoded,
        place: "a".to_owned(),
        counted: "rows too many".to_owned(),
        query: query.to_owned(),
        tables: vec![("main".to_owned(), "a".to_owned())],
    };
    let questions = |_: &LakeName, alias: &str| {
        let broken = format!("SELECT count(*) FROM {alias}.main.a WHERE error('no') IS NULL");
        let right = format!("SELECT count(*) FROM {alias}.main.a");
        let absent = Question { tables: vec![("main".to_owned(), "none".to_owned())], ..ask("nonsense") };
        vec![ask(&broken), ask(&right), ask("SELECT 0"), absent]
    };
    let found = pintail.audit(None, &questions).unwrap().remove(0).findings;
    let told: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("whether there are rows too many cannot be told: "), "{told:?}");
    assert_eq!(told[1], "10 rows too many");
}

#[test]
fn a_store_that_says_something_else_than_the_stamps_is_found() {
    let (folder, pintail) = made();
    drop(pintail);
    let store = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join(".pintail/store.sqlite"));
    folder.open().block_on(async {
        let mut connection = store.connect().await.unwrap();
        let update = "UPDATE materialization SET inserted = 99 WHERE asset LIKE '%/b'";
        sqlx::query(update).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
    let found = findings(&folder.open());
    assert_eq!(
        found,
        ["stamps ducklake://main/b: only the store says", "stamps ducklake://main/b: only the stamps say"]
    );
    let pintail = folder.open();
    pintail.rebuild_state().unwrap();
    assert_eq!(findings(&pintail), Vec::<String>::new());
}

#[test]
fn consumers_and_pins_outside_the_snapshots_are_found() {
    let (_folder, pintail) = made();
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    let consumer = ConsumerProgress::new("lost", SnapshotId(1_000), chrono::Utc::now().timestamp_micros());
    pintail.block_on(guard.report_progress(&consumer)).unwrap();
    pintail.block_on(guard.hold(SnapshotId(2_000), "anna", "the audit", 0, None)).unwrap();
    let found = findings(&pintail);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("pins pin ") && found[0].contains("snapshot 2000, which anna holds"), "{found:?}");
    assert!(found[1].starts_with("consumers lost: it has read up to snapshot 1000"), "{found:?}");
    assert!(found[2].starts_with("consumers lost: the guard knows that it has read up to snapshot 1000"), "{found:?}");
}

#[test]
fn health_counts_files_and_says_what_deserves_attention() {
    let (_folder, pintail) = made();
    let health = pintail.lake_health(None).unwrap().remove(0);
    assert_eq!(health.attention, Vec::<String>::new());
    let tables: Vec<(&str, u64, u64)> =
        health.tables.iter().map(|table| (table.table.as_str(), table.files, table.records)).collect();
    assert!(tables.contains(&("a", 1, 10)) && tables.contains(&("b", 1, 1)), "{tables:?}");

    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    let now = chrono::Utc::now().timestamp_micros();
    let silent = ConsumerProgress::new("decode", SnapshotId(1), now - 3 * 3_600_000_000);
    pintail.block_on(guard.report_progress(&silent)).unwrap();
    let lost = ConsumerProgress::new("lost", SnapshotId(0), now);
    pintail.block_on(guard.report_progress(&lost)).unwrap();
    pintail.block_on(guard.note_passed(&lost, now)).unwrap();
    let health = pintail.lake_health(None).unwrap().remove(0);
    assert_eq!(health.attention.len(), 2, "{:?}", health.attention);
    assert!(health.attention[0].starts_with("expiry has passed consumer lost, which had read up to snapshot 0"));
    assert!(health.attention[1].starts_with("consumer decode has been silent for 180 min"), "{:?}", health.attention);
    assert!(health.consumers[0].1.is_some(), "it has not read everything");
    // Once it has gone on behind what it lost, that is over.
    pintail.block_on(guard.report_progress(&ConsumerProgress { snapshot: SnapshotId(1), ..lost })).unwrap();
    let health = pintail.lake_health(None).unwrap().remove(0);
    assert_eq!((health.passed, health.attention.len()), (Vec::new(), 1));
}

/// A lake with a consumer of `d` that has read everything, and with dead letters of its.
fn streamed() -> (Folder, Pintail, Guard) {
    let (folder, pintail) = made();
    foreign(&pintail, "CREATE TABLE d AS SELECT 1 AS i");
    let lake = pintail.lakes().values().next().unwrap();
    let writer = Writer::open(lake, options(&pintail), Faults::default()).unwrap();
    dead_letter::prepare(&writer).unwrap();
    let source = format!("ducklake://main/d#{}", facts(&pintail, "d").id.0);
    begin_at(&writer, "consumer c", &PositionTable::cursor("c"), "1", &source).unwrap();
    begin_at(&writer, "sink log", &PositionTable::source("log"), "0", "a log").unwrap();
    drop(writer);
    foreign(
        &pintail,
        "INSERT INTO _pintail.dead_letters (id, origin, position) VALUES ('1', 'consumer c', 'snapshot 2')",
    );
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    report(&pintail, &guard, "c", 1);
    (folder, pintail, guard)
}

fn report(pintail: &Pintail, guard: &Guard, consumer: &str, at: i64) {
    let row = ConsumerProgress::new(consumer, SnapshotId(at), chrono::Utc::now().timestamp_micros());
    pintail.block_on(guard.set_progress(&row)).unwrap();
}

fn head(pintail: &Pintail) -> i64 {
    query(pintail, "SELECT max(snapshot_id) FROM lake.snapshots()", None)[0].parse().unwrap()
}

#[test]
fn each_fault_of_a_stream_is_found_where_it_is_and_is_gone_when_it_is_mended() {
    let (_folder, pintail, guard) = streamed();
    assert_eq!(findings(&pintail), Vec::<String>::new());
    let starts = |expected: &[&str]| {
        let found = findings(&pintail);
        let is_as_expected = found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
        assert!(is_as_expected, "{found:#?} instead of {expected:#?}");
    };

    // The guard is further than the cursor, over rows that were never read.
    let before = head(&pintail);
    report(&pintail, &guard, "c", before);
    starts(&["consumers c: the guard says that it has read up to snapshot"]);
    report(&pintail, &guard, "c", 1);
    pintail.block_on(guard.forget_consumer("c")).unwrap();
    starts(&["consumers c: its cursor is at snapshot 1, and the guard does not know it"]);
    report(&pintail, &guard, "c", 1);

    // A row that somebody else has written, in the future and with a token that nobody was given.
    foreign(&pintail, "UPDATE _pintail.cursor_c SET token = 900");
    starts(&[
        "positions cursor_c: somebody else has written it at",
        "leases consumer c: token 900 has written it, and the guard has given",
    ]);
    let key = LeaseKey { asset: "consumer c".to_owned(), partition: None };
    let an_hour = chrono::Utc::now().timestamp_micros() + 3_600_000_000;
    let LeaseAnswer::Granted(lease) = pintail.block_on(guard.try_lease(&key, &RunId("r".to_owned()), an_hour)).unwrap()
    else {
        panic!("nobody has it")
    };
    let found = findings(&pintail);
    assert!(found[1].starts_with("leases consumer c: process ") && found[1].contains(" took it at "), "{found:#?}");
    assert!(found[2].contains("and token 900 has written since"), "{found:#?}");
    pintail.block_on(guard.release(&lease)).unwrap();
    foreign(&pintail, "DELETE FROM _pintail.position_log");
    foreign(&pintail, "DROP TABLE _pintail.cursor_c");
    let letter = "INSERT INTO _pintail.dead_letters (id, origin, position) VALUES ('2', 'consumer c', 'snapshot 7000')";
    foreign(&pintail, letter);
    starts(&[
        "consumers c: the guard knows that it has read up to snapshot 1",
        "positions position_log: it holds 0 rows instead of one",
        "letters consumer c: of its 2 dead letters some are about snapshot 7000",
    ]);
}

#[test]
fn rows_in_files_of_another_partition_are_found_and_no_others() {
    let (folder, pintail) = made();
    foreign(&pintail, "CREATE TABLE p (s VARCHAR, d DATE, f DOUBLE, b BOOLEAN, made TIMESTAMPTZ)");
    foreign(
        &pintail,
        "ALTER TABLE p SET PARTITIONED BY (s, d, f, b, year(made), month(made), day(made), hour(made), bucket(4, s))",
    );
    foreign(
        &pintail,
        "INSERT INTO p VALUES ('a', '2026-01-31', 0.1, true, '2026-12-31 23:59:59.999Z'), (NULL, NULL, NULL, NULL, NULL),
         ('', '0044-03-15', 1e300, false, '1969-12-31 23:00:00+02')",
    );
    foreign(&pintail, "ALTER TABLE p SET PARTITIONED BY (d)");
    foreign(&pintail, "INSERT INTO p SELECT * FROM p");
    assert_eq!(findings(&pintail), Vec::<String>::new());
    let metadata = format!("__ducklake_metadata_{}", pintail.lakes().values().next().unwrap().write_alias());
    foreign(
        &pintail,
        &format!(
            "UPDATE {metadata}.ducklake_file_partition_value SET partition_value = '2027' WHERE partition_value = '2026'"
        ),
    );
    let found = findings(&folder.open());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("partitions main.p: 1 rows lie in files of another partition, such as"), "{found:?}");
}
