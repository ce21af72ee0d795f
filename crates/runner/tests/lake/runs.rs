//! The run around the steps: what is shown is what is sent, newer runs, retries, time limits, missing lakes, settings.

use std::sync::Arc;

use expect_test::expect;
use pintail_core::id::ScriptName;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::StepState;

use crate::harness::{Folder, at, force_at, forced, only, query, refreshed, run, run_plan};

const EACH_STRATEGY: &str = "//- pipelines/r.sql
-- description Replaced
-- materialize ducklake://main/r
SELECT 1 AS n, sum(2) AS big
//- pipelines/m.sql
-- materialize ducklake://main/m key=k order_by=\"v desc\"
CREATE TEMP TABLE prepared AS SELECT 1 AS k, 'a' AS v;
SELECT * FROM prepared
//- pipelines/p.sql
-- materialize ducklake://main/p append
SELECT n FROM r
//- pipelines/v.sql
-- materialize view ducklake://main/v
SELECT n FROM lake.r
//- pipelines/s.sql
-- partitioned daily by=ts
-- materialize ducklake://main/s
SELECT $partition_start AS ts, '{partition}' AS key
";

/// Checks that everything the plan shows was sent, in that order.
fn check_shown_is_sent(folder: &Folder, request: &PlanRequest) {
    let pintail = folder.open();
    let (plan, seen) = pintail.plan(request).unwrap();
    let shown = pintail.explain(&plan, &seen, None).unwrap();
    run_plan(&pintail, &plan, &seen).assert_good();
    let ran = pintail.run_detail("last").unwrap();
    for (index, statements) in shown {
        let sent: Vec<&str> = ran.steps[index].attempts[0].statements.iter().map(|sent| sent.sql.as_str()).collect();
        let mut rest = sent.as_slice();
        for statement in &statements {
            let found = rest.iter().position(|sql| *sql == statement.sql);
            let found = found.unwrap_or_else(|| panic!("not sent: {statement:?}\nof {sent:#?}"));
            rest = &rest[found + 1..];
        }
        assert!(!statements.is_empty());
    }
}

#[test]
fn what_a_plan_shows_is_what_a_run_sends() {
    let folder = Folder::new(EACH_STRATEGY);
    run(&folder.open(), &at("2026-01-01")).assert_good();
    check_shown_is_sent(&folder, &PlanRequest { force: true, ..at("2026-01-01") });
    check_shown_is_sent(&folder, &PlanRequest { full_refresh: true, ..at("2026-01-01") });
}

#[test]
fn a_full_refresh_has_the_keys_of_a_merge() {
    let folder =
        Folder::new("//- pipelines/m.sql\n-- materialize ducklake://main/m key=k\nSELECT 1 AS k FROM range(2)\n");
    let told = folder.run(&refreshed());
    assert_eq!(told.failure("m").code.as_str(), "P501");
}

#[test]
fn a_run_that_was_planned_before_a_newer_one_wrote_is_superseded() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- partitioned daily
-- materialize ducklake://main/t
SELECT 1 AS n
//- pipelines/own.sql
-- materialize ducklake://main/own append
-- column n BIGINT
SELECT count(*) AS n FROM own
",
    );
    let (older, newer) = (folder.open(), folder.open());
    run(&newer, &at("2026-01-01")).assert_good();
    let (plan, seen) = older.plan(&PlanRequest { force: true, ..at("2026-01-01") }).unwrap();
    // The other slice is written meanwhile, then the same one.
    run(&newer, &force_at("t", "2026-01-02")).assert_good();
    let told = run(&newer, &PlanRequest { force: true, ..at("2026-01-01") });
    told.assert_good();
    let late = run_plan(&older, &plan, &seen);
    assert_eq!(late.step("t 2026-01-01").state, StepState::Superseded, "{}", late.text());
    // Who reads its own target reads it again instead.
    assert_eq!(late.step("own").state, StepState::Materialized, "{}", late.text());
    assert_eq!(query(&older, "FROM own ORDER BY n", None), ["0", "1", "2"]);
    assert_eq!(query(&older, "SELECT count(*) FROM t", None), ["2"]);
}

#[test]
fn a_mistake_is_not_retried_and_a_step_over_its_time_is_stopped() {
    let folder = Folder::new(
        "//- pipelines/wrong.sql
-- retry 3
-- materialize ducklake://main/wrong
SELECT error('no') AS n
//- pipelines/slow.sql
-- timeout 1s
-- materialize ducklake://main/slow
SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE (a.range + b.range) % 7 = 3
//- pipelines/after.sql
-- materialize ducklake://main/after
SELECT 1 AS n
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    expect![[r#"
        P518 stage the query: the step took longer than its timeout of 1.0 s
        at line 1: timeout 1s
        help: give it more time (`timeout 30m`), or make the query read less
        committed: nothing of this step is committed; Pintail has not written ducklake://main/slow yet"#]]
    .assert_eq(&folder.told_of(&told, "slow"));
    let ran = pintail.run_detail("last").unwrap();
    let attempts: Vec<String> =
        ran.steps.iter().map(|step| format!("{} {}", step.step.script, step.attempts.len())).collect();
    expect![[r#"
        after 1
        slow 1
        wrong 1"#]]
    .assert_eq(&attempts.join("\n"));
    assert_eq!(query(&pintail, "FROM after", None), ["1"]);
}

#[test]
fn the_identity_column_may_have_another_name_and_is_not_the_querys_own() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- partitioned daily
-- materialize ducklake://main/t column=_wm_partition
SELECT 1 AS n
//- pipelines/u.sql
-- partitioned daily
-- materialize ducklake://main/u
SELECT * FROM t WHERE _wm_partition = $WM_PARTITION
",
    );
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    assert_eq!(query(&pintail, "SELECT * FROM u", None), ["1|2026-01-01|2026-01-01"]);
    folder
        .write("//- pipelines/t.sql\n-- partitioned daily\n-- materialize ducklake://main/t\nSELECT 1 AS _PARTITION\n");
    expect![
        "Error P214 pipelines/t.sql:3 the column `_PARTITION` is added by Pintail and holds the partition's identity"
    ]
    .assert_eq(&folder.check().join("\n"));
}

#[test]
fn case_f38_steps_run_in_utc_and_ignore_the_zone_of_the_host() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT current_setting('TimeZone') AS zone, (TIMESTAMP '2026-03-08 00:00:00')::TIMESTAMPTZ AS naive
//- tests/zone.sql
SELECT * FROM t WHERE current_setting('TimeZone') <> 'UTC'
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(
        query(&pintail, "SELECT zone, epoch(naive)::BIGINT, current_setting('TimeZone') FROM t", None),
        ["UTC|1772928000|UTC"]
    );
}

#[test]
fn on_sqlite_a_lake_that_is_not_there_is_said_and_settings_of_the_engine_are_guarded() {
    let folder = Folder::new(
        "//- pintail.toml
[lake.main]
catalog = \"sqlite:.pintail/main.sqlite\"
data = \".pintail/data/main\"
[lake.other]
catalog = \"sqlite:two/other.sqlite\"
data = \"two/data\"
//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT * FROM other.nothing
",
    );
    let told = folder.run_all();
    expect![[r#"
        P516 reach the lake: lake `other` does not exist yet (<project>/two/other.sqlite); the first script that writes to it makes it
        committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]]
    .assert_eq(&folder.told_of(&told, "t").replace(folder.path().to_str().unwrap(), "<project>"));
    folder.write(
        "//- pipelines/u.sql
-- materialize ducklake://main/u
SET threads = 1;
SET memory_limit = '1GB';
INSTALL spatial;
LOAD spatial;
ATTACH 'x.duckdb' AS x;
CREATE TABLE kept AS SELECT 1 AS n;
SELECT 1 AS n
",
    );
    expect![[r#"
        Error P207 pipelines/u.sql:2 a script may not change the setting `threads`
        Error P207 pipelines/u.sql:3 a script may not change the setting `memory_limit`
        Info P208 pipelines/u.sql:4 INSTALL is ignored: extensions come with Pintail
        Error P216 pipelines/u.sql:5 the extension `spatial` does not come with Pintail
        Error P213 pipelines/u.sql:6 what is not an asset of the project can be attached only for reading
        Error P218 pipelines/u.sql:7 CREATE TABLE writes by itself, but Pintail writes the rows of a managed body"#]]
    .assert_eq(&folder.check().join("\n"));
}

#[test]
fn the_plan_of_a_script_that_is_gone_by_the_run_and_an_old_table_stay_readable() {
    let folder = Folder::new("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 1 AS n\n");
    run(&folder.open(), &PlanRequest::default()).assert_good();
    std::fs::remove_file(folder.path().join("pipelines/t.sql")).unwrap();
    folder.write("//- pipelines/u.sql\n-- materialize ducklake://main/u\nFROM t\n");
    let pintail = Arc::new(folder.open());
    assert_eq!(run(&pintail, &forced()).assert_good().steps.len(), 1);
    assert_eq!(query(&pintail, "FROM u", None), ["1"]);
    let error = pintail.plan(&only("t")).unwrap_err().to_string();
    assert_eq!(error, "the selection is wrong");
    assert!(pintail.project().script(&ScriptName("t".to_owned())).is_none());
}
