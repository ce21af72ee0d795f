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
    assert_eq!(run(&project, "run").code, Some(0));
    project.write(
        "pipelines/orders.sql",
        "-- materialize ducklake://main/orders\n-- test unique id\nSELECT * FROM (VALUES (1, 40.0), (2, 99.9), (4, 1.0)) AS orders(id, amount)\n",
    );
    assert_eq!(run(&project, "run --select orders").code, Some(0));
    project
}

#[test]
fn a_diff_a_rollback_and_what_is_left_to_run() {
    let project = two_versions();
    check(
        &project,
        "diff orders --from 2",
        expect![[r#"
            exit code 0
            --- stdout
            ducklake://main/orders: snapshot 2 -> 4
              rows: 1 added, 1 removed, 1 changed, 1 the same (compared by id)

               id  amount
            +  4   1.0
            -  3   7.2
            ~  2   12.5 -> 99.9
        "#]],
    );
    check(
        &project,
        "diff orders --from 2 --to 2 --exit-code",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/orders: snapshot 2 -> 2
          the same: no commit in between touched it
    "#]],
    );
    assert_eq!(run(&project, "diff orders --from 2 --exit-code").code, Some(1));
    check(
        &project,
        "rollback orders --to 2 --dry-run --limit 1",
        expect![[r#"
            exit code 0
            --- stdout
            ducklake://main/orders: snapshot 4 -> 2
              rows: 1 added, 1 removed, 1 changed, 1 the same (compared by id)

               id  amount
            +  3   7.2
            -  4   1.0
            ~  2   99.9 -> 12.5
        "#]],
    );
    check(
        &project,
        "rollback orders --to 2",
        expect![[r#"
            exit code 2
            --- stdout
            ducklake://main/orders: snapshot 4 -> 2
              rows: 1 added, 1 removed, 1 changed, 1 the same (compared by id)

               id  amount
            +  3   7.2
            -  4   1.0
            ~  2   99.9 -> 12.5
            --- stderr
            error: a rollback asks before it writes, and there is nobody to ask
            hint: `--yes` goes on without asking, `--dry-run` only shows what would change
        "#]],
    );
    check(
        &project,
        "rollback orders --to 2 --limit 0 --yes",
        expect![[r#"
            exit code 0
            --- stdout
            ducklake://main/orders: snapshot 4 -> 2
              rows: 1 added, 1 removed, 1 changed, 1 the same (compared by id)
            run <id> succeeded: 1 materialized in <time>
            --- stderr
            materialized  orders  3 rows, 3 deleted, snapshot 5 (<time>)
            note: 1 script downstream: revenue
            hint: `pintail run --select orders+ --exclude orders` brings them up to date
        "#]],
    );
    check(
        &project,
        "rollback orders --to 2 --yes",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: ducklake://main/orders is as it was at snapshot 2
    "#]],
    );
    check(
        &project,
        "rollback orders --to 4 --limit 0 --yes --run-downstream",
        expect![[r#"
            exit code 0
            --- stdout
            ducklake://main/orders: snapshot 5 -> 4
              rows: 1 added, 1 removed, 1 changed, 1 the same (compared by id)
            run <id> succeeded: 1 materialized in <time>
            run <id> succeeded: 1 materialized in <time>
            --- stderr
            materialized  orders  3 rows, 3 deleted, snapshot 6 (<time>)
            materialized  revenue  1 row, 1 deleted, snapshot 7 (<time>)
        "#]],
    );
}

#[test]
fn a_diff_for_machines() {
    let project = two_versions();
    check(
        &project,
        "diff orders --from 2 --limit 1 --json",
        expect![[r#"
            exit code 0
            --- stdout
            {
              "asset": "ducklake://main/orders",
              "partition": null,
              "from": 2,
              "to": 4,
              "is_same": false,
              "columns": [],
              "rows": {
                "compared_by": "rows",
                "key": [
                  "id"
                ],
                "added": 1,
                "removed": 1,
                "changed": 1,
                "same": 1,
                "sample": [
                  {
                    "change": "added",
                    "times": 1,
                    "before": null,
                    "after": {
                      "id": "4",
                      "amount": "1.0"
                    }
                  },
                  {
                    "change": "removed",
                    "times": 1,
                    "before": {
                      "id": "3",
                      "amount": "7.2"
                    },
                    "after": null
                  },
                  {
                    "change": "changed",
                    "times": 1,
                    "before": {
                      "id": "2",
                      "amount": "12.5"
                    },
                    "after": {
                      "id": "2",
                      "amount": "99.9"
                    }
                  }
                ]
              }
            }
        "#]],
    );
}

#[test]
fn versions_that_are_not_there_say_what_is() {
    let project = two_versions();
    check(
        &project,
        "diff orders --from 77",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no snapshot 77 in lake `main`; the oldest is 0, the newest 4
    "#]],
    );
    check(
        &project,
        "diff orders --from soon",
        expect![[r#"
        exit code 2
        --- stderr
        error: `soon` names no version; write a snapshot (`7`), a moment (`2026-06-01` or `<when>`), a run (its id or the beginning of it, or `last`), or `head`
    "#]],
    );
    check(
        &project,
        "diff order --from 2",
        expect![[r#"
            exit code 2
            --- stderr
            error: ducklake://main/order did not exist at snapshot 2; did you mean `orders`?
        "#]],
    );
    check(
        &project,
        "rollback orders --to 1 --yes",
        expect![[r#"
        exit code 2
        --- stderr
        error: ducklake://main/orders did not exist at snapshot 1; `pintail history orders` lists its versions
    "#]],
    );
    check(
        &project,
        "pin mian --at 2 --reason audit",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no lake `mian`; did you mean `main`?
    "#]],
    );
    check(
        &project,
        "pin main --at 77 --reason audit",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no snapshot 77 in lake `main`; the oldest is 0, the newest 4
    "#]],
    );
    check(
        &project,
        "maintain --keep 7",
        expect![[r#"
        exit code 2
        --- stderr
        error: invalid value '7' for '--keep <TIME>': the duration `7` has no unit

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn a_run_is_reproduced_or_shown_to_be_different() {
    let project = two_versions();
    check(
        &project,
        "replay last",
        expect![[r#"
        exit code 0
        --- stdout
        equal      orders  3 rows, snapshot 4
        run <id> is reproduced
    "#]],
    );
    check(
        &project,
        "replay last --step nothing",
        expect![[r#"
        exit code 2
        --- stderr
        error: run <id> has no step of `nothing`
    "#]],
    );
    project.write("pipelines/dice.sql", "-- materialize ducklake://main/dice\nSELECT 1 AS die, random() > 2 AS lucky, now() < TIMESTAMPTZ '2000-01-01' AS early, uuid() IS NULL AS odd\n");
    assert_eq!(run(&project, "run --select dice").code, Some(0));
    check(
        &project,
        "replay last --into audit",
        expect![[r#"
        exit code 0
        --- stdout
        equal      dice  1 row, snapshot 5
          the result is in audit.dice
        run <id> is reproduced
    "#]],
    );
    check(
        &project,
        "replay last --into audit",
        expect![[r#"
        exit code 2
        --- stderr
        error: ducklake://main/audit.dice exists, and a replay writes only new tables; name another schema
    "#]],
    );
}

#[test]
fn pins_and_upkeep_say_who_holds_what() {
    let project = two_versions();
    let pinned = run(&project, "pin main --at 2 --reason audit");
    assert!(pinned.stdout.ends_with(" holds snapshot 2 of lake main\n"), "{pinned}");
    check(
        &project,
        "maintain --dry-run --keep 0s",
        expect![[r#"
            exit code 0
            --- stdout
            lake main: 2 snapshots would go, 3 stay (0 young); 0 B of files are free then

            snapshots  bytes  held by
                    2  334 B  project <project>: run <id> of ducklake://main/orders
                    1  334 B  somebody: audit
        "#]],
    );
    check(
        &project,
        "maintain --keep 0s",
        expect![[r#"
            exit code 0
            --- stdout
            lake main: 2 snapshots went, 3 stay (0 young); 0 B of files are free then

            snapshots  bytes  held by
                    2  334 B  project <project>: run <id> of ducklake://main/orders
                    1  334 B  somebody: audit
        "#]],
    );
    check(
        &project,
        "unpin main 99",
        expect![[r#"
        exit code 2
        --- stderr
        error: lake `main` has no pin 99; `pintail pins main` lists them
    "#]],
    );
    check(
        &project,
        "maintain",
        expect![[r#"
            exit code 0
            --- stdout
            lake main: 0 snapshots went, 4 stay (0 young)

            snapshots  bytes  held by
                    3  334 B  project <project>: run <id> of ducklake://main/orders
                    1  334 B  somebody: audit
        "#]],
    );
}

#[test]
fn a_rollback_says_when_nothing_has_to_be_written_here_or_downstream() {
    let project = Project::new(
        "
//- /pipelines/days.sql
-- partitioned daily by=day start=2026-01-01
-- materialize ducklake://main/days
SELECT $partition_start AS day, 1 AS n
//- /pipelines/seen.sql
-- materialize view ducklake://main/seen
SELECT day, n FROM lake.days
",
    );
    assert_eq!(run(&project, "run --partition 2026-01-01").code, Some(0));
    project.write(
        "pipelines/days.sql",
        "-- partitioned daily by=day start=2026-01-01\n-- materialize ducklake://main/days\n-- on_schema_change append_new_columns\nSELECT $partition_start AS day, 2 AS n, 'x' AS more\n",
    );
    assert_eq!(run(&project, "run --select days --partition 2026-01-01").code, Some(0));
    check(
        &project,
        "rollback days --partition 2030-05-03 --to 2 --yes",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: ducklake://main/days [2030-05-03] is as it was at snapshot 2
    "#]],
    );
    check(
        &project,
        "rollback days --partition 2026-01-01 --to 2 --yes",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/days [2026-01-01]: snapshot 4 -> 2
          column - more VARCHAR
          rows: 1 added, 1 removed, 0 the same (compared as whole rows)

           day                     n  more
        +  <when>+00  1  NULL
        -  <when>+00  2  x
        run <id> succeeded: 1 materialized in <time>
        --- stderr
        materialized  days 2026-01-01  1 row, 1 deleted, snapshot 5 (<time>)
        note: days 2026-01-01: NULL, because they came after that version: more
        note: 1 script downstream: seen
        note: nothing downstream has to be written
    "#]],
    );
    check(
        &project,
        "rollback days --to 2 --yes --run-downstream",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/days: snapshot 5 -> 2
          column - more VARCHAR
          no row differs: 1 row, in the columns of both
        run <id> succeeded: 1 materialized in <time>
        --- stderr
        materialized  days  1 row, snapshot 6 (<time>)
        note: days: the table takes its old columns back:
        - more VARCHAR
        a script whose query has the newer ones needs `on_schema_change` to write it again
        note: nothing downstream has to be written
    "#]],
    );
}
