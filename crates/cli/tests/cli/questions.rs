//! Questions to the lake and the project: query, show, graph, list, adopt, state.

use expect_test::{Expect, expect};
use pintail_testkit::{Project, pintail};

use crate::{SHOP, check, run};

fn shop() -> Project {
    let project = Project::new(SHOP);
    run(&project, "run").expect_ok();
    project
}

#[track_caller]
fn ask(project: &Project, options: &str, sql: &str, expected: Expect) {
    expected.assert_eq(&pintail(project).arg("query").words(options).arg(sql).run().to_string());
}

#[test]
fn answers_tell_null_from_text_and_numbers_stand_right() {
    let project = shop();
    let sql = "SELECT 1 AS n, NULL AS nothing, 'NULL' AS word, '' AS empty, 1234.50 AS amount, [1, 2] AS list";
    ask(
        &project,
        "",
        sql,
        expect![[r#"
        exit code 0
        --- stdout
        n  nothing  word    empty   amount  list
        ──────────────────────────────────────────
        1     NULL  "NULL"         1234.50  [1, 2]
        --- stderr
        (1 row)
    "#]],
    );
    ask(
        &project,
        "--csv",
        sql,
        expect![[r#"
        exit code 0
        --- stdout
        n,nothing,word,empty,amount,list
        1,,NULL,"",1234.50,"[1, 2]"
    "#]],
    );
    ask(
        &project,
        "--json",
        "SELECT 1 AS a, 2 AS a, NULL AS b",
        expect![[r#"
        exit code 0
        --- stdout
        [
          {
            "a": 1,
            "a_1": 2,
            "b": null
          }
        ]
    "#]],
    );
}

#[test]
fn wide_answers_are_shortened_to_the_terminal() {
    let project = shop();
    let outcome = pintail(&project)
        .env("COLUMNS", "40")
        .args(["query", "SELECT repeat('x', 60) AS long, 1 AS a, repeat('y', 12) AS b, 2 AS c, 3 AS d"])
        .run();
    expect![[r#"
        exit code 0
        --- stdout
        long             a  b             c  d
        ──────────────────────────────────────
        xxxxxxxxxxxxxx…  1  yyyyyyyyyyyy  2  3
        --- stderr
        (1 row)
    "#]]
    .assert_eq(&outcome.to_string());
}

#[test]
fn wide_glyphs_take_two_places() {
    let outcome = pintail(&shop())
        .env("COLUMNS", "20")
        .args(["query", "SELECT '東京太郎と大阪花子' AS name, 1 AS n UNION ALL SELECT 'ada', 22 ORDER BY n"])
        .run();
    expect![[r#"
        exit code 0
        --- stdout
        name            n
        ─────────────────
        東京太郎と大…   1
        ada            22
        --- stderr
        (2 rows)
    "#]]
    .assert_eq(&outcome.to_string());
}

#[test]
fn a_table_that_is_not_there_is_not_near_one_of_the_engine() {
    let project = Project::new("\n//- /pipelines/a.sql\n-- materialize ducklake://main/a\n\nSELECT 1 AS one\n");
    run(&project, "run").expect_ok();
    ask(
        &project,
        "",
        "FROM revenue_by_day",
        expect![[r#"
            exit code 1
            --- stderr
            error: Catalog error: Table with name revenue_by_day does not exist!
             --> query:1:6
              |
            1 | FROM revenue_by_day
              |      ^
              |
              = note: failed to run the query
        "#]],
    );
}

#[test]
fn the_history_of_nothing_says_what_there_is() {
    let project = shop();
    check(
        &project,
        "history ordrs",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no script or table `ordrs`
        hint: did you mean `orders`?
    "#]],
    );
    check(
        &project,
        "history nothing_like_it",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no script or table `nothing_like_it`
        hint: `pintail list` names the scripts and what they write
    "#]],
    );
}

#[test]
fn queries_are_read_from_stdin_limited_and_cannot_write() {
    let project = shop();
    let piped = pintail(&project).words("query - --limit 1").stdin("SELECT customer\nFROM orders\nORDER BY 1;\n").run();
    expect![[r#"
        exit code 0
        --- stdout
        customer
        ────────
        ada
        --- stderr
        (1 row)
    "#]]
    .assert_eq(&piped.to_string());
    ask(
        &project,
        "",
        "DELETE FROM orders",
        expect![[r#"
            exit code 1
            --- stderr
            error: Invalid Input error: Cannot execute statement of type "DELETE" on database "lake" which is attached in read-only mode!
             --> query:1:1
              |
            1 | DELETE FROM orders
              | ^^^^^^^^^^^^^^^^^^
              |
              = note: failed to run the query
              = help: here a lake is only read; what writes is a script, and `pintail run` runs it
        "#]],
    );
    ask(
        &project,
        "",
        "SELECT custmer FROM orders",
        expect![[r#"
            exit code 1
            --- stderr
            error: Binder error: Referenced column "custmer" not found in FROM clause!
             --> query:1:8
              |
            1 | SELECT custmer FROM orders
              |        ^
              |
              = note: failed to run the query
              = help: near names: customer, amount, order_id
        "#]],
    );
    ask(
        &project,
        "--at 99",
        "FROM orders",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no snapshot 99; `pintail history` lists those that Pintail made
    "#]],
    );
}

#[test]
fn a_script_is_shown_with_its_table_and_versions() {
    let project = shop();
    check(
        &project,
        "show orders",
        expect![[r#"
            exit code 0
            --- stdout
            orders  pipelines/orders.sql

            description  The orders of a shop.
            owner        ada
            tags         nightly
            writes       ducklake://main/orders (merge)
            read by      revenue
            test         unique order_id
            test         not_null customer

            columns
              order_id  INTEGER
              customer  VARCHAR
              amount    DECIMAL(4,2)

            now: 3 rows

            snapshot  when (UTC)           result        strategy  rows  inserted  deleted  columns  run
                   2  <when>  materialized  merge        3         3        0  v1       <id>
        "#]],
    );
    check(
        &project,
        "show ordrs",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no script, asset or run `ordrs`; did you mean `orders`?
    "#]],
    );
}

#[test]
fn the_graph_gives_its_reasons() {
    let project = shop();
    check(
        &project,
        "graph",
        expect![[r#"
        exit code 0
        --- stdout
        orders → ducklake://main/orders
        revenue → ducklake://main/revenue
          reads ducklake://main/orders of orders, in its body at pipelines/revenue.sql:3
    "#]],
    );
    check(
        &project,
        "graph --format mermaid",
        expect![[r#"
        exit code 0
        --- stdout
        graph LR
          n0["orders"]
          n1["revenue"]
          n0 -->|"orders"| n1
    "#]],
    );
    check(
        &project,
        "list --select orders+ --exclude tag:nightly",
        expect![[r#"
        exit code 0
        --- stdout
        script   kind     asset                    partition  tags  owner
        revenue  replace  ducklake://main/revenue  -
        --- stderr
        (1 script)
    "#]],
    );
}

#[test]
fn a_table_of_others_is_refused_until_it_is_adopted() {
    let project = shop();
    project.write("pipelines/orders2.sql", "-- materialize ducklake://main/orders2\n\nSELECT 1 AS n\n");
    check(
        &project,
        "adopt orders2",
        expect![[r#"
        exit code 2
        --- stderr
        error: ducklake://main/orders2 does not exist; there is nothing to adopt
    "#]],
    );
    check(
        &project,
        "adopt orders",
        expect![[r#"
        exit code 2
        --- stderr
        error: Pintail writes ducklake://main/orders already; nothing to adopt
    "#]],
    );
    check(
        &project,
        "adopt nobodys",
        expect![[r#"
        exit code 2
        --- stderr
        error: no script writes ducklake://main/nobodys; write one with `materialize ducklake://main/nobodys` first, then adopt
    "#]],
    );
}

#[test]
fn a_lost_store_is_rebuilt_from_the_lake() {
    let project = shop();
    let before = run(&project, "history orders").expect_ok().stdout;
    for file in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let place = project.place(&format!(".pintail/{file}"));
        if place.exists() {
            std::fs::remove_file(place).unwrap();
        }
    }
    check(
        &project,
        "state rebuild",
        expect![[r#"
        exit code 0
        --- stdout
        lake main: 2 stamps read, 2 materializations in the store
    "#]],
    );
    assert_eq!(run(&project, "history orders").stdout, before);
    check(
        &project,
        "run",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: 2 steps are up to date
    "#]],
    );
}

#[test]
fn before_the_first_run_questions_have_plain_answers() {
    let project = Project::new(SHOP);
    check(
        &project,
        "history",
        expect![[r#"
        exit code 0
        --- stdout
        there was no run yet
    "#]],
    );
    check(
        &project,
        "history orders",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/orders has no versions: Pintail never wrote it
    "#]],
    );
    check(
        &project,
        "test",
        expect![[r#"
        exit code 0
        --- stdout
        orders
          not tested: ducklake://main/orders does not exist
        revenue
          not tested: ducklake://main/revenue does not exist
        no tests
    "#]],
    );
    check(
        &project,
        "state rebuild",
        expect![[r#"
        exit code 0
        --- stdout
        there is no lake yet, so there is no state to rebuild
    "#]],
    );
    check(
        &project,
        "show last",
        expect![[r#"
            exit code 2
            --- stderr
            error: there was no run yet
        "#]],
    );
    ask(
        &project,
        "",
        "FROM orders",
        expect![[r#"
            exit code 2
            --- stderr
            error: there is no lake to ask yet
            hint: `pintail run` makes it
        "#]],
    );
    assert!(!project.exists(".pintail/main.sqlite"), "asking makes no lake");
}
