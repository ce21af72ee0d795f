//! What the user wrote wrong: each mistake with its place, and nothing is run.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{SHOP, check, run};

#[test]
fn three_mistakes_in_annotations_and_one_in_the_sql_give_four_positions() {
    let project = Project::new(
        "
//- /pipelines/orders.sql
-- materialise ducklake://main/orders
-- partitioned dayly by=ordered_on
-- test uniqe order_id

SELECT order_id FROM orders_raw GROUP order_id
",
    );
    check(
        &project,
        "check",
        expect![[r#"
            exit code 3
            --- stdout
            checked 1 script and 0 test files: 4 errors
            --- stderr
            error[P101]: unknown annotation `materialise`; did you mean `materialize`?
             --> pipelines/orders.sql:1:4
              |
            1 | -- materialise ducklake://main/orders
              |    ^^^^^^^^^^^
              |
              = help: write `materialize` in its place; annotation words are lower case
            error[P108]: `dayly` is not a kind of partition; expected `daily`, `hourly`, `weekly`, `monthly` or `dynamic`
             --> pipelines/orders.sql:2:16
              |
            2 | -- partitioned dayly by=ordered_on
              |                ^^^^^
              |
              = help: did you mean `daily`?
            error[P108]: unknown test `uniqe`
             --> pipelines/orders.sql:3:9
              |
            3 | -- test uniqe order_id
              |         ^^^^^
              |
              = help: did you mean `unique`?
            error[P201]: syntax error at or near "order_id"
             --> pipelines/orders.sql:5:39
              |
            5 | SELECT order_id FROM orders_raw GROUP order_id
              |                                       ^^^^^^^^
            info[P212]: what the script reads is not fully known (once; `check -v` shows where)
        "#]],
    );
    check(
        &project,
        "run",
        expect![[r#"
            exit code 3
            --- stderr
            error[P101]: unknown annotation `materialise`; did you mean `materialize`?
             --> pipelines/orders.sql:1:4
              |
            1 | -- materialise ducklake://main/orders
              |    ^^^^^^^^^^^
              |
              = help: write `materialize` in its place; annotation words are lower case
            error[P108]: `dayly` is not a kind of partition; expected `daily`, `hourly`, `weekly`, `monthly` or `dynamic`
             --> pipelines/orders.sql:2:16
              |
            2 | -- partitioned dayly by=ordered_on
              |                ^^^^^
              |
              = help: did you mean `daily`?
            error[P108]: unknown test `uniqe`
             --> pipelines/orders.sql:3:9
              |
            3 | -- test uniqe order_id
              |         ^^^^^
              |
              = help: did you mean `unique`?
            error[P201]: syntax error at or near "order_id"
             --> pipelines/orders.sql:5:39
              |
            5 | SELECT order_id FROM orders_raw GROUP order_id
              |                                       ^^^^^^^^
            error: 4 errors in the project; nothing was done
        "#]],
    );
    assert!(!project.exists(".pintail"), "nothing was opened");
}

#[test]
fn infos_are_summed_up_unless_asked_for() {
    let project = Project::new(
        "
//- /pipelines/a.sql
-- freshness 1h
-- materialize ducklake://main/a

SELECT 1 AS one
",
    );
    check(
        &project,
        "check",
        expect![[r#"
        exit code 0
        --- stdout
        checked 1 script and 0 test files: no mistakes found
        --- stderr
        info[P125]: checked, but this version does not act on it yet (once; `check -v` shows where)
    "#]],
    );
    check(
        &project,
        "check -v",
        expect![[r#"
        exit code 0
        --- stdout
        checked 1 script and 0 test files: no mistakes found
        --- stderr
        info[P125]: `freshness` is parsed and checked, but this version does not act on it yet
         --> pipelines/a.sql:1:4
          |
        1 | -- freshness 1h
          |    ^^^^^^^^^
    "#]],
    );
}

#[test]
fn warnings_fail_only_a_strict_check() {
    let project = Project::new(
        "
//- /pipelines/a.sql
-- materialize ducklake://main/a append
-- unique_key one

SELECT 1 AS one
",
    );
    check(
        &project,
        "check",
        expect![[r#"
        exit code 0
        --- stdout
        checked 1 script and 0 test files: 1 warning
        --- stderr
        warning[P119]: the key has no effect: `append` wins
         --> pipelines/a.sql:2:4
          |
        1 | -- materialize ducklake://main/a append
          |                                  ------ `append` stands here
        2 | -- unique_key one
          |    ^^^^^^^^^^^^^^
          |
          = help: remove `append` to replace rows with the same key, or remove the key
    "#]],
    );
    run(&project, "check --strict").expect_code(3);
}

#[test]
fn a_script_given_where_an_option_is_meant_is_told_the_option() {
    let project = Project::new(SHOP);
    check(
        &project,
        "run orders",
        expect![[r#"
        exit code 2
        --- stderr
        error: unexpected argument 'orders' found

        Usage: pintail run [OPTIONS]

        For more information, try '--help'.

        hint: scripts are named by an option: `pintail run --select orders`
    "#]],
    );
}

#[test]
fn a_mistyped_materialize_is_one_mistake_and_missing_arguments_are_another() {
    let project = Project::new(
        "
//- /pipelines/a.sql
-- materialise ducklake://main/a
-- test unique id

SELECT 1 AS id
//- /pipelines/b.sql
-- materialize ducklake://main/b
-- test at_least id

SELECT 1 AS id
//- /tests/at_least.sql
SELECT * FROM this WHERE $1 < $2
",
    );
    check(
        &project,
        "check",
        expect![[r#"
        exit code 3
        --- stdout
        checked 2 scripts and 1 test file: 2 errors
        --- stderr
        error[P101]: unknown annotation `materialise`; did you mean `materialize`?
         --> pipelines/a.sql:1:4
          |
        1 | -- materialise ducklake://main/a
          |    ^^^^^^^^^^^
          |
          = help: write `materialize` in its place; annotation words are lower case
        error[P307]: the test `at_least` uses $2, so it needs 2 arguments; found 1
         --> pipelines/b.sql:2:4
          |
        2 | -- test at_least id
          |    ^^^^^^^^^^^^^^^^
          |
          = help: write them after the name: `test at_least …`; $2 is used in tests/at_least.sql
    "#]],
    );
}

#[test]
fn a_mistake_elsewhere_does_not_stop_what_is_selected() {
    let project = Project::new(SHOP);
    project.write("pipelines/broken.sql", "-- materialize ducklake://main/broken\n\nSELECT 1 AS\n");
    run(&project, "run").expect_code(3);
    check(
        &project,
        "run --select +revenue",
        expect![[r#"
            exit code 0
            --- stdout
            run <id> succeeded: 2 materialized in <time>
            --- stderr
            warning: 1 error in scripts that are not selected
            hint: `pintail check` shows them
            materialized  orders   3 rows, snapshot 2 (<time>)
            materialized  revenue  2 rows, snapshot 3 (<time>)
        "#]],
    );
}

#[test]
fn every_mistake_of_a_selection_is_shown() {
    let project = Project::new(SHOP);
    check(
        &project,
        "run --select ordrs+ tag:nigthly --exclude revnue",
        expect![[r#"
            exit code 2
            --- stderr
            error[P305]: `ordrs` matches no script
             --> --select:1:1
              |
            1 | ordrs+ tag:nigthly
              | ^^^^^
              |
              = help: did you mean `orders`?
            error[P305]: no script has the tag `nigthly`
             --> --select:1:8
              |
            1 | ordrs+ tag:nigthly
              |        ^^^^^^^^^^^
              |
              = help: did you mean `nightly`?
        "#]],
    );
    check(
        &project,
        "list --select tga:nightly",
        expect![[r#"
        exit code 2
        --- stderr
        error[P306]: unknown method `tga:`
         --> --select:1:1
          |
        1 | tga:nightly
          | ^^^
          |
          = help: did you mean `tag:`?
    "#]],
    );
}

#[test]
fn mistakes_of_the_configuration_are_shown_at_their_place() {
    let project = Project::new(SHOP);
    project.write("pintail.toml", "[run]\nslot = 2\n");
    check(
        &project,
        "query SELECT",
        expect![[r#"
        exit code 3
        --- stderr
        error[P002]: unknown key `slot` in [run]
         --> pintail.toml:2:1
          |
        2 | slot = 2
          | ^^^^
          |
          = help: did you mean `slots`?
    "#]],
    );
}

#[test]
fn a_secret_that_stands_in_the_file_is_not_repeated_however_it_is_written() {
    let lake = "[lake.main]\ncatalog = \"postgres:host=h dbname=d user=u\"\n";
    let mistakes = [
        format!("{lake}password = 4711canary\n"),
        format!("{lake}password = 47114711\n"),
        format!("{lake}pasword = \"canary4711\"\n"),
        "[ingest]\ntokns = [\"canary4711\"]\n".to_owned(),
        "[ingest]\ntoken = \"canary4711\"\n".to_owned(),
    ];
    for mistake in mistakes {
        let project = Project::new(SHOP);
        project.write("pintail.toml", &mistake);
        let outcome = run(&project, "check").expect_code(3);
        let said = outcome.to_string();
        assert!(!said.contains("4711"), "{mistake}\n{said}");
        assert!(said.contains("pintail.toml:"), "{said}");
    }
}

#[test]
fn a_secret_never_reaches_the_output() {
    let project = Project::new(SHOP);
    project.write(
        "pintail.toml",
        "[vars]\ntoken = \"${SHOP_TOKEN}\"\n[object_store.raw]\nurl = \"s3://b\"\nkey = \"k\"\nsecret = \"${SHOP_TOKEN}\"\n",
    );
    project.write(
        "pipelines/leak.sql",
        "-- materialize ducklake://main/leak\n\nSELECT error('the token is ' || $token) AS x\n",
    );
    let with_secret =
        |line: &str| pintail_testkit::pintail(&project).env("SHOP_TOKEN", "canary-7f3a").words(line).run();
    for line in
        ["check", "plan --sql", "run", "run -vv", "show last --sql", "show last --json --sql", "history leak --json"]
    {
        let outcome = with_secret(line);
        assert!(!outcome.to_string().contains("canary-7f3a"), "{line}\n{outcome}");
    }
}
