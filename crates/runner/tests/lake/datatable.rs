//! Datatables on a real Postgres: written from DuckDB SQL and from Postgres SQL, read back, tested, healed and raced.

use std::path::Path;

use expect_test::{Expect, expect};
use pintail_core::diagnostic::Code;
use pintail_core::id::LakeName;
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::StepState;
use pintail_testkit::services::{Database, database, private_postgres};

use crate::harness::{Folder, at, force, force_at, only, planned};
use crate::processes::{Pause, Work, open};

/// A project with the datatable `app` in a database of its own.
struct App {
    folder: Folder,
    database: Database,
}

impl App {
    fn new(files: &str) -> Self {
        let database = database();
        let folder = Folder::new("//- pintail.toml\n[datatable.app]\nurl = \"${APP_URL}\"\n");
        folder.write(&format!("//- test.env\nAPP_URL={}\n", database.url()));
        folder.write(files);
        Self { folder, database }
    }

    fn sql(&self, sql: &str) -> String {
        self.database.sql(sql)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The rows of a table, and what the stamps say.
    fn check(&self, sql: &str, expected: Expect) {
        expected.assert_eq(&self.sql(sql));
    }
}

const STAMPS: &str = "SELECT version, asset, coalesce(partition, '-'), strategy, deleted, inserted, rows
    FROM pintail.stamp ORDER BY version";

fn assert_store_agrees(pintail: &Pintail) {
    let place = LakeName("datatable://app".to_owned());
    let remembered = pintail.block_on(pintail.store().state_fingerprint(&place)).unwrap();
    assert!(!remembered.is_empty());
    pintail.rebuild_state().unwrap();
    assert_eq!(pintail.block_on(pintail.store().state_fingerprint(&place)).unwrap(), remembered);
}

#[test]
fn a_whole_table_is_made_and_replaced() {
    let app =
        App::new("//- pipelines/t.sql\n-- materialize datatable://app/sales.orders\nSELECT 1 AS id, 'a' AS name\n");
    app.folder.run_all().assert_good();
    app.check("SELECT * FROM sales.orders", expect!["1|a"]);
    app.folder.write(
        "//- pipelines/t.sql\n-- materialize datatable://app/sales.orders\nSELECT 2 AS id, NULL::VARCHAR AS name\n",
    );
    let told = app.folder.run_all();
    assert_eq!(told.assert_good().step("t").changed, (1, 1));
    app.check("SELECT id, name IS NULL FROM sales.orders", expect!["2|t"]);
    app.check(
        STAMPS,
        expect![[r#"
        1|datatable://app/sales.orders|-|replace|0|1|1
        2|datatable://app/sales.orders|-|replace|1|1|1"#]],
    );
    assert_eq!(planned(&app.folder.open(), &PlanRequest::default()), Vec::<String>::new());
    assert_store_agrees(&app.folder.open());
}

#[test]
fn every_type_comes_over_exactly() {
    let app = App::new(
        "//- pipelines/t.sql
-- materialize datatable://app/t
SELECT * FROM (VALUES (1), (2), (3)) AS v(n)
POSITIONAL JOIN (
SELECT true AS b, 1::TINYINT AS i1, 255::UTINYINT AS u1, -2::SMALLINT AS i2, 65535::USMALLINT AS u2, 3 AS i4,
  4294967295::UINTEGER AS u4, 9223372036854775807 AS i8, 18446744073709551615::UBIGINT AS u8,
  1.5::FLOAT AS f4, 'nan'::DOUBLE AS f8, 12345678901234567890.123456789::DECIMAL(38,9) AS dec, -0.01::DECIMAL(4,2) AS small,
  'a\\tb\\\\n''\"ü' AS txt, '' AS empty, '{\"a\": [1, null]}'::JSON AS js, '\\x00\\xFF'::BLOB AS bin,
  '7f2c1a9e-0000-4000-8000-000000000001'::UUID AS id, DATE '0044-03-15' AS d, TIME '23:59:59.999999' AS t,
  TIMESTAMP '2026-01-02 03:04:05.000006' AS ts, 'infinity'::TIMESTAMP AS inf,
  TIMESTAMPTZ '2026-01-02 03:04:05+02' AS tz, INTERVAL '1 month 2 days 3.5 seconds' AS iv,
  [1, NULL, 3] AS ints, []::VARCHAR[] AS none, ['', 'a,b'] AS texts, [[1], [2, 3]] AS nested,
  {'a': 1, 'b': 'x'} AS st, MAP {'k': 1} AS m
UNION ALL SELECT * FROM (SELECT NULL::BOOLEAN, NULL::TINYINT, NULL::UTINYINT, NULL::SMALLINT, NULL::USMALLINT, NULL::INTEGER,
  NULL::UINTEGER, NULL::BIGINT, NULL::UBIGINT, NULL::FLOAT, NULL::DOUBLE, NULL::DECIMAL(38,9), NULL::DECIMAL(4,2), NULL::VARCHAR,
  NULL::VARCHAR, NULL::JSON, NULL::BLOB, NULL::UUID, NULL::DATE, NULL::TIME, NULL::TIMESTAMP, NULL::TIMESTAMP, NULL::TIMESTAMPTZ,
  NULL::INTERVAL, NULL::INTEGER[], NULL::VARCHAR[], NULL::VARCHAR[], NULL::INTEGER[][],
  NULL::STRUCT(a INTEGER, b VARCHAR), NULL::MAP(VARCHAR, INTEGER))
) WHERE n < 3
",
    );
    app.folder.run_all().assert_good();
    app.check(
        "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
         FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0",
        expect!["n integer, b boolean, i1 smallint, u1 smallint, i2 smallint, u2 integer, i4 integer, u4 bigint, i8 bigint, u8 numeric(20,0), f4 real, f8 double precision, dec numeric(38,9), small numeric(4,2), txt text, empty text, js jsonb, bin bytea, id uuid, d date, t time without time zone, ts timestamp without time zone, inf timestamp without time zone, tz timestamp with time zone, iv interval, ints integer[], none text[], texts text[], nested jsonb, st jsonb, m jsonb"],
    );
    app.check("SET timezone = 'UTC'; SELECT * FROM t WHERE b", expect![[r#"1|t|1|255|-2|65535|3|4294967295|9223372036854775807|18446744073709551615|1.5|NaN|12345678901234567890.123456789|-0.01|a\tb\\n'"ü||{"a": [1, null]}|\x00ff|7f2c1a9e-0000-4000-8000-000000000001|0044-03-15|23:59:59.999999|2026-01-02 03:04:05.000006|infinity|2026-01-02 01:04:05+00|1 mon 2 days 00:00:03.5|{1,NULL,3}|{}|{"","a,b"}|[[1], [2, 3]]|{"a": 1, "b": "x"}|{"k": 1}"#]]);
    app.check("SELECT count(*) FROM t WHERE num_nulls(b, i1, u1, i2, u2, i4, u4, i8, u8, f4, f8, dec, small, txt, empty, js, bin,
        id, d, t, ts, inf, tz, iv, ints, none, texts, nested, st, m) = 30", expect!["1"]);
}

#[test]
fn a_type_that_postgres_cannot_hold_is_refused() {
    let app = App::new(
        "//- pipelines/t.sql\n-- materialize datatable://app/t\nSELECT TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS at\n",
    );
    let told = app.folder.run_all();
    expect![[r#"
        P507 compare the columns: Postgres cannot hold 1 of the columns:
        `at` is TIMESTAMP_NS: Postgres keeps microseconds: cast the column to TIMESTAMP
        committed: nothing of this step is published; Pintail has not written datatable://app/t yet"#]]
    .assert_eq(&app.folder.told_of(&told, "t"));
}

#[test]
fn a_merge_updates_its_keys_and_keeps_the_rest() {
    let app = App::new(
        "//- pipelines/t.sql\n-- materialize datatable://app/t key=id,part\nSELECT * FROM (VALUES (1, 'x', 'old'), (2, 'x', 'old')) AS v(id, part, name)\n",
    );
    app.folder.run_all().assert_good();
    app.folder.write("//- pipelines/t.sql\n-- materialize datatable://app/t key=id,part\nSELECT * FROM (VALUES (2, 'x', 'new'), (3, 'x', 'new')) AS v(id, part, name)\n");
    let told = app.folder.run_all();
    let step = told.assert_good().step("t");
    assert_eq!((step.changed, step.rows), ((1, 2), Some(3)));
    app.check(
        "SELECT * FROM t ORDER BY id",
        expect![[r#"
        1|x|old
        2|x|new
        3|x|new"#]],
    );
    app.check(
        "SELECT indexdef FROM pg_indexes WHERE tablename = 't'",
        expect!["CREATE INDEX t_id_part_idx ON public.t USING btree (id, part)"],
    );
}

#[test]
fn staged_rows_that_would_spoil_a_merge_are_refused() {
    let app = App::new(
        "//- pipelines/t.sql\n-- materialize datatable://app/t key=id\nSELECT * FROM (VALUES (1), (1), (NULL)) AS v(id)\n",
    );
    let told = app.folder.run_all();
    assert_eq!(told.failure("t").code, Code::NULL_KEYS);
    app.check("SELECT count(*) FROM pg_tables WHERE tablename = 't'", expect!["0"]);
}

#[test]
fn an_append_adds_once_for_each_input() {
    let app = App::new(
        "//- pipelines/t.sql\n-- materialize datatable://app/t append\nSELECT count(*) AS n FROM read_csv('data/in.csv')\n//- data/in.csv\na\n1\n",
    );
    app.folder.run_all().assert_good();
    assert_eq!(app.folder.run_all().steps.len(), 0);
    app.folder.write("//- data/in.csv\na\n1\n2\n");
    let told = app.folder.run_all();
    assert_eq!((told.assert_good().step("t").changed, told.step("t").rows), ((0, 1), Some(2)));
    app.check(
        "SELECT n FROM t ORDER BY n",
        expect![[r#"
        1
        2"#]],
    );
}

#[test]
fn a_slice_is_replaced_alone_and_backfilled() {
    let script = |value: &str| {
        format!(
            "//- pipelines/t.sql\n-- partitioned daily start=2026-01-01\n-- materialize datatable://app/t\nSELECT $partition AS day, '{value}' AS value\n"
        )
    };
    let app = App::new(&script("a"));
    for day in ["2026-01-01", "2026-01-02"] {
        app.folder.run(&at(day)).assert_good();
    }
    app.folder.write(&script("b"));
    app.folder.run(&at("2026-01-02")).assert_good();
    app.check(
        "SELECT day, value, _partition FROM t ORDER BY day",
        expect![[r#"
        2026-01-01|a|2026-01-01
        2026-01-02|b|2026-01-02"#]],
    );
    assert_eq!(planned(&app.folder.open(), &at("2026-01-01")), ["t 2026-01-01: the script changed"]);
    assert_store_agrees(&app.folder.open());
}

#[test]
fn a_slice_by_column_holds_its_window_and_nothing_else() {
    let app = App::new(
        "//- pipelines/t.sql\n-- partitioned daily by=at start=2026-01-01\n-- materialize datatable://app/t\nSELECT $partition_start + INTERVAL 25 HOUR AS at\n",
    );
    let told = app.folder.run(&at("2026-01-01"));
    assert_eq!(told.failure("t 2026-01-01").code, Code::ROWS_OUTSIDE_WINDOW);
    app.folder.write("//- pipelines/t.sql\n-- partitioned daily by=at start=2026-01-01\n-- materialize datatable://app/t\nSELECT $partition_start + INTERVAL 1 HOUR AS at\n");
    app.folder.run(&at("2026-01-01")).assert_good();
    app.folder.run(&at("2026-01-02")).assert_good();
    assert_eq!(app.folder.run(&force_at("t", "2026-01-01")).assert_good().step("t 2026-01-01").changed, (1, 1));
    app.check("SELECT count(*) FROM t", expect!["2"]);
}

#[test]
fn an_empty_result_does_not_empty_a_table_unless_it_may() {
    let app = App::new("//- pipelines/t.sql\n-- materialize datatable://app/t\nSELECT 1 AS n\n");
    app.folder.run_all().assert_good();
    app.folder.write("//- pipelines/t.sql\n-- materialize datatable://app/t\nSELECT 1 AS n WHERE false\n");
    assert_eq!(app.folder.run_all().failure("t").code, Code::EMPTY_REPLACE);
    app.folder.write("//- pipelines/t.sql\n-- materialize datatable://app/t allow_empty\nSELECT 1 AS n WHERE false\n");
    app.folder.run_all().assert_good();
    app.check("SELECT count(*) FROM t", expect!["0"]);
}

#[test]
fn a_failed_test_takes_the_write_back() {
    let app = App::new(
        "//- pipelines/t.sql\n-- materialize datatable://app/t key=id\n-- test unique name\nSELECT 1 AS id, 'a' AS name\n",
    );
    app.folder.run_all().assert_good();
    app.folder.write("//- pipelines/t.sql\n-- materialize datatable://app/t key=id\n-- test unique name\nSELECT 2 AS id, 'a' AS name\n");
    let told = app.folder.run_all();
    expect![[r#"
        P510 test the new data: the test `unique name`: 1 row fails
        at line 2: test unique name
        help: the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again
        sample: name|_pt_count
          a|2
        committed: datatable://app/t is as it was before this run; nothing of this step is published"#]]
    .assert_eq(&app.folder.told_of(&told, "t"));
    app.check("SELECT * FROM t", expect!["1|a"]);
    app.check(STAMPS, expect!["1|datatable://app/t|-|merge|0|1|1"]);
}

#[test]
fn tests_of_a_whole_table_may_read_lakes_and_other_tables() {
    let app = App::new(
        "//- pipelines/parent.sql\n-- materialize ducklake://main/parent\nSELECT 1 AS id\n//- pipelines/t.sql\n-- materialize datatable://app/t\n-- test relationships id -> ducklake://main/parent.id\n-- test row_count 1..1\nSELECT 2 AS id\n//- tests/no_twos.sql\nSELECT * FROM 'datatable://app/t' WHERE id = 2\n",
    );
    let told = app.folder.run_all();
    assert_eq!(told.failure("t").code, Code::TEST_FAILED);
    app.check("SELECT count(*) FROM pg_tables WHERE tablename = 't'", expect!["0"]);
}

#[test]
fn a_table_of_somebody_else_is_refused_until_it_is_adopted() {
    let app =
        App::new("//- pipelines/t.sql\n-- materialize datatable://app/t key=id\nSELECT 1 AS id, 'ours' AS name\n");
    app.sql("CREATE TABLE t (id integer PRIMARY KEY, name varchar(20), made timestamptz DEFAULT now()); INSERT INTO t VALUES (1, 'theirs'), (2, 'theirs')");
    let told = app.folder.run_all();
    expect![[r#"
        P508 check the target: datatable://app/t exists, but Pintail has not made it
        help: to let Pintail write it from now on: `pintail adopt datatable://app/t`
        committed: nothing of this step is published; Pintail has not written datatable://app/t yet"#]]
    .assert_eq(&app.folder.told_of(&told, "t"));
    app.folder.open().adopt("datatable://app/t", None).unwrap();
    app.folder.run_all().assert_good();
    app.check(
        "SELECT id, name, made IS NOT NULL FROM t ORDER BY id",
        expect![[r#"
        1|ours|t
        2|theirs|t"#]],
    );
}

#[test]
fn columns_change_as_the_script_says() {
    let script = |policy: &str, query: &str| {
        format!("//- pipelines/t.sql\n-- materialize datatable://app/t key=id\n-- on_schema_change {policy}\n{query}\n")
    };
    let app = App::new(&script("fail", "SELECT 1 AS id, 'a' AS name"));
    app.folder.run_all().assert_good();
    app.folder.write(&script("fail", "SELECT 2 AS id, 'a' AS name, 5 AS extra"));
    let told = app.folder.run_all();
    expect![[r#"
        P505 compare the columns: the query's columns are not those of t:
        + extra INTEGER (added)
        help: change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) or `on_schema_change sync_all_columns` (the table takes the query's shape)
        committed: datatable://app/t is as it was before this run; nothing of this step is published"#]].assert_eq(&app.folder.told_of(&told, "t"));
    app.folder.write(&script("append_new_columns", "SELECT 2 AS id, 'b' AS name, 5 AS extra"));
    app.folder.run_all().assert_good();
    app.folder.write(&script("sync_all_columns", "SELECT 3 AS id, 1.5 AS extra"));
    app.folder.run_all().assert_good();
    app.check(
        "SELECT * FROM t ORDER BY id",
        expect![[r#"
        1|
        2|5.0
        3|1.5"#]],
    );
    app.folder.write(&script("ignore", "SELECT 4 AS id, 'x' AS other"));
    let told = app.folder.run_all();
    expect![[r#"
        t: not written (on_schema_change ignore): `other` VARCHAR
        t: NULL (on_schema_change ignore): `extra` DECIMAL(2,1)"#]]
    .assert_eq(&told.assert_good().notes().join("\n"));
    assert_store_agrees(&app.folder.open());
}

#[test]
fn a_lake_a_datatable_and_a_lake_are_one_chain_in_one_run() {
    let app = App::new(
        "//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT * FROM read_csv('data/in.csv')\n//- data/in.csv\nn\n1\n//- pipelines/b.sql\n-- materialize datatable://app/b\nSELECT n + 1 AS n FROM a\n//- pipelines/c.sql\n-- materialize ducklake://main/c\nATTACH 'datatable://app' AS app;\nSELECT n + 1 AS n FROM app.b\n",
    );
    app.folder.run_all().assert_good();
    assert_eq!(app.folder.query("SELECT n FROM c"), ["3"]);
    assert_eq!(app.folder.run_all().steps.len(), 0);
    app.folder.write("//- data/in.csv\nn\n10\n");
    let told = app.folder.run_all();
    assert_eq!(told.assert_good().steps.len(), 3, "{}", told.text());
    assert_eq!(app.folder.query("SELECT n FROM c"), ["12"]);
    // Only the middle: what reads it is stale afterwards.
    app.folder.run(&force("b")).assert_good();
    assert_eq!(planned(&app.folder.open(), &PlanRequest::default()), ["c: datatable://app/b changed"]);
}

#[test]
fn a_table_of_another_program_is_read_and_its_changes_are_seen() {
    let app = App::new(
        "//- pipelines/c.sql\n-- materialize ducklake://main/c\nSELECT count(*) AS n FROM 'datatable://app/users'\n",
    );
    app.sql("CREATE TABLE users (id integer); INSERT INTO users VALUES (1); SELECT pg_stat_force_next_flush()");
    app.folder.run_all().assert_good();
    assert_eq!(app.folder.query("SELECT n FROM c"), ["1"]);
    // The counters of the server may lag behind by a second; then the reader runs once more, never too seldom.
    crate::processes::wait_for("the counters to settle", || app.folder.run_all().steps.is_empty());
    app.sql("INSERT INTO users VALUES (2); SELECT pg_stat_force_next_flush()");
    crate::processes::wait_for("the change to be seen", || {
        !planned(&app.folder.open(), &PlanRequest::default()).is_empty()
    });
    app.folder.run_all().assert_good();
    assert_eq!(app.folder.query("SELECT n FROM c"), ["2"]);
}

#[test]
fn a_script_that_reads_its_target_counts_on() {
    let app = App::new("//- pipelines/t.sql\n-- materialize datatable://app/t append\nSELECT 1 AS n\n");
    app.folder.run_all().assert_good();
    app.folder.write("//- pipelines/t.sql\n-- materialize datatable://app/t\nATTACH 'datatable://app' AS app;\nSELECT max(n) + 1 AS n FROM app.t\n");
    app.folder.run_all().assert_good();
    app.folder.run(&force("t")).assert_good();
    app.check("SELECT n FROM t", expect!["3"]);
}

#[test]
fn postgres_scripts_run_in_the_server() {
    let app = App::new(
        "//- pintail.toml\n[datatable.app]\nurl = \"${APP_URL}\"\n[vars]\ncountry = \"DE\"\n//- pipelines/t.pg.sql\n-- partitioned daily by=at start=2026-01-01\n-- materialize datatable://app/t\n-- test not_null n\nSET LOCAL work_mem = '8MB';\nCREATE TEMP TABLE seen AS SELECT * FROM events WHERE at >= $partition_start AND at < $partition_end;\nSELECT at, n, $country AS country, '{partition}'::date AS day, '{\"a\": 1}'::jsonb AS js FROM seen -- done\n",
    );
    app.sql("CREATE TABLE events (at timestamptz, n numeric); INSERT INTO events VALUES ('2026-01-01 10:00Z', 1.50), ('2026-01-02 10:00Z', 2)");
    app.folder.run(&at("2026-01-01")).assert_good();
    app.folder.run(&at("2026-01-02")).assert_good();
    app.check(
        "SET timezone = 'UTC'; SELECT * FROM t ORDER BY at",
        expect![[r#"
        2026-01-01 10:00:00+00|1.50|DE|2026-01-01|{"a": 1}
        2026-01-02 10:00:00+00|2|DE|2026-01-02|{"a": 1}"#]],
    );
    app.check(
        STAMPS,
        expect![[r#"
        1|datatable://app/t|2026-01-01|replace|0|1|1
        2|datatable://app/t|2026-01-02|replace|0|1|1"#]],
    );
    assert_eq!(app.folder.run(&force_at("t", "2026-01-01")).assert_good().step("t 2026-01-01").changed, (1, 1));
    assert_store_agrees(&app.folder.open());
}

#[test]
fn postgres_scripts_merge_with_the_row_that_order_by_picks() {
    let app = App::new(
        "//- pipelines/t.pg.sql\n-- materialize datatable://app/t key=id order_by=\"v desc\"\nVALUES (1, 1), (1, 2)\n",
    );
    // VALUES names its columns column1 and column2.
    let told = app.folder.run_all();
    assert_eq!(told.steps[0].state, StepState::Failed);
    app.folder.write("//- pipelines/t.pg.sql\n-- materialize datatable://app/t key=id order_by=\"v desc\"\nSELECT * FROM (VALUES (1, 1), (1, 2)) AS x(id, v)\n");
    app.folder.run_all().assert_good();
    app.check("SELECT * FROM t", expect!["1|2"]);
}

#[test]
fn a_manual_postgres_script_is_one_transaction_with_its_tests() {
    let script = |rows: &str| {
        format!(
            "//- pipelines/t.pg.sql\n-- materialize manual datatable://app/t\n-- test unique id\nCREATE TABLE IF NOT EXISTS t (id integer);\nINSERT INTO t VALUES {rows};\n"
        )
    };
    let app = App::new(&script("(1)"));
    app.folder.run_all().assert_good();
    app.folder.write(&script("(1), (2)"));
    assert_eq!(app.folder.run_all().failure("t").code, Code::TEST_FAILED);
    app.check("SELECT * FROM t", expect!["1"]);
    app.check(STAMPS, expect!["1|datatable://app/t|-|manual|0|1|"]);
}

#[test]
fn an_error_of_postgres_points_into_the_script() {
    let app = App::new(
        "//- pipelines/t.pg.sql\n-- materialize datatable://app/t\nSELECT 1 AS a,\n  nope\nFROM (SELECT 1) AS x\n",
    );
    let told = app.folder.run_all();
    let failure = told.failure("t");
    let file = std::fs::read_to_string(app.path().join("pipelines/t.pg.sql")).unwrap();
    let span = failure.span.unwrap();
    assert!(file[span.start..].starts_with("nope"), "{failure:?}");
    expect![[r#"Postgres: column "nope" does not exist"#]].assert_eq(&failure.message);
}

#[test]
fn what_cannot_stand_in_a_postgres_script_is_said_at_its_place() {
    let app = App::new(
        "//- pipelines/a.pg.sql\n-- materialize datatable://app/a\nDELETE FROM x;\nSELECT 1 AS n\n//- pipelines/b.pg.sql\n-- materialize datatable://app/b\nWITH gone AS (DELETE FROM x RETURNING *) SELECT * FROM gone\n//- pipelines/c.pg.sql\n-- materialize datatable://app/c\nSELECT * FROM lake.orders\n//- pipelines/d.pg.sql\n-- materialize manual datatable://app/d\nBEGIN;\nCREATE TABLE d AS SELECT 'x;y' AS n;\nCOMMIT;\n//- pipelines/e.pg.sql\n-- materialize ducklake://main/e\nSELECT 1 AS n\n//- pipelines/f.pg.sql\n-- materialize datatable://app/f\nSELECT $contry AS n\n//- pipelines/g.pg.sql\n-- materialize datatable://app/g\nSELECT 'never closed\n//- pipelines/h.sql\n-- materialize datatable://ap/h\nSELECT 1 AS n\n",
    );
    expect![[r#"
        Error P545 pipelines/a.pg.sql:2 `DELETE` cannot stand before the query in a managed script
        Error P545 pipelines/b.pg.sql:2 the query of a managed script changes rows
        Error P546 pipelines/c.pg.sql:2 `lake.orders` is not in the datatable, and a Postgres script reads nothing else
        Error P545 pipelines/d.pg.sql:2 `BEGIN` cannot stand in a Postgres script
        Error P545 pipelines/d.pg.sql:4 `COMMIT` cannot stand in a Postgres script
        Error P548 pipelines/e.pg.sql:1 a Postgres script writes only a table of its own datatable
        Error P209 pipelines/f.pg.sql:2 there is no parameter `$contry`
        Error P545 pipelines/g.pg.sql:2 Unterminated string literal
        Warning P549 pipelines/h.sql:1 there is no datatable `ap`"#]]
    .assert_eq(&app.folder.check().join("\n"));
}

#[test]
fn the_chain_inside_postgres_is_in_the_graph() {
    let app = App::new(
        "//- pipelines/a.pg.sql\n-- materialize datatable://app/x.a\nSELECT 1 AS n\n//- pipelines/b.pg.sql\n-- materialize datatable://app/b\nWITH a2 AS (SELECT n FROM x.a) SELECT a2.n + g AS n FROM a2, generate_series(1, 2) AS g\n",
    );
    let told = app.folder.run_all();
    told.assert_good();
    let names: Vec<&str> = told.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    app.check(
        "SELECT n FROM b ORDER BY n",
        expect![[r#"
        2
        3"#]],
    );
    app.folder.run(&force("a")).assert_good();
    assert_eq!(planned(&app.folder.open(), &PlanRequest::default()), ["b: datatable://app/x.a changed"]);
}

#[test]
fn a_process_killed_at_any_point_leaves_the_old_rows_or_the_new() {
    for (language, points) in [
        ("sql", ["staged", "checked", "written", "stamped", "committed", "remembered"]),
        ("pg.sql", ["staged", "checked", "written", "stamped", "committed", "remembered"]),
    ] {
        let script = |n: usize| {
            format!("//- pipelines/t.{language}\n-- materialize datatable://app/t append\nSELECT {n} AS n\n")
        };
        let app = App::new(&script(0));
        Work::run().start(app.path()).done();
        for (n, point) in points.iter().enumerate() {
            app.folder.write(&script(n + 1));
            Work::run().faults(format!("{point}=kill")).start(app.path()).killed();
            let has_committed = matches!(*point, "committed" | "remembered");
            let there = if has_committed { n + 2 } else { n + 1 };
            assert_eq!(app.sql("SELECT count(*) FROM t"), there.to_string(), "{language} killed at {point}");
            let told = crate::harness::run(&open(app.path(), ""), &PlanRequest::default());
            assert_eq!(told.steps.len(), usize::from(!has_committed), "{language} killed at {point}: {}", told.text());
            told.assert_good();
            assert_eq!(app.sql("SELECT count(*) FROM t"), (n + 2).to_string(), "{language} killed at {point}");
        }
        assert_store_agrees(&open(app.path(), ""));
    }
}

#[test]
fn two_processes_on_one_slice_write_it_once_each_or_one_is_superseded() {
    let app = App::new("//- pipelines/t.sql\n-- materialize datatable://app/t append\nSELECT 1 AS n\n");
    let pause = Pause::at("staged");
    let mut slow = Work::run().faults(pause.fault()).start(app.path());
    slow.reaches(&pause.reached());
    Work::run().force().start(app.path()).done();
    pause.release();
    let told = slow.done();
    assert_eq!(told, ["t: Superseded"]);
    app.check("SELECT count(*) FROM t", expect!["1"]);
}

#[test]
fn two_processes_on_two_slices_both_land() {
    let app = App::new(
        "//- pipelines/t.sql\n-- partitioned daily start=2026-01-01\n-- materialize datatable://app/t\nSELECT 1 AS n\n",
    );
    let pause = Pause::at("staged");
    let mut slow = Work::run().partition("2026-01-01").faults(pause.fault()).start(app.path());
    slow.reaches(&pause.reached());
    Work::run().partition("2026-01-02").start(app.path()).done();
    pause.release();
    assert_eq!(slow.done(), ["t 2026-01-01: Materialized"]);
    app.check(
        "SELECT _partition FROM t ORDER BY 1",
        expect![[r#"
        2026-01-01
        2026-01-02"#]],
    );
}

#[test]
fn a_counter_that_two_processes_raise_loses_no_step() {
    let app = App::new("//- pipelines/t.pg.sql\n-- materialize datatable://app/t\nSELECT 0 AS n\n");
    app.folder.run_all().assert_good();
    app.folder.write("//- pipelines/t.pg.sql\n-- materialize datatable://app/t\nSELECT n + 1 AS n FROM t\n");
    let meeting = tempfile::tempdir().unwrap();
    let both: Vec<_> =
        (0..2).map(|player| Work::run().force().meet(meeting.path(), player, 2).start(app.path())).collect();
    for process in both {
        assert_eq!(process.done().iter().filter(|line| line.contains("Materialized")).count(), 1);
    }
    app.check("SELECT n FROM t", expect!["2"]);
}

#[test]
fn a_server_that_restarts_in_the_middle_of_a_run_costs_a_try_and_nothing_else() {
    let mut server = private_postgres();
    let database = server.database();
    for point in ["staged", "written", "stamped"] {
        let folder = Folder::new(
            "//- pintail.toml\n[datatable.app]\nurl = \"${APP_URL}\"\n//- pipelines/t.sql\n-- materialize datatable://app/t append\nSELECT 1 AS n\n",
        );
        // Both forms of a connection do.
        folder.write(&format!("//- test.env\nAPP_URL={}\n", database.connection()));
        let pause = Pause::at(point);
        let mut process = Work::run().force().faults(pause.fault()).start(folder.path());
        process.reaches(&pause.reached());
        server.kill();
        server.resume().unwrap();
        pause.release();
        let told = process.done();
        assert!(told.contains(&"t: Materialized".to_owned()), "{point}: {told:?}");
    }
    assert_eq!(database.sql("SELECT count(*) FROM t"), "3");
}

#[test]
fn a_datatable_that_is_down_is_said_and_leaves_the_rest_running() {
    let folder = Folder::new(
        "//- pintail.toml\n[datatable.app]\nurl = \"postgres://nobody:${PW}@127.0.0.1:1/none\"\n//- test.env\nPW=hunter2\n//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT 1 AS n\n//- pipelines/t.sql\n-- materialize datatable://app/t\nSELECT 1 AS n\n",
    );
    let told = folder.run(&only("a"));
    told.assert_good();
    let told = folder.run(&only("t"));
    let failure = told.failure("t");
    assert_eq!(failure.code, Code::PLACE_UNREACHABLE);
    assert!(!format!("{failure:?}").contains("hunter2"), "{failure:?}");
}

#[test]
fn a_dropped_table_is_missing_and_is_made_anew() {
    let app = App::new("//- pipelines/t.sql\n-- materialize datatable://app/t\nSELECT 1 AS n\n");
    app.folder.run_all().assert_good();
    app.sql("DROP TABLE t");
    assert_eq!(planned(&app.folder.open(), &PlanRequest::default()), ["t: never written"]);
    app.folder.run_all().assert_good();
    app.check("SELECT n FROM t", expect!["1"]);
    assert_eq!(app.folder.run_all().steps.len(), 0);
}
