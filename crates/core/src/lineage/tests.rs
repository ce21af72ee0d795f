//! Scripts and what they read and write. The scripts' ASTs come from `fixtures/make.py`.

use expect_test::{Expect, expect};

use super::*;
use crate::sql::fixture::parsed;

/// Shows reads, writes, unknown reads and diagnostics, each with the text it points at.
fn check(script: &str, expected: Expect) {
    let lakes = ["main", "raw", "team"].map(|name| LakeName(name.into()));
    let datatables = ["app".to_owned(), "main".to_owned()];
    let ctx = LineageContext { default_lake: &lakes[0], lakes: &lakes, datatables: &datatables, volumes: &[] };
    let file = SourceFile { path: "a.sql".into(), text: script.into() };
    let lineage = of_body(&parsed(script), &ctx, &file);

    let at = |span: Span| &script[span.start..span.end];
    let mut shown = String::new();
    for read in &lineage.reads {
        let table = lineage.table_refs.iter().find(|table| Some(&table.name) == read.name.as_ref());
        assert_eq!(table.is_some(), read.name.is_some(), "every dotted name can be replaced");
        let version = if table.is_some_and(|table| table.at_clause) { " at a version" } else { "" };
        shown.push_str(&format!("reads {}{version}: {}\n", read.asset, at(read.span)));
    }
    for write in &lineage.writes {
        shown.push_str(&format!("writes {}: {}\n", write.asset, at(write.span)));
    }
    for unknown in &lineage.unknown_reads {
        shown.push_str(&format!("unknown {}: {}\n", unknown.value, at(unknown.span)));
    }
    for diagnostic in lineage.diagnostics.iter().filter(|found| found.code != Code::SQL_UNKNOWN_READS) {
        shown.push_str(&format!("{} {}\n", diagnostic.code, diagnostic.message));
    }
    expected.assert_eq(&shown);
}

#[test]
fn a_cte_hides_the_table_only_where_it_is_visible() {
    check(
        "with orders as (from raw.orders) from orders, stage.orders",
        expect![[r#"
        reads ducklake://raw/orders: raw.orders
        reads ducklake://main/stage.orders: stage.orders
    "#]],
    );
    check(
        "with a as (from b), b as (select 1) select * from a, b",
        expect![[r#"
        reads ducklake://main/b: b
    "#]],
    );
    check(
        "with a as (from a) from a",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
    check("with A as (select 1) from \"a\"", expect![[r#""#]]);
    check(
        "with a as (select 1) from main.a",
        expect![[r#"
        reads ducklake://main/a: main.a
    "#]],
    );
    check(
        "(with a as (select 1) from a) union all (from a)",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
}

#[test]
fn only_the_recursive_half_sees_itself() {
    check(
        "with recursive a as (select x from a union all select x from a, b) from a",
        expect![[r#"
        reads ducklake://main/a: a
        reads ducklake://main/b: b
    "#]],
    );
    check(
        "with recursive a as (from a) from a",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
    check(
        "with recursive a as (from b), b as (select 1) from a",
        expect![[r#"
        reads ducklake://main/b: b
    "#]],
    );
    check(
        "with recursive t(a, b) using key (a) as (select 1, 2 union select x.a, y.b from t x, recurring.t y) from t",
        expect![[r#""#]],
    );
}

#[test]
fn inner_ctes_hide_outer_ones_and_end_with_their_query() {
    check(
        "with a as (from x) select * from (with a as (from a) from a), a",
        expect![[r#"
        reads ducklake://main/x: x
    "#]],
    );
    check(
        "select * from (with a as (from x) from a), a",
        expect![[r#"
        reads ducklake://main/x: x
        reads ducklake://main/a: a
    "#]],
    );
    check(
        "with a as (from x) select (select max(i) from a), exists (from b) from c",
        expect![[r#"
        reads ducklake://main/x: x
        reads ducklake://main/b: b
        reads ducklake://main/c: c
    "#]],
    );
}

#[test]
fn a_name_means_the_alias_then_the_lake_then_the_schema() {
    check(
        "from orders, main.orders o2, lake.orders o3, lake.main.orders o4",
        expect![[r#"
        reads ducklake://main/orders: orders
        reads ducklake://main/orders: main.orders
        reads ducklake://main/orders: lake.orders
        reads ducklake://main/orders: lake.main.orders
    "#]],
    );
    check(
        "from raw.events, raw.s.events e2, stage.events e3",
        expect![[r#"
        reads ducklake://raw/events: raw.events
        reads ducklake://raw/s.events: raw.s.events
        reads ducklake://main/stage.events: stage.events
    "#]],
    );
    check(
        "from nowhere.s.t",
        expect![[r#"
        unknown there is no lake or alias `nowhere`: nowhere.s.t
    "#]],
    );
    check(
        "from main.s.t",
        expect![[r#"
        unknown `main` is a schema here; the lake `main` is written `lake`: main.s.t
    "#]],
    );
    check(
        "from teem.s.t",
        expect![[r#"
        unknown there is no lake or alias `teem`; did you mean `team`?: teem.s.t
    "#]],
    );
    check(
        "from Orders, LAKE.\"ORDERS\"",
        expect![[r#"
        reads ducklake://main/orders: Orders
        reads ducklake://main/orders: LAKE."ORDERS"
    "#]],
    );
}

#[test]
fn attach_and_use_are_interpreted() {
    check(
        "attach 'ducklake://raw' as dl; from dl.t, dl.s.t t2, t t3",
        expect![[r#"
        reads ducklake://raw/t: dl.t
        reads ducklake://raw/s.t: dl.s.t
        reads ducklake://main/t: t
    "#]],
    );
    check(
        "attach 'ducklake' as dl; use dl; from t",
        expect![[r#"
        reads ducklake://main/t: t
    "#]],
    );
    check(
        "attach 'ducklake://raw' as raw2; use raw2.s; from t, main.t t2",
        expect![[r#"
        reads ducklake://raw/s.t: t
        reads ducklake://raw/t: main.t
    "#]],
    );
    check(
        "use stage; from t, lake.t t2",
        expect![[r#"
        reads ducklake://main/stage.t: t
        reads ducklake://main/t: lake.t
    "#]],
    );
    check(
        "attach 'datatable://app' as pg; from pg.users, pg.audit.log",
        expect![[r#"
        reads datatable://app/users: pg.users
        reads datatable://app/audit.log: pg.audit.log
    "#]],
    );
    check(
        "attach 'datatable' as pg; use pg; from users",
        expect![[r#"
        reads datatable://main/users: users
    "#]],
    );
    check(
        "attach 'ducklake://rae' as dl; from dl.t",
        expect![[r#"
            P213 there is no lake `rae`
        "#]],
    );
}

#[test]
fn a_user_table_that_looks_like_a_system_table_is_not_dropped() {
    check(
        "from duckdb_orders, pg_customers, pg_class",
        expect![[r#"
        reads ducklake://main/duckdb_orders: duckdb_orders
        reads ducklake://main/pg_customers: pg_customers
    "#]],
    );
}

#[test]
fn names_of_ours_are_refused_in_queries() {
    check(
        "from _pt_w_main.main.orders, lake._pintail.fence_00",
        expect![[r#"
        P210 the name `_pt_w_main` is reserved
        P210 the name `_pintail` is reserved
    "#]],
    );
}

#[test]
fn other_databases_are_files_or_unknown() {
    check("attach ':memory:' as m; from m.t", expect![[r#""#]]);
    check(
        "attach 'data/x.duckdb' as x (read_only); from x.t",
        expect![[r#"
        reads volume://project/data/x.duckdb: 'data/x.duckdb'
    "#]],
    );
    check(
        "attach 'sqlite:data/x.db' as x (read_only); from x.t",
        expect![[r#"
        reads volume://project/data/x.db: 'sqlite:data/x.db'
    "#]],
    );
    check(
        "attach 'postgres:host=db password=hunter2' as pg (read_only); from pg.t",
        expect![[r#"
        unknown the table `t` of a database attached with `postgres:`: pg.t
    "#]],
    );
}

#[test]
fn quoted_names_keep_their_dots_and_extent() {
    check(
        r#"from "a.b" . /* c */ "t ""x""" as z"#,
        expect![[r#"
            reads ducklake://main/a%2Eb.t%20%22x%22: "a.b" . /* c */ "t ""x"""
        "#]],
    );
    check(
        r#"from "sélect" é, "日本"."t--x""#,
        expect![[r#"
        reads ducklake://main/sélect: "sélect"
        reads ducklake://main/日本.t--x: "日本"."t--x"
    "#]],
    );
}

#[test]
fn files_are_assets_and_globs_are_patterns() {
    check(
        "from read_parquet('s3://raw/2026/*.parquet'), 'data/x.csv'",
        expect![[r#"
        reads s3://raw/2026/*.parquet: 's3://raw/2026/*.parquet'
        reads volume://project/data/x.csv: 'data/x.csv'
    "#]],
    );
    check(
        "from read_csv(['a.csv', './b.csv'], header := true), \"c.json\"",
        expect![[r#"
        reads volume://project/a.csv: 'a.csv'
        reads volume://project/b.csv: './b.csv'
        reads volume://project/c.json: "c.json"
    "#]],
    );
    check(
        "from read_json('s3://raw/{partition}.json'), glob('x/*')",
        expect![[r#"
        reads s3://raw/{partition}.json: 's3://raw/{partition}.json'
        reads volume://project/x/*: 'x/*'
    "#]],
    );
    check(
        "from 'orders'",
        expect![[r#"
        reads ducklake://main/orders: 'orders'
    "#]],
    );
}

#[test]
fn what_is_computed_is_unknown() {
    check(
        "from read_csv(getvariable('x'))",
        expect![[r#"
        unknown a path or name that is computed: read_csv
    "#]],
    );
    check(
        "from read_csv('data/' || $partition || '.csv')",
        expect![[r#"
        unknown a path or name that is computed: read_csv
    "#]],
    );
    check(
        "from read_csv(['a.csv', $file])",
        expect![[r#"
        reads volume://project/a.csv: 'a.csv'
        unknown a path or name that is computed: read_csv
    "#]],
    );
    check(
        "from 'https://example.com/x.csv', read_parquet('res://u/x')",
        expect![[r#"
        unknown a `https` address outside the project: 'https://example.com/x.csv'
        unknown a resource of another system: 'res://u/x'
    "#]],
    );
    check(
        "from query('from y'), my_macro(1)",
        expect![[r#"
        unknown the table function `query`: query
        unknown the table function `my_macro`: my_macro
    "#]],
    );
    check(
        "from t pivot (sum(x) for y in ('a')), (pivot u on c using sum(x))",
        expect![[r#"
        unknown the query of this statement is known only when it runs: from t pivot (sum(x) for y in ('a')), (pivot u on c using sum(x))
    "#]],
    );
}

#[test]
fn named_tables_in_functions_are_reads() {
    check(
        "from query_table('lake.orders'), query_table(['a', '\"b.c\"'])",
        expect![[r#"
            reads ducklake://main/orders: 'lake.orders'
            reads ducklake://main/a: 'a'
            reads ducklake://main/b%2Ec: '"b.c"'
        "#]],
    );
    check("with a as (select 1) from query_table('a')", expect![[r#""#]]);
    check(
        "from lake.table_changes('orders', 1, 2), lake.snapshots()",
        expect![[r#"
        reads ducklake://main/orders: 'orders'
    "#]],
    );
    check(
        "from ducklake_table_insertions('raw', 's', 'events', 1, 2), ducklake_snapshots('lake')",
        expect![[r#"
        reads ducklake://raw/s.events: ducklake_table_insertions
    "#]],
    );
}

#[test]
fn system_tables_and_computed_rows_are_no_assets() {
    check(
        "from range(3), generate_series(1, 2) g, unnest([1]) u, duckdb_tables(), duckdb_columns c, information_schema.tables t, lake.information_schema.columns i",
        expect![[r#""#]],
    );
    check("show tables", expect![[r#""#]]);
    check("from (values (1)) v(x), temp.x, memory.main.y", expect![[r#""#]]);
}

#[test]
fn tables_are_found_everywhere_in_a_query() {
    check(
        "select (select max(x) from a), list_filter([1], x -> x in (from b)), case when true then (select 1 from c) end
         from d asof join e using (x), lateral (from f where f.x = d.x), range((select 1 from g))
         where x in (from h) group by (select 1 from i) having (select true from j)
         qualify (select true from k) order by (select 1 from l) limit (select 1 from m)",
        expect![[r#"
            reads ducklake://main/a: a
            reads ducklake://main/b: b
            reads ducklake://main/c: c
            reads ducklake://main/d: d
            reads ducklake://main/e: e
            reads ducklake://main/f: f
            reads ducklake://main/g: g
            reads ducklake://main/h: h
            reads ducklake://main/i: i
            reads ducklake://main/j: j
            reads ducklake://main/k: k
            reads ducklake://main/l: l
            reads ducklake://main/m: m
        "#]],
    );
    check(
        "pivot a on x in ('p') using sum((select 1 from b))",
        expect![[r#"
        reads ducklake://main/a: a
        reads ducklake://main/b: b
    "#]],
    );
    check(
        "unpivot a on b, c into name n value v",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
    check(
        "from a union all by name from b except from c",
        expect![[r#"
        reads ducklake://main/a: a
        reads ducklake://main/b: b
        reads ducklake://main/c: c
    "#]],
    );
    check(
        "select * replace ((select 1 from b) as x) from a positional join c",
        expect![[r#"
        reads ducklake://main/b: b
        reads ducklake://main/a: a
        reads ducklake://main/c: c
    "#]],
    );
    check(
        "summarize a",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
    check(
        "table a",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
    check(
        "values ((select 1 from a))",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
}

#[test]
fn a_fixed_version_is_told_and_a_pinned_one_is_not() {
    check(
        "from orders at (version => 3)",
        expect![[r#"
        reads ducklake://main/orders at a version: orders
        P217 this reads a fixed version, which is gone once retention expires it
    "#]],
    );
    check(
        "from orders at (version => $upstream_snapshot)",
        expect![[r#"
        reads ducklake://main/orders at a version: orders
    "#]],
    );
}

#[test]
fn temporary_objects_are_no_assets_and_their_reads_count() {
    check(
        "create temp table x as from a; create temp view v as from x, b; from x, v, temp.x, lake.x",
        expect![[r#"
            reads ducklake://main/a: a
            reads ducklake://main/b: b
            reads ducklake://main/x: lake.x
        "#]],
    );
    check(
        "create temp macro m(i) as table from a where id = i; from m(1)",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
    check(
        "create temp macro f(i) as i + 1; select f(x) from a",
        expect![[r#"
        reads ducklake://main/a: a
    "#]],
    );
    check(
        "create temp table x as from x; from x",
        expect![[r#"
        reads ducklake://main/x: x
    "#]],
    );
    check(
        "create temp table x as from a; drop table x; from x",
        expect![[r#"
        reads ducklake://main/a: a
        reads ducklake://main/x: x
    "#]],
    );
}

#[test]
fn manual_statements_write() {
    check(
        "create table t as from a; insert into t with b as (from c) from b; alter table t add column x int",
        expect![[r#"
            reads ducklake://main/a: a
            reads ducklake://main/c: c
            writes ducklake://main/t: t
            writes ducklake://main/t: t
            writes ducklake://main/t: t
        "#]],
    );
    check(
        "update lake.t set x = 1 from a where true; delete from s.t using b where true; merge into t using c on true",
        expect![[r#"
            reads ducklake://main/a: a
            reads ducklake://main/b: b
            reads ducklake://main/c: c
            writes ducklake://main/t: lake.t
            writes ducklake://main/s.t: s.t
            writes ducklake://main/t: t
        "#]],
    );
    check(
        "copy (from a) to 's3://raw/out.parquet'; copy t from 'data/x.csv'; drop view v",
        expect![[r#"
        reads ducklake://main/a: a
        reads volume://project/data/x.csv: 'data/x.csv'
        writes s3://raw/out.parquet: 's3://raw/out.parquet'
        writes ducklake://main/t: t
        writes ducklake://main/v: v
    "#]],
    );
    check(
        "create temp table x as select 1; insert into x from a; insert into t from x",
        expect![[r#"
        reads ducklake://main/a: a
        writes ducklake://main/t: t
    "#]],
    );
    check(
        "attach 'ducklake://raw' as dl; use dl; create table s.t as from t",
        expect![[r#"
        reads ducklake://raw/t: t
        writes ducklake://raw/s.t: s.t
    "#]],
    );
    check(
        "create or replace view v as from a; create schema s",
        expect![[r#"
        reads ducklake://main/a: a
        writes ducklake://main/v: v
    "#]],
    );
}

#[test]
fn a_self_read_is_a_read() {
    check(
        "select coalesce(max(n), 0) + 1 from lake.counter",
        expect![[r#"
        reads ducklake://main/counter: lake.counter
    "#]],
    );
}

#[test]
fn comments_and_strings_before_a_name_do_not_move_it() {
    check(
        "-- é from x\n/* from y; */ select 'from z;', $$ from w $$ from  /* é */  orders",
        expect![[r#"
        reads ducklake://main/orders: orders
    "#]],
    );
}
