//! Scripts and what their statements are. The scripts' ASTs come from `fixtures/make.py`.

mod manual;

use expect_test::{Expect, expect};

use super::*;
use crate::annotation::Materialize;
use crate::asset::Asset;
use crate::id::LakeName;
use crate::partition::{PartitionSpec, TimeSpec, TimeUnit};
use crate::source::Located;
use crate::sql::body::{BodyError, ParsedBody};
use crate::sql::fixture::parsed;

fn located<T>(value: T) -> Located<T> {
    Located { value, span: Span::default() }
}

fn materializing(strategy: WriteStrategy) -> Header {
    let table = Asset::Lake { lake: LakeName("main".into()), schema: "main".into(), table: "t".into() };
    let materialize = Materialize {
        target: located(table),
        strategy,
        if_changed: false,
        allow_empty: false,
        on_delete: None,
        format: None,
        partition_column: None,
    };
    Header { materialize: Some(located(materialize)), ..Header::default() }
}

fn daily(by: Option<&str>) -> Header {
    let spec = TimeSpec { unit: TimeUnit::Day, by: by.map(str::to_owned), tz: None, start: None, retention: None };
    Header { partitioned: Some(located(PartitionSpec::Time(spec))), ..materializing(WriteStrategy::Replace) }
}

fn dynamic(key: &str) -> Header {
    let spec = PartitionSpec::Dynamic { key: key.into(), tolerance: None };
    Header { partitioned: Some(located(spec)), ..materializing(WriteStrategy::Replace) }
}

fn show(script: &str, diagnostics: &[Diagnostic]) -> String {
    let one = |found: &Diagnostic| {
        let place = found.span.map_or("the file", |span| &script[span.start..span.end]);
        let help = found.help.as_deref().unwrap_or("none");
        format!("{} {:?} at `{place}`: {}\n  help: {help}\n", found.code, found.severity, found.message)
    };
    diagnostics.iter().map(one).collect()
}

fn check_body(script: &str, header: &Header, body: &ParsedBody, expected: Expect) {
    let file = SourceFile { path: "a.sql".into(), text: script.into() };
    let vars = ["country".to_owned()];
    let managed = managed(body, &ClassifyContext { file: &file, header, vars: &vars });
    let at = |span: Span| &script[span.start..span.end];
    let setup: String =
        managed.setup.iter().map(|setup| format!("{:?}: {}\n", setup.action, at(setup.statement.span))).collect();
    let query = managed.query.map(|query| format!("Query: {}\n", at(query.span))).unwrap_or_default();
    expected.assert_eq(&format!("{setup}{query}{}", show(script, &managed.diagnostics)));
}

fn check(script: &str, expected: Expect) {
    check_body(script, &materializing(WriteStrategy::Replace), &parsed(script), expected);
}

fn check_with(script: &str, header: &Header, expected: Expect) {
    check_body(script, header, &parsed(script), expected);
}

fn check_test(script: &str, expected: Expect) {
    let file = SourceFile { path: "tests/a.sql".into(), text: script.into() };
    let body = parsed(script);
    let test = test_script(&body, &ClassifyContext { file: &file, header: &Header::default(), vars: &[] });
    expected.assert_eq(&show(script, &test.diagnostics));
}

#[test]
fn a_managed_body_is_setup_and_one_query() {
    check(
        "attach 'ducklake://raw' as r; install httpfs; load httpfs; set preserve_insertion_order = false;
         use r; set variable x = 1; create temp table a as select 1 as i; create temp macro f(x) as x + 1;
         select f(i) from a where i = $country;",
        expect![[r#"
            Interpreted: attach 'ducklake://raw' as r
            Ignored: install httpfs
            Interpreted: load httpfs
            Sent: set preserve_insertion_order = false
            Interpreted: use r
            Sent: set variable x = 1
            Sent: create temp table a as select 1 as i
            Sent: create temp macro f(x) as x + 1
            Query: select f(i) from a where i = $country
            P208 Info at `install httpfs`: INSTALL is ignored: extensions come with Pintail
              help: remove the line
        "#]],
    );
    for_every_query_form();
}

fn for_every_query_form() {
    check(
        "with a as (select 1) from a",
        expect![[r#"
        Query: with a as (select 1) from a
    "#]],
    );
    check(
        "values (1)",
        expect![[r#"
        Query: values (1)
    "#]],
    );
    check(
        "pivot t on c in ('x') using sum(v)",
        expect![[r#"
        Query: pivot t on c in ('x') using sum(v)
    "#]],
    );
    check(
        "(select 1) union all (select 2)",
        expect![[r#"
        Query: (select 1) union all (select 2)
    "#]],
    );
}

#[test]
fn a_body_without_exactly_one_last_query_is_told_why() {
    check(
        "set preserve_insertion_order = false",
        expect![[r#"
        Sent: set preserve_insertion_order = false
        P203 Error at `the file`: there is no query whose rows could be written
          help: end the body with one query, or write with your own statements: `-- materialize manual ducklake://main/t`
    "#]],
    );
    check(
        "select 1; select 2",
        expect![[r#"
        Query: select 1
        P204 Error at `select 2`: a managed body has one query, this is another
          help: keep one query; what the other prepares can be a `CREATE TEMP TABLE … AS` before it
    "#]],
    );
    check(
        "select 1; create temp table a as select 2",
        expect![[r#"
        Sent: create temp table a as select 2
        Query: select 1
        P205 Error at `create temp table a as select 2`: this statement comes after the query and would not be used
          help: move it before the query
    "#]],
    );
}

#[test]
fn writes_need_manual() {
    check(
        "insert into t select 1; select 1",
        expect![[r#"
        Query: select 1
        P218 Error at `insert into t select 1`: INSERT writes by itself, but Pintail writes the rows of a managed body
          help: end the body with one query and remove this statement, or write with your own statements: `-- materialize manual ducklake://main/t`
    "#]],
    );
    check(
        "create table t as select 1",
        expect![[r#"
            P218 Error at `create table t as select 1`: CREATE TABLE writes by itself, but Pintail writes the rows of a managed body
              help: if it is only for this query, make it temporary: `CREATE TEMP TABLE …`; to write with your own statements: `-- materialize manual ducklake://main/t`
        "#]],
    );
    check(
        "copy (select 1) to 's3://a/b.parquet'; drop table t; select 1",
        expect![[r#"
        Query: select 1
        P218 Error at `copy (select 1) to 's3://a/b.parquet'`: COPY writes by itself, but Pintail writes the rows of a managed body
          help: end the body with one query and remove this statement, or write with your own statements: `-- materialize manual ducklake://main/t`
        P218 Error at `drop table t`: DROP writes by itself, but Pintail writes the rows of a managed body
          help: end the body with one query and remove this statement, or write with your own statements: `-- materialize manual ducklake://main/t`
    "#]],
    );
}

#[test]
fn transactions_and_maintenance_do_not_stand_in_a_managed_body() {
    check(
        "begin; select 1; commit",
        expect![[r#"
            Query: select 1
            P202 Error at `begin`: BEGIN cannot stand in a managed body: it is neither setup nor the query
              help: to send your own statements: `-- materialize manual ducklake://main/t`
            P202 Error at `commit`: COMMIT cannot stand in a managed body: it is neither setup nor the query
              help: to send your own statements: `-- materialize manual ducklake://main/t`
        "#]],
    );
    check(
        "checkpoint lake; call lake.merge_adjacent_files(); select 1",
        expect![[r#"
            Query: select 1
            P202 Error at `checkpoint lake`: CHECKPOINT cannot stand in a managed body: it is neither setup nor the query
              help: to send your own statements: `-- materialize manual ducklake://main/t`
            P202 Error at `call lake.merge_adjacent_files()`: CALL cannot stand in a managed body: it is neither setup nor the query
              help: to send your own statements: `-- materialize manual ducklake://main/t`
        "#]],
    );
}

#[test]
fn macros_of_a_managed_body_are_temp() {
    check(
        "create macro f(x) as x + 1; select f(1)",
        expect![[r#"
        Query: select f(1)
        P211 Error at `create macro f(x) as x + 1`: the lake is read-only here, a macro cannot be stored in it
          help: make it temporary: `CREATE TEMP MACRO …`, or put it into a macro library under `macros/`
    "#]],
    );
}

#[test]
fn columns_must_be_fixed() {
    check(
        "pivot t on c using sum(v)",
        expect![[r#"
        Query: pivot t on c using sum(v)
        P206 Error at `pivot`: the columns of this PIVOT depend on the data, so the table has no fixed shape
          help: list the values: `PIVOT … ON <column> IN ('a', 'b') USING …`
    "#]],
    );
    check(
        "select * from (pivot t on c using sum(v))",
        expect![[r#"
        Query: select * from (pivot t on c using sum(v))
        P206 Error at `pivot`: the columns of this PIVOT depend on the data, so the table has no fixed shape
          help: list the values: `PIVOT … ON <column> IN ('a', 'b') USING …`
    "#]],
    );
    check(
        "describe t",
        expect![[r#"
        Query: describe t
        P202 Error at `describe`: DESCRIBE gives no rows to keep
          help: to keep its rows, select from it: `FROM (describe t)`
    "#]],
    );
    check(
        "from (describe t)",
        expect![[r#"
        Query: from (describe t)
    "#]],
    );
}

#[test]
fn settings_come_from_a_list() {
    check(
        "set timezone = 'Asia/Kolkata'; set threads = 1; set search_path = 'a'; select 1",
        expect![[r#"
        Sent: set timezone = 'Asia/Kolkata'
        Sent: set threads = 1
        Sent: set search_path = 'a'
        Query: select 1
        P207 Error at `set timezone = 'Asia/Kolkata'`: a script may not change the setting `timezone`
          help: every connection runs in UTC; convert in the query: `ts AT TIME ZONE '…'`
        P207 Error at `set threads = 1`: a script may not change the setting `threads`
          help: this is set for the whole process in pintail.toml, under `[run]`
        P207 Error at `set search_path = 'a'`: a script may not change the setting `search_path`
          help: use `USE <name>`
    "#]],
    );
    check(
        "set pivot_limits = 3; pragma foo; select 1",
        expect![[r#"
        Sent: set pivot_limits = 3
        Sent: pragma foo
        Query: select 1
        P207 Error at `set pivot_limits = 3`: a script may not change the setting `pivot_limits`
          help: did you mean `pivot_limit`?
        P207 Error at `pragma foo`: a script may not change the setting `foo`
          help: settings that can be changed: default_collation, default_null_order, default_order, explain_output, http_retries, http_retry_backoff, http_retry_wait_ms, http_timeout, ieee_floating_point_ops, integer_division, max_expression_depth, null_order, order_by_non_integer_literal, pivot_limit, preserve_insertion_order, scalar_subquery_error_on_multiple_rows
    "#]],
    );
    check(
        "set variable partition = 'x'; set variable mine = 1; select 1",
        expect![[r#"
        Sent: set variable partition = 'x'
        Sent: set variable mine = 1
        Query: select 1
        P210 Error at `partition`: the name `partition` is reserved
          help: choose another name
    "#]],
    );
}

#[test]
fn extensions_come_with_pintail() {
    check(
        "load spatial; load 'json'; select 1",
        expect![[r#"
        Interpreted: load spatial
        Interpreted: load 'json'
        Query: select 1
        P216 Error at `load spatial`: the extension `spatial` does not come with Pintail
          help: extensions that can be loaded: ducklake, sqlite_scanner, postgres_scanner, httpfs, icu, json, parquet
    "#]],
    );
}

#[test]
fn names_of_ours_are_reserved() {
    check(
        "attach 'ducklake://raw' as lake; attach 'ducklake' as _pt_w; select 1",
        expect![[r#"
        Interpreted: attach 'ducklake://raw' as lake
        Interpreted: attach 'ducklake' as _pt_w
        Query: select 1
        P210 Error at `lake`: the name `lake` is reserved
          help: choose another name
        P210 Error at `_pt_w`: the name `_pt_w` is reserved
          help: choose another name
    "#]],
    );
    check(
        "attach 'ducklake://raw' as MAIN; create temp table _pt_stage as select 1; select 1",
        expect![[r#"
        Interpreted: attach 'ducklake://raw' as MAIN
        Sent: create temp table _pt_stage as select 1
        Query: select 1
        P210 Error at `MAIN`: the name `MAIN` is reserved
          help: choose another name
        P210 Error at `_pt_stage`: the name `_pt_stage` is reserved
          help: choose another name
    "#]],
    );
}

#[test]
fn foreign_databases_are_read_only() {
    check(
        "attach ':memory:' as x; select 1",
        expect![[r#"
        Sent: attach ':memory:' as x
        Query: select 1
        P213 Error at `attach ':memory:' as x`: a database in memory is not an asset
          help: use `CREATE TEMP TABLE`
    "#]],
    );
    check(
        "attach 'x.duckdb' as x; select 1",
        expect![[r#"
        Sent: attach 'x.duckdb' as x
        Query: select 1
        P213 Error at `attach 'x.duckdb' as x`: what is not an asset of the project can be attached only for reading
          help: add READ_ONLY: `ATTACH '…' AS x (READ_ONLY)`, or attach an asset: `ATTACH 'ducklake://<lake>' AS x`
    "#]],
    );
    check(
        "attach 'x.duckdb' as x (read_only); select 1",
        expect![[r#"
        Sent: attach 'x.duckdb' as x (read_only)
        Query: select 1
    "#]],
    );
}

#[test]
fn parameters_must_have_a_value() {
    check(
        "select $contry, $country, $first_run",
        expect![[r#"
        Query: select $contry, $country, $first_run
        P209 Error at `$contry`: unknown parameter `$contry`
          help: did you mean `$country`?
    "#]],
    );
    check(
        "select $partition, $WM_PARTITION_START, '{partition}'",
        expect![[r#"
        Query: select $partition, $WM_PARTITION_START, '{partition}'
        P209 Error at `$partition`: `$partition` has no value: the script is not partitioned
          help: declare the partitions: `-- partitioned daily`
        P209 Error at `$WM_PARTITION_START`: `$WM_PARTITION_START` has no value: the script is not partitioned
          help: declare the partitions: `-- partitioned daily`
        P209 Warning at `{partition}`: `{partition}` stays as it is: the script is not partitioned
          help: declare the partitions: `-- partitioned daily`
    "#]],
    );
    check(
        "select $whatever_this_is",
        expect![[r#"
        Query: select $whatever_this_is
        P209 Error at `$whatever_this_is`: unknown parameter `$whatever_this_is`
          help: known parameters: $upstream_snapshot, $first_run, $country; a variable of the project is declared in pintail.toml: `[vars]` `whatever_this_is = "…"`
    "#]],
    );
    check_with(
        "select $partition, $partition_start, '{partition}', $WM_PARTITION",
        &daily(None),
        expect![[r#"
        Query: select $partition, $partition_start, '{partition}', $WM_PARTITION
    "#]],
    );
    check_with(
        "select $partition, $partition_end",
        &dynamic("$.vin"),
        expect![[r#"
        Query: select $partition, $partition_end
        P209 Error at `$partition_end`: `$partition_end` has no value: a partition from a payload has no window
          help: use `$partition`, the value from the payload
    "#]],
    );
    check_with(
        "select $partition_end",
        &dynamic("updated_at"),
        expect![[r#"
        Query: select $partition_end
    "#]],
    );
}

#[test]
fn the_identity_column_is_ours() {
    check_with(
        "select a, count(*) as _Partition from t union all select 1, 2",
        &daily(None),
        expect![[r#"
        Query: select a, count(*) as _Partition from t union all select 1, 2
        P214 Error at `_Partition`: the column `_Partition` is added by Pintail and holds the partition's identity
          help: give the column another name, or leave it out
    "#]],
    );
    check_with(
        "select * from upstream",
        &daily(None),
        expect![[r#"
        Query: select * from upstream
    "#]],
    );
    check_with(
        "select a, 1 as \"_partition\" from t",
        &daily(Some("a")),
        expect![[r#"
        Query: select a, 1 as "_partition" from t
    "#]],
    );
    check(
        "select 1 as _partition",
        expect![[r#"
        Query: select 1 as _partition
    "#]],
    );
}

#[test]
fn a_filter_that_reads_every_file_is_told() {
    check_with(
        "select * from t where wm_partition(ts) = $partition",
        &daily(None),
        expect![[r#"
        Query: select * from t where wm_partition(ts) = $partition
        P215 Info at `wm_partition`: a function on the column reads every file of the table
          help: let the engine skip files: `WHERE in_partition(<column>)`
    "#]],
    );
}

#[test]
fn a_syntax_error_is_told_once() {
    let script = "selec 1";
    let error = BodyError { message: "syntax error at or near \"selec\"".into(), span: Span::new(0, 5) };
    let body = ParsedBody { error: Some(error), ..ParsedBody::default() };
    check_body(
        script,
        &materializing(WriteStrategy::Replace),
        &body,
        expect![[r#"
        P201 Error at `selec`: syntax error at or near "selec"
          help: none
    "#]],
    );
}

#[test]
fn the_mode_is_managed_only_when_rows_are_materialized() {
    assert_eq!(BodyMode::of(&Header::default()), BodyMode::Manual);
    assert_eq!(BodyMode::of(&materializing(WriteStrategy::Manual)), BodyMode::Manual);
    assert_eq!(BodyMode::of(&materializing(WriteStrategy::View)), BodyMode::Managed);
}
