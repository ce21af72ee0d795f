//! Memory and disk: too little of either fails the step and nothing else.

use expect_test::expect;
use pintail_runner::pintail::{BackfillRange, PlanRequest};

use crate::harness::{Folder, only, query, run};

#[test]
fn case_t82_out_of_memory_is_a_failed_step_and_the_process_goes_on() {
    let folder = Folder::new(
        "//- pintail.toml
[run]
slots = 1
memory_limit = \"64MB\"
temp_limit = \"1MB\"
//- pipelines/big.sql
-- materialize ducklake://main/big
SELECT i, repeat('x', 200) || i AS text FROM range(3000000) t(i) ORDER BY hash(i)
//- pipelines/small.sql
-- materialize ducklake://main/small
SELECT 1 AS n
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    told.step("small");
    let failure = told.failure("big");
    assert_eq!((failure.code.as_str(), failure.stage.as_str()), ("P516", "stage the query"), "{}", told.text());
    assert_eq!(query(&pintail, "FROM small", None), ["1"]);
    run(&pintail, &PlanRequest { force: true, ..only("small") }).assert_good();
    // What was spilled goes where the project says, and is gone afterwards.
    let left: Vec<_> = std::fs::read_dir(folder.path().join(".pintail/tmp"))
        .map(|files| files.map(|file| file.unwrap().path()).collect())
        .unwrap_or_default();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_query_larger_than_memory_spills() {
    let folder = Folder::new(
        "//- pintail.toml
[run]
slots = 1
memory_limit = \"200MB\"
//- pipelines/big.sql
-- materialize ducklake://main/big
SELECT i, repeat('x', 100) || i AS text FROM range(1000000) t(i) ORDER BY hash(i)
",
    );
    let told = folder.run_all();
    assert_eq!(told.assert_good().step("big").rows, Some(1_000_000));
}

#[test]
fn case_t84_a_slice_with_rows_of_three_thousand_days_and_a_backfill_of_many_slices() {
    let folder = Folder::new(
        "//- pintail.toml
[run]
slots = 1
memory_limit = \"512MB\"
//- pipelines/days.sql
-- materialize manual ducklake://main/days
CREATE TABLE lake.days (day DATE, n BIGINT);
ALTER TABLE lake.days SET PARTITIONED BY (year(day), month(day));
INSERT INTO lake.days SELECT DATE '2018-01-01' + i::INTEGER, i FROM range(3000) t(i);
//- pipelines/slices.sql
-- partitioned daily by=day start=2018-01-01
-- materialize ducklake://main/slices
SELECT * FROM days WHERE in_partition(day)
",
    );
    let pintail = folder.open();
    run(&pintail, &only("days")).assert_good();
    let backfill = |to: &str, missing| PlanRequest {
        backfill: Some(BackfillRange {
            script: "slices".to_owned(),
            from: Some("2018-01-01".to_owned()),
            to: Some(to.to_owned()),
            missing,
            ..BackfillRange::default()
        }),
        ..PlanRequest::default()
    };
    let told = run(&pintail, &backfill("2018-01-05", false));
    assert_eq!(told.assert_good().steps.len(), 5);
    let told = run(&pintail, &backfill("2018-01-07", true));
    assert_eq!(told.assert_good().steps.len(), 2);
    assert_eq!(query(&pintail, "SELECT count(*), count(DISTINCT day) FROM slices", None), ["7|7"]);
    assert_eq!(query(&pintail, "SELECT count(*) FROM days", None), ["3000"]);
    let (plan, _) = pintail.plan(&backfill("2026-03-19", true)).unwrap();
    assert_eq!(plan.steps.len(), 3000 - 7);
    expect!["2018-01-08"].assert_eq(plan.steps[0].partition.as_ref().unwrap().as_str());
}
