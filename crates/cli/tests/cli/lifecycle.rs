//! A project from its first day: made, checked, planned, run, run again, asked.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{SHOP, check, run};

#[test]
fn a_new_project_checks_clean_plans_runs_and_has_nothing_to_do_after() {
    let project = Project::empty();
    check(
        &project,
        "init --example quickstart",
        expect![[r#"
            exit code 0
            --- stdout
            made pintail.toml
            made pipelines/orders.sql
            made pipelines/revenue_by_day.sql
            made pipelines/best_customers.sql
            made .gitignore
            --- stderr
            hint: `pintail run` writes the example; `pintail plan` says before what it would do
        "#]],
    );
    // One slot, so that steps that could go at once end in their order.
    project.replace("pintail.toml", "# [run]\n# slots = 2", "[run]\nslots = 1");
    check(
        &project,
        "check",
        expect![[r#"
        exit code 0
        --- stdout
        checked 3 scripts and 0 test files: no mistakes found
    "#]],
    );
    check(
        &project,
        "plan",
        expect![[r#"
        exit code 0
        --- stdout
        #  script          strategy  why            after
        1  orders          merge     never written
        2  best_customers  view      never written  #1
        3  revenue_by_day  replace   never written  #1

        3 steps to do
    "#]],
    );
    check(
        &project,
        "run",
        expect![[r#"
            exit code 0
            --- stdout
            run <id> succeeded: 3 materialized in <time>
            --- stderr
            materialized  orders          4 rows, snapshot 2 (<time>)
            materialized  best_customers  the view, snapshot 3 (<time>)
            materialized  revenue_by_day  3 rows, snapshot 4 (<time>)
        "#]],
    );
    check(
        &project,
        "run",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: 3 steps are up to date
    "#]],
    );
    check(
        &project,
        "history",
        expect![[r#"
        exit code 0
        --- stdout
        run                                   started (UTC)        result     command  time
        <id>  <when>  succeeded  run      <time>
        --- stderr
        (1 run)
        hint: `pintail show <run>` tells all of one, `pintail show last` of the newest
    "#]],
    );
    check(
        &project,
        "history orders",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/orders

        snapshot  when (UTC)           result        strategy  rows  inserted  deleted  columns  run
               2  <when>  materialized  merge        4         4        0  v1       <id>
    "#]],
    );
    check(
        &project,
        "plan --force --select revenue_by_day --sql",
        expect![[r#"
            exit code 0
            --- stdout
            #  script          strategy  why
            1  revenue_by_day  replace   forced

            1 step to do

            -- step 1: revenue_by_day

            -- stage the query
            CREATE OR REPLACE TEMP TABLE "_pt_stage_0" AS (
            SELECT
                ordered_on,
                count(*) AS orders,
                sum(amount)::DECIMAL(18, 2) AS revenue
            FROM "lake"."main"."orders"
            GROUP BY ALL
            );

            -- delete all rows
            DELETE FROM "_pt_w_main"."main"."revenue_by_day";

            -- insert the staged rows
            INSERT INTO "_pt_w_main"."main"."revenue_by_day" BY NAME
            SELECT
              "ordered_on",
              "orders",
              "revenue"
            FROM "_pt_stage_0";
        "#]],
    );
}

#[test]
fn the_small_example_runs_with_its_test() {
    let project = Project::empty();
    check(
        &project,
        "init shop",
        expect![[r#"
        exit code 0
        --- stdout
        made shop/pintail.toml
        made shop/pipelines/example.sql
        made shop/tests/example_lies_in_one_week.sql
        made shop/.gitignore
        --- stderr
        hint: `cd shop && pintail run` writes the example; `pintail plan` says before what it would do
    "#]],
    );
    assert_eq!(project.read("shop/.gitignore"), "/.pintail\n");
    run(&project, "run --project shop").expect_ok();
    check(
        &project,
        "test --project shop",
        expect![[r#"
        exit code 0
        --- stdout
        example
          ok not_null name
          ok example_lies_in_one_week
        2 passed
    "#]],
    );
}

#[test]
fn init_never_overwrites() {
    let project = Project::new("\n//- /pintail.toml\n[vars]\n//- /.gitignore\n/target");
    check(
        &project,
        "init",
        expect![[r#"
            exit code 2
            --- stderr
            error: already there: pintail.toml; nothing was written
            hint: `pintail new` adds a script to a project
        "#]],
    );
    assert_eq!(project.read("pintail.toml"), "[vars]\n");
    assert!(!project.exists("pipelines"));
}

#[test]
fn a_changed_script_is_due_with_what_reads_it_and_the_old_version_stays_readable() {
    let project = Project::new(SHOP);
    run(&project, "run").expect_ok();
    project.replace("pipelines/orders.sql", "12.50", "99.50");
    check(
        &project,
        "run --dry-run",
        expect![[r#"
        exit code 0
        --- stdout
        #  script   strategy  why                 after
        1  orders   merge     the script changed
        2  revenue  replace   after orders        #1

        2 steps to do
    "#]],
    );
    run(&project, "run").expect_ok();
    let revenue = ["query", "--at"];
    let ask = |at: &str| pintail_testkit::pintail(&project).args(revenue).args([at, "FROM revenue"]).run();
    expect![[r#"
        exit code 0
        --- stdout
        customer  revenue
        ─────────────────
        ada         47.25
        grace       12.50
        --- stderr
        (2 rows)
    "#]]
    .assert_eq(&ask("3").to_string());
    expect![[r#"
        exit code 0
        --- stdout
        customer  revenue
        ─────────────────
        ada         47.25
        grace       99.50
        --- stderr
        (2 rows)
    "#]]
    .assert_eq(&ask("5").to_string());
}

#[test]
fn commands_work_from_any_folder_of_the_project() {
    let project = Project::new(SHOP);
    let outcome = pintail_testkit::pintail(&project).in_folder("pipelines").words("list").run();
    expect![[r#"
        exit code 0
        --- stdout
        script   kind     asset                    partition  tags     owner
        orders   merge    ducklake://main/orders   -          nightly  ada
        revenue  replace  ducklake://main/revenue  -
        --- stderr
        (2 scripts)
    "#]]
    .assert_eq(&outcome.to_string());
}

#[test]
fn outside_a_project_the_next_step_is_named() {
    let project = Project::empty();
    check(
        &project,
        "check",
        expect![[r#"
        exit code 2
        --- stderr
        error: no project in <project> or above: no pintail.toml and no pipelines/
        hint: `pintail init` makes one; `--project <dir>` names one elsewhere
    "#]],
    );
}
