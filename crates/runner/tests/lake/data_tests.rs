//! Data tests: what fails, what is ignored and counted, and that bad data is never published.

use expect_test::expect;
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, force_at, query, run};

/// The tests of the newest run as the store keeps them, one a line.
fn stored(pintail: &Pintail) -> String {
    let run = pintail.run_detail("last").unwrap();
    let mut lines: Vec<String> = Vec::new();
    for step in &run.steps {
        for test in &step.tests {
            lines.push(format!(
                "{} {}: {:?} fails {:?} ignored {:?}",
                step.step.script,
                test.name,
                test.status,
                test.failures.map_or(-1, |count| count as i64),
                test.nulls_ignored.map_or(-1, |count| count as i64),
            ));
        }
    }
    lines.sort_unstable();
    lines.join("\n")
}

const ROWS: &str = "SELECT * FROM (VALUES (1, 'a', 10), (2, NULL, 20), (NULL, 'b', 99), (3, 'c', NULL)) t(k, v, p)";

#[test]
fn case_m64_every_test_says_what_it_ignored() {
    let tests = "-- test unique k
-- test not_null v severity=warn
-- test accepted_values v = a,b severity=warn
-- test accepted_values v = a,'b',c,NULL
-- test relationships p -> ducklake://main/parents.id severity=warn
-- test relationships k -> ducklake://main/self_k.k severity=warn
-- test expression \"k < 3\" severity=warn
-- test expression \"k < 3\" where=\"v <> 'c'\"
-- test row_count 1..3 severity=warn
-- test row_count 4..";
    let folder = Folder::new(&format!(
        "//- pipelines/parents.sql
-- materialize ducklake://main/parents
SELECT * FROM (VALUES (10), (20), (NULL)) t(id)
//- pipelines/self_k.sql
-- materialize ducklake://main/self_k key=k
{tests}
{ROWS} WHERE k IS NOT NULL
//- pipelines/staged.sql
-- materialize ducklake://main/staged
{tests}
{ROWS}
//- pipelines/in_tx.sql
-- materialize ducklake://main/in_tx append
{tests}
{ROWS}
//- pipelines/viewed.sql
-- materialize view ducklake://main/viewed
{tests}
{ROWS}
//- pipelines/by_hand.sql
-- materialize manual ducklake://main/by_hand
{tests}
CREATE OR REPLACE TABLE by_hand AS {ROWS};
",
    ).replace("row_count 4..\nSELECT * FROM (VALUES (1, 'a', 10), (2, NULL, 20), (NULL, 'b', 99), (3, 'c', NULL)) t(k, v, p) WHERE", "row_count 3..\nSELECT * FROM (VALUES (1, 'a', 10), (2, NULL, 20), (NULL, 'b', 99), (3, 'c', NULL)) t(k, v, p) WHERE"));
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    let all = stored(&pintail);
    let of = |script: &str| {
        let prefix = format!("{script} ");
        all.lines().filter_map(|line| line.strip_prefix(&prefix)).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        accepted_values v: Passed fails 0 ignored -1
        accepted_values v: Warned fails 1 ignored 1
        expression "k < 3": Passed fails 0 ignored 1
        expression "k < 3": Warned fails 1 ignored 1
        not_null v: Warned fails 1 ignored -1
        relationships k -> ducklake://main/self_k.k: Passed fails 0 ignored 1
        relationships p -> ducklake://main/parents.id: Warned fails 1 ignored 1
        row_count 1..3: Warned fails 1 ignored -1
        row_count 4..: Passed fails 0 ignored -1
        unique k: Passed fails 0 ignored 1"#]]
    .assert_eq(&of("staged"));
    // The same test says the same wherever it runs.
    for script in ["in_tx", "viewed", "by_hand"] {
        assert_eq!(of(script), of("staged"), "{script}");
    }
    expect![[r#"
        accepted_values v: Passed fails 0 ignored -1
        accepted_values v: Warned fails 1 ignored 1
        expression "k < 3": Passed fails 0 ignored 0
        expression "k < 3": Warned fails 1 ignored 0
        not_null v: Warned fails 1 ignored -1
        relationships k -> ducklake://main/self_k.k: Passed fails 0 ignored 0
        relationships p -> ducklake://main/parents.id: Passed fails 0 ignored 1
        row_count 1..3: Passed fails 0 ignored -1
        row_count 3..: Passed fails 0 ignored -1
        unique k: Passed fails 0 ignored 0"#]]
    .assert_eq(&of("self_k"));
}

#[test]
fn case_m65_a_failed_test_leaves_the_old_version_live_wherever_it_runs() {
    let scripts = |rows: &str| {
        format!(
            "//- pipelines/staged.sql
-- materialize ducklake://main/staged
-- test unique k
SELECT * FROM (VALUES {rows}) t(k)
//- pipelines/in_tx.sql
-- materialize ducklake://main/in_tx append
-- test unique k
SELECT * FROM (VALUES {rows}) t(k)
//- pipelines/below.sql
-- materialize ducklake://main/below
SELECT count(*) AS n FROM staged
//- pipelines/viewed.sql
-- materialize view ducklake://main/viewed
-- test unique k
SELECT * FROM (VALUES {rows}) t(k)
//- pipelines/declared.sql
-- materialize ducklake://main/declared
-- column k not_null
SELECT * FROM (VALUES {rows}, (nullif(1, {last}))) t(k)
",
            last = if rows == "(1)" { 2 } else { 1 }
        )
    };
    let folder = Folder::new(&scripts("(1)"));
    folder.run_all().assert_good();
    folder.write(&scripts("(2), (2), (3)"));
    let pintail = folder.open();
    let before = query(&pintail, "SELECT max(snapshot_id) FROM lake.snapshots()", None);
    let told = run(&pintail, &PlanRequest::default());
    expect![[r#"
        below: Skipped rows None -0 +0
        declared: Failed: the test `not_null k`: 1 row fails
        in_tx: Failed: the test `unique k`: 1 row fails
        staged: Failed: the test `unique k`: 1 row fails
        viewed: Failed: the test `unique k`: 1 row fails"#]]
    .assert_eq(&told.text());
    expect![[r#"
        P510 test the new data: the test `unique k`: 1 row fails
        at line 2: test unique k
        help: the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again
        sample: k|_pt_count
          2|2
        committed: ducklake://main/staged is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&folder.told_of(&told, "staged"));
    assert_eq!(query(&pintail, "SELECT max(snapshot_id) FROM lake.snapshots()", None), before);
    assert_eq!(
        query(&pintail, "SELECT (FROM staged), (FROM in_tx), (FROM viewed), (SELECT n FROM below)", None),
        ["1|1|1|1"]
    );
    // The failed slice is due again, for that reason.
    assert_eq!(run(&pintail, &PlanRequest::default()).summary.failed, 4);
}

#[test]
fn a_manual_script_is_tested_after_it_has_published_and_says_so() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize manual ducklake://main/t
-- test expression \"n < 5\"
CREATE TABLE IF NOT EXISTS t (n INTEGER);
INSERT INTO t VALUES (9);
",
    );
    let told = folder.run_all();
    expect![[r#"
        P510 test the new data: the test `expression "n < 5"`: 1 row fails
        at line 2: test expression "n < 5"
        help: the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again
        sample: n
          9
        committed: the script's own commits stand (the last is snapshot 3): a manual script is checked after it has published"#]]
    .assert_eq(&folder.told_of(&told, "t"));
    assert_eq!(folder.query("FROM t"), ["9"]);
}

#[test]
fn a_singular_test_that_names_its_asset_in_any_way_fails_before_publish() {
    for name in ["lake.t", "t", "main.t", "lake.main.t", "\"lake\".\"T\"", "l.t"] {
        let folder = Folder::new(&format!(
            "//- pipelines/t.sql
-- materialize ducklake://main/t append
SELECT 1 AS n
//- tests/small.sql
-- description Numbers are small.
ATTACH 'ducklake' AS l;
SELECT * FROM {name} WHERE 5 < n
"
        ));
        folder.run_all().assert_good();
        folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t append\nSELECT 9 AS n\n");
        let told = folder.run_all();
        assert_eq!(told.failure("t").message, "the test `small`: 1 row fails", "{name}");
        assert_eq!(folder.query("FROM t"), ["1"], "{name}");
    }
}

#[test]
fn a_singular_test_over_two_assets_runs_with_the_last_and_reads_the_other_as_the_run_does() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 1 AS n
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT n + 1 AS n FROM a
//- tests/related.sql
SELECT b.n FROM b JOIN lake.a ON true WHERE b.n <> a.n + 1
",
    );
    folder.run_all().assert_good();
    folder.write(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 5 AS n
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT n + 2 AS n FROM a
",
    );
    let told = folder.run_all();
    assert_eq!(told.failure("b").message, "the test `related`: 1 row fails");
    assert_eq!(folder.query("SELECT (FROM a), (FROM b)"), ["5|2"]);
}

#[test]
fn generic_tests_take_arguments_and_look_at_the_written_rows() {
    let folder = Folder::new(
        "//- tests/at_most.sql
SELECT * FROM this WHERE $2 < $1
//- tests/known.sql
SELECT * FROM this WHERE v NOT IN (SELECT v FROM allowed) AND v <> $1
//- pipelines/allowed.sql
-- materialize ducklake://main/allowed
SELECT 'a' AS v
//- pipelines/t.sql
-- partitioned daily
-- materialize ducklake://main/t
-- test at_most n 5 severity=warn
-- test at_most n 5 scope=table severity=warn
-- test at_most n 5 where=\"v = 'a'\"
-- test known 'it''s'
SELECT day($partition_start) AS n, 'a' AS v UNION ALL SELECT 8, 'it''s'
",
    );
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    run(&pintail, &at("2026-01-02")).assert_good();
    expect![[r#"
        t at_most n 5: Passed fails 0 ignored -1
        t at_most n 5: Warned fails 1 ignored -1
        t at_most n 5: Warned fails 2 ignored -1
        t known it's: Passed fails 0 ignored -1"#]]
    .assert_eq(&stored(&pintail));
}

#[test]
fn scope_says_whether_the_slice_or_the_table_is_tested() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- partitioned daily
-- materialize ducklake://main/t
-- test unique k
-- test unique k scope=table severity=warn
-- test row_count 1..1
SELECT 1 AS k
",
    );
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    run(&pintail, &at("2026-01-02")).assert_good();
    expect![[r#"
        t row_count 1..1: Passed fails 0 ignored -1
        t unique k: Passed fails 0 ignored 0
        t unique k: Warned fails 1 ignored 0"#]]
    .assert_eq(&stored(&pintail));
    run(&pintail, &force_at("t", "2026-01-02")).assert_good();
}

#[test]
fn a_test_that_does_not_bind_fails_the_write_and_a_huge_failure_is_bounded() {
    let folder = Folder::new(
        "//- pipelines/wrong.sql
-- materialize ducklake://main/wrong
-- test not_null nope
SELECT 1 AS n
//- pipelines/huge.sql
-- materialize ducklake://main/huge
-- test expression \"n < 0\"
SELECT range AS n FROM range(100000)
//- pipelines/singular.sql
-- materialize ducklake://main/singular
SELECT 1 AS n
//- tests/broken.sql
SELECT nope FROM singular
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    expect![[r#"
        P510 test the new data: the test `not_null nope` could not run: Binder error: Referenced column "nope" not found in FROM clause!
        at line 2: test not_null nope
        help: did you mean `n`?
        committed: nothing of this step is committed; Pintail has not written ducklake://main/wrong yet"#]]
    .assert_eq(&folder.told_of(&told, "wrong"));
    expect![[r#"
        P510 test the new data: the test `broken` could not run: Binder error: Referenced column "nope" not found in FROM clause!
        help: did you mean `n`?
        committed: nothing of this step is committed; Pintail has not written ducklake://main/singular yet"#]]
    .assert_eq(&folder.told_of(&told, "singular"));
    let huge = told.failure("huge");
    assert_eq!(huge.message, "the test `expression \"n < 0\"`: 100000 rows fail");
    assert_eq!(huge.sample.as_ref().unwrap().rows.len(), 100);
    let run = pintail.run_detail("last").unwrap();
    let kept = run.steps.iter().flat_map(|step| &step.tests).map(|test| test.sample_rows.len()).max();
    assert_eq!(kept, Some(100));
    assert_eq!(
        query(
            &pintail,
            "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake' AND schema_name = 'main'",
            None
        ),
        ["0"]
    );
}

#[test]
fn tests_run_at_any_snapshot_on_what_is_committed() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize ducklake://main/t
-- test expression \"n < 5\" severity=warn
SELECT 9 AS n
",
    );
    let first = folder.run_all().step("t").snapshot;
    folder
        .write("//- pipelines/t.sql\n-- materialize ducklake://main/t\n-- test expression \"n < 5\"\nSELECT 1 AS n\n");
    folder.run_all().assert_good();
    let pintail = folder.open();
    let status = |snapshot| {
        let tested = pintail.test(None, None, snapshot).unwrap();
        format!("{:?} {:?}", tested[0].tests[0].status, tested[0].tests[0].failures)
    };
    assert_eq!(status(None), "Passed Some(0)");
    assert_eq!(status(first), "Failed Some(1)");
}

#[test]
fn a_test_that_would_never_run_is_said() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT 1 AS n
//- tests/unbound.sql
SELECT 1 WHERE false
//- tests/dynamic.sql
FROM query_table('t') WHERE n > 5
//- tests/stranger.sql
FROM nobody_writes_this
//- tests/used.sql
FROM this WHERE n > 5
",
    );
    expect![[r#"
        Warning P312 tests/stranger.sql:1 the test `stranger` reads nothing that a script writes, so it never runs
        Warning P312 tests/unbound.sql:1 the test `unbound` reads nothing that a script writes, so it never runs"#]]
    .assert_eq(&folder.check().join("\n"));
}
