//! Atomic runs: everything in one commit or nothing, also through a crash, a failed test and a neighbour's commit.

use pintail_engine::fault::FaultPoint;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::StepState;
use pintail_store::RunStatus;

use crate::harness::{Folder, Told, query, run};
use crate::processes::{Work, open};

/// A chain of a table, a merge, a slice, an append, a view, a reader of itself and a test.
const PIPELINE: &str = "//- data/in.csv
v
1
//- pipelines/base.sql
-- materialize ducklake://main/base
SELECT v, v * 10 AS tens FROM read_csv('data/in.csv')
//- pipelines/merged.sql
-- materialize ducklake://main/merged key=v
SELECT v, tens FROM base
//- pipelines/added.sql
-- materialize ducklake://main/added append
SELECT v FROM merged WHERE v = (SELECT max(v) FROM base)
//- pipelines/seen.sql
-- materialize view ducklake://main/seen
SELECT count(*) AS n FROM added
//- pipelines/counted.sql
-- materialize ducklake://main/counted
-- column n BIGINT
SELECT n FROM counted UNION ALL SELECT max(v)::BIGINT FROM base
//- pipelines/last.sql
-- materialize ducklake://other.last
-- test expression \"total < 1000\"
SELECT sum(tens)::BIGINT AS total, (SELECT n FROM seen) AS seen FROM merged
";

fn pipeline() -> Folder {
    Folder::new(&PIPELINE.replace("ducklake://other.last", "ducklake://main/other.last"))
}

fn atomic() -> PlanRequest {
    PlanRequest { atomic: true, ..PlanRequest::default() }
}

fn state(folder: &Folder) -> String {
    let pintail = folder.open();
    let one = |sql: &str| query(&pintail, sql, None).join(",");
    format!(
        "base {} | merged {} | added {} | seen {} | counted {} | last {}",
        one("SELECT v FROM base ORDER BY ALL"),
        one("SELECT tens FROM merged ORDER BY ALL"),
        one("SELECT v FROM added ORDER BY ALL"),
        one("SELECT n FROM seen"),
        one("SELECT n FROM counted ORDER BY ALL"),
        one("SELECT total, seen FROM other.last"),
    )
}

fn snapshots(told: &Told) -> Vec<i64> {
    let mut snapshots: Vec<i64> = told.steps.iter().filter_map(|step| Some(step.snapshot?.0)).collect();
    snapshots.dedup();
    snapshots
}

#[test]
fn an_atomic_run_is_one_snapshot_and_its_steps_read_each_other() {
    let folder = pipeline();
    let told = folder.run(&atomic());
    told.assert_good();
    assert_eq!((told.steps.len(), snapshots(&told).len()), (6, 1));
    assert_eq!(state(&folder), "base 1 | merged 10 | added 1 | seen 1 | counted 1 | last 10|1");

    folder.write("//- data/in.csv\nv\n2\n");
    let told = folder.run(&atomic());
    told.assert_good();
    assert_eq!(snapshots(&told).len(), 1);
    assert_eq!(state(&folder), "base 2 | merged 10,20 | added 1,2 | seen 2 | counted 1,2 | last 30|2");
    let again = folder.run(&atomic());
    assert_eq!((again.steps.len(), again.text()), (0, String::new()), "what an atomic run has read is up to date");
    assert_eq!(folder.run_all().text(), "");
}

#[test]
fn the_store_is_rebuilt_from_an_atomic_commit() {
    let folder = pipeline();
    folder.run(&atomic()).assert_good();
    folder.lose_store();
    assert_eq!(folder.run_all().text(), "", "everything is known from the lake alone");
}

#[test]
fn a_failed_test_takes_the_whole_run_back() {
    let folder = pipeline();
    folder.run(&atomic()).assert_good();
    let before = state(&folder);
    folder.write("//- data/in.csv\nv\n500\n");
    let told = folder.run(&atomic());
    assert_eq!(told.step("last").state, StepState::Failed);
    for name in ["base", "merged", "added", "counted"] {
        assert_eq!(told.step(name).state, StepState::RolledBack, "{}", told.text());
    }
    assert_eq!(told.summary.status, RunStatus::Failed);
    assert!(told.failure("last").committed.contains("nothing of this run"), "{:?}", told.failure("last"));
    assert_eq!(state(&folder), before);

    folder.write("//- data/in.csv\nv\n3\n");
    folder.run(&atomic()).assert_good();
    assert_eq!(state(&folder), "base 3 | merged 10,30 | added 1,3 | seen 2 | counted 1,3 | last 40|2");
}

#[test]
fn a_killed_atomic_run_has_left_all_or_nothing() {
    let folder = pipeline();
    folder.run(&atomic()).assert_good();
    for (version, point) in (2..).zip(FaultPoint::ALL) {
        let before = state(&folder);
        folder.write(&format!("//- data/in.csv\nv\n{version}\n"));
        Work::run().atomic().faults(format!("{}=kill", point.name())).start(folder.path()).killed();
        let pintail = open(folder.path(), "");
        let has_committed = matches!(point, FaultPoint::Committed | FaultPoint::Remembered);
        let told = run(&pintail, &PlanRequest::default());
        drop(pintail);
        if !has_committed {
            assert_eq!(told.steps.len(), 5, "{point:?}: {}", told.text());
            told.assert_good();
        } else {
            assert_eq!(told.text(), "", "{point:?}: all of it was there");
        }
        assert_ne!(state(&folder), before);
        assert_eq!(query(&folder.open(), "SELECT count(*) FROM added", None), [version.to_string()], "{point:?}");
    }
}

#[test]
fn partitions_of_one_table_share_the_transaction() {
    let folder = Folder::new(
        "//- pipelines/hourly.sql
-- partitioned hourly by=ts start=2026-01-01
-- materialize ducklake://main/hourly
SELECT $partition_start AS ts, 1 AS n
//- pipelines/daily.sql
-- partitioned daily by=day start=2026-01-01
-- materialize ducklake://main/daily
SELECT $partition_start AS day, sum(n)::BIGINT AS n FROM hourly WHERE in_partition(ts)
",
    );
    let told = folder.run(&PlanRequest { partition: Some("2026-01-02".to_owned()), ..atomic() });
    told.assert_good();
    assert_eq!((told.steps.len(), snapshots(&told).len()), (25, 1));
    assert_eq!(folder.query("SELECT count(*), sum(n) FROM hourly"), ["24|24"]);
    assert_eq!(folder.query("SELECT n FROM daily"), ["24"]);
    let told = folder.run(&PlanRequest { partition: Some("2026-01-02".to_owned()), force: true, ..atomic() });
    told.assert_good();
    assert_eq!(folder.query("SELECT n FROM daily"), ["24"]);
}

#[test]
fn what_cannot_be_atomic_is_refused_before_anything_runs() {
    let folder = Folder::new(
        "//- pipelines/own.sql
-- materialize manual ducklake://main/own
CREATE TABLE own AS SELECT 1 AS n;
//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT 1 AS n
",
    );
    let error = folder.open().plan(&atomic()).unwrap_err().to_string();
    assert!(error.contains("`own` is `materialize manual`") && error.contains("--exclude"), "{error}");
    assert_eq!(folder.query("SELECT count(*) FROM duckdb_tables() WHERE table_name IN ('own', 't')"), ["0"]);
}

#[test]
fn slices_of_a_script_that_reads_its_target_share_an_atomic_run() {
    let folder = Folder::new(
        "//- pipelines/s.sql
-- partitioned daily by=d start=2026-01-01
-- materialize ducklake://main/s
-- column d TIMESTAMPTZ
-- column n BIGINT
SELECT $partition_start AS d, (SELECT count(*) FROM s)::BIGINT AS n
",
    );
    let days = |text: &str| PlanRequest { partition: Some(text.to_owned()), ..atomic() };
    folder.run(&days("2026-01-01")).assert_good();
    let told = folder.run(&PlanRequest { force: true, ..days("2026-01") });
    told.assert_good();
    assert_eq!((told.steps.len(), snapshots(&told).len()), (31, 1));
    assert_eq!(folder.query("SELECT count(*), max(n) FROM s"), ["31|30"]);
}

#[test]
fn an_append_that_another_run_has_done_leaves_the_other_steps_of_an_atomic_run() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a append
SELECT 1 AS n
//- pipelines/c.sql
-- materialize ducklake://main/c
SELECT 2 AS n
",
    );
    let pintail = folder.open();
    // The lake must be there, so that both runs have a pin in it.
    run(&pintail, &crate::harness::only("c")).assert_good();
    let (plan, seen) = pintail.plan(&PlanRequest { force: true, ..atomic() }).unwrap();
    run(&folder.open(), &crate::harness::only("a")).assert_good();
    let told = crate::harness::run_plan(&pintail, &plan, &seen);
    assert_eq!(told.step("a").state, StepState::Superseded, "{}", told.text());
    assert_eq!(told.step("c").state, StepState::Materialized, "{}", told.text());
    assert_eq!(folder.query("SELECT count(*) FROM a"), ["1"]);
}
