//! Group commit: ready steps share a commit, each with its own stamp, test and failure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pintail_core::asset::Asset;
use pintail_engine::fault::FaultPoint;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::StepState;

use crate::harness::{Folder, Told, forced, query, run};
use crate::processes::{Work, open};

/// One slot, so that everything that is ready goes into one group.
const ONE_SLOT: &str = "//- pintail.toml\n[run]\nslots = 1\n";

/// `count` scripts that read a file, and one that reads all of them.
fn fan(count: usize) -> Folder {
    let mut text = format!("{ONE_SLOT}//- data/in.csv\nv\n1\n");
    let mut union = Vec::new();
    for number in 0..count {
        writeln!(
            text,
            "//- pipelines/t{number}.sql\n-- materialize ducklake://main/t{number}\n-- test not_null v\n\
             SELECT v + {number} AS v FROM read_csv('data/in.csv')"
        )
        .unwrap();
        union.push(format!("SELECT v FROM t{number}"));
    }
    writeln!(
        text,
        "//- pipelines/all_of_them.sql\n-- materialize ducklake://main/all_of_them\n{}",
        union.join(" UNION ALL ")
    )
    .unwrap();
    Folder::new(&text)
}

fn snapshots(told: &Told) -> usize {
    told.steps.iter().filter_map(|step| step.snapshot).collect::<BTreeSet<_>>().len()
}

#[test]
fn ready_steps_share_a_commit_and_each_is_a_version_of_its_own() {
    let folder = fan(6);
    let told = folder.run_all();
    told.assert_good();
    assert_eq!((told.steps.len(), snapshots(&told)), (7, 2), "six together, then the one that reads them");
    assert_eq!(folder.query("SELECT count(*), sum(v) FROM all_of_them"), ["6|21"]);
    let pintail = folder.open();
    for number in 0..6 {
        let history = pintail.history(&Asset::lake_table("main", "main", &format!("t{number}")), 10).unwrap();
        assert_eq!(history.len(), 1, "t{number}");
    }
    assert_eq!(folder.run_all().text(), "");
}

#[test]
fn more_steps_than_a_group_holds_are_several_groups() {
    let folder = fan(40);
    let told = folder.run_all();
    told.assert_good();
    // A busy machine closes a group early, after a second.
    assert_eq!(told.steps.len(), 41);
    assert!((3..12).contains(&snapshots(&told)), "{}", told.text());
}

#[test]
fn a_member_that_fails_its_test_fails_alone() {
    let folder = fan(4);
    // Tests on the table's other rows need the transaction; one that fails there takes the group back.
    folder.write(
        "//- pipelines/t2.sql\n-- materialize ducklake://main/t2 append\n-- test row_count 0..0 scope=table\nSELECT v FROM read_csv('data/in.csv')\n",
    );
    let told = folder.run_all();
    assert_eq!(told.step("t2").state, StepState::Failed, "{}", told.text());
    assert_eq!(told.step("all_of_them").state, StepState::Skipped);
    for good in ["t0", "t1", "t3"] {
        assert_eq!(told.step(good).state, StepState::Materialized, "{}", told.text());
    }
    assert_eq!(folder.query("SELECT (SELECT count(*) FROM t0), (SELECT count(*) FROM t3)"), ["1|1"]);
}

#[test]
fn a_member_whose_query_fails_does_not_hold_the_others() {
    let folder = fan(3);
    folder.write("//- pipelines/t1.sql\n-- materialize ducklake://main/t1\nSELECT error('no luck') AS v\n");
    let told = folder.run_all();
    assert_eq!(told.step("t1").state, StepState::Failed, "{}", told.text());
    assert!(told.failure("t1").message.contains("no luck"), "{}", told.text());
    for good in ["t0", "t2"] {
        assert_eq!(told.step(good).state, StepState::Materialized, "{}", told.text());
    }
}

#[test]
fn variables_of_neighbours_are_not_mixed_up() {
    let folder = Folder::new(&format!(
        "{ONE_SLOT}//- pipelines/a.sql
-- partitioned daily by=d
-- materialize ducklake://main/a
-- test expression \"p IS NOT DISTINCT FROM getvariable('partition')\" scope=table
SELECT $partition_start AS d, $partition AS p
//- pipelines/b.sql
-- partitioned monthly by=d
-- materialize ducklake://main/b
SELECT $partition_start AS d, $partition AS p
//- pipelines/c.sql
-- materialize ducklake://main/c
-- test expression \"getvariable('partition') IS NULL\" scope=table
SELECT 1 AS p
"
    ));
    let told = folder.run(&PlanRequest { partition: Some("2026-02-01".to_owned()), ..PlanRequest::default() });
    told.assert_good();
    assert_eq!(folder.query("SELECT p FROM a UNION ALL SELECT p FROM b ORDER BY ALL"), ["2026-02", "2026-02-01"]);
    assert_eq!(folder.query("SELECT p FROM c"), ["1"]);
}

#[test]
fn a_group_that_is_killed_leaves_all_its_members_or_none() {
    let folder = fan(4);
    folder.run_all().assert_good();
    for (version, point) in (2..).zip(FaultPoint::ALL) {
        folder.write(&format!("//- data/in.csv\nv\n{version}\n"));
        Work::run().faults(format!("{}=kill", point.name())).start(folder.path()).killed();
        let has_committed = matches!(point, FaultPoint::Committed | FaultPoint::Remembered);
        let there = if has_committed { version } else { version - 1 };
        let pintail = open(folder.path(), "");
        for number in 0..4 {
            let rows = query(&pintail, &format!("SELECT v FROM t{number}"), None);
            assert_eq!(rows, [(there + number).to_string()], "t{number} killed at {point:?}");
        }
        let told = run(&pintail, &PlanRequest::default());
        assert_eq!(told.steps.len(), if has_committed { 1 } else { 5 }, "killed at {point:?}: {}", told.text());
        told.assert_good();
        let sum: i32 = (0..4).map(|number| version + number).sum();
        assert_eq!(query(&pintail, "SELECT sum(v) FROM all_of_them", None), [sum.to_string()], "{point:?}");
    }
}

#[test]
fn a_group_counts_rows_as_single_steps_do() {
    let folder = fan(2);
    folder.run_all().assert_good();
    let told = folder.run(&forced());
    assert_eq!(told.step("t0").changed, (1, 1));
    assert_eq!(told.step("t1").rows, Some(1));
}

#[test]
fn slices_of_a_table_that_is_there_share_a_commit_and_keep_apart() {
    let folder = Folder::new(&format!(
        "{ONE_SLOT}//- data/in.csv
v
1
//- pipelines/s.sql
-- partitioned daily by=d start=2026-01-01
-- materialize ducklake://main/s
SELECT $partition_start AS d, v, $partition AS p FROM read_csv('data/in.csv')
"
    ));
    let days = |partition: &str| PlanRequest { partition: Some(partition.to_owned()), ..PlanRequest::default() };
    folder.run(&days("2026-01-01")).assert_good();
    let told = folder.run(&days("2026-01"));
    told.assert_good();
    assert_eq!(told.steps.len(), 30);
    assert!(snapshots(&told) < 15, "{}", told.text());
    folder.write("//- data/in.csv\nv\n2\n");
    let told = folder.run(&days("2026-01"));
    told.assert_good();
    assert!(told.steps.iter().all(|step| step.changed == (1, 1) && step.rows == Some(1)), "{}", told.text());
    let all = "SELECT count(*), sum(v), count(DISTINCT p), bool_and(d::DATE::VARCHAR = p) FROM s";
    assert_eq!(folder.query(all), ["31|62|31|true"]);
    assert_eq!(folder.run(&days("2026-01")).text(), "");
}

#[test]
fn a_lake_that_is_missing_is_the_failure_of_who_reads_it_alone() {
    let folder = Folder::new(
        "//- pintail.toml
[lake.other]
catalog = \"sqlite:.pintail/other.sqlite\"
data = \".pintail/data/other\"
[run]
slots = 1
//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 1 AS n
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT n FROM other.main.t
",
    );
    let told = folder.run_all();
    assert_eq!(told.step("a").state, StepState::Materialized, "{}", told.text());
    assert_eq!(told.step("b").state, StepState::Failed, "{}", told.text());
}

#[test]
fn a_member_that_goes_on_alone_is_tested_with_its_own_variables() {
    let folder = Folder::new(&format!(
        "{ONE_SLOT}//- pipelines/a.sql
-- partitioned daily by=d
-- materialize ducklake://main/a
-- test expression \"p IS NOT DISTINCT FROM getvariable('partition')\" scope=table
SELECT $partition_start AS d, $partition AS p
//- pipelines/b.sql
-- partitioned monthly by=d
-- materialize ducklake://main/b
SELECT $partition_start AS d, $partition AS p
//- pipelines/z.sql
-- materialize ducklake://main/z append
-- test row_count 0..0 scope=table
SELECT 1 AS n
"
    ));
    let told = folder.run(&PlanRequest { partition: Some("2026-02-01".to_owned()), ..PlanRequest::default() });
    assert_eq!(told.step("z").state, StepState::Failed, "{}", told.text());
    for good in ["a 2026-02-01", "b 2026-02"] {
        assert_eq!(told.step(good).state, StepState::Materialized, "{}", told.text());
    }
}
