//! What fails around a write: locked files, broken extensions, full disks, lost stores, stops and panics. Each time the
//! message says what to do, the old version is live, and the next run goes on.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::{AttemptId, LakeName};
use pintail_core::sql::Statement;
use pintail_engine::guard::Guard;
use pintail_engine::native::{Extension, ExtensionFolders};
use pintail_engine::transaction::CommitWords;
use pintail_engine::{Catalog, EngineError, Instance, InstanceOptions, LakeLocation, WriteTransaction, lake};
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::{RunEvent, RunSummary, StepState};
use pintail_store::RunStatus;

use crate::harness::{Folder, pins_of_processes, query, run};
use crate::processes::{Pause, Work, open, open_with_extensions, wait_for};

const COPY: &str = "//- data/in.csv\nv\nold\n//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT v FROM read_csv('data/in.csv')\n";

/// A project whose table holds `old` and whose input says `new`.
fn due() -> Folder {
    let folder = Folder::new(COPY);
    folder.run_all().assert_good();
    folder.write("//- data/in.csv\nv\nnew\n");
    folder
}

/// Asserts that the old version is live and that the next run writes the new one.
fn assert_mended(folder: &Folder) {
    assert_eq!(folder.query("SELECT v FROM t"), ["old"]);
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT v FROM t"), ["new"]);
}

fn catalog(folder: &Folder) -> PathBuf {
    folder.path().join(".pintail/main.sqlite")
}

/// Runs everything on `pintail` and cancels it when `is_time` says so.
fn run_until(pintail: &Pintail, is_time: impl Fn(&RunEvent) -> bool) -> RunSummary {
    let (plan, seen) = pintail.plan(&PlanRequest::default()).unwrap();
    let cancel = pintail.cancel();
    let mut tell = |event: RunEvent| {
        if is_time(&event) {
            cancel.cancel();
        }
    };
    pintail.run(&plan, &seen, &mut tell).unwrap()
}

fn table() -> Asset {
    Asset::parse("ducklake://main/t").unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn vendor() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions")
}

// Locks.

#[test]
fn on_sqlite_a_lake_that_another_process_is_writing_is_waited_for_and_then_named_with_its_lock() {
    let folder = due();
    let lock = catalog(&folder).with_extension("sqlite.lock");
    let other = File::options().write(true).open(&lock).unwrap();
    other.lock().unwrap();
    let began = Instant::now();
    let told = run(&open(folder.path(), "patience=200"), &PlanRequest::default());
    assert!(began.elapsed() < Duration::from_secs(30), "the wait has no bound");
    let failure = told.failure("t");
    let expected = format!("another process has been writing lake `main` for 0 s (lock {})", lock.display());
    assert!(failure.message.starts_with(&expected), "{}", failure.message);
    assert!(failure.committed.contains("nothing of this step is committed"), "{}", failure.committed);
    drop(other);
    assert_mended(&folder);
}

#[test]
fn on_sqlite_a_catalog_that_another_program_locks_is_waited_for_and_then_told() {
    let folder = due();
    let (runtime, options) = (runtime(), sqlx::sqlite::SqliteConnectOptions::new().filename(catalog(&folder)));
    // Held by this process while another one runs: SQLite's locks do not hold between two of its libraries in one.
    let pool = runtime.block_on(sqlx::SqlitePool::connect_with(options)).unwrap();
    let held = runtime.block_on(pool.begin_with("BEGIN IMMEDIATE")).unwrap();
    let told = Work::run().faults("patience=200").start(folder.path()).done();
    runtime.block_on(held.rollback()).unwrap();
    runtime.block_on(pool.close());
    assert!(told[0].starts_with("t: Failed: ") && told[0].contains("database is locked"), "{told:?}");
    let failure = &open(folder.path(), "").history(&table(), 1).unwrap()[0].error;
    let failure = failure.as_ref().unwrap();
    assert!(failure.committed.contains("nothing of this step is committed"), "{failure:?}");
    let next = "another program has the lake's catalog open for writing: close it or wait for it, then run again";
    assert_eq!(failure.next.as_deref(), Some(next));
    assert_mended(&folder);
}

// Extensions.

#[test]
fn an_instance_that_skips_the_check_of_known_files_checks_every_other() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let loads = vec![Extension::DuckLake, Extension::SqliteScanner];
        let extensions = ExtensionFolders(vec![vendor()]);
        Instance::open(InstanceOptions { extensions, loads, ..InstanceOptions::default() }).unwrap()
    };
    for extension in open().options().loads.clone() {
        open().load(extension).unwrap();
    }
    let instance = open();
    let session = instance.session().unwrap();
    let loaded =
        "SELECT count(*) FROM duckdb_extensions() WHERE loaded AND extension_name IN ('ducklake', 'sqlite_scanner')";
    assert_eq!(session.one("count", loaded, |row| row.get::<_, i64>(0)).unwrap(), 2, "they were loaded unchecked");

    let mut bytes = std::fs::read(vendor().join("httpfs.duckdb_extension")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let broken = folder.path().join("httpfs.duckdb_extension");
    std::fs::write(&broken, bytes).unwrap();
    let refused = session.batch("load", &format!("LOAD '{}'", broken.display())).unwrap_err().to_string();
    assert!(refused.contains("signature is either missing or invalid"), "{refused}");
    assert!(session.batch("allow", "SET GLOBAL allow_unsigned_extensions = true").is_err());
}

// Commits that fail.

/// A lake with a table `t`, and a session that writes it.
fn with_lake(work: impl FnOnce(&Instance, &LakeLocation)) {
    let folder = tempfile::tempdir().unwrap();
    let options = InstanceOptions { extensions: ExtensionFolders(vec![vendor()]), ..InstanceOptions::default() };
    let instance = Instance::open(options).unwrap();
    let lake = LakeLocation {
        name: LakeName("main".to_owned()),
        catalog: Catalog::Sqlite(folder.path().join("main.sqlite")),
        data: format!("{}/", folder.path().join("data").display()),
    };
    let session = instance.session().unwrap();
    lake.attach_for_writing(&instance, &session).unwrap();
    session.batch("make the table", &format!("CREATE TABLE {}.t (n BIGINT)", lake.write_alias())).unwrap();
    work(&instance, &lake);
}

fn commit(
    transaction: WriteTransaction<'_>,
    before: impl FnOnce(),
) -> Result<pintail_core::id::SnapshotId, EngineError> {
    let attempt = AttemptId("the-attempt".to_owned());
    let words = CommitWords { attempt: &attempt, message: "a test", extra_info: r#"{"attempt":"the-attempt"}"# };
    transaction.commit(&words, before)
}

#[test]
fn case_d28_a_commit_after_a_failed_statement_is_never_taken_for_success() {
    with_lake(|instance, lake| {
        let session = instance.session().unwrap();
        let alias = lake.write_alias();
        let transaction = WriteTransaction::begin(&session, &alias).unwrap();
        transaction.run(&Statement::new("write", format!("INSERT INTO {alias}.t VALUES (1)"))).unwrap();
        // After this, COMMIT itself says that all is well.
        let outcome = commit(transaction, || {
            session.batch("fail", &format!("INSERT INTO {alias}.t VALUES ('x')")).unwrap_err();
        });
        assert!(outcome.is_err(), "{outcome:?}");
        let count: i64 = session.one("count", &format!("SELECT count(*) FROM {alias}.t"), |row| row.get(0)).unwrap();
        assert_eq!(count, 0);
    });
}

#[test]
fn a_commit_that_another_commit_was_faster_than_is_a_conflict_and_leaves_nothing() {
    with_lake(|instance, lake| {
        let alias = lake.write_alias();
        let (session, other) = (instance.session().unwrap(), instance.session().unwrap());
        other.batch("write", &format!("INSERT INTO {alias}.t VALUES (7)")).unwrap();
        let transaction = WriteTransaction::begin(&session, &alias).unwrap();
        transaction.run(&Statement::new("write", format!("DELETE FROM {alias}.t"))).unwrap();
        transaction.run(&Statement::new("write", format!("INSERT INTO {alias}.t VALUES (1)"))).unwrap();
        let outcome = commit(transaction, || {
            other.batch("be faster", &format!("DELETE FROM {alias}.t WHERE n = 7")).unwrap();
        });
        assert_eq!(outcome.unwrap_err().class(), pintail_engine::ErrorClass::Conflict);
        let attempt = AttemptId("the-attempt".to_owned());
        let found = lake::find_attempt(&session, &alias, pintail_core::id::SnapshotId(0), &attempt).unwrap();
        assert_eq!(found, None);
        let count: i64 = other.one("count", &format!("SELECT count(*) FROM {alias}.t"), |row| row.get(0)).unwrap();
        assert_eq!(count, 0);
        // The session is good for another transaction.
        WriteTransaction::begin(&session, &alias).unwrap().roll_back();
    });
}

// Extensions.

#[test]
fn an_extension_that_is_missing_empty_or_damaged_is_named_with_what_to_run() {
    let folder = due();
    let extensions = tempfile::tempdir().unwrap();
    let copies = extensions.path().to_owned();
    let ask = || {
        open_with_extensions(folder.path(), "", copies.clone()).plan(&PlanRequest::default()).unwrap_err().to_string()
    };
    let missing = ask();
    assert!(missing.contains(&format!("`ducklake` v1.5.5 was not found in {}", copies.display())), "{missing}");
    assert!(missing.contains("run `cargo xtask setup`"), "{missing}");
    let file = "ducklake.duckdb_extension";
    let sound = std::fs::read(vendor().join(file)).unwrap();
    let mut flipped = sound.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [Vec::new(), b"junk".to_vec(), sound[..middle].to_vec(), flipped] {
        std::fs::write(copies.join(file), &damaged).unwrap();
        let broken = ask();
        let named = format!(
            "the DuckDB extension file {} cannot be loaded",
            copies.join(file).canonicalize().unwrap().display()
        );
        assert!(broken.contains(&named), "{broken}");
        assert!(broken.contains("run `cargo xtask setup` to fetch it again"), "{broken}");
    }
    assert_mended(&folder);
}

// Disks.

#[test]
fn a_data_folder_that_cannot_be_written_leaves_the_old_version_and_is_named() {
    let folder = due();
    let data = folder.path().join(".pintail/data/main/main");
    let away = folder.path().join("away");
    std::fs::rename(&data, &away).unwrap();
    // A file where the folder was stops every user, root too.
    std::fs::write(&data, "").unwrap();
    let told = folder.run_all();
    let failure = told.failure("t");
    assert!(failure.message.contains(".pintail/data/main/main"), "{}", failure.message);
    assert!(failure.committed.contains("nothing of this step is committed"), "{}", failure.committed);
    std::fs::remove_file(&data).unwrap();
    std::fs::rename(&away, &data).unwrap();
    assert_mended(&folder);
}

#[test]
fn a_disk_that_fills_up_while_rows_are_written_leaves_the_old_version() {
    let folder = Folder::new(COPY);
    folder.run_all().assert_good();
    folder.write(
        "//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT sha256(i::VARCHAR) || sha256((i + 1)::VARCHAR) AS v FROM range(200000) r(i)\n",
    );
    // No file may grow beyond 2 MB: to a writer that is a full disk.
    let told = Work::run().behind("trap '' XFSZ; ulimit -f 4096").start(folder.path()).done();
    assert!(told[0].starts_with("t: Failed: "), "{told:?}");
    assert!(told[0].contains("File too large"), "{told:?}");
    assert_eq!(folder.query("SELECT v FROM t"), ["old"]);
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT count(*) FROM t"), ["200000"]);
}

// The store.

/// Commits while `harm` is done to the store between the commit and its record, then heals.
fn check_forgotten(harm: impl FnOnce(&Folder) -> Box<dyn FnOnce()>) {
    let folder = due();
    let pause = Pause::at("committed");
    let pintail = open(folder.path(), &pause.fault());
    let (summary, undo) = std::thread::scope(|scope| {
        let ran = scope.spawn(|| run(&pintail, &PlanRequest::default()));
        wait_for("the commit", || pause.reached().exists());
        let undo = harm(&folder);
        pause.release();
        (ran.join().unwrap(), undo)
    });
    summary.assert_good();
    undo();
    drop(pintail);
    let next = open(folder.path(), "");
    assert_eq!(query(&next, "SELECT v FROM t", None), ["new"]);
    let (plan, seen) = next.plan(&PlanRequest::default()).unwrap();
    assert_eq!(plan.steps.len(), 0, "what is committed is done again");
    assert!(0 < seen.healed, "nothing was healed");
    let versions = next.history(&table(), 10).unwrap();
    assert_eq!(versions.len(), 2);
    assert!(next.runs(10).unwrap().iter().all(|run| run.status != RunStatus::Running));
}

#[test]
fn a_store_that_is_deleted_during_a_run_is_healed_at_the_next_start() {
    check_forgotten(|folder| {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.path().join(format!(".pintail/store.sqlite{ending}")));
        }
        Box::new(|| ())
    });
}

#[test]
fn a_store_that_cannot_be_written_during_a_run_is_healed_at_the_next_start() {
    check_forgotten(|folder| {
        let runtime = runtime();
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join(".pintail/store.sqlite"));
        let pool = runtime.block_on(sqlx::SqlitePool::connect_with(options)).unwrap();
        let refuse = "CREATE TRIGGER full BEFORE UPDATE ON attempt BEGIN SELECT RAISE(ABORT, 'disk full'); END";
        runtime.block_on(sqlx::query(refuse).execute(&pool)).unwrap();
        Box::new(move || {
            runtime.block_on(sqlx::query("DROP TRIGGER full").execute(&pool)).unwrap();
            runtime.block_on(pool.close());
        })
    });
}

// Stops.

#[test]
fn a_stop_while_staging_rolls_back_and_the_next_run_goes_on() {
    let folder = Folder::new(COPY);
    folder.run_all().assert_good();
    folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT sum(hash(i))::VARCHAR AS v FROM range(100000000000) r(i)\n");
    let pintail = open(folder.path(), "");
    let summary = run_until(&pintail, |event| matches!(event, RunEvent::StepPhase { phase: "stage", .. }));
    assert_eq!((summary.status, summary.cancelled), (RunStatus::Cancelled, 1));
    assert_cancelled(&pintail);
    folder.write(COPY);
    folder.write("//- data/in.csv\nv\nnew\n");
    assert_mended(&folder);
}

#[test]
fn a_stop_before_the_commit_rolls_back_and_one_after_it_does_not() {
    for (point, state, rows) in [("written", StepState::Cancelled, "old"), ("stamped", StepState::Materialized, "new")]
    {
        let folder = due();
        let pause = Pause::at(point);
        let pintail = open(folder.path(), &pause.fault());
        let told = std::thread::scope(|scope| {
            let ran = scope.spawn(|| run(&pintail, &PlanRequest::default()));
            wait_for("the pause", || pause.reached().exists());
            pintail.cancel().cancel();
            pause.release();
            ran.join().unwrap()
        });
        assert_eq!(told.step("t").state, state, "{point}: {}", told.text());
        assert_eq!(query(&open(folder.path(), ""), "SELECT v FROM t", None), [rows], "{point}");
        if state == StepState::Cancelled {
            assert_cancelled(&pintail);
            assert_mended(&folder);
        }
    }
}

#[test]
fn on_sqlite_a_stop_while_waiting_for_another_process_ends_the_wait() {
    let folder = due();
    let other = File::options().write(true).open(catalog(&folder).with_extension("sqlite.lock")).unwrap();
    other.lock().unwrap();
    let pintail = open(folder.path(), "");
    let summary = run_until(&pintail, |event| matches!(event, RunEvent::StepPhase { phase: "commit", .. }));
    assert_eq!(summary.status, RunStatus::Cancelled);
    assert_cancelled(&pintail);
    drop(other);
    assert_mended(&folder);
}

/// The store says that the newest run was stopped, and nobody holds anything.
fn assert_cancelled(pintail: &Pintail) {
    let newest = pintail.runs(1).unwrap().remove(0);
    assert_eq!(newest.status, RunStatus::Cancelled);
    let detail = pintail.block_on(pintail.store().show_run(&newest.id)).unwrap().unwrap();
    assert_eq!(detail.steps[0].step.status.as_str(), "cancelled");
    assert_let_go(pintail);
}

fn assert_let_go(pintail: &Pintail) {
    let guard = pintail.block_on(Guard::open(pintail.lakes().values().next().unwrap())).unwrap();
    assert!(!pintail.block_on(guard.has_leases()).unwrap(), "a lease is left");
    assert_eq!(pins_of_processes(pintail, &guard), [], "a pin is left");
}

// Words about failure.

#[test]
fn on_sqlite_retry_makes_so_many_attempts_more_and_each_is_remembered() {
    let folder = due();
    folder.write(
        "//- pipelines/t.sql\n-- retry 2 1s\n-- materialize ducklake://main/t\nSELECT v FROM read_csv('data/in.csv')\n",
    );
    let other = File::options().write(true).open(catalog(&folder).with_extension("sqlite.lock")).unwrap();
    other.lock().unwrap();
    let pintail = open(folder.path(), "patience=50");
    let told = run(&pintail, &PlanRequest::default());
    assert_eq!(told.step("t").state, StepState::Failed);
    let detail = pintail.block_on(pintail.store().show_run(&told.summary.run)).unwrap().unwrap();
    let attempts: Vec<&str> = detail.steps[0].attempts.iter().map(|attempt| attempt.status.as_str()).collect();
    assert_eq!(attempts, ["failed", "failed", "failed"]);
    assert_let_go(&pintail);
    drop(other);
    assert_mended(&folder);
}

#[test]
fn a_step_that_takes_longer_than_its_timeout_fails_by_it_in_the_report_and_in_the_store() {
    let folder = Folder::new(
        "//- pipelines/t.sql\n-- timeout 1s\n-- materialize ducklake://main/t\nSELECT sum(hash(i)) AS n FROM range(100000000000) r(i)\n",
    );
    let pintail = open(folder.path(), "");
    let told = run(&pintail, &PlanRequest::default());
    assert_eq!(told.step("t").state, StepState::Failed);
    let failure = told.failure("t");
    assert_eq!(failure.code, Code::TIMEOUT);
    assert_eq!(failure.message, "the step took longer than its timeout of 1.0 s");
    let detail = pintail.block_on(pintail.store().show_run(&told.summary.run)).unwrap().unwrap();
    assert_eq!(detail.steps[0].step.status.as_str(), "failed");
    assert_eq!(detail.steps[0].step.error.as_ref().unwrap().message, failure.message);
    assert_let_go(&pintail);
}

#[test]
fn on_sqlite_a_wait_for_another_process_counts_for_the_timeout() {
    let folder = due();
    folder.write(
        "//- pipelines/t.sql\n-- timeout 1s\n-- materialize ducklake://main/t\nSELECT v FROM read_csv('data/in.csv')\n",
    );
    let other = File::options().write(true).open(catalog(&folder).with_extension("sqlite.lock")).unwrap();
    other.lock().unwrap();
    let told = folder.run_all();
    assert_eq!(told.failure("t").code, Code::TIMEOUT, "{}", told.text());
    drop(other);
    // Under load one second may be too short for the run that mends.
    folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT v FROM read_csv('data/in.csv')\n");
    assert_mended(&folder);
}

#[test]
fn a_panic_inside_a_step_is_contained_told_and_lets_go_of_everything() {
    for point in ["leased", "written", "committed"] {
        let folder = due();
        folder.write("//- pipelines/u.sql\n-- materialize ducklake://main/u\nSELECT 1 AS n\n");
        let pintail = open(folder.path(), &format!("{point}=panic"));
        let told = run(&pintail, &PlanRequest::default());
        assert_eq!(told.steps.len(), 2, "{point}");
        assert_eq!(told.failure("t").message, "Pintail panicked: a test asked for a panic here", "{point}");
        assert_eq!(told.summary.status, RunStatus::Failed, "{point}");
        assert_let_go(&pintail);
        drop(pintail);
        folder.run_all().assert_good();
        assert_eq!(folder.query("SELECT v FROM t"), ["new"], "{point}");
        assert_eq!(folder.query("SELECT n FROM u"), ["1"], "{point}");
    }
}
