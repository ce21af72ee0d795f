//! Steps that fail: the stage, the place, what is committed now, and what to do next.

use expect_test::expect;
use pintail_testkit::{Project, pintail};

use crate::{SHOP, check, run};

#[test]
fn a_failing_test_keeps_the_old_version_live_and_says_so() {
    let project = Project::new(SHOP);
    run(&project, "run").expect_ok();
    project.replace("pipelines/orders.sql", "'grace'", "NULL");
    check(
        &project,
        "run",
        expect![[r#"
            exit code 1
            --- stdout
            run <id> failed: 1 failed, 1 skipped in <time>
            --- stderr
            failed        orders   (<time>)
            skipped       revenue
            error[P510]: orders: the test `not_null customer`: 1 row fails
             --> pipelines/orders.sql:6:4
              |
            6 | -- test not_null customer
              |    ^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: failed to test the new data
              = note: committed now: ducklake://main/orders is as it was before this run; nothing of this step is committed
              = help: the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again
                order_id  customer  amount
                2         NULL      12.50
            hint: `pintail show last` has the errors, the failing rows and the log
        "#]],
    );
    let live = pintail(&project).args(["query", "SELECT customer FROM orders ORDER BY ALL"]).run();
    expect![[r#"
        exit code 0
        --- stdout
        customer
        ────────
        ada
        ada
        grace
        --- stderr
        (3 rows)
    "#]]
    .assert_eq(&live.to_string());
    check(
        &project,
        "show last",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> failed
          command   run
          started   <when> UTC
          time      <time>
          reads     main at 3
          end       1 failed, 1 skipped

        script   partition  result   rows  snapshot  attempts  why                 time
        orders   -          failed      -         -         1  the script changed  <time>
        revenue  -          skipped     -         -         0  after orders        -

        orders
          failed to test the new data: the test `not_null customer`: 1 row fails
            order_id | customer | amount
            2 | NULL | 12.50
          committed now: ducklake://main/orders is as it was before this run; nothing of this step is committed
          next: the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again
          test unique order_id passed
          test not_null customer failed: 1 row
            {"order_id":2,"customer":null,"amount":12.5}
          phases: lease <time>, pin <time>, stage <time>, guard <time>, test <time>, commit <time>
    "#]],
    );
    check(
        &project,
        "history",
        expect![[r#"
        exit code 0
        --- stdout
        run                                   started (UTC)        result                       command  time
        <id>  <when>  failed: 1 failed, 1 skipped  run      <time>
        <id>  <when>  succeeded                    run      <time>
        --- stderr
        (2 runs)
        hint: `pintail show <run>` tells all of one, `pintail show last` of the newest
    "#]],
    );
}

#[test]
fn an_error_of_the_query_is_shown_in_the_file() {
    let project = Project::new(
        "
//- /pipelines/a.sql
-- materialize ducklake://main/a

SELECT
    1 AS one,
    custmer
FROM (SELECT 1 AS customer)
",
    );
    check(
        &project,
        "run",
        expect![[r#"
            exit code 1
            --- stdout
            run <id> failed: 1 failed in <time>
            --- stderr
            failed        a  (<time>)
            error: a: Binder error: Referenced column "custmer" not found in FROM clause!
             --> pipelines/a.sql:5:5
              |
            5 |     custmer
              |     ^
              |
              = note: failed to stage the query
              = note: committed now: nothing of this step is committed; Pintail has not written ducklake://main/a yet
              = help: did you mean `customer`?
            hint: `pintail show last` has the errors, the failing rows and the log
        "#]],
    );
}

#[test]
fn a_warning_of_a_test_does_not_stop_the_write() {
    let project = Project::new(
        "
//- /pipelines/a.sql
-- materialize ducklake://main/a
-- test not_null x severity=warn

SELECT NULL::INTEGER AS x
",
    );
    check(
        &project,
        "run",
        expect![[r#"
            exit code 0
            --- stdout
            run <id> succeeded: 1 materialized in <time>
            --- stderr
            materialized  a  1 row, snapshot 2 (<time>)
            warning: a: test `not_null x` found 1 row; it only warns, so the write went on
            hint: `pintail show last` has the rows that the tests warn of
        "#]],
    );
    check(
        &project,
        "test",
        expect![[r#"
        exit code 0
        --- stdout
        a
          warned not_null x: 1 row
            x
            NULL
        1 warned
    "#]],
    );
}

#[test]
fn a_missing_extension_names_what_to_do() {
    let project = Project::new(SHOP);
    let outcome = pintail(&project).env("PINTAIL_EXTENSION_DIR", project.place("nowhere")).words("run").run();
    expect![[r#"
        exit code 1
        --- stdout
        run <id> failed: 1 failed, 1 skipped in <time>
        --- stderr
        failed        orders   (<time>)
        skipped       revenue
        error: orders: the DuckDB extension `ducklake` v1.5.5 was not found in <project>/nowhere; run `cargo xtask setup`, or set PINTAIL_EXTENSION_DIR to the folder that holds ducklake.duckdb_extension
        --> pipelines/orders.sql
         = note: failed to reach the lake
         = note: committed now: nothing of this step is committed; Pintail has not written ducklake://main/orders yet
        hint: `pintail show last` has the errors, the failing rows and the log
    "#]].assert_eq(&outcome.to_string());
    let outcome = pintail(&project).env("PINTAIL_EXTENSION_DIR", project.place("nowhere")).words("doctor").run();
    let missing: Vec<&str> = outcome.stdout.lines().filter(|line| line.starts_with("missing")).collect();
    expect![[r#"
        missing extension ducklake          not in <project>/nowhere; run `cargo xtask setup`, or set PINTAIL_EXTENSION_DIR
        missing extension sqlite_scanner    not in <project>/nowhere; run `cargo xtask setup`, or set PINTAIL_EXTENSION_DIR"#]].assert_eq(&missing.join("\n"));
    assert_eq!(outcome.code, Some(1));
}

#[test]
fn a_file_that_is_not_there_says_where_paths_start() {
    let project = Project::new(
        "
//- /pipelines/raw/a.sql
-- materialize ducklake://main/a

FROM read_csv('a.csv')
",
    );
    check(
        &project,
        "run",
        expect![[r#"
        exit code 1
        --- stdout
        run <id> failed: 1 failed in <time>
        --- stderr
        failed        raw/a  (<time>)
        error: raw/a: IO error: No files found that match the pattern "a.csv"
         --> pipelines/raw/a.sql:3:6
          |
        3 | FROM read_csv('a.csv')
          |      ^
          |
          = note: failed to stage the query
          = note: committed now: nothing of this step is committed; Pintail has not written ducklake://main/a yet
          = help: a path in SQL starts at the folder of the project, wherever the script lies
        hint: `pintail show last` has the errors, the failing rows and the log
    "#]],
    );
}

#[test]
fn timings_name_the_phases() {
    let project = Project::new(SHOP);
    let outcome = run(&project, "run --timings --select orders").expect_ok();
    let heading = outcome.stdout.lines().find(|line| line.starts_with("step")).unwrap_or_default();
    let words: Vec<&str> = heading.split_whitespace().collect();
    expect!["step lease pin stage guard test commit remember total"].assert_eq(&words.join(" "));
}

#[test]
fn a_test_that_a_million_rows_fail_shows_some_of_them_and_keeps_a_hundred() {
    let project = Project::new(
        "
//- /pipelines/numbers.sql
-- materialize ducklake://main/numbers

SELECT 7 AS n FROM range(1000000)
//- /tests/no_numbers.sql
SELECT n FROM numbers
",
    );
    let ran = run(&project, "run").expect_code(1);
    expect![[r#"
        failed        numbers  (<time>)
        error[P510]: numbers: the test `no_numbers`: 1000000 rows fail
        --> pipelines/numbers.sql
         = note: failed to test the new data
         = note: committed now: nothing of this step is committed; Pintail has not written ducklake://main/numbers yet
         = help: the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again
            n
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            7
            … 80 more in `--json`
        hint: `pintail show last` has the errors, the failing rows and the log
    "#]]
    .assert_eq(&ran.stderr);
    let shown = run(&project, "show last").expect_ok();
    assert_eq!(shown.stdout.lines().filter(|line| line.contains("more in `--json`")).count(), 2, "{shown}");
    assert!(shown.stdout.lines().count() < 60, "{shown}");
    let all = run(&project, "show last --json").expect_ok();
    let all: serde_json::Value = serde_json::from_str(&all.raw_stdout).unwrap();
    assert_eq!(all["steps"][0]["tests"][0]["sample"].as_array().map(Vec::len), Some(100), "{all:#}");
}
