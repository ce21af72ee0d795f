//! Builds the graph, and reports what is wrong with it.

use std::collections::{BTreeMap, HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;

use super::matching::covered;
use super::{AssetUse, Edge, ExternalAsset, Graph, GraphScript, NodeId, cycle, order};
use crate::asset::Asset;
use crate::diagnostic::{Code, Diagnostic};

/// Returns the graph of `scripts`, in any order, and its cycles, doubly written assets and clashing names.
pub fn build(scripts: impl IntoIterator<Item = GraphScript>) -> (Graph, Vec<Diagnostic>) {
    let mut scripts: Vec<GraphScript> = scripts.into_iter().collect();
    scripts.sort_by(|one, other| (&one.name, &one.path).cmp(&(&other.name, &other.path)));
    let mut diagnostics = name_clashes(&scripts);
    let writers = find_writers(&scripts, &mut diagnostics);
    let mut graph = Graph {
        by_name: first_of_each_name(&scripts),
        incoming: vec![Vec::new(); scripts.len()],
        outgoing: vec![Vec::new(); scripts.len()],
        writers,
        scripts,
        ..Graph::default()
    };
    connect(&mut graph);
    let components = cycle::components(&graph);
    order::arrange(&mut graph, &components);
    diagnostics.extend(cycle::report(&graph, &components));
    (graph, diagnostics)
}

fn first_of_each_name(scripts: &[GraphScript]) -> HashMap<crate::id::ScriptName, NodeId> {
    // In reverse, so that the first of equal names stays.
    scripts.iter().enumerate().rev().map(|(index, script)| (script.name.clone(), NodeId(index))).collect()
}

/// One finding per script whose name equals an earlier one's but for case: stores and file systems keep only one.
/// Names that are wholly equal are the loader's finding.
fn name_clashes(scripts: &[GraphScript]) -> Vec<Diagnostic> {
    let mut seen: HashMap<String, &GraphScript> = HashMap::new();
    let mut found = Vec::new();
    for script in scripts {
        let folded: String = script.name.as_str().nfc().flat_map(char::to_lowercase).collect();
        let first = *seen.entry(folded).or_insert(script);
        if first.name == script.name {
            continue;
        }
        let message = format!("the names `{}` and `{}` are equal but for case", first.name, script.name);
        let help = format!("rename {} or {}", first.path, script.path);
        found.push(Diagnostic::new(Code::NAMES_CLASH, &script.path, None, message).with_help(help));
    }
    found
}

/// Maps each written asset to its first writer, and reports every further one.
fn find_writers(scripts: &[GraphScript], diagnostics: &mut Vec<Diagnostic>) -> HashMap<Asset, NodeId> {
    let mut writers: HashMap<Asset, NodeId> = HashMap::new();
    for (index, script) in scripts.iter().enumerate() {
        let mut own = HashSet::new();
        for write in &script.writes {
            if !own.insert(&write.asset) {
                continue;
            }
            let Some(first) = writers.get(&write.asset) else {
                writers.insert(write.asset.clone(), NodeId(index));
                continue;
            };
            let first = &scripts[first.0];
            let message = format!("`{}` is already written by `{}`", write.asset, first.name);
            let help = format!("let one of {} and {} write another table", first.path, script.path);
            diagnostics.push(
                Diagnostic::new(Code::ASSET_WRITTEN_TWICE, &script.path, write.reason.span(), message).with_help(help),
            );
        }
    }
    writers
}

fn connect(graph: &mut Graph) {
    let matches = Matches::of(graph);
    let mut reads: BTreeMap<(NodeId, NodeId), Vec<AssetUse>> = BTreeMap::new();
    let mut external: BTreeMap<Asset, Vec<NodeId>> = BTreeMap::new();
    for (index, script) in graph.scripts.iter().enumerate() {
        let reader = NodeId(index);
        for read in &script.reads {
            let written = matches.written(&read.asset);
            if written.is_empty() {
                let readers = external.entry(read.asset.clone()).or_default();
                if readers.last() != Some(&reader) {
                    readers.push(reader);
                }
            }
            for asset in written {
                let writer = graph.writers[asset];
                if writer != reader {
                    let read = AssetUse { asset: asset.clone(), reason: read.reason };
                    reads.entry((writer, reader)).or_default().push(read);
                }
            }
        }
    }
    drop(matches);
    graph.external = external.into_iter().map(|(asset, readers)| ExternalAsset { asset, readers }).collect();
    for (index, ((upstream, downstream), reads)) in reads.into_iter().enumerate() {
        graph.outgoing[upstream.0].push(index);
        graph.incoming[downstream.0].push(index);
        graph.edges.push(Edge { upstream, downstream, reads });
    }
}

/// Which written assets belong to each read.
struct Matches<'a> {
    writers: &'a HashMap<Asset, NodeId>,
    /// By read: the written keys that a glob covers, and the written `{partition}` patterns that cover a key.
    by_read: HashMap<&'a Asset, Vec<&'a Asset>>,
}

impl<'a> Matches<'a> {
    fn of(graph: &'a Graph) -> Self {
        let reads: HashSet<&Asset> =
            graph.scripts.iter().flat_map(|script| &script.reads).map(|read| &read.asset).collect();
        let mut by_read = covered(reads.iter().copied(), graph.writers.keys());
        for (written, keys) in covered(graph.writers.keys(), reads.iter().copied()) {
            for read in keys {
                by_read.entry(read).or_default().push(written);
            }
        }
        for written in by_read.values_mut() {
            written.sort();
            written.dedup();
        }
        Self { writers: &graph.writers, by_read }
    }

    /// Returns the written assets that `read` reads from: the same one first, then by glob in canonical order.
    fn written(&self, read: &Asset) -> Vec<&'a Asset> {
        let same = self.writers.get_key_value(read).map(|(asset, _)| asset);
        same.into_iter().chain(self.by_read.get(read).into_iter().flatten().copied()).collect()
    }
}
