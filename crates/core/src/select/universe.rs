//! What selections choose from: the scripts with their labels, the graph, and the facts that the caller knows.
//!
//! Invariant: the names by which a script can be called are indexed once, so a plain name costs one look-up.

use std::collections::HashMap;

use super::{Fact, ScriptKind};
use crate::asset::Asset;
use crate::graph::{Direction, Graph, NodeId};
use crate::id::ScriptName;
use crate::source::Language;

/// What a selection can ask of one script besides its place in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptLabels {
    /// The script.
    pub name: ScriptName,
    /// `tag`.
    pub tags: Vec<String>,
    /// `owner`.
    pub owner: Option<String>,
    /// How it writes; `None` when nothing is materialized.
    pub kind: Option<ScriptKind>,
    /// The language.
    pub language: Language,
}

/// A set of scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptSet {
    chosen: Vec<bool>,
}

/// Everything that selections choose from.
#[derive(Debug)]
pub struct Universe<'a> {
    pub(super) graph: &'a Graph,
    pub(super) labels: Vec<Option<ScriptLabels>>,
    pub(super) paths: HashMap<&'a str, NodeId>,
    pub(super) tables: HashMap<String, Vec<NodeId>>,
    pub(super) facts: HashMap<Fact, ScriptSet>,
}

impl<'a> Universe<'a> {
    /// Returns the universe of `graph`'s scripts; labels of scripts that it does not have are left out.
    pub fn new(graph: &'a Graph, labels: impl IntoIterator<Item = ScriptLabels>) -> Self {
        let mut by_node = vec![None; graph.len()];
        for label in labels {
            if let Some(node) = graph.find(&label.name) {
                by_node[node.index()] = Some(label);
            }
        }
        let mut tables: HashMap<String, Vec<NodeId>> = HashMap::new();
        for node in graph.nodes() {
            for write in &graph.script(node).writes {
                for spelling in spellings(&write.asset) {
                    let writers = tables.entry(spelling).or_default();
                    if writers.last() != Some(&node) {
                        writers.push(node);
                    }
                }
            }
        }
        let paths = graph.nodes().map(|node| (graph.script(node).path.as_str(), node)).collect();
        Self { graph, labels: by_node, paths, tables, facts: HashMap::new() }
    }

    /// Adds that `fact` is known, and holds of exactly these scripts; names that the graph lacks are left out.
    pub fn with_fact(mut self, fact: Fact, scripts: impl IntoIterator<Item = ScriptName>) -> Self {
        let nodes = scripts.into_iter().filter_map(|name| self.graph.find(&name));
        let set = ScriptSet::of(self.graph.len(), nodes);
        self.facts.insert(fact, set);
        self
    }

    /// Adds that the script `name` can also be called by `asset`.
    pub fn with_name(mut self, asset: &Asset, name: &ScriptName) -> Self {
        let Some(node) = self.graph.find(name) else { return self };
        for spelling in spellings(asset) {
            let writers = self.tables.entry(spelling).or_default();
            if !writers.contains(&node) {
                writers.push(node);
            }
        }
        self
    }

    /// Returns `set` with everything within reach of it.
    pub(super) fn closure(&self, set: &ScriptSet, direction: Direction, depth: Option<u32>) -> ScriptSet {
        let start: Vec<NodeId> = set.nodes().collect();
        let reached = self.graph.closure(&start, direction, depth);
        ScriptSet::of(self.graph.len(), reached.into_iter().map(|(node, _)| node))
    }
}

impl ScriptSet {
    /// Returns the set of `nodes` of a graph of `size` scripts.
    pub(super) fn of(size: usize, nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let mut chosen = vec![false; size];
        for node in nodes {
            chosen[node.index()] = true;
        }
        Self { chosen }
    }

    /// Returns whether the script at `node` is in the set.
    pub fn contains(&self, node: NodeId) -> bool {
        self.chosen[node.index()]
    }

    /// Returns whether no script is in the set.
    pub fn is_empty(&self) -> bool {
        !self.chosen.contains(&true)
    }

    /// Returns the nodes by name.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.chosen.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(index, _)| NodeId(index))
    }

    /// Returns the nodes in the graph's order.
    pub fn in_order(&self, graph: &Graph) -> Vec<NodeId> {
        graph.order().iter().copied().filter(|node| self.contains(*node)).collect()
    }

    /// Adds what `other` has.
    pub fn unite(&mut self, other: &Self) {
        self.combine(other, |here, there| here || there);
    }

    /// Keeps only what `other` has too.
    pub fn intersect(&mut self, other: &Self) {
        self.combine(other, |here, there| here && there);
    }

    /// Removes what `other` has.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, |here, there| here && !there);
    }

    fn combine(&mut self, other: &Self, keep: impl Fn(bool, bool) -> bool) {
        for (here, there) in self.chosen.iter_mut().zip(&other.chosen) {
            *here = keep(*here, *there);
        }
    }
}

/// Returns the texts by which people call an asset, in lower case for tables, whose names ignore it: the URI, and for a
/// lake the names that SQL uses.
pub(super) fn spellings(asset: &Asset) -> Vec<String> {
    let mut texts = vec![asset.to_string()];
    match asset {
        Asset::Lake { lake, schema, table } => {
            let alias = if lake.as_str() == "main" { "lake" } else { lake.as_str() };
            texts.push(format!("{alias}.{schema}.{table}"));
            let in_default_schema = schema == "main";
            if in_default_schema {
                texts.push(format!("{alias}.{table}"));
            }
            if lake.as_str() == "main" {
                texts.push(format!("{schema}.{table}"));
            }
            if in_default_schema && lake.as_str() == "main" {
                texts.push(table.clone());
            }
        }
        Asset::Datatable { .. } => {}
        Asset::Object { .. } | Asset::Volume { .. } => return texts,
    }
    texts.iter().map(|text| text.to_ascii_lowercase()).collect()
}
