//! Bodies through DuckDB's real parser.

use expect_test::{Expect, expect};
use pintail_core::sql::body::{ParsedBody, StatementKind};

use super::BodyParser;
use crate::instance::{Instance, InstanceOptions};

fn parse(text: &str) -> ParsedBody {
    let parser = BodyParser::new(Instance::open(InstanceOptions::default()).unwrap()).unwrap();
    parser.parse(&[text]).unwrap().remove(0)
}

fn check(text: &str, expected: Expect) {
    let body = parse(text);
    let mut lines: Vec<String> = body
        .statements
        .iter()
        .map(|statement| {
            let query = if statement.query.is_some() { " +ast" } else { "" };
            let reads: Vec<String> = statement.other_reads.iter().map(|name| name.parts.join(".")).collect();
            let reads = if reads.is_empty() { String::new() } else { format!(" reads {}", reads.join(" ")) };
            format!("{:?} {:?}{query}{reads}", kind(&statement.kind), &text[statement.span.start..statement.span.end])
        })
        .collect();
    if let Some(error) = body.error {
        lines.push(format!("error at {:?}: {}", &text[error.span.start..error.span.end], error.message));
    }
    expected.assert_eq(&lines.join("\n"));
}

fn kind(kind: &StatementKind) -> String {
    let name = |name: &pintail_core::sql::body::TableName| name.parts.join(".");
    match kind {
        StatementKind::Insert { target } => format!("insert {}", name(target)),
        StatementKind::Update { target } => format!("update {}", name(target)),
        StatementKind::Delete { target } => format!("delete {}", name(target)),
        StatementKind::Merge { target } => format!("merge {}", name(target)),
        StatementKind::Create { object, temporary, name: of } => {
            format!(
                "create {}{object} {}",
                if *temporary { "temp " } else { "" },
                of.as_ref().map(name).unwrap_or_default()
            )
        }
        StatementKind::Attach { target, alias } => format!("attach {target} as {}", alias.as_deref().unwrap_or("-")),
        StatementKind::Use { parts } => format!("use {}", parts.join(".")),
        StatementKind::CopyTo { target } => format!("copy to {target}"),
        StatementKind::CopyFrom { table, source } => format!("copy {} from {source}", name(table)),
        StatementKind::Set { name, variable } => format!("set {name} {variable}"),
        StatementKind::Drop { object, name: of } => format!("drop {object} {}", name(of)),
        other => format!("{other:?}"),
    }
}

#[test]
fn semicolons_in_literals_and_comments_split_nothing() {
    check(
        "select 'a;b', $$x;y$$, $t$ $$;$$ $t$, E'\\';' as e, \"a;b\" from t /* /* ; */ ; */ -- ;\n;;; ; select 2;",
        expect![[r#"
            "Query" "select 'a;b', $$x;y$$, $t$ $$;$$ $t$, E'\\';' as e, \"a;b\" from t" +ast
            "Query" "select 2" +ast"#]],
    );
}

#[test]
fn every_form_of_query_is_one() {
    for text in [
        "from t",
        "with a as (select 1) from a",
        "values (1), (2)",
        "table t",
        "pivot t on a in (1, 2) using sum(b)",
        "unpivot t on a, b into name n value v",
        "(select 1) union all (select 2)",
        "select * from a asof join b using (k, ts)",
        "summarize t",
        "from t select a where b = $partition",
    ] {
        let body = parse(text);
        assert_eq!(body.error, None, "{text}");
        assert_eq!(body.statements.len(), 1, "{text}");
        assert!(body.statements[0].query.is_some(), "{text}");
    }
}

#[test]
fn kinds_and_inner_queries_are_found() {
    check(
        "attach 'ducklake://x' as a; use a; set variable z = 1; create temp table s as from a.b;
         create or replace temp macro m(x) as x + 1;
         insert into lake.t (a, b) by name select * from s; insert into t values (1);
         with c as (from q) insert into \"T x\".y select * from c;
         delete from t using u where t.k = u.k and exists (from v); update t set a = (select max(b) from w) from z;
         merge into t using (select * from src) s on t.k = s.k when matched then delete;
         copy (from big) to 's3://x/y.parquet' (format parquet); copy t from 'in.csv'; drop table if exists old;
         insert into t default values",
        expect![[r#"
            "attach ducklake://x as a" "attach 'ducklake://x' as a"
            "use a" "use a"
            "set z true" "set variable z = 1"
            "create temp table s" "create temp table s as from a.b" +ast
            "create temp macro m" "create or replace temp macro m(x) as x + 1"
            "insert lake.t" "insert into lake.t (a, b) by name select * from s" +ast
            "insert t" "insert into t values (1)" +ast
            "insert T x.y" "with c as (from q) insert into \"T x\".y select * from c" +ast
            "delete t" "delete from t using u where t.k = u.k and exists (from v)" reads u v
            "update t" "update t set a = (select max(b) from w) from z" reads w z
            "merge t" "merge into t using (select * from src) s on t.k = s.k when matched then delete" reads src
            "copy to s3://x/y.parquet" "copy (from big) to 's3://x/y.parquet' (format parquet)" +ast
            "copy t from in.csv" "copy t from 'in.csv'"
            "drop table old" "drop table if exists old"
            "insert t" "insert into t default values""#]],
    );
}

#[test]
fn errors_point_at_the_word() {
    check(
        "select a,\n  b frm t where",
        expect![[r#"
            "Query" "select a,\n  b frm t where"
            error at "t": syntax error at or near "t""#]],
    );
    check(
        "set x = ; select 1",
        expect![[r#"
            "set x false" "set x ="
            "Query" "select 1" +ast
            error at "=": syntax error at end of input"#]],
    );
    check("select 'open", expect!["error at \"'open\": Unterminated string literal"]);
}

#[test]
fn parameters_and_placeholders_are_found_outside_comments() {
    let text = "select '$no', $partition, \"$q\" from read_csv('x/{partition}.csv') -- $nor\nwhere a = $WM_PARTITION";
    let body = parse(text);
    let names: Vec<&str> = body.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["partition", "WM_PARTITION"]);
    assert_eq!(body.placeholders.len(), 1);
    assert_eq!(&text[body.placeholders[0].start..body.placeholders[0].end], "{partition}");
    assert_eq!(body.functions, ["read_csv"]);
}

#[test]
fn locations_of_an_inner_query_are_offsets_into_the_statement() {
    let text = "insert into t by name select * from äö.orders, b";
    let body = parse(text);
    let statement = &body.statements[0];
    let from = &statement.query.as_ref().unwrap()["node"]["from_table"]["right"];
    let at = usize::try_from(from["query_location"].as_u64().unwrap()).unwrap();
    assert_eq!(&text[statement.query_span.unwrap().start + at..], "b");
}

#[test]
fn many_bodies_keep_their_order() {
    let parser = BodyParser::new(Instance::open(InstanceOptions::default()).unwrap()).unwrap();
    let texts: Vec<String> = (0..300).map(|n| format!("select {n} as n from t{n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (n, body) in parser.parse(&texts).unwrap().iter().enumerate() {
        assert_eq!(body.statements[0].query.as_ref().unwrap()["node"]["from_table"]["table_name"], format!("t{n}"));
    }
}
