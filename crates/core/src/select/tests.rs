//! Selections over one small project.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::asset::Asset;
use crate::graph::{AssetUse, EdgeReason, Graph, GraphScript, build};
use crate::id::{LakeName, ScriptName};
use crate::source::{Language, Span};

fn table(lake: &str, schema: &str, table: &str) -> Asset {
    Asset::Lake { lake: LakeName(lake.into()), schema: schema.into(), table: table.into() }
}

fn uses(assets: &[Asset]) -> Vec<AssetUse> {
    assets.iter().map(|asset| AssetUse { asset: asset.clone(), reason: EdgeReason::Body(Span::new(0, 1)) }).collect()
}

/// One script: name, what it reads and writes, its labels.
struct Row(&'static str, Vec<Asset>, Asset, &'static [&'static str], Option<&'static str>, ScriptKind, Language);

fn rows() -> Vec<Row> {
    let main = |name: &str| table("main", "main", name);
    let late = table("main", "audit", "late");
    let raw = Asset::Object { store: "landing".into(), key: "orders/*.json".into() };
    let exported = Asset::Object { store: "out".into(), key: "weekly.parquet".into() };
    let (people, users) = (table("crm", "main", "people"), table("crm", "main", "users"));
    let orders = || main("orders_daily");
    let (sql, postgres) = (Language::DuckDbSql, Language::PostgresSql);
    vec![
        Row("orders/raw", vec![raw], main("orders_raw"), &["nightly"], Some("ann"), ScriptKind::Append, sql),
        Row(
            "orders/daily",
            vec![main("orders_raw")],
            orders(),
            &["nightly", "core"],
            Some("ann"),
            ScriptKind::Replace,
            sql,
        ),
        Row("reports/top", vec![orders()], main("top"), &[], Some("bob"), ScriptKind::Merge, Language::Python),
        Row("reports/late", vec![orders()], late.clone(), &["audit"], None, ScriptKind::View, sql),
        Row("reports/weekly", vec![main("top"), late], exported, &[], None, ScriptKind::Manual, postgres),
        Row("users/load", vec![people], users, &["core"], Some("bob"), ScriptKind::Replace, sql),
    ]
}

/// raw files -> orders/raw -> orders/daily -> reports/{top, late} -> reports/weekly; users/load apart.
fn project() -> (Graph, Vec<ScriptLabels>) {
    let labels = rows().into_iter().map(|Row(name, _, _, tags, owner, kind, language)| ScriptLabels {
        name: ScriptName(name.into()),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        owner: owner.map(str::to_owned),
        kind: Some(kind),
        language,
    });
    let scripts = rows().into_iter().map(|Row(name, reads, write, ..)| GraphScript {
        name: ScriptName(name.into()),
        path: format!("pipelines/{name}.sql"),
        reads: uses(&reads),
        writes: uses(&[write]),
    });
    let (graph, diagnostics) = build(scripts);
    assert_eq!(diagnostics, []);
    (graph, labels.collect())
}

fn render(errors: &[SelectError]) -> String {
    let line = |error: &SelectError| {
        let help = error.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
        format!("{} {}..{}: {error}{help}\n", error.code, error.span.start, error.span.end)
    };
    errors.iter().map(line).collect()
}

fn check_with(universe: &Universe<'_>, text: &str, expect: Expect) {
    let result = parse(text).and_then(|selection| evaluate(universe, &selection));
    expect.assert_eq(&match result {
        Ok(set) => {
            let nodes = set.in_order(universe.graph);
            nodes.into_iter().map(|node| universe.graph.name(node).as_str().to_owned()).collect::<Vec<_>>().join(" ")
        }
        Err(errors) => render(&errors),
    });
}

fn check(text: &str, expect: Expect) {
    let (graph, labels) = project();
    check_with(&Universe::new(&graph, labels), text, expect);
}

#[test]
fn scripts_are_chosen_by_name_file_folder_and_glob() {
    check("orders/daily", expect!["orders/daily"]);
    check("pipelines/orders/daily.sql", expect!["orders/daily"]);
    check("./pipelines/orders/daily.sql", expect!["orders/daily"]);
    check("orders/", expect!["orders/raw orders/daily"]);
    check("pipelines/reports/", expect!["reports/late reports/top reports/weekly"]);
    check("reports/*", expect!["reports/late reports/top reports/weekly"]);
    check("**/*a*", expect!["orders/raw orders/daily reports/late reports/top reports/weekly users/load"]);
    check("*/", expect!["orders/raw orders/daily reports/late reports/top reports/weekly users/load"]);
}

#[test]
fn a_table_or_uri_chooses_the_script_that_writes_it() {
    check("orders_daily", expect!["orders/daily"]);
    check("Orders_Daily", expect!["orders/daily"]);
    check("lake.orders_daily", expect!["orders/daily"]);
    check("main.orders_daily", expect!["orders/daily"]);
    check("audit.late", expect!["reports/late"]);
    check("crm.users", expect!["users/load"]);
    check("ducklake://main/orders_daily", expect!["orders/daily"]);
    check("ducklake://main/main.orders_daily", expect!["orders/daily"]);
    check("s3://out/weekly.parquet", expect!["reports/weekly"]);
    check("ducklake://main/orders_*", expect!["orders/raw orders/daily"]);
}

#[test]
fn operators_reach_along_the_graph() {
    check("+orders/daily", expect!["orders/raw orders/daily"]);
    check("orders/daily+", expect!["orders/daily reports/late reports/top reports/weekly"]);
    check("1+reports/weekly", expect!["reports/late reports/top reports/weekly"]);
    check("orders/raw+1", expect!["orders/raw orders/daily"]);
    check("1+reports/top+1", expect!["orders/daily reports/top reports/weekly"]);
    check("@reports/top", expect!["orders/raw orders/daily reports/late reports/top reports/weekly"]);
    check("@orders/daily", expect!["orders/raw orders/daily reports/late reports/top reports/weekly"]);
    check("+orders_daily+", expect!["orders/raw orders/daily reports/late reports/top reports/weekly"]);
}

#[test]
fn labels_choose_every_script_that_has_them() {
    check("tag:nightly", expect!["orders/raw orders/daily"]);
    check("tag:n*", expect!["orders/raw orders/daily"]);
    check("owner:bob", expect!["reports/top users/load"]);
    check("kind:replace", expect!["orders/daily users/load"]);
    check("kind:python", expect!["reports/top"]);
    check("kind:sql", expect!["orders/raw orders/daily reports/late reports/weekly users/load"]);
    check("kind:history", expect![[""]]);
    check("tag:core+", expect!["orders/daily reports/late reports/top reports/weekly users/load"]);
}

#[test]
fn sources_choose_the_scripts_that_read_them() {
    check("source:s3://landing/orders/*.json", expect!["orders/raw"]);
    check("source:s3://landing/**", expect!["orders/raw"]);
    check("source:ducklake://crm/people+", expect!["users/load"]);
    check("source:orders_daily", expect!["reports/late reports/top"]);
    check("source:s3://landing/orders/2026.json", expect!["orders/raw"]);
    check("source:ducklake://main/MAIN.Orders_Daily", expect!["reports/late reports/top"]);
}

#[test]
fn a_blank_unites_and_a_comma_intersects() {
    check("users/load orders/raw", expect!["orders/raw users/load"]);
    check("tag:core,owner:ann", expect!["orders/daily"]);
    check("tag:core,owner:ann users/load", expect!["orders/daily users/load"]);
    check("orders/+,reports/", expect!["reports/late reports/top reports/weekly"]);
    check("tag:audit,kind:merge", expect![[""]]);
}

#[test]
fn exclusion_removes() {
    let (graph, labels) = project();
    let universe = Universe::new(&graph, labels);
    let chosen = |selected: Option<&str>, excluded: Option<&str>| {
        let parsed = |text: &str| parse(text).unwrap();
        match select(&universe, selected.map(parsed).as_ref(), excluded.map(parsed).as_ref()) {
            Ok(nodes) => nodes.iter().map(|node| graph.name(*node).as_str().to_owned()).collect::<Vec<_>>().join(" "),
            Err(failure) => format!("select:\n{}exclude:\n{}", render(&failure.select), render(&failure.exclude)),
        }
    };
    assert_eq!(chosen(Some("orders/raw+"), Some("reports/")), "orders/raw orders/daily");
    assert_eq!(chosen(None, Some("orders/raw+")), "users/load");
    assert_eq!(chosen(None, None), "orders/raw orders/daily reports/late reports/top reports/weekly users/load");
    expect![[r#"
        select:
        P305 0..9: `oders/raw` matches no script (did you mean `orders/raw`?)
        exclude:
        P305 0..10: no script has the tag `nighly` (did you mean `nightly`?)
    "#]]
    .assert_eq(&chosen(Some("oders/raw"), Some("tag:nighly")));
}

#[test]
fn facts_choose_what_the_state_knows() {
    let (graph, labels) = project();
    let script = |name: &str| ScriptName(name.into());
    let universe = Universe::new(&graph, labels)
        .with_fact(Fact::State(State::Stale), [script("orders/daily"), script("deleted")])
        .with_fact(Fact::State(State::Missing), [])
        .with_fact(Fact::Modified, [script("reports/top")])
        .with_fact(Fact::Result(StepResult::Failed), [script("users/load")]);
    check_with(&universe, "stale", expect!["orders/daily"]);
    check_with(&universe, "stale+1", expect!["orders/daily reports/late reports/top"]);
    check_with(&universe, "missing", expect![[""]]);
    check_with(&universe, "state:modified+", expect!["reports/top reports/weekly"]);
    check_with(&universe, "result:failed stale,tag:core", expect!["orders/daily users/load"]);
}

#[test]
fn facts_that_the_caller_does_not_know_are_asked_for() {
    check(
        "orders/raw stale failed+",
        expect![[r#"
            P311 11..16: this command does not select by the recorded state
            P311 17..23: this command does not select by the recorded state
        "#]],
    );
    check(
        "state:new result:failed",
        expect![[r#"
            P311 0..9: this command does not select by the recorded state
            P311 10..23: this version does not select by the results of the last run
        "#]],
    );
}

#[test]
fn what_matches_nothing_names_the_nearest() {
    check(
        "order/daily",
        expect![[r#"
            P305 0..11: `order/daily` matches no script (did you mean `orders/daily`?)
        "#]],
    );
    check(
        "daily",
        expect![[r#"
            P305 0..5: `daily` matches no script (did you mean `orders/daily`?)
        "#]],
    );
    check(
        "dialy",
        expect![[r#"
            P305 0..5: `dialy` matches no script (did you mean `orders/daily`?)
        "#]],
    );
    check(
        "orders_dayly",
        expect![[r#"
            P305 0..12: `orders_dayly` matches no script (did you mean `orders_daily`?)
        "#]],
    );
    check(
        "order/",
        expect![[r#"
            P305 0..6: `order/` matches no script (did you mean `orders/`?)
        "#]],
    );
    check(
        "orders/x*",
        expect![[r#"
            P305 0..9: `orders/x*` matches no script (did you mean `orders/raw`?)
        "#]],
    );
    check(
        "tag:nighly",
        expect![[r#"
            P305 0..10: no script has the tag `nighly` (did you mean `nightly`?)
        "#]],
    );
    check(
        "owner:zed",
        expect![[r#"
            P305 0..9: no script has the owner `zed`
        "#]],
    );
    check(
        "source:ducklake://crm/peple",
        expect![[r#"
            P305 0..27: no script reads `ducklake://crm/peple` (did you mean `ducklake://crm/people`?)
        "#]],
    );
    check(
        "ducklake://main/orders_dayly",
        expect![[r#"
            P305 0..28: no script writes `ducklake://main/orders_dayly` (did you mean `ducklake://main/orders_daily`?)
        "#]],
    );
    check(
        "ducklake://crm/people",
        expect![[r#"
            P305 0..21: no script writes `ducklake://crm/people` (`source:ducklake://crm/people` selects the scripts that read it)
        "#]],
    );
    check(
        "zzzzzz",
        expect![[r#"
            P305 0..6: `zzzzzz` matches no script
        "#]],
    );
}

#[test]
fn every_mistake_of_the_text_is_reported_where_it_stands() {
    check(
        "",
        expect![[r#"
            P304 0..0: the selection is empty (name a script, a folder such as `orders/`, or a tag such as `tag:nightly`)
        "#]],
    );
    check(
        "  ",
        expect![[r#"
            P304 0..2: the selection is empty (name a script, a folder such as `orders/`, or a tag such as `tag:nightly`)
        "#]],
    );
    check(
        "a,,b",
        expect![[r#"
            P304 2..3: expected a selector before `,`
        "#]],
    );
    check(
        ",a b, c",
        expect![[r#"
            P304 0..1: expected a selector before `,`
            P304 4..5: expected a selector after `,` (write `a,b` without blanks for scripts that are both)
        "#]],
    );
    check(
        "+ 2+",
        expect![[r#"
            P304 0..1: expected a name beside the operator
            P304 2..4: expected a name beside the operator
        "#]],
    );
    check(
        "@x+ @@y @+z",
        expect![[r#"
            P304 0..3: `@` already reaches up and down, `+` has no place beside it (write `@x`, or `+x+`)
            P304 4..6: one operator is enough before a name
            P304 8..10: one operator is enough before a name
        "#]],
    );
    check(
        "tga:nightly kind:replce kind:odd state:chnged result:x tag:",
        expect![[r#"
            P306 0..3: unknown method `tga:` (did you mean `tag:`?)
            P304 17..23: unknown kind `replce` (did you mean `replace`?)
            P304 29..32: unknown kind `odd` (expected one of `replace`, `merge`, `append`, `history`, `view`, `manual`, `sql`, `duckdb`, `postgres`, `python`, `typescript`, `bash`)
            P304 39..45: unknown state `chnged` (expected one of `new`, `modified`, `stale`, `missing`, `failed`, `partial`, `unknown`, `fresh`)
            P304 53..54: unknown result `x` (expected one of `materialized`, `unchanged`, `failed`, `rolled_back`)
            P304 55..59: expected a value after `tag:`
        "#]],
    );
    check(
        "99999999999+x",
        expect![[r#"
            P304 0..11: `99999999999` steps are too many
        "#]],
    );
    check(
        "a \"b c",
        expect![[r#"
            P304 2..6: the `"` is never closed
        "#]],
    );
    check(
        "orders/[",
        expect![[r#"
            P304 0..8: `orders/[` is no valid glob: unclosed character class; missing ']'
        "#]],
    );
    check(
        "nope nada tag:none",
        expect![[r#"
            P305 0..4: `nope` matches no script
            P305 5..9: `nada` matches no script
            P305 10..18: no script has the tag `none`
        "#]],
    );
}

#[test]
fn quotes_make_operators_part_of_a_name() {
    let (graph, _) = build(["a b,c", "x+", "stale"].map(|name| GraphScript {
        name: ScriptName(name.into()),
        path: format!("{name}.sql"),
        reads: Vec::new(),
        writes: Vec::new(),
    }));
    let universe = Universe::new(&graph, []);
    check_with(&universe, "\"a b,c\" 'x+'", expect!["a b,c x+"]);
    check_with(&universe, "'stale'+", expect!["stale"]);
}

#[test]
fn a_table_with_two_writers_is_not_guessed() {
    let names = ["a", "b"].map(|name| GraphScript {
        name: ScriptName(name.into()),
        path: format!("{name}.sql"),
        reads: Vec::new(),
        writes: uses(&[if name == "a" { table("main", "x", "t") } else { table("x", "main", "t") }]),
    });
    let (graph, _) = build(names);
    check_with(
        &Universe::new(&graph, []),
        "x.t",
        expect![[r#"
            P305 0..3: `x.t` is written by `a` and `b` (name the script or the whole URI)
        "#]],
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[a-c/*@+,0-9\"': .\\[\\]{}!é-]{0,16}") {
        let (graph, labels) = project();
        let universe = Universe::new(&graph, labels);
        match parse(&text).and_then(|selection| evaluate(&universe, &selection)) {
            Ok(_) => {}
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                for error in errors {
                    prop_assert!(error.span.end <= text.len() && text.is_char_boundary(error.span.start));
                }
            }
        }
    }
}
