//! The graph of scripts: edges with their reason, cycles, name clashes, and one stable order.
//!
//! Invariant: an edge exists when a script reads an asset that another writes, or one covers the other as a glob; a self
//! read is no edge. Nodes are sorted
//! by script name, so node order, edge order and topological order depend on nothing but the scripts. Building and every
//! question are linear in scripts and edges.
//!
//! Not here: how reads and writes are found (`lineage`), and what to run (`plan`).

mod build;
mod cycle;
mod matching;
mod order;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use build::build;

use crate::asset::Asset;
use crate::id::ScriptName;
use crate::source::Span;

/// What the graph needs to know of one script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphScript {
    /// The name.
    pub name: ScriptName,
    /// The file, relative to the project root; for diagnostics.
    pub path: String,
    /// What it reads, in source order; an object or volume asset may be a glob.
    pub reads: Vec<AssetUse>,
    /// What it writes.
    pub writes: Vec<AssetUse>,
}

/// A read or a write, with the place that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssetUse {
    /// The canonical asset.
    pub asset: Asset,
    /// Why we know.
    pub reason: EdgeReason,
}

/// Why a script reads or writes an asset; the span lies in that script's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeReason {
    /// `on`, `materialize`, `stream`.
    Annotation(Span),
    /// A table or file that the body names.
    Body(Span),
    /// A data test that reads it.
    Test(Span),
    /// `column … <- <uri>.<col>`.
    Column(Span),
}

impl EdgeReason {
    /// Returns the place in the script's file.
    pub fn span(self) -> Span {
        match self {
            EdgeReason::Annotation(span)
            | EdgeReason::Body(span)
            | EdgeReason::Test(span)
            | EdgeReason::Column(span) => span,
        }
    }

    /// Returns where that is in words: `in an annotation`, `in its body`, `in a test`, `in a column line`.
    pub fn words(self) -> &'static str {
        match self {
            EdgeReason::Annotation(_) => "in an annotation",
            EdgeReason::Body(_) => "in its body",
            EdgeReason::Test(_) => "in a test",
            EdgeReason::Column(_) => "in a column line",
        }
    }
}

/// A script's place in the graph; nodes count from 0 in the order of script names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

impl NodeId {
    /// Returns the place as a number below [`Graph::len`].
    pub fn index(self) -> usize {
        self.0
    }
}

/// One edge: `downstream` reads what `upstream` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The writer.
    pub upstream: NodeId,
    /// The reader.
    pub downstream: NodeId,
    /// Each written asset that is read, and why; at least one.
    pub reads: Vec<AssetUse>,
}

/// An asset that scripts read and none writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAsset {
    /// The asset or glob.
    pub asset: Asset,
    /// Who reads it, in name order.
    pub readers: Vec<NodeId>,
}

/// The graph of one project.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) scripts: Vec<GraphScript>,
    pub(crate) by_name: HashMap<ScriptName, NodeId>,
    pub(crate) writers: HashMap<Asset, NodeId>,
    pub(crate) edges: Vec<Edge>,
    /// Indices into `edges`, by reader and by writer.
    pub(crate) incoming: Vec<Vec<usize>>,
    pub(crate) outgoing: Vec<Vec<usize>>,
    pub(crate) order: Vec<NodeId>,
    pub(crate) layers: Vec<usize>,
    pub(crate) external: Vec<ExternalAsset>,
}

/// Which way a closure follows edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To what a script reads.
    Upstream,
    /// To what reads it.
    Downstream,
}

impl Graph {
    /// Returns how many scripts there are.
    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// Returns whether there is no script.
    pub fn is_empty(&self) -> bool {
        self.scripts.is_empty()
    }

    /// Returns every node, in the order of names.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.scripts.len()).map(NodeId)
    }

    /// Returns the node of the script named `name`.
    pub fn find(&self, name: &ScriptName) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// Returns what was said of the script at `node`.
    pub fn script(&self, node: NodeId) -> &GraphScript {
        &self.scripts[node.0]
    }

    /// Returns the name of the script at `node`.
    pub fn name(&self, node: NodeId) -> &ScriptName {
        &self.scripts[node.0].name
    }

    /// Returns the script that writes `asset`.
    pub fn writer(&self, asset: &Asset) -> Option<NodeId> {
        self.writers.get(asset).copied()
    }

    /// Returns every edge, by writer and then reader.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the edges from what `node` reads.
    pub fn incoming(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        self.incoming[node.0].iter().map(|edge| &self.edges[*edge])
    }

    /// Returns the edges to what reads `node`.
    pub fn outgoing(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        self.outgoing[node.0].iter().map(|edge| &self.edges[*edge])
    }

    /// Returns every node so that each stands after all that it reads, ties by name. The members of a cycle stand
    /// together by name, where the cycle as a whole belongs.
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// Returns the length of the longest path that leads to `node`: 0 for a script that reads no other.
    pub fn layer(&self, node: NodeId) -> usize {
        self.layers[node.0]
    }

    /// Returns the nodes of each layer, by name within a layer.
    pub fn layers(&self) -> Vec<Vec<NodeId>> {
        let count = self.layers.iter().map(|layer| layer + 1).max().unwrap_or(0);
        let mut layers = vec![Vec::new(); count];
        for node in self.nodes() {
            layers[self.layer(node)].push(node);
        }
        layers
    }

    /// Returns the assets that are read and written by no script, in canonical order.
    pub fn external(&self) -> &[ExternalAsset] {
        &self.external
    }

    /// Returns the nodes that can be reached from any of `start` in at most `depth` steps (any number when `None`),
    /// with the number of steps; nearest first, the start itself at 0.
    pub fn closure(&self, start: &[NodeId], direction: Direction, depth: Option<u32>) -> Vec<(NodeId, u32)> {
        let mut reached = vec![false; self.len()];
        let mut found = Vec::new();
        for node in start {
            if !std::mem::replace(&mut reached[node.0], true) {
                found.push((*node, 0));
            }
        }
        let mut next = 0;
        while let Some((node, steps)) = found.get(next).copied() {
            next += 1;
            if depth.is_some_and(|depth| depth <= steps) {
                continue;
            }
            let edges = match direction {
                Direction::Upstream => &self.incoming[node.0],
                Direction::Downstream => &self.outgoing[node.0],
            };
            for edge in edges {
                let neighbour = match direction {
                    Direction::Upstream => self.edges[*edge].upstream,
                    Direction::Downstream => self.edges[*edge].downstream,
                };
                if !std::mem::replace(&mut reached[neighbour.0], true) {
                    found.push((neighbour, steps + 1));
                }
            }
        }
        found
    }
}
