//! Older versions as a person uses them: diff, rollback, replay, pins, upkeep.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{check, run};

const ORDERS: &str = "
//- /pintail.toml
[run]
keep_runs = 1
keep_days = 0
//- /pipelines/orders.sql
-- materialize ducklake://main/orders key=id
SELECT * FROM (VALUES (1, 40.0), (2, 12.5), (3, 7.2)) AS orders(id, amount)
//- /pipelines/revenue.sql
-- materialize ducklake://main/revenue
SELECT sum(amount) AS revenue FROM orders
";

/// A project whose table has two versions.
fn two_versions() -> Project {
    let project = Project::new(ORDERS);
    assert_eq!(run(&project, "run").code, 0);
    project.write(
        "pipelines/orders.sql",
        "-- materialize ducklake://main/orders\nSELECT * FROM (VALUES (1, 40.0), (2, 99.9), (4, 1.0)) AS orders(id, amount)\n-- test unique id\n",
    );
    assert_eq!(run(&project, "run --select orders").code, 0);
    project
}

#[test]
fn a_diff_a_rollback_and_what_is_left_to_run() {
    let project = two_versions();
    check(&project, "diff orders --from 2", expect![[r#""#]]);
    check(&project, "diff orders --from 2 --to 2 --exit-code", expect![[r#""#]]);
    assert_eq!(run(&project, "diff orders --from 2 --exit-code").code, 1);
    check(&project, "rollback orders --to 2 --dry-run --limit 1", expect![[r#""#]]);
    check(&project, "rollback orders --to 2", expect![[r#""#]]);
    check(&project, "rollback orders --to 2 --limit 0 --yes", expect![[r#""#]]);
    check(&project, "rollback orders --to 2 --yes", expect![[r#""#]]);
    check(&project, "rollback orders --to 4 --limit 0 --yes --run-downstream", expect![[r#""#]]);
}

#[test]
fn a_diff_for_machines() {
    let project = two_versions();
    check(&project, "diff orders --from 2 --limit 1 --json", expect![[r#""#]]);
}

#[test]
fn versions_that_are_not_there_say_what_is() {
    let project = two_versions();
    check(&project, "diff orders --from 77", expect![[r#""#]]);
    check(&project, "diff orders --from soon", expect![[r#""#]]);
    check(&project, "diff order --from 2", expect![[r#""#]]);
    check(&project, "rollback orders --to 1 --yes", expect![[r#""#]]);
    check(&project, "pin mian --at 2 --reason audit", expect![[r#""#]]);
    check(&project, "pin main --at 77 --reason audit", expect![[r#""#]]);
    check(&project, "maintain --keep 7", expect![[r#""#]]);
}

#[test]
fn a_run_is_reproduced_or_shown_to_be_different() {
    let project = two_versions();
    check(&project, "replay last", expect![[r#""#]]);
    check(&project, "replay last --step nothing", expect![[r#""#]]);
    project.write("pipelines/dice.sql", "-- materialize ducklake://main/dice\nSELECT 1 AS die, random() > 2 AS lucky, now() < TIMESTAMPTZ '2000-01-01' AS early, uuid() IS NULL AS odd\n");
    assert_eq!(run(&project, "run --select dice").code, 0);
    check(&project, "replay last --into audit", expect![[r#""#]]);
    check(&project, "replay last --into audit", expect![[r#""#]]);
}

#[test]
fn pins_and_upkeep_say_who_holds_what() {
    let project = two_versions();
    check(&project, "pin main --at 2 --reason audit", expect![[r#""#]]);
    check(&project, "maintain --dry-run --keep 0s", expect![[r#""#]]);
    check(&project, "maintain --keep 0s", expect![[r#""#]]);
    check(&project, "unpin main 99", expect![[r#""#]]);
    check(&project, "maintain", expect![[r#""#]]);
}
