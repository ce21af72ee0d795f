//! `status`, selections by state, dynamic partitions, variables and profiles, as a person meets them.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{SHOP, check, run};

#[test]
fn status_says_what_is_missing_fresh_and_stale() {
    let project = Project::new(SHOP);
    check(
        &project,
        "status",
        expect![[r#"
        exit code 0
        --- stdout
        script   asset                    state    slices  from  to  why
        orders   ducklake://main/orders   missing       1  -     -   never written
        revenue  ducklake://main/revenue  missing       1  -     -   never written
        --- stderr
        (2 scripts, 2 missing)
    "#]],
    );
    run(&project, "run").expect_ok();
    project.replace("pipelines/revenue.sql", "ORDER BY customer", "ORDER BY ALL");
    check(
        &project,
        "status",
        expect![[r#"
        exit code 0
        --- stdout
        script   asset                    state  slices  from  to  why
        orders   ducklake://main/orders   fresh       1  -     -
        revenue  ducklake://main/revenue  stale       1  -     -   the script changed
        --- stderr
        (2 scripts, 1 stale, 1 fresh)
    "#]],
    );
    check(
        &project,
        "status --select stale --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "scripts": [
            {
              "script": "revenue",
              "asset": "ducklake://main/revenue",
              "partitioned": false,
              "left_out": null,
              "ranges": [
                {
                  "state": "stale",
                  "reason": "the script changed",
                  "due": true,
                  "slices": 1,
                  "from": null,
                  "to": null
                }
              ]
            }
          ]
        }
    "#]],
    );
    check(
        &project,
        "list --select stale",
        expect![[r#"
        exit code 0
        --- stdout
        script   kind     asset                    partition  tags  owner
        revenue  replace  ducklake://main/revenue  -
        --- stderr
        (1 script)
    "#]],
    );
    check(
        &project,
        "run --select stale+",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 1 materialized in <time>
        --- stderr
        materialized  revenue  2 rows, 2 deleted, snapshot 4 (<time>)
    "#]],
    );
    check(
        &project,
        "status --select stale",
        expect![[r#"
        exit code 0
        --- stdout
        no scripts
    "#]],
    );
}

/// Days that do not depend on today.
const DAYS: &str = "
//- /pipelines/days.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/days

SELECT 1 AS n
";

#[test]
fn the_partitions_of_a_status_are_ranges() {
    let project = Project::new(DAYS);
    run(&project, "backfill days --from 2026-01-02 --to 2026-01-04").expect_ok();
    let outcome = run(&project, "status days --partitions").expect_ok();
    let lines: Vec<&str> = outcome.stdout.lines().take(3).collect();
    expect![[r#"
        script  asset                 state    slices  from        to          why
        days    ducklake://main/days  missing       1  2026-01-01  2026-01-01  never written
        days    ducklake://main/days  fresh         2  2026-01-02  2026-01-03"#]]
    .assert_eq(&lines.join("\n"));
}

const BY_COUNTRY: &str = "
//- /pipelines/by_country.sql
-- partitioned dynamic key=$.order.country
-- materialize ducklake://main/by_country

SELECT $partition AS country
";

#[test]
fn a_value_comes_from_the_command_line_or_a_payload() {
    let project = Project::new(BY_COUNTRY);
    check(
        &project,
        "run",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: the selection has no script that can run
        --- stderr
        hint: `by_country` is left out: its partition is a value at `$.order.country`: give it with `--partition <value>` or `--payload <json>`
    "#]],
    );
    // A schedule that names it must not look well for ever.
    assert_eq!(run(&project, "run --select by_country").code, Some(2));
    check(
        &project,
        "run --partition DE",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 1 materialized in <time>
        --- stderr
        materialized  by_country DE  1 row, snapshot 2 (<time>)
    "#]],
    );
    project.write("order.json", r#"{"order": {"country": "FR"}}"#);
    check(
        &project,
        "run --payload @order.json",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 1 materialized in <time>
        --- stderr
        materialized  by_country FR  1 row, snapshot 3 (<time>)
    "#]],
    );
    check(
        &project,
        "run --payload {}",
        expect![[r#"
        exit code 2
        --- stderr
        error: `by_country`: the payload has nothing at `$.order.country`
    "#]],
    );
    check(
        &project,
        "backfill by_country",
        expect![[r#"
        exit code 2
        --- stderr
        error: `by_country` has no calendar, so it has no range to fill; run it for each value: `pintail run --select by_country --partition <value>`
    "#]],
    );
    check(
        &project,
        "preview by_country --partition IT",
        expect![[r#"
        exit code 0
        --- stdout
        country
        ───────
        IT
        --- stderr
        (1 row)
    "#]],
    );
}

#[test]
fn a_variable_may_have_another_value() {
    let project = Project::new(
        "
//- /pintail.toml
[vars]
days = 7
//- /pipelines/a.sql
-- materialize ducklake://main/a

SELECT $days AS days
",
    );
    run(&project, "run").expect_ok();
    check(
        &project,
        "plan --var days=30",
        expect![[r#"
        exit code 0
        --- stdout
        #  script  strategy  why
        1  a       replace   the script changed

        1 step to do
    "#]],
    );
    check(
        &project,
        "preview a --var days=30",
        expect![[r#"
        exit code 0
        --- stdout
        days
        ────
        30
        --- stderr
        (1 row)
    "#]],
    );
    check(
        &project,
        "plan --var days=many",
        expect![[r#"
        exit code 2
        --- stderr
        error: `--var`: `days` is a whole number, and `many` is none
    "#]],
    );
    check(
        &project,
        "plan --var dys=30",
        expect![[r#"
        exit code 2
        --- stderr
        error: `--var`: there is no variable `dys`; did you mean `days`?
    "#]],
    );
}

#[test]
fn a_profile_says_what_it_reads_from_the_other() {
    let project = Project::new(&format!("//- /pintail.toml\n[profile.prod]\n[profile.dev]\ndefer = \"prod\"\n{SHOP}"));
    run(&project, "run --profile prod").expect_ok();
    check(
        &project,
        "plan --profile dev --select revenue",
        expect![[r#"
        exit code 0
        --- stdout
        #  script   strategy  why
        1  revenue  replace   never written

        1 step to do
        --- stderr
        note: 2 commits of the lake had not been recorded; recorded now
        note: `revenue` reads from profile `prod`: ducklake://main/orders
    "#]],
    );
    check(
        &project,
        "run --profile dev --select revenue",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 1 materialized in <time>
        --- stderr
        materialized  revenue  2 rows, snapshot 4 (<time>)
        note: `revenue` reads from profile `prod`: ducklake://main/orders
    "#]],
    );
    check(
        &project,
        "show revenue --profile dev",
        expect![[r#"
        exit code 0
        --- stdout
        revenue  pipelines/revenue.sql

        writes  ducklake://main/main_dev.revenue (replace)
        reads   ducklake://main/main_dev.orders of orders, in its body at line 3

        columns
          customer  VARCHAR
          revenue   DECIMAL(18,2)

        now: 2 rows

        snapshot  when (UTC)           result        strategy  rows  inserted  deleted  columns  run
               4  <when>  materialized  replace      2         2        0  v1       <id>
    "#]],
    );
}
