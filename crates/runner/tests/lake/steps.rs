//! What a step reads and when it is due: self-readers, context, pins, staleness, other writers, manual scripts.

use expect_test::expect;
use pintail_core::plan::Hint;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, force, force_at, foreign, only, only_at, planned, query, refreshed, run};

const COUNTER: &str = "//- pipelines/t.sql
-- materialize ducklake://main/t append
-- column n BIGINT
-- column first BOOLEAN
SELECT coalesce(max(n), 0) + 1 AS n, $first_run AS first FROM t
";

#[test]
fn case_a3_a_script_that_reads_its_own_target_sees_the_version_before() {
    let folder = Folder::new(COUNTER);
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    // Its own write is no news to it.
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
    run(&pintail, &force("t")).assert_good();
    run(&pintail, &force("t")).assert_good();
    assert_eq!(query(&pintail, "SELECT n, first FROM t ORDER BY n", None), ["1|true", "2|false", "3|false"]);
    foreign(&pintail, "INSERT INTO t VALUES (40, false)");
    assert_eq!(planned(&pintail, &PlanRequest::default()), ["t: ducklake://main/t changed"]);
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT max(n) FROM t", None), ["41"]);
    run(&pintail, &refreshed()).assert_good();
    assert_eq!(query(&pintail, "SELECT n, first FROM t", None), ["42|true"]);
}

#[test]
fn case_a3_a_replace_that_reads_its_own_target_reads_it_before_the_delete() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- partitioned daily
-- materialize ducklake://main/t
-- column n BIGINT
SELECT coalesce(max(n), 0) + 1 AS n FROM t WHERE _partition = $partition
",
    );
    let pintail = folder.open();
    for _ in 0..3 {
        run(&pintail, &force_at("t", "2026-01-01")).assert_good();
    }
    run(&pintail, &force_at("t", "2026-01-02")).assert_good();
    assert_eq!(query(&pintail, "SELECT _partition, n FROM t ORDER BY ALL", None), ["2026-01-01|3", "2026-01-02|1"]);
}

#[test]
fn a_first_run_that_reads_its_own_target_without_columns_explains_itself() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT coalesce(max(n), 0) + 1 AS n FROM t
//- pipelines/u.sql
-- materialize ducklake://main/u
-- column n
SELECT coalesce(max(n), 0) + 1 AS n FROM u
",
    );
    let told = folder.run_all();
    expect![[r#"
        P514 make the table: the script reads ducklake://main/t, which does not exist yet
        at line 2: t
        help: declare its columns, so that the first run can read an empty table: `-- column n BIGINT`, one line per column
        committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]].assert_eq(&folder.told_of(&told, "t"));
    expect![[r#"
        P514 make the table: the script reads ducklake://main/u, which does not exist yet
        at line 3: u
        help: give each `column` line a type, so that the first run can read an empty table: n
        committed: nothing of this step is committed; Pintail has not written ducklake://main/u yet"#]]
    .assert_eq(&folder.told_of(&told, "u"));
}

#[test]
fn case_a4_a_star_from_a_partitioned_upstream_gets_its_own_partition() {
    let folder = Folder::new(
        "//- pipelines/up.sql
-- partitioned daily
-- materialize ducklake://main/up
SELECT 1 AS n
//- pipelines/down.sql
-- partitioned monthly
-- materialize ducklake://main/down
SELECT * FROM up WHERE _partition >= strftime($partition_start, '%Y-%m-%d')
",
    );
    let pintail = folder.open();
    run(&pintail, &only_at("up", "2026-01-01")).assert_good();
    let told = run(&pintail, &only_at("down", "2026-01"));
    told.assert_good();
    assert_eq!(told.notes(), ["down 2026-01: the column `_partition` of an upstream is replaced by this script's own"]);
    assert_eq!(query(&pintail, "SELECT * FROM down", None), ["1|2026-01"]);
}

#[test]
fn the_context_reaches_the_query_in_every_spelling() {
    let folder = Folder::new(
        "//- pintail.toml
[vars]
country = \"DE\"
limit_to = 3
//- data/2026-05-16.csv
n
7
//- data/2026-05-17.csv
n
8
//- pipelines/t.sql
-- partitioned daily
-- materialize ducklake://main/t
CREATE TEMP MACRO doubled(x) AS x * $limit_to::INTEGER;
CREATE TEMP VIEW numbers AS FROM read_csv('data/{partition}.csv');
SELECT $partition AS p, $WM_PARTITION AS wm, $partition_start AS s, $WM_PARTITION_END AS e,
  $country AS country, doubled(n) AS n, wm_partition($partition_start) AS key, '{partition}' AS spelled,
  $upstream_snapshot IS NULL AS unpinned, $first_run AS first
FROM numbers
",
    );
    let pintail = folder.open();
    run(&pintail, &at("2026-05-16")).assert_good();
    run(&pintail, &at("2026-05-17")).assert_good();
    expect![[r#"
        2026-05-16|2026-05-16|2026-05-16 00:00:00+00:00|2026-05-17 00:00:00+00:00|DE|21|2026-05-16|2026-05-16|false|true|2026-05-16
        2026-05-17|2026-05-17|2026-05-17 00:00:00+00:00|2026-05-18 00:00:00+00:00|DE|24|2026-05-17|2026-05-17|false|false|2026-05-17"#]].assert_eq(&query(&pintail, "FROM t ORDER BY p", None).join("\n"));
}

#[test]
fn case_g39_the_key_of_every_kind_is_what_the_macro_makes_of_its_start() {
    let mut text = String::new();
    let kinds = [("daily", "2026-05-16"), ("hourly", "2026-05-16T09"), ("weekly", "2026-W20"), ("monthly", "2026-05")];
    for (kind, _) in kinds {
        text.push_str(&format!(
            "//- pipelines/{kind}.sql
-- partitioned {kind}
-- materialize ducklake://main/{kind}
SELECT 1 AS n WHERE wm_partition($partition_start) = $partition AND wm_partition($partition_end) <> $partition
"
        ));
    }
    let folder = Folder::new(&text);
    let pintail = folder.open();
    for (kind, partition) in kinds {
        let told = run(&pintail, &only_at(kind, partition));
        assert_eq!(told.assert_good().steps[0].rows, Some(1), "{kind}");
    }
}

#[test]
fn what_makes_a_step_due_is_said() {
    let folder = Folder::new(
        "//- data/x.csv
n
1
//- pipelines/src.sql
-- materialize ducklake://main/src
SELECT 1 AS n
//- pipelines/v1.sql
-- materialize view ducklake://main/v1
FROM src
//- pipelines/v2.sql
-- materialize view ducklake://main/v2
FROM v1
//- pipelines/below.sql
-- materialize ducklake://main/below
FROM v2
//- pipelines/file.sql
-- materialize ducklake://main/file
FROM read_csv('data/x.csv')
//- pipelines/unknown.sql
-- on ducklake://main/src
-- materialize ducklake://main/unknown
FROM query_table('s' || 'rc')
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(planned(&pintail, &PlanRequest::default()), ["unknown: what it reads is not known"]);
    foreign(&pintail, "INSERT INTO src VALUES (2)");
    assert_eq!(
        planned(&pintail, &PlanRequest { exclude: Some("unknown".to_owned()), ..PlanRequest::default() }),
        ["below: ducklake://main/src changed"]
    );
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT count(*) FROM below", None), ["2"]);
    drop(pintail);
    folder.write(
        "//- data/x.csv
n
1
2
//- pipelines/v1.sql
-- materialize view ducklake://main/v1
SELECT n * 10 AS n FROM src
",
    );
    let pintail = folder.open();
    let due = planned(&pintail, &PlanRequest { exclude: Some("unknown".to_owned()), ..PlanRequest::default() });
    expect![[r#"
        file: volume://project/data/x.csv changed
        v1: the script changed
        below: after v1"#]]
    .assert_eq(&due.join("\n"));
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT (SELECT sum(n) FROM below), (SELECT count(*) FROM file)", None), ["30|2"]);
    drop(pintail);
    // A table behind two views: what reads them follows in the same run.
    folder.write("//- pipelines/src.sql\n-- materialize ducklake://main/src\nSELECT 5 AS n\n");
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT n FROM below", None), ["50"]);
    // Compaction is no change of data.
    foreign(&pintail, "CALL ducklake_merge_adjacent_files('_pt_w_main')");
    assert_eq!(planned(&pintail, &PlanRequest::default()), ["unknown: what it reads is not known"]);
}

#[test]
fn each_step_records_what_it_read_at_which_snapshot() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 1 AS n
//- pipelines/b.sql
-- materialize ducklake://main/b
FROM a
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    let told = run(&pintail, &PlanRequest { force: true, ..PlanRequest::default() });
    told.assert_good();
    let history = pintail.history(&pintail.parse_asset("b").unwrap(), 1).unwrap();
    let read_at = history[0].inputs.values().next().copied();
    assert_eq!(read_at, told.step("a").snapshot);
    let stamp = query(
        &pintail,
        "SELECT json_extract_string(commit_extra_info, '$.entries[0].inputs.main') FROM lake.snapshots() ORDER BY snapshot_id DESC LIMIT 1",
        None,
    );
    assert_eq!(stamp, [told.step("a").snapshot.unwrap().to_string()]);
    let run = pintail.run_detail("last").unwrap();
    assert_eq!(run.steps.len(), 2);
}

#[test]
fn earlier_periods_are_hinted_and_partitions_are_translated() {
    let folder = Folder::new(
        "//- pipelines/days.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/days
SELECT $partition AS day
//- pipelines/months.sql
-- partitioned monthly
-- materialize ducklake://main/months
SELECT count(*) AS n FROM days WHERE day LIKE $partition || '%'
",
    );
    let pintail = folder.open();
    assert_eq!(planned(&pintail, &at("2026-02")).len(), 29);
    assert_eq!(
        planned(&pintail, &at("2026-02-03")),
        ["days 2026-02-03: never written", "months 2026-02: never written"]
    );
    let (plan, _) = pintail.plan(&PlanRequest::default()).unwrap();
    let [Hint::Backfill { from, .. }, Hint::UnwrittenUpstream { script, upstream, missing, .. }] =
        plan.hints.as_slice()
    else {
        panic!("{:?}", plan.hints)
    };
    assert_eq!(from.as_str(), "2026-01-01");
    assert_eq!((script.as_str(), upstream.as_str()), ("months", "days"));
    assert!((28..=31).contains(missing), "a month without its days: {missing}");
    let refused = |text: &str| pintail.plan(&at(text)).unwrap_err().to_string();
    assert_eq!(planned(&pintail, &only_at("months", "2025-12")), ["months 2025-12: never written"]);
    expect![[r#"
        `days`: the partition 2025-12-31 lies before its start 2026-01-01; move `start=` to write it
        `days`: the partition 2999-01-01 has not begun yet
        `days`: `yesterday` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`"#]]
    .assert_eq(&[refused("2025-12-31"), refused("2999-01-01"), refused("yesterday")].join("\n"));
}

#[test]
fn a_manual_script_says_what_is_committed_when_it_fails_in_the_middle() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize manual ducklake://main/t
CREATE TABLE t (n INTEGER);
BEGIN;
INSERT INTO t VALUES (1);
INSERT INTO t VALUES (2);
COMMIT;
BEGIN;
INSERT INTO t VALUES (3);
INSERT INTO t SELECT nope FROM t;
COMMIT;
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    expect![[r#"
        P516 run the script's statement: Binder error: Referenced column "nope" not found in FROM clause!
        at line 9: nope FROM t;
        help: did you mean `n`?
        committed: the script's 2 commits before this statement stand (the last is snapshot 3)"#]]
    .assert_eq(&folder.told_of(&told, "t"));
    assert_eq!(query(&pintail, "FROM t ORDER BY n", None), ["1", "2"]);
    let stamps = query(
        &pintail,
        "SELECT author, json_extract_string(commit_extra_info, '$.entries[0].asset') FROM lake.snapshots() WHERE 1 < snapshot_id",
        None,
    );
    assert_eq!(stamps, ["pintail|ducklake://main/t", "pintail|ducklake://main/t"]);
    drop(pintail);
    folder
        .write("//- pipelines/t.sql\n-- materialize manual ducklake://main/t\nDELETE FROM t WHERE n = 1;\nSELECT 1;\n");
    let told = folder.run_all();
    told.assert_good();
    assert_eq!(told.step("t").changed, (1, 0));
}

#[test]
fn a_script_without_materialize_is_manual_and_one_that_writes_nothing_is_stamped() {
    let folder = Folder::new(
        "//- pipelines/t.sql
CREATE TABLE IF NOT EXISTS lake.t AS SELECT 1 AS n;
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    let told = run(&pintail, &force("t"));
    told.assert_good();
    assert!(told.step("t").snapshot.is_some());
    assert_eq!(query(&pintail, "FROM t", None), ["1"]);
    assert_eq!(run(&pintail, &only("t")).steps.len(), 0);
}

#[test]
fn a_downstream_of_a_failed_step_is_skipped_and_runs_when_it_is_mended() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 1 AS n WHERE error('no')
//- pipelines/b.sql
-- materialize ducklake://main/b
FROM a
//- pipelines/c.sql
-- materialize ducklake://main/c
SELECT 1 AS n
",
    );
    let told = folder.run_all();
    assert_eq!((told.summary.failed, told.summary.skipped, told.summary.materialized), (1, 1, 1), "{}", told.text());
    folder.write("//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT 1 AS n\n");
    let told = folder.run_all();
    told.assert_good();
    assert_eq!(told.steps.len(), 2);
}

#[test]
fn case_a6_an_open_period_is_written_again_once_it_has_closed() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- partitioned daily by=ts
-- materialize ducklake://main/t
SELECT $partition_start AS ts
",
    );
    let noon = || chrono::DateTime::parse_from_rfc3339("2026-03-10T12:00:00Z").unwrap().to_utc();
    let next = || chrono::DateTime::parse_from_rfc3339("2026-03-11T12:00:00Z").unwrap().to_utc();
    run(&folder.open_at(noon), &at("2026-03-10")).assert_good();
    assert_eq!(planned(&folder.open_at(noon), &at("2026-03-10")), Vec::<String>::new());
    let pintail = folder.open_at(next);
    assert_eq!(planned(&pintail, &PlanRequest::default()), ["t 2026-03-10: its period was still open last time"]);
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
}

#[test]
fn a_new_file_under_a_glob_makes_its_reader_due() {
    let folder = Folder::new(
        "//- data/a.csv
n
1
//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT n FROM read_csv('data/*.csv')
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
    folder.write("//- data/b.csv\nn\n2\n");
    assert_eq!(planned(&pintail, &PlanRequest::default()), ["t: volume://project/data/*.csv changed"]);
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT sum(n) FROM t", None), ["3"]);
}

#[test]
fn one_slot_carries_nothing_from_step_to_step_even_after_a_failure() {
    let folder = Folder::new(
        "//- pintail.toml
[run]
slots = 1
//- pipelines/a.sql
-- materialize manual ducklake://main/a
CREATE TEMP TABLE leftover AS SELECT 1 AS n;
CREATE TABLE a (n INTEGER);
BEGIN;
INSERT INTO a VALUES (1);
SELECT error('stop');
COMMIT;
//- pipelines/b.sql
-- materialize ducklake://main/b
CREATE TEMP TABLE leftover AS SELECT 'other shape' AS text;
FROM leftover
//- pipelines/c.sql
-- materialize ducklake://main/c
FROM leftover
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    expect![[r#"
        a: Failed: Invalid Input error: stop
        b: Materialized rows Some(1) -0 +1
        c: Failed: Catalog error: Table with name leftover does not exist!"#]]
    .assert_eq(&told.text());
    assert_eq!(query(&pintail, "SELECT (SELECT count(*) FROM a), (FROM b)", None), ["0|other shape"]);
}

#[test]
fn transactions_of_a_manual_script_that_do_not_close_are_found_before_anything_runs() {
    let folder = Folder::new(
        "//- pipelines/open.sql
-- materialize manual ducklake://main/open
BEGIN;
CREATE TABLE open (n INTEGER);
//- pipelines/twice.sql
-- materialize manual ducklake://main/twice
BEGIN;
BEGIN;
COMMIT;
//- pipelines/early.sql
-- materialize manual ducklake://main/early
CREATE TABLE early (n INTEGER);
COMMIT;
",
    );
    expect![[r#"
        Error P202 pipelines/early.sql:3 no transaction is open here
        Error P202 pipelines/open.sql:2 this transaction is never committed
        Error P202 pipelines/twice.sql:3 a transaction is already open"#]]
    .assert_eq(&folder.check().join("\n"));
}

#[test]
fn a_target_that_somebody_dropped_is_written_again() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT 1 AS n
//- pipelines/s.sql
-- partitioned daily
-- materialize ducklake://main/s
SELECT 1 AS n
",
    );
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    run(&pintail, &only_at("s", "2026-01-02")).assert_good();
    foreign(&pintail, "DROP TABLE t; DROP TABLE s");
    assert_eq!(planned(&pintail, &at("2026-01-01")), ["s 2026-01-01: never written", "t: never written"]);
    run(&pintail, &at("2026-01-01")).assert_good();
    assert_eq!(query(&pintail, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM s)", None), ["1|1"]);
    assert_eq!(planned(&pintail, &at("2026-01-01")), Vec::<String>::new());
    // What was in the other slice went with the table.
    assert_eq!(planned(&pintail, &only_at("s", "2026-01-02")), ["s 2026-01-02: never written"]);
}
