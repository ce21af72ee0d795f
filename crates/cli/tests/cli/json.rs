//! The shape of `--json`, one test per command; programs depend on it.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{SHOP, check, run};

fn shop() -> Project {
    let project = Project::new(SHOP);
    run(&project, "run").expect_ok();
    project
}

#[test]
fn check_gives_every_finding_with_its_place() {
    let project = Project::new("\n//- /pipelines/a.sql\n-- materialise ducklake://main/a\n\nSELECT 1 AS one\n");
    check(
        &project,
        "check --json",
        expect![[r#"
        exit code 3
        --- stdout
        {
          "ok": false,
          "scripts": 1,
          "errors": 1,
          "warnings": 0,
          "infos": 0,
          "diagnostics": [
            {
              "code": "P101",
              "severity": "error",
              "path": "pipelines/a.sql",
              "start": {
                "line": 1,
                "column": 4
              },
              "end": {
                "line": 1,
                "column": 15
              },
              "message": "unknown annotation `materialise`; did you mean `materialize`?",
              "help": "write `materialize` in its place; annotation words are lower case",
              "labels": []
            }
          ]
        }
    "#]],
    );
}

#[test]
fn plan_gives_steps_pins_and_hints() {
    check(
        &Project::new(SHOP),
        "plan --json",
        expect![[r#"
            exit code 0
            --- stdout
            {
              "steps": [
                {
                  "step": 1,
                  "script": "orders",
                  "asset": "ducklake://main/orders",
                  "partition": null,
                  "window": null,
                  "strategy": "merge",
                  "reason": "never written",
                  "after": []
                },
                {
                  "step": 2,
                  "script": "revenue",
                  "asset": "ducklake://main/revenue",
                  "partition": null,
                  "window": null,
                  "strategy": "replace",
                  "reason": "never written",
                  "after": [
                    1
                  ]
                }
              ],
              "up_to_date": 0,
              "pins": {},
              "deferred": [],
              "hints": []
            }
        "#]],
    );
}

#[test]
fn run_gives_a_line_per_event() {
    let project = Project::new(SHOP);
    let outcome = run(&project, "run --select orders --json").expect_ok();
    let without_phases: String = outcome
        .stdout
        .lines()
        .filter(|line| !line.contains("step_phase"))
        .map(|line| match line.find(",\"phases\"") {
            Some(at) => format!("{}…\n", &line[..at]),
            None => format!("{line}\n"),
        })
        .collect();
    expect![[r#"
        {"event":"started","run":"<id>","steps":[{"step":1,"script":"orders","asset":"ducklake://main/orders","partition":null,"window":null,"strategy":"merge","reason":"never written","after":[]}]}
        {"event":"step_started","step":1}
        {"event":"step_finished","step":1,"script":"orders","asset":"ducklake://main/orders","partition":null,"window":null,"strategy":"merge","reason":"never written","after":[],"state":"materialized","snapshot":2,"rows":3,"inserted":3,"deleted":0,"tests":[{"name":"unique order_id","severity":"error","status":"passed","failures":0,"nulls_ignored":0,"sample":[]},{"name":"not_null customer","severity":"error","status":"passed","failures":0,"nulls_ignored":null,"sample":[]}],"notes":[],"seconds":<seconds>…
        {"event":"finished","run":"<id>","status":"succeeded","materialized":1,"unchanged":0,"superseded":0,"rolled_back":0,"failed":0,"skipped":0,"stopped":0,"up_to_date":0,"unrecorded":null,"seconds":<seconds>}
    "#]].assert_eq(&without_phases);
    check(
        &project,
        "run --select orders --json",
        expect![[r#"
        exit code 0
        --- stdout
        {"event":"nothing_to_do","up_to_date":1}
    "#]],
    );
}

#[test]
fn history_and_list_and_graph() {
    let project = shop();
    check(
        &project,
        "history orders --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "asset": "ducklake://main/orders",
          "versions": [
            {
              "snapshot": 2,
              "finished": "<when>",
              "status": "materialized",
              "partition": null,
              "script": "orders",
              "run": "<id>",
              "strategy": "merge",
              "rows": 3,
              "inserted": 3,
              "deleted": 0,
              "schema_version": 1,
              "generation": 0,
              "origin": "recorded",
              "inputs": {
                "main": 1
              },
              "error": null
            }
          ]
        }
    "#]],
    );
    check(
        &project,
        "history --json",
        expect![[r#"
            exit code 0
            --- stdout
            {
              "runs": [
                {
                  "run": "<id>",
                  "status": "succeeded",
                  "command": [
                    "pintail",
                    "run"
                  ],
                  "triggered_by": "manual",
                  "started": "<when>",
                  "finished": "<when>",
                  "pins": {},
                  "error": null
                }
              ]
            }
        "#]],
    );
    check(
        &project,
        "list --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "scripts": [
            {
              "script": "orders",
              "path": "pipelines/orders.sql",
              "kind": "merge",
              "language": "DuckDB SQL",
              "partition": null,
              "asset": "ducklake://main/orders",
              "tags": [
                "nightly"
              ],
              "owner": "ada",
              "description": "The orders of a shop."
            },
            {
              "script": "revenue",
              "path": "pipelines/revenue.sql",
              "kind": "replace",
              "language": "DuckDB SQL",
              "partition": null,
              "asset": "ducklake://main/revenue",
              "tags": [],
              "owner": null,
              "description": null
            }
          ]
        }
    "#]],
    );
    check(
        &project,
        "graph --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "scripts": [
            {
              "script": "orders",
              "path": "pipelines/orders.sql",
              "writes": [
                "ducklake://main/orders"
              ],
              "reads": []
            },
            {
              "script": "revenue",
              "path": "pipelines/revenue.sql",
              "writes": [
                "ducklake://main/revenue"
              ],
              "reads": [
                {
                  "asset": "ducklake://main/orders",
                  "why": "in its body at pipelines/revenue.sql:3"
                }
              ]
            }
          ],
          "edges": [
            {
              "from": "orders",
              "to": "revenue",
              "reads": [
                {
                  "asset": "ducklake://main/orders",
                  "why": "in its body at pipelines/revenue.sql:3"
                }
              ]
            }
          ]
        }
    "#]],
    );
}

#[test]
fn show_and_test_and_state() {
    let project = shop();
    check(
        &project,
        "show revenue --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "script": "revenue",
          "path": "pipelines/revenue.sql",
          "hash": "041467aeebb239a80fcac494128f3dc106213478a2b871d5c8a9a6f0802f331d",
          "language": "DuckDB SQL",
          "kind": "replace",
          "asset": "ducklake://main/revenue",
          "description": null,
          "owner": null,
          "tags": [],
          "partitioned": null,
          "reads": [
            "ducklake://main/orders of orders, in its body at line 3"
          ],
          "read_by": [],
          "tests": [],
          "singular_tests": [],
          "cannot_run": null,
          "state": {
            "table": {
              "is_view": false,
              "columns": [
                {
                  "name": "customer",
                  "type": "VARCHAR"
                },
                {
                  "name": "revenue",
                  "type": "DECIMAL(18,2)"
                }
              ],
              "partition": []
            },
            "slices": [
              {
                "partition": null,
                "current": {
                  "snapshot": 3,
                  "finished": "<when>",
                  "status": "materialized",
                  "partition": null,
                  "script": "revenue",
                  "run": "<id>",
                  "strategy": "replace",
                  "rows": 2,
                  "inserted": 2,
                  "deleted": 0,
                  "schema_version": 1,
                  "generation": 0,
                  "origin": "recorded",
                  "inputs": {
                    "main": 2
                  },
                  "error": null
                },
                "failure": null
              }
            ],
            "versions": [
              {
                "snapshot": 3,
                "finished": "<when>",
                "status": "materialized",
                "partition": null,
                "script": "revenue",
                "run": "<id>",
                "strategy": "replace",
                "rows": 2,
                "inserted": 2,
                "deleted": 0,
                "schema_version": 1,
                "generation": 0,
                "origin": "recorded",
                "inputs": {
                  "main": 2
                },
                "error": null
              }
            ]
          }
        }
    "#]],
    );
    check(
        &project,
        "test --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "ok": true,
          "scripts": [
            {
              "script": "orders",
              "asset": "ducklake://main/orders",
              "skipped": null,
              "tests": [
                {
                  "name": "unique order_id",
                  "severity": "error",
                  "status": "passed",
                  "failures": 0,
                  "nulls_ignored": 0,
                  "sample": {
                    "columns": [],
                    "rows": []
                  },
                  "error": null
                },
                {
                  "name": "not_null customer",
                  "severity": "error",
                  "status": "passed",
                  "failures": 0,
                  "nulls_ignored": null,
                  "sample": {
                    "columns": [],
                    "rows": []
                  },
                  "error": null
                }
              ]
            },
            {
              "script": "revenue",
              "asset": "ducklake://main/revenue",
              "skipped": null,
              "tests": []
            }
          ]
        }
    "#]],
    );
    check(
        &project,
        "state rebuild --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "lakes": [
            {
              "lake": "main",
              "stamps": 2,
              "materializations": 2,
              "unknown": []
            }
          ]
        }
    "#]],
    );
    check(
        &project,
        "explain P305 --json",
        expect![[r##"
        exit code 0
        --- stdout
        {
          "code": "P305",
          "severity": "error",
          "summary": "a selection matches nothing",
          "page": "# P305: a selection matches nothing\n\nError: the command does nothing.\n\n## What it means\n\nA part of a selection matches no script.\n\n## Why\n\nA run that does nothing because of a typo looks like one that worked.\n\n## How to fix it\n\nCorrect the name (the message suggests one), or look with `pintail list`.\n\n## Example\n\nBefore:\n\n```sh\npintail run --select order_daily\n```\n\nAfter:\n\n```sh\npintail run --select orders_daily\n```\n"
        }
    "##]],
    );
}
