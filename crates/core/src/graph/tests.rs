//! Graphs from one-line descriptions: `name: read read > write write`.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::id::LakeName;

fn asset(text: &str) -> Asset {
    if let Some(rest) = text.strip_prefix("s3://") {
        let (store, key) = rest.split_once('/').expect("store and key");
        return Asset::Object { store: store.into(), key: key.into() };
    }
    Asset::Lake { lake: LakeName("main".into()), schema: "main".into(), table: text.into() }
}

/// Reads count up their spans, so that each has its own.
fn script(line: &str) -> GraphScript {
    let (name, uses) = line.split_once(':').expect("name: reads > writes");
    let (reads, writes) = uses.split_once('>').unwrap_or((uses, ""));
    let uses = |text: &str, reason: fn(Span) -> EdgeReason| {
        let place = |(index, text): (usize, &str)| match text.strip_prefix("on=") {
            Some(text) => AssetUse { asset: asset(text), reason: EdgeReason::Annotation(Span::new(index, index + 1)) },
            None => AssetUse { asset: asset(text), reason: reason(Span::new(index, index + 1)) },
        };
        text.split_whitespace().enumerate().map(place).collect()
    };
    GraphScript {
        name: ScriptName(name.into()),
        path: format!("pipelines/{name}.sql"),
        reads: uses(reads, EdgeReason::Body),
        writes: uses(writes, EdgeReason::Annotation),
    }
}

fn graph_of(text: &str) -> (Graph, Vec<Diagnostic>) {
    build(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(script))
}

fn names(graph: &Graph, nodes: impl IntoIterator<Item = NodeId>) -> String {
    nodes.into_iter().map(|node| graph.name(node).as_str().to_owned()).collect::<Vec<_>>().join(" ")
}

fn check_order(text: &str, expect: Expect) {
    let (graph, diagnostics) = graph_of(text);
    assert_eq!(diagnostics, []);
    expect.assert_eq(&names(&graph, graph.order().iter().copied()));
}

fn check_diagnostics(text: &str, expect: Expect) {
    let (_, diagnostics) = graph_of(text);
    let line = |diagnostic: &Diagnostic| {
        let span = diagnostic.span.map_or("-".into(), |span| span.start.to_string());
        let help = diagnostic.help.as_deref().unwrap_or_default();
        format!(
            "{} {}:{span}: {}\n  {}\n",
            diagnostic.code,
            diagnostic.path,
            diagnostic.message,
            help.replace('\n', "\n  ")
        )
    };
    expect.assert_eq(&diagnostics.iter().map(line).collect::<String>());
}

#[test]
fn each_script_stands_after_what_it_reads_and_ties_go_by_name() {
    check_order("c: t_a t_b > t_c\nb: t_a > t_b\na: > t_a\nz: > t_z\nd: t_z > t_d", expect!["a b c z d"]);
}

#[test]
fn a_self_read_is_no_edge_and_no_cycle() {
    check_order("a: t_a t_b > t_a\nb: > t_b", expect!["b a"]);
    let (graph, _) = graph_of("a: t_a > t_a");
    assert_eq!(graph.edges(), []);
    assert_eq!(graph.external(), []);
}

#[test]
fn a_glob_read_covers_written_keys() {
    let (graph, diagnostics) = graph_of(
        "day: > s3://raw/orders/{partition}.parquet\ndeep: > s3://raw/orders/2026/x.parquet\nother: > s3://cold/orders/1.parquet
         flat: s3://raw/orders/*.parquet\nall: s3://raw/orders/**/*.parquet\nexact: s3://raw/orders/{partition}.parquet\nnone: s3://raw/users/*\none_day: s3://raw/orders/2026-05-16.parquet",
    );
    assert_eq!(diagnostics, []);
    let edges: Vec<String> = graph
        .edges()
        .iter()
        .map(|edge| {
            format!("{} -> {} ({})", graph.name(edge.upstream), graph.name(edge.downstream), edge.reads[0].asset)
        })
        .collect();
    expect![[r#"
        day -> all (s3://raw/orders/{partition}.parquet)
        day -> exact (s3://raw/orders/{partition}.parquet)
        day -> flat (s3://raw/orders/{partition}.parquet)
        day -> one_day (s3://raw/orders/{partition}.parquet)
        deep -> all (s3://raw/orders/2026/x.parquet)"#]]
    .assert_eq(&edges.join("\n"));
    let external: Vec<String> = graph.external().iter().map(|external| external.asset.to_string()).collect();
    assert_eq!(external, ["s3://raw/users/*"]);
}

#[test]
fn a_glob_does_not_read_what_its_own_script_writes() {
    let (graph, _) = graph_of("a: s3://raw/* > s3://raw/x");
    assert_eq!(graph.edges(), []);
}

#[test]
fn an_edge_keeps_every_reason() {
    let (graph, _) = graph_of("a: > t_a\nb: t_a on=t_a > t_b");
    let reasons: Vec<&str> = graph.edges()[0].reads.iter().map(|read| read.reason.words()).collect();
    assert_eq!(reasons, ["in its body", "in an annotation"]);
}

#[test]
fn assets_that_none_writes_are_external_with_their_readers() {
    let (graph, _) = graph_of("b: raw raw > t_b\na: raw t_b > t_a");
    let external: Vec<String> = graph
        .external()
        .iter()
        .map(|external| format!("{} <- {}", external.asset, names(&graph, external.readers.iter().copied())))
        .collect();
    assert_eq!(external, ["ducklake://main/raw <- a b"]);
}

#[test]
fn each_knot_is_one_finding_that_names_a_loop() {
    check_diagnostics(
        "a: t_c > t_a\nb: on=t_a > t_b\nc: t_b > t_c\nd: t_c > t_d\nx: t_y > t_x\ny: t_x > t_y",
        expect![[r#"
            P301 pipelines/a.sql:0: these scripts wait for each other: a -> b -> c -> a
              remove one of these reads:
              `b` reads `ducklake://main/t_a` in an annotation
              `c` reads `ducklake://main/t_b` in its body
              `a` reads `ducklake://main/t_c` in its body
            P301 pipelines/x.sql:0: these scripts wait for each other: x -> y -> x
              remove one of these reads:
              `y` reads `ducklake://main/t_x` in its body
              `x` reads `ducklake://main/t_y` in its body
        "#]],
    );
}

#[test]
fn the_loop_is_a_shortest_one_and_the_rest_of_the_knot_is_counted() {
    check_diagnostics(
        "a: t_b t_d > t_a\nb: t_a > t_b\nc: t_b > t_c\nd: t_c > t_d",
        expect![[r#"
        P301 pipelines/a.sql:0: these scripts wait for each other: a -> b -> a
          remove one of these reads:
          `b` reads `ducklake://main/t_a` in its body
          `a` reads `ducklake://main/t_b` in its body
          2 more scripts hang in the same knot
    "#]],
    );
}

#[test]
fn what_follows_a_cycle_still_has_its_place() {
    let (graph, diagnostics) = graph_of("z_first: > t_z\na: t_z t_b > t_a\nb: t_a > t_b\nafter: t_b > t_after");
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(names(&graph, graph.order().iter().copied()), "z_first a b after");
    assert_eq!(graph.layer(graph.find(&ScriptName("after".into())).unwrap()), 2);
}

#[test]
fn two_writers_of_one_table_are_an_error_at_the_second() {
    check_diagnostics(
        "a: > t\nb: > x t\nc: t",
        expect![[r#"
        P302 pipelines/b.sql:1: `ducklake://main/t` is already written by `a`
          let one of pipelines/a.sql and pipelines/b.sql write another table
    "#]],
    );
    let (graph, _) = graph_of("a: > t\nb: > t\nc: t");
    assert_eq!(graph.writer(&asset("t")), graph.find(&ScriptName("a".into())));
}

#[test]
fn names_equal_but_for_case_are_an_error() {
    check_diagnostics(
        "orders/Daily: > a\norders/daily: > b\nCafe\u{301}: > c\ncaf\u{e9}: > d",
        expect![[r#"
        P309 pipelines/café.sql:-: the names `Café` and `café` are equal but for case
          rename pipelines/Café.sql or pipelines/café.sql
        P309 pipelines/orders/daily.sql:-: the names `orders/Daily` and `orders/daily` are equal but for case
          rename pipelines/orders/Daily.sql or pipelines/orders/daily.sql
    "#]],
    );
}

#[test]
fn layers_are_longest_paths() {
    let (graph, _) = graph_of("a: > t_a\nb: t_a > t_b\nc: t_a t_b > t_c\nd: > t_d");
    let layers: Vec<String> = graph.layers().into_iter().map(|layer| names(&graph, layer)).collect();
    assert_eq!(layers, ["a d", "b", "c"]);
}

#[test]
fn a_closure_counts_the_fewest_steps() {
    let (graph, _) = graph_of("a: > t_a\nb: t_a > t_b\nc: t_a t_b > t_c\nd: t_c > t_d");
    let closure = |start: &str, direction, depth| {
        let start = graph.find(&ScriptName(start.into())).unwrap();
        let reached = graph.closure(&[start], direction, depth);
        reached.iter().map(|(node, steps)| format!("{}:{steps}", graph.name(*node))).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(closure("a", Direction::Downstream, None), "a:0 b:1 c:1 d:2");
    assert_eq!(closure("d", Direction::Upstream, None), "d:0 c:1 a:2 b:2");
    assert_eq!(closure("d", Direction::Upstream, Some(1)), "d:0 c:1");
    assert_eq!(closure("d", Direction::Downstream, Some(0)), "d:0");
}

#[test]
fn a_very_long_chain_is_ordered_without_recursion() {
    let scripts = (0..20_000).map(|index| GraphScript {
        name: ScriptName(format!("s{index:05}")),
        path: String::new(),
        reads: if index == 0 { Vec::new() } else { script(&format!("x: t{} >", index - 1)).reads },
        writes: script(&format!("x: > t{index}")).writes,
    });
    let (graph, diagnostics) = build(scripts);
    assert_eq!(diagnostics, []);
    assert_eq!(graph.layer(NodeId(19_999)), 19_999);
    assert!(graph.order().is_sorted());
}

proptest! {
    #[test]
    fn the_order_is_topological_and_independent_of_the_input(
        edges in prop::collection::vec((0_usize..30, 0_usize..30), 0..80), rotate in 0_usize..30,
    ) {
        let lines: Vec<String> = (0..30)
            .map(|reader| {
                let reads: Vec<String> = edges
                    .iter()
                    .filter(|(writer, other)| *other == reader && *writer < reader)
                    .map(|(writer, _)| format!("t{writer}"))
                    .collect();
                format!("s{}: {} > t{reader}", 97 * reader % 30, reads.join(" "))
            })
            .collect();
        let (graph, diagnostics) = build(lines.iter().map(|line| script(line)));
        prop_assert!(diagnostics.is_empty());
        let mut place = vec![0; graph.len()];
        for (at, node) in graph.order().iter().enumerate() {
            place[node.index()] = at;
        }
        for edge in graph.edges() {
            prop_assert!(place[edge.upstream.index()] < place[edge.downstream.index()]);
            prop_assert!(graph.layer(edge.upstream) < graph.layer(edge.downstream));
        }
        let mut rotated = lines.clone();
        rotated.rotate_left(rotate);
        let (again, _) = build(rotated.iter().map(|line| script(line)));
        prop_assert_eq!(again.order(), graph.order());
        prop_assert_eq!(again.edges(), graph.edges());
    }
}
