//! The guards on the stage: what is refused, with counts and rows, and that nothing of it is written.

use expect_test::{Expect, expect};
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, pins_of_processes, query, run};

/// One script `t`, the partition it runs for, and what it says.
fn check(folder: &Folder, partition: Option<&str>, expected: Expect) {
    let (request, name) = match partition {
        Some(partition) => (at(partition), format!("t {partition}")),
        None => (PlanRequest::default(), "t".to_owned()),
    };
    expected.assert_eq(&folder.told_of(&folder.run(&request), &name));
}

fn script(text: &str) -> Folder {
    Folder::new(&format!("//- pipelines/t.sql\n{text}\n"))
}

#[test]
fn case_a1_null_keys_are_refused_with_their_count_and_rows() {
    check(
        &script(
            "-- materialize ducklake://main/t key=k,j
SELECT * FROM (VALUES (1, 1, 'a'), (NULL, 1, 'b'), (2, NULL, 'c')) t(k, j, v)",
        ),
        None,
        expect![[r#"
            P502 guard the stage: 2 rows have NULL in the key `k, j`
            at line 1: materialize ducklake://main/t key=k,j
            help: filter them out, or give them a value: `coalesce(k, …)`
            sample: k|j|v
              NULL|1|b
              2|NULL|c
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
}

#[test]
fn duplicate_keys_are_refused_with_their_values() {
    check(
        &script(
            "-- materialize ducklake://main/t key=k
SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (1, 'c'), (3, 'd'), (3, 'e'), (3, 'f')) t(k, v)",
        ),
        None,
        expect![[r#"
            P501 guard the stage: 2 values of the key `k` stand in 5 rows
            at line 1: materialize ducklake://main/t key=k
            help: make the key complete, aggregate by it, or say which row is kept: `order_by=<column desc>`
            sample: k|_pt_count
              3|3
              1|2
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
}

#[test]
fn rows_outside_the_window_and_null_times_are_refused() {
    let outside = |partitioned: &str| {
        script(&format!(
            "-- {partitioned}
-- materialize ducklake://main/t
SELECT * FROM (VALUES (TIMESTAMPTZ '2026-01-01 12:00:00+00', 1), (TIMESTAMPTZ '2026-01-02 00:00:00+00', 2)) t(ts, n)"
        ))
    };
    check(
        &outside("partitioned daily by=ts"),
        Some("2026-01-01"),
        expect![[r#"
            P503 guard the stage: 1 row has `ts` outside the partition: from TIMESTAMPTZ '2026-01-01 00:00:00+00' up to TIMESTAMPTZ '2026-01-02 00:00:00+00', exclusive
            at line 2: materialize ducklake://main/t
            help: read only the partition's rows: `WHERE in_partition(ts)`
            sample: ts|n
              2026-01-02 00:00:00+00:00|2
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t 2026-01-01 yet"#]],
    );
    // With an identity column `by=` still checks the window.
    check(
        &outside("partitioned daily by=ts tz=Europe/Berlin"),
        Some("2026-01-01"),
        expect![[r#"
            P503 guard the stage: 1 row has `ts` outside the partition: from TIMESTAMPTZ '2025-12-31 23:00:00+00' up to TIMESTAMPTZ '2026-01-01 23:00:00+00', exclusive
            at line 2: materialize ducklake://main/t
            help: read only the partition's rows: `WHERE in_partition(ts)`
            sample: ts|n
              2026-01-02 00:00:00+00:00|2
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t 2026-01-01 yet"#]],
    );
    check(
        &script(
            "-- partitioned daily by=ts
-- materialize ducklake://main/t
SELECT $partition_start AS ts UNION ALL SELECT NULL",
        ),
        Some("2026-01-01"),
        expect![[r#"
            P503 guard the stage: 1 row has NULL in `ts`, which decides the partition
            at line 2: materialize ducklake://main/t
            help: filter them out: `WHERE ts IS NOT NULL`
            sample: ts
              NULL
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t 2026-01-01 yet"#]],
    );
}

#[test]
fn a_by_column_that_is_missing_or_holds_no_time_is_said() {
    check(
        &script("-- partitioned daily by=ts\n-- materialize ducklake://main/t\nSELECT 1 AS n"),
        Some("2026-01-01"),
        expect![[r#"
            P516 find the slice: the query has no column `ts`, which `by=` names
            at line 1: partitioned daily by=ts
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t 2026-01-01 yet"#]],
    );
    check(
        &script("-- partitioned daily by=n\n-- materialize ducklake://main/t\nSELECT 1 AS n"),
        Some("2026-01-01"),
        expect![[r#"
            P516 find the slice: `by=n` is INTEGER, which holds no time: expected TIMESTAMP WITH TIME ZONE, TIMESTAMP or DATE
            at line 1: partitioned daily by=n
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t 2026-01-01 yet"#]],
    );
    check(
        &script("-- materialize ducklake://main/t key=nope\nSELECT 1 AS n"),
        None,
        expect![[r#"
            P516 find the key: the query has no column `nope`, which the key names
            at line 1: materialize ducklake://main/t key=nope
            help: its columns are n
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
}

#[test]
fn case_n68_a_sum_is_exact_and_too_large_a_sum_is_refused() {
    let folder = script(
        "-- materialize ducklake://main/t
-- column declared DECIMAL(38,0)
SELECT sum(n) AS total, sum(n) AS declared, count(*) AS rows
FROM (VALUES (9007199254740992::BIGINT), (1::BIGINT)) t(n)",
    );
    folder.run_all().assert_good();
    assert_eq!(
        folder.query("SELECT total, declared, typeof(total), typeof(declared) FROM t"),
        ["9007199254740993|9007199254740993|BIGINT|DECIMAL(38,0)"]
    );
    folder.write(
        "//- pipelines/t.sql
-- materialize ducklake://main/t
-- column declared DECIMAL(38,0)
SELECT sum(n) AS total, sum(n) AS declared, count(*) AS rows
FROM (VALUES (9223372036854775807::BIGINT), (1::BIGINT)) t(n)
",
    );
    check(
        &folder,
        None,
        expect![[r#"
            P506 insert the staged rows: Conversion error: Type INT128 with value 9223372036854775808 can't be cast because the value is out of range for the destination type INT64 when casting from source column total
            at line 3: SELECT sum(n) AS total, sum(n) AS declared, count(*) AS rows
            FROM (VALUES (9223372036854775807::BIGINT), (1::BIGINT)) t(n)
            help: cast the column in the query to a type that holds every value, or declare it: `column <name> DECIMAL(38,0)`
            committed: ducklake://main/t is as it was before this run; nothing of this step is committed"#]],
    );
    assert_eq!(folder.query("SELECT total FROM t"), ["9007199254740993"]);
}

#[test]
fn case_n69_types_that_the_lake_cannot_hold_are_cast_or_refused() {
    let folder = Folder::new(
        "//- pipelines/held.sql
-- materialize ducklake://main/held
SELECT 'b'::ENUM('a', 'b') AS e, [1, 2, 3]::INTEGER[3] AS a, INTERVAL 1 DAY AS i,
  'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS u, '{\"x\": 1.10}'::JSON AS j,
  {'s': 1, 'big': 9::HUGEINT, 't': ['x']} AS s, MAP {'k': 1} AS m, 1.5::DECIMAL(10, 2) AS d, '\\xAA'::BLOB AS b,
  TIME '12:00:00' AS tm, TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS ns, true AS o, 7::UBIGINT AS ub
//- pipelines/refused.sql
-- materialize ducklake://main/refused
SELECT '101'::BIT AS bits, union_value(n := 1) AS u, TIMETZ '12:00:00+02' AS tz, 1 AS fine
//- pipelines/untyped.sql
-- materialize ducklake://main/untyped
SELECT NULL AS nothing, 1 AS n
//- pipelines/typed.sql
-- materialize ducklake://main/typed
-- column nothing VARCHAR
SELECT NULL AS nothing, 1 AS n
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    let types = query(&pintail, "SELECT column_name, column_type FROM (DESCRIBE held)", None);
    expect![[r#"
        e|VARCHAR
        a|INTEGER[]
        i|INTERVAL
        u|UUID
        j|JSON
        s|STRUCT(s INTEGER, big BIGINT, t VARCHAR[])
        m|MAP(VARCHAR, INTEGER)
        d|DECIMAL(10,2)
        b|BLOB
        tm|TIME
        ns|TIMESTAMP_NS
        o|BOOLEAN
        ub|UBIGINT"#]]
    .assert_eq(&types.join("\n"));
    let row = query(&pintail, "SELECT e, a, i, u, j, s, m, d, b, tm, ns, o, ub FROM held", None);
    expect![[r#"b|[1, 2, 3]|1 days|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{"x": 1.10}|{s: 1, big: 9, t: [x]}|{k: 1}|1.50|aa|12:00:00|2026-01-01 00:00:00.123456789|true|7"#]]
    .assert_eq(&row.join("\n"));
    expect![[r#"
        P507 compare the columns: the lake cannot hold 3 columns:
        `bits` is BIT: cast the column to VARCHAR, or to BLOB
        `u` is UNION(n INTEGER): take one member with `union_extract(…)`, or cast the column to VARCHAR
        `tz` is TIME WITH TIME ZONE: cast the column to TIME, or keep a TIMESTAMP WITH TIME ZONE
        committed: nothing of this step is committed; Pintail has not written ducklake://main/refused yet"#]]
    .assert_eq(&folder.told_of(&told, "refused"));
    expect![[r#"
        P507 compare the columns: the lake cannot hold 1 column:
        `nothing` is "NULL": give the NULL a type, such as `CAST(NULL AS VARCHAR)`, or declare the column with one
        committed: nothing of this step is committed; Pintail has not written ducklake://main/untyped yet"#]]
    .assert_eq(&folder.told_of(&told, "untyped"));
    assert_eq!(
        query(&pintail, "SELECT column_type FROM (DESCRIBE typed) WHERE column_name = 'nothing'", None),
        ["VARCHAR"]
    );
}

#[test]
fn a_refused_write_lets_go_of_its_pins_and_lease() {
    let folder = Folder::new(
        "//- pipelines/s.sql
-- materialize ducklake://main/s
SELECT 1 AS k
//- pipelines/t.sql
-- materialize ducklake://main/t key=k
SELECT k FROM s, range(2)
",
    );
    let pintail = folder.open();
    let told = run(&pintail, &PlanRequest::default());
    assert_eq!(told.summary.failed, 1, "{}", told.text());
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(pintail_engine::guard::Guard::open(lake)).unwrap();
    assert_eq!(pins_of_processes(&pintail, &guard), []);
}
