//! `on_schema_change`: what is refused with an ordered difference, what changes the table, and what the other rows become.

use expect_test::expect;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, facts, force_at, query, run};

/// A project with one script `t`, whose body changes.
struct Changing {
    folder: Folder,
    header: &'static str,
}

impl Changing {
    fn new(header: &'static str, body: &str) -> Self {
        let folder = Folder::new("");
        let changing = Self { folder, header };
        changing.becomes(body);
        changing
    }

    fn becomes(&self, body: &str) {
        let header = self.header;
        self.folder.write(&format!("//- pipelines/t.sql\n{header}\n{body}\n"));
    }

    fn columns(&self) -> String {
        self.folder.query("SELECT string_agg(column_name || ' ' || column_type, ', ') FROM (DESCRIBE t)")[0].clone()
    }
}

#[test]
fn case_c15_reordered_columns_are_written_by_name_and_every_difference_is_refused_in_order() {
    let t = Changing::new("-- materialize ducklake://main/t", "SELECT 1 AS id, 2 AS qty, 9.5::DOUBLE AS price");
    t.folder.run_all().assert_good();
    t.becomes("SELECT 1 AS id, 8.5::DOUBLE AS PRICE, 3 AS qty");
    t.folder.run_all().assert_good();
    assert_eq!(t.folder.query("SELECT id, qty, price FROM t"), ["1|3|8.5"]);
    assert_eq!(t.columns(), "id INTEGER, qty INTEGER, price DOUBLE");
    t.becomes("SELECT 'x' AS first, 1 AS id, 'many' AS qty, 4 AS last");
    let told = t.folder.run_all();
    expect![[r#"
        P505 compare the columns: the query's columns are not those of t:
        + first VARCHAR (added)
        ~ qty INTEGER -> VARCHAR (lossy)
        + last INTEGER (added)
        - price DOUBLE (removed)
        help: change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) or `on_schema_change sync_all_columns` (the table takes the query's shape)
        committed: ducklake://main/t is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&t.folder.told_of(&told, "t"));
    assert_eq!(t.folder.query("SELECT id, qty, price FROM t"), ["1|3|8.5"]);
}

#[test]
fn case_c16_a_lossy_change_of_type_is_refused_and_a_narrower_type_is_written() {
    let t = Changing::new(
        "-- materialize ducklake://main/t",
        "SELECT 1::BIGINT AS n, 1.25::DECIMAL(10,2) AS d, DATE '2026-01-01' AS day",
    );
    t.folder.run_all().assert_good();
    t.becomes("SELECT 7::SMALLINT AS n, 1.5::DECIMAL(4,1) AS d, DATE '2026-01-02' AS day");
    t.folder.run_all().assert_good();
    assert_eq!(t.folder.query("SELECT n, d, typeof(n), typeof(d) FROM t"), ["7|1.50|BIGINT|DECIMAL(10,2)"]);
    t.becomes("SELECT 2.7::DOUBLE AS n, 1.239::DECIMAL(10,3) AS d, TIMESTAMP '2026-01-01 10:00:00' AS day");
    let told = t.folder.run_all();
    expect![[r#"
        P505 compare the columns: the query's columns are not those of t:
        ~ n BIGINT -> DOUBLE (lossy)
        ~ d DECIMAL(10,2) -> DECIMAL(10,3) (lossy)
        ~ day DATE -> TIMESTAMP (lossless, another kind)
        help: change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) or `on_schema_change sync_all_columns` (the table takes the query's shape)
        committed: ducklake://main/t is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&t.folder.told_of(&told, "t"));
}

#[test]
fn append_new_columns_adds_and_refuses_the_rest() {
    let t = Changing::new(
        "-- materialize ducklake://main/t key=k\n-- on_schema_change append_new_columns",
        "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(k, v)",
    );
    t.folder.run_all().assert_good();
    t.becomes("SELECT 'new' AS extra, 2 AS k, 'c' AS v");
    let told = t.folder.run_all();
    told.assert_good();
    assert_eq!(told.notes(), ["t: adds `extra` VARCHAR"]);
    assert_eq!(t.folder.query("SELECT k, v, extra FROM t ORDER BY k"), ["1|a|NULL", "2|c|new"]);
    t.becomes("SELECT 2 AS k, 'c' AS v");
    let told = t.folder.run_all();
    expect![[r#"
        P505 compare the columns: the query's columns are not those of t:
        - extra VARCHAR (removed)
        help: change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) or `on_schema_change sync_all_columns` (the table takes the query's shape)
        committed: ducklake://main/t is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&t.folder.told_of(&told, "t"));
}

#[test]
fn sync_all_columns_makes_the_table_anew_and_keeps_the_rows_of_merge_and_append() {
    for (strategy, rows) in
        [("key=k", ["1|NULL|1", "2|x|2"].as_slice()), ("append", &["1|NULL|1", "2|x|2", "2|NULL|1"]), ("", &["2|x|2"])]
    {
        let folder = Folder::new(&format!(
            "//- pipelines/t.sql
-- materialize ducklake://main/t {strategy}
-- on_schema_change sync_all_columns
-- column n \"A number\"
SELECT * FROM (VALUES (1, 'gone', 1::SMALLINT), (2, 'gone', 1::SMALLINT)) t(k, old, n)
"
        ));
        folder.run_all().assert_good();
        folder.write(&format!(
            "//- pipelines/t.sql
-- materialize ducklake://main/t {strategy}
-- on_schema_change sync_all_columns
-- column n \"A number\"
SELECT 2 AS k, 2::BIGINT AS n, 'x' AS fresh
"
        ));
        let pintail = folder.open();
        let told = run(&pintail, &PlanRequest::default());
        told.assert_good();
        assert_eq!(query(&pintail, "SELECT k, fresh, n FROM t ORDER BY ALL", None), rows, "{strategy}");
        assert_eq!(
            query(
                &pintail,
                "SELECT column_name, data_type, comment FROM duckdb_columns() WHERE database_name = 'lake' AND table_name = 't' ORDER BY column_index",
                None
            ),
            ["k|INTEGER|NULL", "n|BIGINT|A number", "fresh|VARCHAR|NULL"],
            "{strategy}"
        );
        let generations: Vec<u32> = pintail
            .history(&pintail.parse_asset("t").unwrap(), 10)
            .unwrap()
            .iter()
            .map(|version| version.generation)
            .collect();
        assert_eq!(generations, [1, 0], "{strategy}");
        assert_eq!(told.step("t").rows, Some(rows.len() as u64), "{strategy}: {}", told.text());
    }
}

#[test]
fn sync_all_columns_of_one_slice_keeps_the_others_and_the_partitions() {
    let t = Changing::new(
        "-- partitioned daily by=ts\n-- materialize ducklake://main/t\n-- on_schema_change sync_all_columns",
        "SELECT $partition_start AS ts, 1::SMALLINT AS n, 'gone' AS old",
    );
    t.folder.run(&at("2026-01-01")).assert_good();
    t.folder.run(&at("2026-01-02")).assert_good();
    t.becomes("SELECT $partition_start AS ts, 5000000000 AS n");
    let pintail = t.folder.open();
    let told = run(&pintail, &at("2026-01-02"));
    told.assert_good();
    expect![[r#"
        t 2026-01-02: makes the table anew in another shape:
        ~ n SMALLINT -> BIGINT (widening)
        - old VARCHAR (removed)"#]]
    .assert_eq(&told.notes().join("\n"));
    assert_eq!(query(&pintail, "SELECT n FROM t ORDER BY ts", None), ["1", "5000000000"]);
    let keys: Vec<_> = facts(&pintail, "t").partition.into_iter().map(|(_, transform)| transform).collect();
    assert_eq!(keys, ["year", "month", "day"]);
    // The other slice is written as before afterwards.
    run(&pintail, &force_at("t", "2026-01-01")).assert_good();
    assert_eq!(query(&pintail, "SELECT n FROM t ORDER BY ts", None), ["5000000000", "5000000000"]);
}

#[test]
fn ignore_writes_what_is_known_and_says_what_is_not() {
    let t = Changing::new("-- materialize ducklake://main/t\n-- on_schema_change ignore", "SELECT 1 AS a, 2 AS b");
    t.folder.run_all().assert_good();
    t.becomes("SELECT 3 AS a, 4 AS c");
    let told = t.folder.run_all();
    told.assert_good();
    expect![[r#"
        t: 1 column not written (on_schema_change ignore): `c` INTEGER
        t: 1 column NULL (on_schema_change ignore): `b` INTEGER"#]]
    .assert_eq(&told.notes().join("\n"));
    assert_eq!(t.folder.query("FROM t"), ["3|NULL"]);
    t.becomes("SELECT 'text' AS a, 4 AS b");
    let told = t.folder.run_all();
    expect![[r#"
        P505 compare the columns: the query's columns are not those of t:
        ~ a INTEGER -> VARCHAR (lossy)
        help: change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) or `on_schema_change sync_all_columns` (the table takes the query's shape)
        committed: ducklake://main/t is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&t.folder.told_of(&told, "t"));
}

#[test]
fn a_failed_test_takes_an_added_column_and_a_new_shape_back() {
    let t = Changing::new(
        "-- materialize ducklake://main/t key=k\n-- on_schema_change sync_all_columns\n-- test expression \"k < 9\"",
        "SELECT 1 AS k, 'a' AS v",
    );
    t.folder.run_all().assert_good();
    t.becomes("SELECT 9 AS k, 'a' AS v, 1 AS added");
    assert_eq!(t.folder.run_all().summary.failed, 1);
    assert_eq!(t.columns(), "k INTEGER, v VARCHAR");
    t.becomes("SELECT 9 AS k, 1 AS v");
    assert_eq!(t.folder.run_all().summary.failed, 1);
    assert_eq!(t.columns(), "k INTEGER, v VARCHAR");
    assert_eq!(t.folder.query("FROM t"), ["1|a"]);
    t.becomes("SELECT 2 AS k, 'b' AS v");
    t.folder.run_all().assert_good();
    assert_eq!(t.folder.query("FROM t ORDER BY k"), ["1|a", "2|b"]);
}

#[test]
fn an_enforced_contract_refuses_any_difference_and_a_free_one_only_notes_it() {
    let t = Changing::new(
        "-- materialize ducklake://main/t\n-- contract enforced\n-- column a BIGINT \"The first\"\n-- column b VARCHAR",
        "SELECT 1::BIGINT AS a, 'x' AS b",
    );
    t.folder.run_all().assert_good();
    t.becomes("SELECT 1 AS a, 'x' AS c");
    let told = t.folder.run_all();
    expect![[r#"
        P515 check the contract: the query breaks the script's contract:
        `a` is declared BIGINT but selected as INTEGER
        `b` is declared but not selected; did you mean `c`?
        `c` VARCHAR is selected but not declared
        at line 2: contract enforced
        help: change the query, or the `column` lines
        committed: ducklake://main/t is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&t.folder.told_of(&told, "t"));
    let free = Folder::new(
        "//- pipelines/t.sql
-- description What it is for
-- materialize ducklake://main/t
-- column a BIGINT \"The first\"
-- column missing VARCHAR
SELECT 1 AS a, 'x' AS c
",
    );
    let told = free.run_all();
    told.assert_good();
    expect![[r#"
        t: `a` is declared BIGINT but selected as INTEGER
        t: `missing` is declared but not selected"#]]
    .assert_eq(&told.notes().join("\n"));
    assert_eq!(
        free.query(
            "SELECT comment FROM duckdb_tables() WHERE database_name = 'lake' AND table_name = 't'
             UNION ALL SELECT comment FROM duckdb_columns() WHERE database_name = 'lake' AND table_name = 't' AND column_name = 'a'"
        ),
        ["What it is for", "The first"]
    );
}

#[test]
fn an_enforced_contract_holds_for_a_view_and_for_what_a_manual_script_has_published() {
    let folder = Folder::new(
        "//- pipelines/v.sql
-- materialize view ducklake://main/v
-- contract enforced
-- column a INTEGER
SELECT 1::BIGINT AS a
//- pipelines/m.sql
-- materialize manual ducklake://main/m
-- contract enforced
-- column a INTEGER
CREATE TABLE m AS SELECT 'x' AS a;
",
    );
    let told = folder.run_all();
    expect![[r#"
        P515 check the contract: the query breaks the script's contract:
        `a` is declared INTEGER but selected as BIGINT
        at line 2: contract enforced
        help: change the query, or the `column` lines
        committed: nothing of this step is committed; Pintail has not written ducklake://main/v yet"#]]
    .assert_eq(&folder.told_of(&told, "v"));
    expect![[r#"
        P515 check the contract: the query breaks the script's contract:
        `a` is declared INTEGER but selected as VARCHAR
        at line 2: contract enforced
        help: change the query, or the `column` lines
        committed: the script's own commits stand (the last is snapshot 2): a manual script is checked after it has published"#]]
    .assert_eq(&folder.told_of(&told, "m"));
    assert_eq!(folder.query("SELECT count(*) FROM duckdb_views() WHERE view_name = 'v'"), ["0"]);
    folder.write(
        "//- pipelines/v.sql\n-- materialize view ducklake://main/v\n-- column a INTEGER\nSELECT 1::BIGINT AS a\n",
    );
    assert_eq!(folder.run_all().step("v").notes, ["`a` is declared INTEGER but selected as BIGINT"]);
}

#[test]
fn case_c19_an_old_version_is_read_with_its_own_columns() {
    let t = Changing::new("-- materialize ducklake://main/t\n-- on_schema_change append_new_columns", "SELECT 1 AS a");
    let first = t.folder.run_all().step("t").snapshot;
    t.becomes("SELECT 1 AS a, 2 AS b");
    t.folder.run_all().assert_good();
    let pintail = t.folder.open();
    assert_eq!(query(&pintail, "SELECT column_name FROM (DESCRIBE t)", first), ["a"]);
    assert_eq!(query(&pintail, "SELECT column_name FROM (DESCRIBE t)", None), ["a", "b"]);
    let versions: Vec<String> = pintail
        .schema_versions(&pintail.parse_asset("t").unwrap())
        .unwrap()
        .iter()
        .map(|version| format!("{} {}", version.version, version.schema.columns.len()))
        .collect();
    assert_eq!(versions, ["1 1", "2 2"]);
}

#[test]
fn the_columns_of_a_manual_script_have_versions_that_a_rebuild_finds_again() {
    let script = |body: &str| format!("//- pipelines/m.sql\n-- materialize manual ducklake://main/m\n{body}\n");
    let folder = Folder::new(&script("CREATE TABLE m (a INTEGER);"));
    let runs = [
        "INSERT INTO m (a) VALUES (1);",
        "ALTER TABLE m ADD COLUMN b VARCHAR; INSERT INTO m VALUES (2, 'b');",
        "BEGIN; ALTER TABLE m ADD COLUMN c DATE; COMMIT;",
    ];
    folder.run_all().assert_good();
    for body in runs {
        folder.write(&script(body));
        folder.run_all().assert_good();
    }
    let pintail = folder.open();
    let asset = pintail.parse_asset("m").unwrap();
    let versions: Vec<String> = pintail
        .schema_versions(&asset)
        .unwrap()
        .iter()
        .map(|version| format!("v{} has {} columns", version.version, version.schema.columns.len()))
        .collect();
    assert_eq!(versions, ["v1 has 1 columns", "v2 has 2 columns", "v3 has 3 columns"]);
    let stamped = || -> Vec<u32> {
        pintail.history(&asset, 10).unwrap().iter().rev().map(|version| version.schema_version).collect()
    };
    let recorded = stamped();
    pintail.rebuild_state().unwrap();
    assert_eq!(stamped(), recorded);
    assert_eq!(recorded.last(), Some(&3));
}
