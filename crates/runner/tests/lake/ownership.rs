//! Whose table it is: adoption, rebuilding what the store knew, healing, history.

use expect_test::expect;
use pintail_core::id::LakeName;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, facts, foreign, planned, query, run};

fn fingerprint(pintail: &pintail_runner::Pintail) -> String {
    pintail.block_on(pintail.store().state_fingerprint(&LakeName("main".to_owned()))).unwrap()
}

#[test]
fn a_table_that_somebody_else_made_is_refused_until_it_is_adopted() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize ducklake://main/t append
SELECT 2 AS n
//- pipelines/v.sql
-- materialize view ducklake://main/v
SELECT 1 AS n
",
    );
    let pintail = folder.open();
    foreign(&pintail, "CREATE TABLE t AS SELECT 1 AS n; CREATE TABLE v AS SELECT 7 AS n");
    let told = run(&pintail, &PlanRequest::default());
    expect![[r#"
        P508 check the target: ducklake://main/t exists, but Pintail has not made it
        help: to let Pintail write it from now on: `pintail adopt ducklake://main/t`
        committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]]
    .assert_eq(&folder.told_of(&told, "t"));
    expect![[r#"
        P508 check the target: ducklake://main/v exists, but Pintail has not made it
        help: to let Pintail write it from now on: `pintail adopt ducklake://main/v`
        committed: nothing of this step is committed; Pintail has not written ducklake://main/v yet"#]]
    .assert_eq(&folder.told_of(&told, "v"));
    let adopted = pintail.adopt("t", None).unwrap();
    assert_eq!(adopted.rows, 1);
    let told = run(&pintail, &PlanRequest { select: Some("t".to_owned()), ..PlanRequest::default() });
    told.assert_good();
    assert_eq!(query(&pintail, "FROM t ORDER BY n", None), ["1", "2"]);
    assert!(pintail.adopt("nothing_of_ours", None).unwrap_err().to_string().contains("no script writes"));
}

#[test]
fn a_table_that_is_partitioned_otherwise_is_refused_and_can_be_adopted_with_its_partitions() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- partitioned daily by=ts
-- materialize ducklake://main/t
SELECT $partition_start AS ts
",
    );
    let pintail = folder.open();
    foreign(&pintail, "CREATE TABLE t AS SELECT TIMESTAMPTZ '2026-01-01 10:00:00+00' AS ts");
    pintail.adopt("t", None).unwrap();
    let told = run(&pintail, &at("2026-01-02"));
    expect![[r#"
        P509 check the target: t is partitioned by nothing, and the script asks for year(`ts`), month(`ts`), day(`ts`)
        help: change `partitioned` back, or write a new table: another name in `materialize`, then a backfill
        committed: ducklake://main/t 2026-01-02 is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&folder.told_of(&told, "t 2026-01-02"));
    pintail.adopt("t", Some("year(ts), month(ts), day(ts)")).unwrap();
    run(&pintail, &at("2026-01-02")).assert_good();
    let told = run(&pintail, &at("2026-01-01"));
    told.assert_good();
    assert_eq!(told.steps[0].changed, (1, 1));
    assert_eq!(facts(&pintail, "t").partition.len(), 3);
    drop(pintail);
    folder.write(
        "//- pipelines/t.sql
-- partitioned hourly by=ts
-- materialize ducklake://main/t
SELECT $partition_start AS ts
",
    );
    let told = folder.run(&at("2026-01-02T05"));
    expect!["t 2026-01-02T05: Failed: t is partitioned by year(`ts`), month(`ts`), day(`ts`), and the script asks for year(`ts`), month(`ts`), day(`ts`), hour(`ts`)"].assert_eq(&told.text());
}

const PROJECT: &str = "//- pipelines/a.sql
-- materialize ducklake://main/a key=k
-- on_schema_change sync_all_columns
SELECT 1 AS k, 'x' AS v
//- pipelines/b.sql
-- partitioned daily by=ts
-- materialize ducklake://main/b
SELECT $partition_start AS ts FROM a
//- pipelines/c.sql
-- materialize ducklake://main/c append
-- column n BIGINT
SELECT count(*) AS n FROM c
//- pipelines/v.sql
-- materialize view ducklake://main/v
FROM a
//- pipelines/m.sql
-- materialize manual ducklake://main/m
CREATE OR REPLACE TABLE lake.m AS SELECT 1 AS n;
";

/// Runs the project so that there are several versions, slices and shapes.
fn lived_in() -> Folder {
    let folder = Folder::new(PROJECT);
    folder.run(&at("2026-01-01")).assert_good();
    folder.run(&PlanRequest { force: true, ..at("2026-01-02") }).assert_good();
    folder.write("//- pipelines/a.sql\n-- materialize ducklake://main/a key=k\n-- on_schema_change sync_all_columns\nSELECT 2 AS k, 5 AS v\n");
    let told = folder.run_all();
    assert_eq!(told.summary.failed, 1, "{}", told.text());
    folder.write("//- pipelines/a.sql\n-- materialize ducklake://main/a key=k\n-- on_schema_change sync_all_columns\nSELECT 2 AS k, 'y' AS v, 5 AS w\n");
    folder.run(&at("2026-01-01")).assert_good();
    folder
}

#[test]
fn case_a10_state_rebuilt_from_an_emptied_store_equals_the_old_and_nothing_runs_again() {
    let folder = lived_in();
    let pintail = folder.open();
    let before = fingerprint(&pintail);
    let due = planned(&pintail, &at("2026-01-01"));
    drop(pintail);
    for file in std::fs::read_dir(folder.path().join(".pintail")).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("store.sqlite") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let pintail = folder.open();
    // Opening heals by itself: no step is taken for new, no append is repeated.
    assert_eq!(planned(&pintail, &at("2026-01-01")), due);
    assert_eq!(fingerprint(&pintail), before);
    let rebuilt = pintail.rebuild_state().unwrap();
    assert_eq!(rebuilt[0].unknown, []);
    assert_eq!(fingerprint(&pintail), before);
    foreign(&pintail, "CREATE TABLE stranger AS SELECT 1 AS n");
    let unknown = &pintail.rebuild_state().unwrap()[0].unknown;
    assert_eq!(unknown.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ducklake://main/stranger"]);
}

#[test]
fn case_a8_history_says_each_version_with_its_snapshot_and_rows() {
    let folder = lived_in();
    let pintail = folder.open();
    let lines = |asset: &str| {
        let history = pintail.history(&pintail.parse_asset(asset).unwrap(), 20).unwrap();
        let line = |version: &pintail_store::Materialization| {
            format!(
                "{} {:?} rows {:?} written {:?} schema {} generation {}",
                version.partition.as_ref().map_or("-", |key| key.as_str()),
                version.status,
                version.rows,
                version.inserted,
                version.schema_version,
                version.generation
            )
        };
        history.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        - Materialized rows Some(2) written 1 schema 2 generation 0
        - Failed rows None written 0 schema 1 generation 0
        - Materialized rows Some(1) written 1 schema 1 generation 0
        - Materialized rows Some(1) written 1 schema 1 generation 0"#]]
    .assert_eq(&lines("a"));
    expect![[r#"
        2026-01-01 Materialized rows Some(2) written 2 schema 1 generation 0
        2026-01-02 Materialized rows Some(1) written 1 schema 1 generation 0
        2026-01-01 Materialized rows Some(1) written 1 schema 1 generation 0"#]]
    .assert_eq(&lines("b"));
    expect![[r#"
        - Materialized rows Some(2) written 1 schema 1 generation 0
        - Materialized rows Some(1) written 1 schema 1 generation 0
        - Materialized rows None written 0 schema 1 generation 0"#]]
    .assert_eq(&lines("c"));
    // Each recorded snapshot is the one that changed the table, never a later one.
    for version in pintail.history(&pintail.parse_asset("b").unwrap(), 20).unwrap() {
        let Some(snapshot) = version.snapshot else { continue };
        let feed = format!("SELECT count(*) FROM lake.table_changes('b', {snapshot}, {snapshot})");
        assert_ne!(query(&pintail, &feed, None), ["0"], "{snapshot}");
    }
}
