//! Every cell of the strategies: what it does to rows, that it is one snapshot, and what the catalog says afterwards.

use expect_test::{Expect, expect};
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, Told, at, facts, force, force_at, forced, only, only_at, query, refreshed, run};

/// The snapshots of the lake, each with the tables that its commit names.
fn snapshots(pintail: &Pintail) -> Vec<String> {
    query(pintail, "SELECT snapshot_id, commit_message FROM lake.snapshots() ORDER BY ALL", None)
}

fn head(pintail: &Pintail) -> i64 {
    query(pintail, "SELECT max(snapshot_id) FROM lake.snapshots()", None)[0].parse().unwrap()
}

fn spec(pintail: &Pintail, table: &str) -> String {
    let keys: Vec<String> =
        facts(pintail, table).partition.iter().map(|(column, transform)| format!("{transform}({column})")).collect();
    keys.join(" ")
}

fn check(told: &Told, expected: Expect) {
    expected.assert_eq(&told.text());
}

const WHOLE: &str = "//- pipelines/src.sql
-- materialize ducklake://main/src
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(k, v)
//- pipelines/replaced.sql
-- materialize ducklake://main/replaced
FROM src
//- pipelines/merged.sql
-- materialize ducklake://main/merged key=k
FROM src
//- pipelines/appended.sql
-- materialize ducklake://main/appended append
FROM src
//- pipelines/viewed.sql
-- materialize view ducklake://main/viewed
SELECT k, upper(v) AS v FROM src
//- pipelines/by_hand.sql
-- materialize manual ducklake://main/by_hand
ATTACH 'ducklake' AS l;
CREATE TABLE IF NOT EXISTS l.by_hand (n BIGINT);
INSERT INTO l.by_hand SELECT count(*) FROM l.src;
";

#[test]
fn case_a7_each_whole_write_is_one_snapshot_and_keeps_the_table() {
    let folder = Folder::new(WHOLE);
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    told.assert_good();
    check(
        &told,
        expect![[r#"
            appended: Materialized rows Some(2) -0 +2
            by_hand: Materialized rows None -0 +1
            merged: Materialized rows Some(2) -0 +2
            replaced: Materialized rows Some(2) -0 +2
            src: Materialized rows Some(2) -0 +2
            viewed: Materialized rows None -0 +0"#]],
    );
    let first = head(&pintail);
    let ids: Vec<_> = ["src", "replaced", "merged", "appended"].map(|table| facts(&pintail, table).id).into();
    drop(pintail);

    folder.write(
        "//- pipelines/src.sql
-- materialize ducklake://main/src
SELECT * FROM (VALUES (2, 'c'), (3, 'd')) t(k, v)
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    told.assert_good();
    check(
        &told,
        expect![[r#"
            appended: Materialized rows Some(4) -0 +2
            by_hand: Materialized rows None -0 +1
            merged: Materialized rows Some(3) -1 +2
            replaced: Materialized rows Some(2) -2 +2
            src: Materialized rows Some(2) -2 +2"#]],
    );
    // src, replaced, merged, appended and the one INSERT of by_hand; the view needs nothing, and steps may share a commit.
    let made: std::collections::BTreeSet<_> = told.steps.iter().filter_map(|step| step.snapshot).collect();
    assert_eq!(head(&pintail) - first, i64::try_from(made.len()).unwrap(), "{:#?}", snapshots(&pintail));
    let now: Vec<_> = ["src", "replaced", "merged", "appended"].map(|table| facts(&pintail, table).id).into();
    assert_eq!(now, ids);
    assert_eq!(
        query(
            &pintail,
            "SELECT 'r', * FROM replaced UNION ALL SELECT 'm', * FROM merged UNION ALL SELECT 'a', * FROM appended
             UNION ALL SELECT 'v', * FROM viewed UNION ALL SELECT 'h', n, NULL FROM by_hand ORDER BY ALL",
            None
        ),
        [
            "a|1|a", "a|2|b", "a|2|c", "a|3|d", "h|2|NULL", "h|2|NULL", "m|1|a", "m|2|c", "m|3|d", "r|2|c", "r|3|d",
            "v|2|C", "v|3|D"
        ]
    );
    // The change feed of a replace holds what went and what came, in its one snapshot.
    let snapshot = told.step("replaced").snapshot.unwrap();
    let feed =
        format!("SELECT change_type, k, v FROM lake.table_changes('replaced', {snapshot}, {snapshot}) ORDER BY ALL");
    assert_eq!(query(&pintail, &feed, None), ["delete|1|a", "delete|2|b", "insert|2|c", "insert|3|d"]);
    // The old version can still be read.
    let before = told.step("replaced").snapshot.map(|snapshot| pintail_core::id::SnapshotId(snapshot.0 - 1));
    assert_eq!(query(&pintail, "SELECT k, v FROM replaced ORDER BY k", before), ["1|a", "2|b"]);
}

#[test]
fn force_appends_again_and_a_full_refresh_writes_merge_and_append_anew() {
    let folder = Folder::new(
        "//- pipelines/m.sql
-- materialize ducklake://main/m key=k
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(k, v)
//- pipelines/p.sql
-- materialize ducklake://main/p append
SELECT k FROM m
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(run(&pintail, &PlanRequest::default()).steps.len(), 0);
    run(&pintail, &forced()).assert_good();
    assert_eq!(query(&pintail, "SELECT (SELECT count(*) FROM m), (SELECT count(*) FROM p)", None), ["2|4"]);
    drop(pintail);
    folder.write(
        "//- pipelines/m.sql
-- materialize ducklake://main/m key=k
SELECT 9 AS k, 'z' AS v
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &refreshed());
    told.assert_good();
    assert_eq!(told.step("m").changed, (2, 1));
    assert_eq!(told.step("p").changed, (4, 1));
    assert_eq!(query(&pintail, "SELECT (SELECT max(k) FROM m), (SELECT max(k) FROM p)", None), ["9|9"]);
}

#[test]
fn case_d25_an_append_counts_changes_of_its_input_and_never_looks_at_their_content() {
    let folder = Folder::new(
        "//- pipelines/batch.sql
-- materialize ducklake://main/batch
SELECT 1 AS n
//- pipelines/log.sql
-- materialize ducklake://main/log append
SELECT n FROM batch
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    // The next batch has the same rows; it is another batch all the same.
    run(&pintail, &force("batch")).assert_good();
    check(&run(&pintail, &PlanRequest::default()), expect![["log: Materialized rows Some(2) -0 +1"]]);
    assert_eq!(run(&pintail, &PlanRequest::default()).steps.len(), 0);
    assert_eq!(query(&pintail, "FROM log", None), ["1", "1"]);
}

#[test]
fn case_d23_rows_are_never_inlined_so_that_deleted_ones_stay_deleted() {
    let folder = Folder::new(
        "//- pipelines/m.sql
-- materialize ducklake://main/m key=k
SELECT i AS k, 'old' AS v FROM range(100) r(i)
//- pipelines/one.sql
-- materialize ducklake://main/one
SELECT 1 AS n
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    for replaced in ["range(1)", "range(1, 51)", "range(3)"] {
        folder.write(&format!(
            "//- pipelines/m.sql\n-- materialize ducklake://main/m key=k\nSELECT i AS k, 'new' AS v FROM {replaced} r(i)\n"
        ));
        folder.run_all().assert_good();
        // The catalog's number and the rows that a scan finds are the same.
        assert_eq!(query(&pintail, "SELECT count(*) FROM m", None), ["100"]);
        assert_eq!(query(&pintail, "SELECT len(list(k)), count(DISTINCT k) FROM m", None), ["100|100"]);
    }
    assert_eq!(query(&pintail, "SELECT count(*) FROM m WHERE v = 'new'", None), ["51"]);
    let files = query(&pintail, "SELECT file_count FROM ducklake_table_info('lake') WHERE table_name = 'one'", None);
    assert_eq!(files, ["1"], "a write of one row is a file too");
}

#[test]
fn a_key_with_order_by_keeps_one_row_and_keys_compare_without_case_of_names() {
    let folder = Folder::new(
        "//- pipelines/m.sql
-- materialize ducklake://main/m key=A,b order_by=\"v desc\"
SELECT * FROM (VALUES (1, 'x', 1), (1, 'x', 3), (1, 'y', 2)) t(a, B, v)
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT * FROM m ORDER BY ALL", None), ["1|x|3", "1|y|2"]);
    drop(pintail);
    folder.write(
        "//- pipelines/m.sql
-- unique_key a,b
-- materialize ducklake://main/m
SELECT 1 AS a, 'y' AS b, 7 AS v
",
    );
    let told = folder.run_all();
    told.assert_good();
    assert_eq!((told.step("m").changed, told.step("m").rows), ((1, 1), Some(2)));
    assert_eq!(folder.query("SELECT * FROM m ORDER BY ALL"), ["1|x|3", "1|y|7"]);
}

const KINDS: &str = "//- pipelines/instant.sql
-- partitioned daily by=ts
-- materialize ducklake://main/instant
SELECT ts, n FROM (VALUES (TIMESTAMPTZ '2026-01-01 00:00:00+00', 1), (TIMESTAMPTZ '2026-01-01 23:59:59.999999+00', 2),
                          (TIMESTAMPTZ '2026-01-02 00:00:00+00', 3)) t(ts, n) WHERE in_partition(ts)
//- pipelines/naive.sql
-- partitioned daily by=ts
-- materialize ducklake://main/naive
SELECT ts::TIMESTAMP AS ts, n FROM (VALUES ('2026-01-01 00:00:00', 1), ('2026-01-01 23:59:59.999999', 2),
                          ('2026-01-02 00:00:00', 3)) t(ts, n) WHERE in_partition(ts::TIMESTAMP)
//- pipelines/date.sql
-- partitioned daily by=ts
-- materialize ducklake://main/date
SELECT ts::DATE AS ts, n FROM (VALUES ('2026-01-01', 1), ('2026-01-01', 2), ('2026-01-02', 3)) t(ts, n)
WHERE in_partition(ts::DATE)
//- pipelines/local.sql
-- partitioned daily by=ts tz=America/New_York
-- materialize ducklake://main/local
SELECT ts, n FROM (VALUES (TIMESTAMPTZ '2026-01-01 05:00:00+00', 1), (TIMESTAMPTZ '2026-01-02 04:59:59+00', 2),
                          (TIMESTAMPTZ '2026-01-02 05:00:00+00', 3)) t(ts, n) WHERE in_partition(ts)
//- pipelines/local_date.sql
-- partitioned daily by=ts tz=America/New_York
-- materialize ducklake://main/local_date
SELECT ts::DATE AS ts, n FROM (VALUES ('2026-01-01', 1), ('2026-01-01', 2), ('2026-01-02', 3)) t(ts, n)
WHERE in_partition(ts::DATE)
//- pipelines/plain.sql
-- partitioned daily
-- materialize ducklake://main/plain
SELECT n, $partition AS said FROM range(2) t(n)
";

#[test]
fn daily_slices_of_every_time_type_tile_time() {
    let folder = Folder::new(KINDS);
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    run(&pintail, &at("2026-01-02")).assert_good();
    let again = run(&pintail, &PlanRequest { force: true, ..at("2026-01-01") });
    again.assert_good();
    let tables = ["instant", "naive", "date", "local", "local_date", "plain"];
    for table in tables {
        assert_eq!((again.step(&format!("{table} 2026-01-01")).changed, table), ((2, 2), table));
    }
    let specs: Vec<String> = tables.iter().map(|table| format!("{table}: {}", spec(&pintail, table))).collect();
    expect![[r#"
        instant: year(ts) month(ts) day(ts)
        naive: year(ts) month(ts) day(ts)
        date: year(ts) month(ts) day(ts)
        local: identity(_partition)
        local_date: year(ts) month(ts) day(ts)
        plain: identity(_partition)"#]]
    .assert_eq(&specs.join("\n"));
    assert_eq!(
        query(
            &pintail,
            "SELECT (SELECT count(*) FROM instant), (SELECT count(*) FROM naive), (SELECT count(*) FROM date),
                    (SELECT count(*) FROM local), (SELECT count(*) FROM local_date), (SELECT count(*) FROM plain),
                    (SELECT string_agg(DISTINCT said || _partition, ' ' ORDER BY said || _partition) FROM plain)",
            None
        ),
        ["3|3|3|3|3|4|2026-01-012026-01-01 2026-01-022026-01-02"]
    );
}

#[test]
fn hourly_weekly_and_monthly_slices_replace_only_their_own_window() {
    let folder = Folder::new(
        "//- pipelines/hours.sql
-- partitioned hourly by=ts
-- materialize ducklake://main/hours
SELECT $partition_start AS ts, $partition AS key
//- pipelines/weeks.sql
-- partitioned weekly by=ts
-- materialize ducklake://main/weeks
SELECT unnest([$partition_start, $partition_end - INTERVAL 1 DAY]) AS ts, $partition AS key
//- pipelines/months.sql
-- partitioned monthly by=ts
-- materialize ducklake://main/months
SELECT unnest([$partition_start, $partition_end - INTERVAL 1 MICROSECOND]) AS ts, $partition AS key
//- pipelines/local_hours.sql
-- partitioned hourly by=ts tz=Europe/Berlin
-- materialize ducklake://main/local_hours
SELECT $partition_start AS ts, $partition AS key
",
    );
    let pintail = folder.open();
    for (script, partitions) in [
        ("hours", ["2026-05-16T09", "2026-05-16T10"]),
        ("weeks", ["2026-W20", "2026-W21"]),
        ("months", ["2026-05", "2026-06"]),
        ("local_hours", ["2025-10-26T02+0200", "2025-10-26T02+0100"]),
    ] {
        for partition in partitions {
            run(&pintail, &only_at(script, partition)).assert_good();
        }
        let again = run(&pintail, &force_at(script, partitions[0]));
        again.assert_good();
        let (deleted, inserted) = again.steps[0].changed;
        assert_eq!(deleted, inserted, "{script}");
    }
    let specs: Vec<String> =
        ["hours", "weeks", "months", "local_hours"].iter().map(|table| spec(&pintail, table)).collect();
    expect![[r#"
        year(ts) month(ts) day(ts) hour(ts)
        year(ts) month(ts) day(ts)
        year(ts) month(ts)
        identity(_partition)"#]]
    .assert_eq(&specs.join("\n"));
    let rows = query(
        &pintail,
        "SELECT key, ts FROM hours UNION ALL SELECT key, ts FROM weeks UNION ALL SELECT key, ts FROM months
         UNION ALL SELECT key, ts FROM local_hours ORDER BY ALL",
        None,
    );
    expect![[r#"
        2025-10-26T02+0100|2025-10-26 01:00:00+00:00
        2025-10-26T02+0200|2025-10-26 00:00:00+00:00
        2026-05|2026-05-01 00:00:00+00:00
        2026-05|2026-05-31 23:59:59.999999+00:00
        2026-05-16T09|2026-05-16 09:00:00+00:00
        2026-05-16T10|2026-05-16 10:00:00+00:00
        2026-06|2026-06-01 00:00:00+00:00
        2026-06|2026-06-30 23:59:59.999999+00:00
        2026-W20|2026-05-11 00:00:00+00:00
        2026-W20|2026-05-17 00:00:00+00:00
        2026-W21|2026-05-18 00:00:00+00:00
        2026-W21|2026-05-24 00:00:00+00:00"#]]
    .assert_eq(&rows.join("\n"));
}

#[test]
fn merge_and_append_stay_inside_their_slice() {
    let folder = Folder::new(
        "//- pipelines/m.sql
-- partitioned daily
-- materialize ducklake://main/m key=k
SELECT 1 AS k, $partition AS v UNION ALL SELECT CAST(strftime($partition_start, '%d') AS INTEGER) + 10, 'own'
//- pipelines/p.sql
-- partitioned daily by=ts
-- materialize ducklake://main/p append
SELECT $partition_start AS ts
",
    );
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    run(&pintail, &at("2026-01-02")).assert_good();
    assert_eq!(
        query(&pintail, "SELECT _partition, k, v FROM m ORDER BY ALL", None),
        ["2026-01-01|1|2026-01-01", "2026-01-01|11|own", "2026-01-02|1|2026-01-02", "2026-01-02|12|own"]
    );
    // An append is once per input and partition.
    assert_eq!(run(&pintail, &at("2026-01-02")).steps.len(), 0);
    let told = run(&pintail, &PlanRequest { force: true, ..at("2026-01-02") });
    told.assert_good();
    assert_eq!((told.step("m 2026-01-02").changed, told.step("m 2026-01-02").rows), ((2, 2), Some(2)));
    assert_eq!((told.step("p 2026-01-02").changed, told.step("p 2026-01-02").rows), ((0, 1), Some(2)));
    // A full refresh of one slice leaves its siblings.
    let told = run(&pintail, &PlanRequest { full_refresh: true, ..at("2026-01-02") });
    told.assert_good();
    assert_eq!(told.step("p 2026-01-02").changed, (2, 1));
    assert_eq!(query(&pintail, "SELECT count(*) FROM p", None), ["2"]);
}

#[test]
fn an_empty_replace_is_refused_unless_it_is_meant_and_an_empty_first_slice_is_stamped() {
    let folder = Folder::new(
        "//- pipelines/whole.sql
-- materialize ducklake://main/whole
SELECT 1 AS n
//- pipelines/meant.sql
-- materialize ducklake://main/meant allow_empty
SELECT 1 AS n
//- pipelines/sliced.sql
-- partitioned daily by=ts
-- materialize ducklake://main/sliced
SELECT $partition_start AS ts WHERE $partition <> '2026-01-02'
",
    );
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    let before = head(&pintail);
    // A slice that was always empty may stay so; it is written once and not again.
    let told = run(&pintail, &only_at("sliced", "2026-01-02"));
    told.assert_good();
    assert_eq!(told.steps[0].rows, Some(0));
    assert_eq!(head(&pintail), before + 1);
    assert_eq!(run(&pintail, &only_at("sliced", "2026-01-02")).steps.len(), 0);
    drop(pintail);
    folder.write(
        "//- pipelines/whole.sql
-- materialize ducklake://main/whole
SELECT 1 AS n WHERE false
//- pipelines/meant.sql
-- materialize ducklake://main/meant allow_empty
SELECT 1 AS n WHERE false
//- pipelines/sliced.sql
-- partitioned daily by=ts
-- materialize ducklake://main/sliced
SELECT $partition_start AS ts WHERE false
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &at("2026-01-01"));
    assert_eq!(told.step("meant").changed, (1, 0));
    expect![[r#"
        P504 guard the stage: the query gives no rows and would empty what has rows now
        at line 1: materialize ducklake://main/whole
        help: if that is meant, say so: `materialize … allow_empty`
        committed: ducklake://main/whole is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&folder.told_of(&told, "whole"));
    expect![[r#"
        P504 guard the stage: the query gives no rows and would empty what has rows now
        at line 2: materialize ducklake://main/sliced
        help: if that is meant, say so: `materialize … allow_empty`
        committed: ducklake://main/sliced 2026-01-01 is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&folder.told_of(&told, "sliced 2026-01-01"));
    assert_eq!(query(&pintail, "SELECT count(*) FROM whole", None), ["1"]);
    // What failed stays due, and a fixed script mends it.
    assert_eq!(run(&pintail, &only("whole")).summary.failed, 1);
    run(&pintail, &force("meant")).assert_good();
}

#[test]
fn an_empty_first_table_has_its_columns() {
    let folder = Folder::new(
        "//- pipelines/e.sql
-- materialize ducklake://main/e
SELECT 1::SMALLINT AS n, 'x' AS t WHERE false
//- pipelines/v.sql
-- materialize ducklake://main/v append
FROM e
",
    );
    let told = folder.run_all();
    told.assert_good();
    assert_eq!(folder.query("SELECT column_name, column_type FROM (DESCRIBE v)"), ["n|SMALLINT", "t|VARCHAR"]);
    assert_eq!(folder.run_all().steps.len(), 0);
}

#[test]
fn a_write_of_no_rows_is_stamped_once_and_a_view_is_described() {
    let folder = Folder::new(
        "//- pipelines/m.sql
-- materialize ducklake://main/m key=k
SELECT 1 AS k
//- pipelines/p.sql
-- materialize ducklake://main/p append
SELECT 1 AS k
//- pipelines/v.sql
-- description What is seen
-- materialize view ducklake://main/v
FROM m
",
    );
    folder.run_all().assert_good();
    folder.write(
        "//- pipelines/m.sql
-- materialize ducklake://main/m key=k
SELECT 1 AS k WHERE false
//- pipelines/p.sql
-- materialize ducklake://main/p append
SELECT 1 AS k WHERE false
",
    );
    let pintail = folder.open();
    let before = head(&pintail);
    let told = run(&pintail, &PlanRequest::default());
    told.assert_good();
    assert_eq!((told.step("m").rows, told.step("p").rows), (Some(1), Some(1)));
    let commits = head(&pintail) - before;
    assert!((1..=2).contains(&commits), "one commit each, or one that they share, and not {commits}");
    assert_eq!(run(&pintail, &PlanRequest::default()).steps.len(), 0);
    let comment = "SELECT comment FROM duckdb_views() WHERE database_name = 'lake' AND view_name = 'v'";
    assert_eq!(query(&pintail, comment, None), ["What is seen"]);
}
