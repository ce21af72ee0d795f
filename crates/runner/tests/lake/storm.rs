//! Storms: several processes that write at once, and processes that are killed at random points of the protocol, on both
//! kinds of catalog. Afterwards every row is there exactly once, the store says what the stamps say, and nothing is held.
//!
//! The seeds are fixed, so that a storm that broke something can be met again.

use std::collections::BTreeSet;
use std::path::Path;

use pintail_core::asset::Asset;
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::{Guard, PinKind};
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;
use pintail_store::{Materialization, MaterializationStatus, RunStatus};
use pintail_testkit::services::database;

use crate::crashes::assert_store_agrees_with_lake;
use crate::harness::{Folder, query, run};
use crate::processes::{Work, open};

/// Replace, merge and append in daily slices; every query gives a batch that no other run gives.
const WRITERS: &str = "//- pintail.toml
[run]
slots = 2
//- pipelines/replaced.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/replaced
SELECT i AS k, (SELECT uuid()::VARCHAR) AS batch FROM range(3) t(i)
//- pipelines/merged.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/merged key=k
SELECT i AS k, (SELECT uuid()::VARCHAR) AS batch FROM range(3) t(i)
//- pipelines/appended.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/appended append
SELECT i AS k, (SELECT uuid()::VARCHAR) AS batch FROM range(3) t(i)
";

const TABLES: [&str; 3] = ["replaced", "merged", "appended"];

const PROCESSES: u32 = 4;
const RUNS: u32 = 17;

/// Two hundred writes and a few more: every run writes three slices, in turn those that all processes share and its own.
fn race(folder: &Folder) {
    let meeting = tempfile::tempdir().unwrap();
    let processes: Vec<_> = (0..PROCESSES)
        .map(|player| Work::run().storm(RUNS, meeting.path(), player, PROCESSES).start(folder.path()))
        .collect();
    let told: Vec<String> = processes.into_iter().flat_map(crate::processes::Process::done).collect();
    let ended = |state: &str| told.iter().filter(|line| line.ends_with(&format!(": {state}"))).count();
    let (landed, superseded) = (ended("Materialized"), ended("Superseded"));
    let writes = usize::try_from(PROCESSES * RUNS * 3).unwrap();
    assert_eq!(landed + superseded, writes, "{landed} landed, {superseded} superseded: {told:?}");

    let pintail = open(folder.path(), "");
    let mut versions = 0;
    for table in TABLES {
        let history = history(&pintail, table);
        versions += history.len();
        check_slices(&pintail, table, &history);
    }
    assert_eq!(versions, landed, "what was told and what is stamped differ");
    drop(pintail);
    assert_nothing_is_left(folder);
}

fn history(pintail: &Pintail, table: &str) -> Vec<Materialization> {
    let mut history = pintail.history(&Asset::lake_table("main", "main", table), 10_000).unwrap();
    history.retain(|version| version.status == MaterializationStatus::Materialized);
    history
}

/// Each version of an append is there whole and once; of a replace or merge, the newest one and nothing else.
fn check_slices(pintail: &Pintail, table: &str, history: &[Materialization]) {
    let partitions: BTreeSet<&str> =
        history.iter().filter_map(|version| Some(version.partition.as_ref()?.as_str())).collect();
    assert_eq!(partitions.len(), 1 + PROCESSES as usize);
    let key = key_column(pintail, table);
    for partition in partitions {
        let versions: Vec<&Materialization> = history
            .iter()
            .filter(|version| version.partition.as_ref().is_some_and(|key| key.as_str() == partition))
            .collect();
        let rows = format!("SELECT batch, k FROM {table} WHERE {key} = '{partition}' ORDER BY ALL");
        let now = query(pintail, &rows, None);
        let distinct: BTreeSet<&String> = now.iter().collect();
        assert_eq!(distinct.len(), now.len(), "{table} {partition}: a row is there twice");
        let expected = if table == "appended" { 3 * versions.len() } else { 3 };
        assert_eq!(now.len(), expected, "{table} {partition}: {now:?}");
        let newest = versions.iter().filter_map(|version| version.snapshot).max();
        assert_eq!(query(pintail, &rows, newest), now, "{table} {partition} is not its newest version");
        assert!(versions.iter().all(|version| version.inserted == 3), "{table} {partition}");
    }
}

/// Returns the column that holds the partition.
fn key_column(pintail: &Pintail, table: &str) -> String {
    let columns = query(pintail, &format!("SELECT column_name FROM (DESCRIBE {table})"), None);
    columns.into_iter().find(|name| name != "k" && name != "batch").unwrap()
}

/// The store equals the stamps, every run has come to an end, and there is neither a lease nor a pin.
fn assert_nothing_is_left(folder: &Folder) {
    assert_store_agrees_with_lake(folder);
    let pintail = open(folder.path(), "");
    let running = pintail.runs(1_000).unwrap().iter().filter(|run| run.status == RunStatus::Running).count();
    assert_eq!(running, 0);
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    assert!(!pintail.block_on(guard.has_leases()).unwrap(), "a lease is left");
    let mut left = pintail.block_on(guard.pins()).unwrap();
    left.retain(|pin| pin.kind == PinKind::Process);
    assert_eq!(left, [], "a pin is left");
}

#[test]
fn two_hundred_writes_of_four_processes_are_all_there_once() {
    race(&Folder::new(WRITERS));
}

#[test]
fn two_hundred_writes_of_four_processes_are_all_there_once_on_postgres() {
    race(&Folder::on_postgres(WRITERS, database()));
}

/// Replace, merge and append of one input: what is due is written once, however often it is tried.
const INPUTS: &str = "//- pintail.toml
[run]
slots = 2
//- pipelines/replaced.sql
-- materialize ducklake://main/replaced
SELECT i AS k, v FROM read_csv('data/in.csv'), range(3) t(i)
//- pipelines/merged.sql
-- materialize ducklake://main/merged key=k
SELECT i AS k, v FROM read_csv('data/in.csv'), range(3) t(i)
//- pipelines/appended.sql
-- materialize ducklake://main/appended append
SELECT i AS k, v FROM read_csv('data/in.csv'), range(3) t(i)
//- pipelines/counted.sql
-- materialize ducklake://main/counted
SELECT count(*) AS n, count(DISTINCT v) AS versions FROM appended
";

/// A small deterministic generator (xorshift).
fn roll(seed: &mut u64, sides: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from((*seed >> 11) % sides as u64).unwrap()
}

fn write_input(folder: &Path, version: u32) {
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("data/in.csv"), format!("v\n{version}\n")).unwrap();
}

/// Starts two processes at a time, each to be killed at a point and an occurrence of its own, until `kills` have died; each
/// pair finds a new input, and one pair in three runs in one transaction.
fn kill_storm(folder: &Folder, kills: usize, mut seed: u64) {
    write_input(folder.path(), 0);
    Work::run().start(folder.path()).done();
    let (mut died, mut version) = (0, 0);
    while died < kills {
        version += 1;
        assert!(version < 200, "only {died} processes have died");
        write_input(folder.path(), version);
        let processes = [0, 1].map(|_| {
            let point = FaultPoint::ALL[roll(&mut seed, FaultPoint::ALL.len())].name();
            let nth = 1 + roll(&mut seed, 2);
            let work = Work::run().faults(format!("{point}*{nth}=kill"));
            let work = if roll(&mut seed, 3) == 0 { work.atomic() } else { work };
            work.start(folder.path())
        });
        died += processes.map(crate::processes::Process::ended).into_iter().filter(|killed| *killed).count();
        check_versions(folder, version);
    }
    let pintail = open(folder.path(), "");
    run(&pintail, &PlanRequest::default()).assert_good();
    for table in ["replaced", "merged"] {
        let rows = query(&pintail, &format!("SELECT count(*), count(DISTINCT k), min(v), max(v) FROM {table}"), None);
        assert_eq!(rows, [format!("3|3|{version}|{version}")], "{table}");
    }
    assert_eq!(query(&pintail, "SELECT max(v) FROM appended", None), [version.to_string()]);
    let appended = query(&pintail, "SELECT count(*), count(DISTINCT v) FROM appended", None);
    assert_eq!(query(&pintail, "SELECT n, versions FROM counted", None), appended);
    drop(pintail);
    assert_nothing_is_left(folder);
}

/// Whole versions only, and none twice.
fn check_versions(folder: &Folder, version: u32) {
    let pintail = open(folder.path(), "");
    for table in ["replaced", "merged"] {
        let rows =
            query(&pintail, &format!("SELECT count(*), count(DISTINCT k), count(DISTINCT v) FROM {table}"), None);
        assert_eq!(rows, ["3|3|1"], "version {version}: {table}");
    }
    let wrong = "SELECT v, count(*) FROM appended GROUP BY v HAVING count(*) <> 3 OR count(DISTINCT k) <> 3";
    assert_eq!(query(&pintail, wrong, None), Vec::<String>::new(), "version {version}: appended");
}

#[test]
fn twenty_five_kills_at_random_points_leave_whole_versions_and_nothing_held() {
    kill_storm(&Folder::new(INPUTS), 25, 0x5EED_0001);
}

#[test]
fn twenty_five_kills_at_random_points_leave_whole_versions_and_nothing_held_on_postgres() {
    kill_storm(&Folder::on_postgres(INPUTS, database()), 25, 0x5EED_0002);
}

#[test]
fn two_atomic_runs_of_one_input_at_once_append_it_once() {
    let on_postgres = Folder::on_postgres(INPUTS, database());
    for folder in [Folder::new(INPUTS), on_postgres] {
        write_input(folder.path(), 0);
        Work::run().start(folder.path()).done();
        write_input(folder.path(), 1);
        let meeting = tempfile::tempdir().unwrap();
        let processes = [0, 1].map(|player| Work::run().atomic().meet(meeting.path(), player, 2).start(folder.path()));
        let told: Vec<Vec<String>> = processes.into_iter().map(crate::processes::Process::done).collect();
        assert_eq!(folder.query("SELECT count(*), count(DISTINCT v) FROM appended"), ["6|2"], "{told:?}");
        assert_eq!(folder.run_all().text(), "", "{told:?}");
    }
}

/// Makes a table anew for one slice while another slice, new or known, is written in another process.
#[test]
fn a_table_that_is_made_anew_on_postgres_keeps_a_slice_that_is_written_meanwhile() {
    let script = |columns: &str| {
        format!(
            "//- pipelines/t.sql\n-- partitioned daily start=2026-01-01\n-- on_schema_change sync_all_columns\n\
             -- materialize ducklake://main/t\nSELECT {columns} FROM read_csv('data/in.csv')\n"
        )
    };
    for sibling in ["2026-01-02", "2026-01-03"] {
        let folder = Folder::on_postgres(&format!("//- data/in.csv\nv\n1\n{}", script("v, 1 AS extra")), database());
        let write = |day: &str| folder.run(&crate::harness::force_at("t", day)).assert_good().steps.len();
        assert_eq!(write("2026-01-01") + write("2026-01-02"), 2);
        let pause = crate::processes::Pause::at("stamped");
        folder.write(&script("v"));
        let mut renewing = Work::run().force().partition("2026-01-01").faults(pause.fault()).start(folder.path());
        renewing.reaches(&pause.reached());
        folder.write(&format!("//- data/in.csv\nv\n7\n{}", script("v, 1 AS extra")));
        write(sibling);
        pause.release();
        let told = renewing.done();
        assert!(told.iter().any(|line| line.ends_with(": Materialized")), "{told:?}");
        let rows = folder.query("SELECT v FROM t ORDER BY v");
        assert_eq!(rows.iter().filter(|v| *v == "7").count(), 1, "{sibling} was swallowed: {rows:?}, {told:?}");
        let expected = if sibling == "2026-01-02" { 2 } else { 3 };
        assert_eq!(rows.len(), expected, "{rows:?}");
    }
}
