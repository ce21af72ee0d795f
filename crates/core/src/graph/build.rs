//! Builds the graph, and reports what is wrong with it.

use std::collections::{BTreeMap, HashMap, HashSet};

use globset::Glob;
use unicode_normalization::UnicodeNormalization;

use super::matching::{FilePlace, file_glob, file_part, glob_set};
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
fn name_clashes(scripts: &[GraphScript]) -> Vec<Diagnostic> {
    let mut seen: HashMap<String, &GraphScript> = HashMap::new();
    let mut found = Vec::new();
    for script in scripts {
        let folded: String = script.name.as_str().nfc().flat_map(char::to_lowercase).collect();
        let Some(first) = seen.get(&folded) else {
            seen.insert(folded, script);
            continue;
        };
        let message = if first.name == script.name {
            format!("two scripts are named `{}`: {} and {}", script.name, first.path, script.path)
        } else {
            format!("the names `{}` and `{}` are equal but for case", first.name, script.name)
        };
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
            diagnostics.push(Diagnostic::new(Code::ASSET_WRITTEN_TWICE, &script.path, write.reason.span(), message).with_help(help));
        }
    }
    writers
}

fn connect(graph: &mut Graph) {
    let globs = GlobReads::of(graph);
    let mut reads: BTreeMap<(NodeId, NodeId), Vec<AssetUse>> = BTreeMap::new();
    let mut external: BTreeMap<Asset, Vec<NodeId>> = BTreeMap::new();
    for (index, script) in graph.scripts.iter().enumerate() {
        let reader = NodeId(index);
        for read in &script.reads {
            let exact = graph.writers.get_key_value(&read.asset);
            let covered = globs.covered_by(&read.asset);
            if exact.is_none() && covered.is_empty() {
                let readers = external.entry(read.asset.clone()).or_default();
                if readers.last() != Some(&reader) {
                    readers.push(reader);
                }
            }
            let covered =
                covered.iter().filter(|(asset, _)| *asset != read.asset).map(|(asset, writer)| (asset, writer));
            for (asset, writer) in exact.into_iter().chain(covered) {
                if *writer != reader {
                    let written = AssetUse { asset: asset.clone(), reason: read.reason };
                    reads.entry((*writer, reader)).or_default().push(written);
                }
            }
        }
    }
    graph.external = external.into_iter().map(|(asset, readers)| ExternalAsset { asset, readers }).collect();
    for (index, ((upstream, downstream), reads)) in reads.into_iter().enumerate() {
        graph.outgoing[upstream.0].push(index);
        graph.incoming[downstream.0].push(index);
        graph.edges.push(Edge { upstream, downstream, reads });
    }
}

/// The written keys that each glob read covers.
struct GlobReads {
    covered: HashMap<Asset, Vec<(Asset, NodeId)>>,
}

impl GlobReads {
    fn of(graph: &Graph) -> Self {
        let mut seen = HashSet::new();
        let mut by_place: HashMap<FilePlace<'_>, Vec<(&Asset, Glob)>> = HashMap::new();
        for read in graph.scripts.iter().flat_map(|script| &script.reads) {
            let Some((place, text)) = file_part(&read.asset) else { continue };
            if !seen.insert(&read.asset) {
                continue;
            }
            if let Some(glob) = file_glob(text) {
                by_place.entry(place).or_default().push((&read.asset, glob));
            }
        }
        let mut covered: HashMap<Asset, Vec<(Asset, NodeId)>> = HashMap::new();
        for (place, reads) in by_place {
            let globs: Vec<Glob> = reads.iter().map(|(_, glob)| glob.clone()).collect();
            let set = glob_set(&globs);
            for (written, writer) in &graph.writers {
                let Some((_, text)) = file_part(written).filter(|(other, _)| *other == place) else { continue };
                for matched in set.matches(text) {
                    covered.entry(reads[matched].0.clone()).or_default().push((written.clone(), *writer));
                }
            }
        }
        for assets in covered.values_mut() {
            assets.sort();
        }
        Self { covered }
    }

    fn covered_by(&self, read: &Asset) -> &[(Asset, NodeId)] {
        self.covered.get(read).map_or(&[], Vec::as_slice)
    }
}
