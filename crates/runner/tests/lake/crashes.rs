//! A process killed between any two steps of the protocol: the table is the old or the new version, the next run goes on
//! at once, and the store agrees with the lake.

use std::path::Path;
use std::time::{Duration, Instant};

use pintail_core::id::LakeName;
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::Guard;
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;
use pintail_store::RunStatus;

use crate::harness::{Folder, pins_of_processes, query, run};
use crate::processes::{Work, open};

/// One script that writes `t` from `data/in.csv`, and what the table holds after the versions 1 to n were written.
struct Case {
    script: &'static str,
    expected: fn(u32) -> String,
    points: &'static [FaultPoint],
}

/// The newest version alone.
fn newest(version: u32) -> String {
    format!("1|{version}")
}

/// Every version once.
fn all(version: u32) -> String {
    (1..=version).map(|version| format!("1|{version}")).collect::<Vec<_>>().join(",")
}

/// Every version under its own key.
fn keyed(version: u32) -> String {
    (1..=version).map(|version| format!("{version}|{version}")).collect::<Vec<_>>().join(",")
}

/// The points that a write without a stage passes.
const UNSTAGED: [FaultPoint; 6] = [
    FaultPoint::Leased,
    FaultPoint::Checked,
    FaultPoint::Written,
    FaultPoint::Stamped,
    FaultPoint::Committed,
    FaultPoint::Remembered,
];

/// The points that a script with statements of its own passes.
const MANUAL: [FaultPoint; 5] =
    [FaultPoint::Leased, FaultPoint::Written, FaultPoint::Stamped, FaultPoint::Committed, FaultPoint::Remembered];

fn write_version(folder: &Folder, case: &Case, version: u32) {
    folder.write(&format!("//- data/in.csv\nv\n{version}\n"));
    let script = case.script.replace("{version}", &version.to_string());
    folder.write(&format!("//- pipelines/t.sql\n{script}"));
}

fn rows(pintail: &Pintail) -> String {
    query(pintail, "SELECT k, v FROM t ORDER BY k, v", None).join(",")
}

/// The request that writes whatever is due, in the partition that partitioned cases use.
fn request(case: &Case) -> PlanRequest {
    let is_partitioned = case.script.contains("partitioned");
    PlanRequest { partition: is_partitioned.then(|| "2026-01-01".to_owned()), ..PlanRequest::default() }
}

fn work(case: &Case) -> Work {
    match request(case).partition {
        Some(partition) => Work::run().partition(&partition),
        None => Work::run(),
    }
}

fn check_kills(case: &Case) {
    let folder = Folder::new("");
    write_version(&folder, case, 1);
    work(case).start(folder.path()).done();
    for (version, point) in (2..).zip(case.points) {
        write_version(&folder, case, version);
        work(case).faults(format!("{}=kill", point.name())).start(folder.path()).killed();

        let has_committed = matches!(point, FaultPoint::Committed | FaultPoint::Remembered);
        let there = if has_committed { version } else { version - 1 };
        let pintail = open(folder.path(), "");
        assert_eq!(rows(&pintail), (case.expected)(there), "killed at {point:?}");

        let began = Instant::now();
        let told = run(&pintail, &request(case));
        assert_eq!(told.steps.len(), usize::from(!has_committed), "killed at {point:?}: {}", told.text());
        told.assert_good();
        assert_eq!(rows(&pintail), (case.expected)(version), "killed at {point:?}");
        assert_recovered(&pintail, point);
        assert!(began.elapsed() < Duration::from_secs(60), "killed at {point:?}: the next run waited for the dead");
    }
    assert_store_agrees_with_lake(&folder);
}

/// The crashed run is closed, and nobody holds anything.
fn assert_recovered(pintail: &Pintail, point: &FaultPoint) {
    let runs = pintail.runs(2).unwrap();
    assert_eq!(runs[1].status, RunStatus::Crashed, "killed at {point:?}");
    let detail = pintail.block_on(pintail.store().show_run(&runs[1].id)).unwrap().unwrap();
    let has_committed = matches!(point, FaultPoint::Committed | FaultPoint::Remembered);
    let expected = if has_committed { "materialized" } else { "failed" };
    assert_eq!(detail.steps[0].step.status.as_str(), expected, "killed at {point:?}");
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    assert!(!pintail.block_on(guard.has_leases()).unwrap(), "killed at {point:?}: a lease is left");
    assert_eq!(pins_of_processes(pintail, &guard), [], "killed at {point:?}: a pin is left");
}

/// What the store remembers is what the lake's own stamps say.
pub fn assert_store_agrees_with_lake(folder: &Folder) {
    let lake = LakeName("main".to_owned());
    let pintail = open(folder.path(), "");
    let remembered = pintail.block_on(pintail.store().state_fingerprint(&lake)).unwrap();
    pintail.rebuild_state().unwrap();
    let rebuilt = pintail.block_on(pintail.store().state_fingerprint(&lake)).unwrap();
    assert_eq!(remembered, rebuilt);
    assert_ne!(remembered, "");
}

#[test]
fn a_killed_replace_of_a_table_is_the_old_or_the_new_version() {
    check_kills(&Case {
        script: "-- materialize ducklake://main/t\nSELECT 1 AS k, v FROM read_csv('data/in.csv')\n",
        expected: newest,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn a_killed_replace_of_a_slice_is_the_old_or_the_new_version() {
    check_kills(&Case {
        script: "-- partitioned daily\n-- materialize ducklake://main/t\nSELECT 1 AS k, v FROM read_csv('data/in.csv')\n",
        expected: newest,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn a_killed_merge_into_a_table_is_the_old_or_the_new_version() {
    check_kills(&Case {
        script: "-- materialize ducklake://main/t key=k\nSELECT v AS k, v FROM read_csv('data/in.csv')\n",
        expected: keyed,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn a_killed_merge_into_a_slice_is_the_old_or_the_new_version() {
    check_kills(&Case {
        script: "-- partitioned daily\n-- materialize ducklake://main/t key=k\nSELECT v AS k, v FROM read_csv('data/in.csv')\n",
        expected: keyed,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn case_d26_a_killed_append_to_a_table_appends_once() {
    check_kills(&Case {
        script: "-- materialize ducklake://main/t append\nSELECT 1 AS k, v FROM read_csv('data/in.csv')\n",
        expected: all,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn a_killed_append_to_a_slice_appends_once() {
    check_kills(&Case {
        script: "-- partitioned daily\n-- materialize ducklake://main/t append\nSELECT 1 AS k, v FROM read_csv('data/in.csv')\n",
        expected: all,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn a_killed_write_of_what_differs_is_the_old_or_the_new_version() {
    check_kills(&Case {
        script: "-- materialize ducklake://main/t if_changed\nSELECT 1 AS k, v FROM read_csv('data/in.csv')\n",
        expected: newest,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn a_killed_history_has_every_version_once() {
    check_kills(&Case {
        script: "-- materialize history ducklake://main/t key=k\nSELECT 1 AS k, v FROM read_csv('data/in.csv')\n",
        expected: all,
        points: &FaultPoint::ALL,
    });
}

#[test]
fn a_killed_view_is_the_old_or_the_new_definition() {
    check_kills(&Case {
        script: "-- materialize view ducklake://main/t\nSELECT 1 AS k, {version} AS v\n",
        expected: newest,
        points: &UNSTAGED,
    });
}

#[test]
fn a_killed_script_with_one_transaction_of_its_own_has_done_all_of_it_or_nothing() {
    check_kills(&Case {
        script: "-- materialize manual ducklake://main/t
ATTACH 'ducklake' AS l;
BEGIN;
CREATE TABLE IF NOT EXISTS l.t (k BIGINT, v BIGINT);
INSERT INTO l.t SELECT 1, v FROM read_csv('data/in.csv');
COMMIT;
",
        expected: all,
        points: &MANUAL,
    });
}

#[test]
fn a_script_killed_between_two_commits_of_its_own_runs_again() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize manual ducklake://main/t
ATTACH 'ducklake' AS l;
CREATE TABLE IF NOT EXISTS l.t (k BIGINT, v BIGINT);
DELETE FROM l.t;
INSERT INTO l.t VALUES (1, 1);
",
    );
    Work::run().faults("committed=kill").start(folder.path()).killed();
    let pintail = open(folder.path(), "");
    let told = run(&pintail, &PlanRequest::default());
    assert_eq!(told.steps.len(), 1, "what was half done counts as done");
    told.assert_good();
    assert_eq!(rows(&pintail), "1|1");
    assert_store_agrees_with_lake(&folder);
}

#[test]
fn a_script_that_fails_after_a_commit_of_its_own_stays_failed_and_runs_again() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize manual ducklake://main/t
ATTACH 'ducklake' AS l;
CREATE TABLE IF NOT EXISTS l.t (k BIGINT, v BIGINT);
INSERT INTO l.t VALUES (1, 'nothing');
",
    );
    let told = folder.run_all();
    let failure = told.failure("t");
    assert!(failure.committed.starts_with("the script's commit before this statement stands"), "{}", failure.committed);
    // The next start takes the stamp of the first commit in, and the failure stands all the same.
    let again = folder.run_all();
    assert!(again.step("t").failure.is_some(), "{}", again.text());
    let runs = open(folder.path(), "").runs(10).unwrap();
    assert!(runs.iter().all(|run| run.status == RunStatus::Failed), "{runs:?}");
}

/// A small deterministic generator (xorshift), so that a failing moment can be met again.
fn next_random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn ten_kills_at_random_moments_leave_whole_versions_and_the_next_run_goes_on() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT v, i FROM read_csv('data/in.csv'), range(100) r(i)
//- pipelines/b.sql
-- materialize ducklake://main/b append
SELECT v FROM read_csv('data/in.csv')
//- pipelines/c.sql
-- materialize ducklake://main/c key=i
SELECT i, v FROM a
//- pipelines/d.sql
-- materialize ducklake://main/d
SELECT count(*) AS n, min(v) AS low, max(v) AS high FROM c
",
    );
    write_input(folder.path(), 0);
    let began = Instant::now();
    Work::run().start(folder.path()).done();
    let whole = began.elapsed();
    let mut seed = 0x5EED_u64;
    for version in 1..=10 {
        write_input(folder.path(), version);
        let share = next_random(&mut seed) % 1_000;
        let moment = Instant::now() + whole.mul_f64(share as f64 / 1_000.0);
        let process = Work::run().start(folder.path());
        while Instant::now() < moment {
            std::thread::park_timeout(moment.saturating_duration_since(Instant::now()));
        }
        process.kill();

        let pintail = open(folder.path(), "");
        let newest = format!("100|{version}|{version}");
        let before = query(&pintail, "SELECT count(*), min(v), max(v) FROM a", None).remove(0);
        let old = format!("100|{0}|{0}", version - 1);
        assert!(before == old || before == newest, "version {version}, share {share}: {before}");
        run(&pintail, &PlanRequest::default()).assert_good();
        for table in ["a", "c"] {
            let now = query(&pintail, &format!("SELECT count(*), min(v), max(v) FROM {table}"), None);
            assert_eq!(now, [newest.as_str()], "version {version}, share {share}: {table}");
        }
        assert_eq!(query(&pintail, "SELECT n, low, high FROM d", None), [newest.as_str()], "version {version}");
        let appended = query(&pintail, "SELECT count(*), count(DISTINCT v), max(v) FROM b", None);
        assert_eq!(appended, [format!("{0}|{0}|{version}", version + 1)], "version {version}, share {share}");
        let open_runs = pintail.runs(100).unwrap().iter().filter(|run| run.status == RunStatus::Running).count();
        assert_eq!(open_runs, 0, "version {version}, share {share}");
    }
    assert_store_agrees_with_lake(&folder);
}

fn write_input(folder: &Path, version: u32) {
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("data/in.csv"), format!("v\n{version}\n")).unwrap();
}

#[test]
fn a_crash_is_healed_in_every_lake_before_anything_is_planned() {
    let folder = Folder::new(
        "//- pintail.toml
[lake.aa]
catalog = \"sqlite:.pintail/aa.sqlite\"
data = \".pintail/data/aa\"
//- pipelines/src.sql
-- materialize ducklake://aa/src
SELECT 1 AS n
//- pipelines/app.sql
-- materialize ducklake://main/app append
SELECT n FROM aa.main.src
",
    );
    folder.run_all().assert_good();
    folder.write("//- pipelines/src.sql\n-- materialize ducklake://aa/src\nSELECT 2 AS n\n");
    for _ in ["src", "app"] {
        Work::run().faults("committed=kill").start(folder.path()).killed();
    }
    assert_eq!(folder.run_all().text(), "", "both are in the lakes");
    assert_eq!(folder.query("SELECT n FROM app ORDER BY n"), ["1", "2"]);
}

#[test]
fn on_sqlite_a_lake_that_was_made_anew_is_not_taken_for_the_old_one() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 1 AS n
//- pipelines/app.sql
-- materialize ducklake://main/app append
SELECT n FROM a
",
    );
    for _ in 0..3 {
        folder.run(&crate::harness::forced()).assert_good();
    }
    let lake = folder.path().join(".pintail");
    for file in std::fs::read_dir(&lake).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("main.sqlite") && path.is_file()) {
            std::fs::remove_file(path).unwrap();
        }
    }
    std::fs::remove_dir_all(lake.join("data")).unwrap();
    let told = folder.run_all();
    assert_eq!(told.assert_good().steps.len(), 2);
    assert_eq!(folder.query("SELECT count(*) FROM app"), ["1"]);
    assert_eq!(folder.run_all().text(), "");
}
