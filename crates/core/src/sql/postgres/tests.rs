//! Postgres text: types there and back, golden statements, and what is found in scripts.

use expect_test::{Expect, expect};

use super::*;
use crate::annotation::WriteStrategy;
use crate::source::{SourceFile, Span};
use crate::sql::strategy::Slice;
use crate::sql::{Ident, Relation, Statement};

#[test]
fn types_go_there_and_come_back_in_the_form_that_is_compared() {
    let line = |text: &&str| match postgres_type(text) {
        Ok(home) => format!("{text} -> {} -> {}\n", home.text, duckdb_type(&home.text)),
        Err(help) => format!("{text}: {help}\n"),
    };
    let types = [
        "BOOLEAN",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "HUGEINT",
        "DECIMAL(10,2)",
        "VARCHAR",
        "JSON",
        "BLOB",
        "UUID",
        "TIME",
        "TIMESTAMP_S",
        "TIMESTAMP",
        "TIMESTAMP WITH TIME ZONE",
        "INTERVAL",
        "INTEGER[]",
        "INTEGER[3]",
        "INTEGER[][]",
        "STRUCT(a INTEGER)",
        "MAP(VARCHAR, INTEGER)",
        "ENUM('a')",
        "TIMESTAMP_NS",
        "BIT",
        "UNION(a INTEGER)",
    ];
    expect![[r#"
        BOOLEAN -> boolean -> BOOLEAN
        UTINYINT -> smallint -> SMALLINT
        USMALLINT -> integer -> INTEGER
        UINTEGER -> bigint -> BIGINT
        UBIGINT -> numeric(20,0) -> DECIMAL(20,0)
        HUGEINT -> numeric(38,0) -> DECIMAL(38,0)
        DECIMAL(10,2) -> numeric(10,2) -> DECIMAL(10,2)
        VARCHAR -> text -> VARCHAR
        JSON -> jsonb -> JSON
        BLOB -> bytea -> BLOB
        UUID -> uuid -> UUID
        TIME -> time without time zone -> TIME
        TIMESTAMP_S -> timestamp without time zone -> TIMESTAMP
        TIMESTAMP -> timestamp without time zone -> TIMESTAMP
        TIMESTAMP WITH TIME ZONE -> timestamp with time zone -> TIMESTAMP WITH TIME ZONE
        INTERVAL -> interval -> INTERVAL
        INTEGER[] -> integer[] -> INTEGER[]
        INTEGER[3] -> integer[] -> INTEGER[]
        INTEGER[][] -> jsonb -> JSON
        STRUCT(a INTEGER) -> jsonb -> JSON
        MAP(VARCHAR, INTEGER) -> jsonb -> JSON
        ENUM('a') -> text -> VARCHAR
        TIMESTAMP_NS: Postgres keeps microseconds: cast the column to TIMESTAMP
        BIT: cast the column to VARCHAR, or to BLOB
        UNION(a INTEGER): take one member with `union_extract(…)`
    "#]]
    .assert_eq(&types.iter().map(line).collect::<String>());
}

#[test]
fn columns_of_postgres_alone_take_what_fits() {
    let cases = [
        ("numeric", "DECIMAL(10,2)", "DECIMAL(10,2)"),
        ("numeric(5,1)", "DECIMAL(10,2)", "DECIMAL(5,1)"),
        ("citext", "VARCHAR", "VARCHAR"),
        ("citext", "INTEGER", "CITEXT"),
        ("character varying(20)", "VARCHAR", "VARCHAR"),
        ("timestamp(3) with time zone", "VARCHAR", "TIMESTAMP WITH TIME ZONE"),
    ];
    for (column, query, expected) in cases {
        assert_eq!(fitted(column, query), expected, "{column} for {query}");
    }
}

fn text(statements: impl IntoIterator<Item = Statement>) -> String {
    statements.into_iter().map(|statement| format!("-- {}\n{};\n", statement.purpose, statement.sql)).collect()
}

#[test]
fn a_merge_inside_a_slice_reads_like_hand_written() {
    let target = Relation { catalog: None, schema: Some(Ident::new("public")), table: Ident::new("orders") };
    let column = |name: &str, data_type: &str| PostgresColumn { name: name.into(), data_type: data_type.into() };
    let columns = [column("id", "bigint"), column("day", "text")];
    let strategy = WriteStrategy::Merge { key: vec!["id".into()], order_by: None };
    let slice = Slice::Identity { column: "day".into(), value: "2026-01-01".into() };
    let values = [
        (columns[0].clone(), StagedValue::Column("id".into())),
        (columns[1].clone(), StagedValue::Text("2026-01-01".into())),
    ];
    let mut statements = vec![create_stage(&columns[..1])];
    statements.extend(create_table(&target, &columns, false));
    statements.extend(index(&target, &strategy, Some(&slice)));
    statements.extend(delete(&target, &strategy, Some(&slice)));
    statements.push(insert(&target, &values));
    expect![[r#"
        -- make the stage in the transaction
        CREATE TEMPORARY TABLE "_pt_stage" (
          "id" bigint
        ) ON COMMIT DROP;
        -- create the schema
        CREATE SCHEMA IF NOT EXISTS "public";
        -- create the table
        CREATE TABLE "public"."orders" (
          "id" bigint,
          "day" text
        );
        -- index what later writes look for
        CREATE INDEX ON "public"."orders" ("day", "id");
        -- delete the rows with staged keys
        DELETE FROM "public"."orders" AS _pt_old
        WHERE EXISTS (
          SELECT 1
          FROM "_pt_stage" AS _pt_new
          WHERE _pt_new."id" = _pt_old."id"
        )
          AND _pt_old."day" = '2026-01-01';
        -- insert the staged rows
        INSERT INTO "public"."orders" ("id", "day")
        SELECT
          CAST("id" AS bigint),
          CAST('2026-01-01' AS text)
        FROM "_pt_stage";
    "#]]
    .assert_eq(&text(statements));
}

fn check(text: &str, is_managed: bool, expected: Expect) {
    let file = SourceFile { path: "s.pg.sql".into(), text: text.into() };
    let vars = ["country".to_owned()];
    let script = parse_script(&PostgresContext { file: &file, database: Some("app"), is_managed, vars: &vars });
    let at = |span: Span| &text[span.start..span.end];
    let mut lines: Vec<String> = script.setup.iter().map(|span| format!("setup: {}", at(*span))).collect();
    lines.extend(script.query.map(|span| format!("query: {}", at(span))));
    lines.extend(script.lineage.reads.iter().map(|read| format!("reads {} at `{}`", read.asset, at(read.span))));
    lines.extend(script.lineage.writes.iter().map(|write| format!("writes {} at `{}`", write.asset, at(write.span))));
    lines.extend(
        script
            .diagnostics
            .iter()
            .map(|found| format!("{} at `{}`: {}", found.code, found.span.map(at).unwrap_or_default(), found.message)),
    );
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_managed_script_is_setup_and_one_query() {
    check(
        "SET LOCAL work_mem = '8MB';\nCREATE TEMP TABLE a AS SELECT * FROM sales.x;\nWITH c AS (SELECT * FROM \"Ünï\" u) \
         SELECT $country, ';' FROM a JOIN c ON true, generate_series(1, 2) g, pg_class, information_schema.tables;",
        true,
        expect![[r#"
            setup: SET LOCAL work_mem = '8MB'
            setup: CREATE TEMP TABLE a AS SELECT * FROM sales.x
            query: WITH c AS (SELECT * FROM "Ünï" u) SELECT $country, ';' FROM a JOIN c ON true, generate_series(1, 2) g, pg_class, information_schema.tables
            reads datatable://app/sales.x at `sales.x`
            reads datatable://app/Ünï at `"Ünï"`"#]],
    );
}

#[test]
fn other_bodies_are_refused_at_their_place() {
    check(
        "DELETE FROM x; SELECT 1",
        true,
        expect![[r#"
        query: SELECT 1
        writes datatable://app/x at `x`
        P545 at `DELETE FROM x`: `DELETE` cannot stand before the query in a managed script"#]],
    );
    check(
        "SELECT 1; SELECT 2",
        true,
        expect![[r#"
        query: SELECT 2
        P545 at `SELECT 1`: `SELECT` cannot stand before the query in a managed script"#]],
    );
    check(
        "WITH d AS (DELETE FROM x RETURNING *) SELECT * FROM d",
        true,
        expect![[r#"
        reads datatable://app/x at `x`
        P545 at `DELETE`: the query of a managed script changes rows"#]],
    );
    check("SELECT 1 INTO x", true, expect!["P545 at `INTO`: the query of a managed script changes rows"]);
    check("", true, expect!["P545 at ``: the script has no query"]);
    check(
        "SELECT * FROM lake.t, a.b.c",
        true,
        expect![[r#"
        query: SELECT * FROM lake.t, a.b.c
        P546 at `lake.t`: `lake.t` is not in the datatable, and a Postgres script reads nothing else
        P546 at `a.b.c`: `a.b.c` is not in the datatable, and a Postgres script reads nothing else"#]],
    );
    check(
        "SELECT $contry",
        true,
        expect![[r#"
        query: SELECT $contry
        P209 at `$contry`: there is no parameter `$contry`"#]],
    );
    check("SELECT 'x", true, expect!["P545 at ``: Unterminated string literal"]);
}

#[test]
fn a_manual_script_reads_and_writes_by_its_own_statements() {
    check(
        "CREATE TABLE IF NOT EXISTS t (id int);\nINSERT INTO t SELECT id FROM s;\nUPDATE ONLY sales.u SET a = b.a FROM b;\n\
         DELETE FROM t USING gone WHERE t.id = gone.id; TRUNCATE TABLE w; COMMIT",
        false,
        expect![[r#"
            reads datatable://app/s at `s`
            reads datatable://app/b at `b`
            reads datatable://app/gone at `gone`
            writes datatable://app/t at `t`
            writes datatable://app/t at `t`
            writes datatable://app/sales.u at `sales.u`
            writes datatable://app/t at `t`
            writes datatable://app/w at `w`
            P545 at `COMMIT`: `COMMIT` cannot stand in a Postgres script"#]],
    );
}

#[test]
fn what_only_postgres_can_read_is_said_and_runs() {
    check(
        "SELECT * FROM t WHERE a @@@@ 'x' FROM",
        true,
        expect![[r#"
        query: SELECT * FROM t WHERE a @@@@ 'x' FROM
        P547 at `SELECT * FROM t WHERE a @@@@ 'x' FROM`: what this statement reads could not be found out: sql parser error: Expected: end of statement, found: FROM at Line: 1, Column: 34"#]],
    );
}

#[test]
fn parameters_are_numbered_and_cast() {
    let text = "SELECT $country, $partition_start, $partition, $country, 'it''s {partition}'";
    let file = SourceFile { path: "s.pg.sql".into(), text: text.into() };
    let vars = ["country".to_owned()];
    let script = parse_script(&PostgresContext { file: &file, database: Some("app"), is_managed: true, vars: &vars });
    let span = Span::new(0, text.len());
    let bound = bind(text, span, &script.parameters, &script.placeholders, Some("a'b"));
    assert_eq!(
        bound.text.sql,
        "SELECT CAST($1 AS text), CAST($2 AS timestamptz), CAST($3 AS text), CAST($1 AS text), 'it''s a''b'"
    );
    assert_eq!(bound.values, [Bound::Variable("country".into()), Bound::PartitionStart, Bound::Partition]);
}
