//! Cycles: one finding per knot of scripts that wait for each other, naming a shortest loop and the reason of each edge.

use std::collections::HashMap;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use super::{Edge, Graph, NodeId};
use crate::diagnostic::{Code, Diagnostic};

/// The strongly connected components: for each node its component, and the members of each, by name.
pub(super) struct Components {
    pub(super) of_node: Vec<usize>,
    pub(super) members: Vec<Vec<NodeId>>,
}

pub(super) fn components(graph: &Graph) -> Components {
    let mut plain = DiGraph::<(), ()>::with_capacity(graph.len(), graph.edges.len());
    let nodes: Vec<_> = graph.nodes().map(|_| plain.add_node(())).collect();
    for edge in &graph.edges {
        plain.add_edge(nodes[edge.upstream.0], nodes[edge.downstream.0], ());
    }
    // Kosaraju's, since petgraph's walks without recursion: a chain of scripts may be long.
    let mut members: Vec<Vec<NodeId>> = kosaraju_scc(&plain)
        .into_iter()
        .map(|component| {
            let mut component: Vec<NodeId> = component.into_iter().map(|node| NodeId(node.index())).collect();
            component.sort();
            component
        })
        .collect();
    members.sort();
    let mut of_node = vec![0; graph.len()];
    for (component, nodes) in members.iter().enumerate() {
        for node in nodes {
            of_node[node.0] = component;
        }
    }
    Components { of_node, members }
}

pub(super) fn report(graph: &Graph, components: &Components) -> Vec<Diagnostic> {
    components
        .members
        .iter()
        .filter(|members| 1 < members.len())
        .map(|members| describe(graph, components, members))
        .collect()
}

fn describe(graph: &Graph, components: &Components, members: &[NodeId]) -> Diagnostic {
    let edges = shortest_loop(graph, components, members[0]);
    let mut names: Vec<&str> = edges.iter().map(|edge| graph.name(edge.upstream).as_str()).collect();
    names.push(names[0]);
    let message = format!("these scripts wait for each other: {}", names.join(" -> "));
    let reasons: Vec<String> = edges.iter().map(|edge| reason(graph, edge)).collect();

    let closing = edges.last().expect("a loop has edges");
    let reader = graph.script(closing.downstream);
    let read = closing.reads.first().expect("an edge has a read");
    let others = members.len() - edges.len();
    let more = if others == 0 { String::new() } else { format!("\n{others} more scripts hang in the same knot") };
    let help = format!("remove one of these reads:\n{}{more}", reasons.join("\n"));
    Diagnostic::new(Code::GRAPH_CYCLE, &reader.path, read.reason.span(), message)
        .with_label(read.reason.span(), format!("reads `{}`", read.asset))
        .with_help(help)
}

fn reason(graph: &Graph, edge: &Edge) -> String {
    let read = edge.reads.first().expect("an edge has a read");
    format!("`{}` reads `{}` {}", graph.name(edge.downstream), read.asset, read.reason.words())
}

/// Returns the edges of a shortest loop through `start`, in the direction of the data.
fn shortest_loop<'a>(graph: &'a Graph, components: &Components, start: NodeId) -> Vec<&'a Edge> {
    let mut came_by: HashMap<NodeId, &Edge> = HashMap::new();
    let mut queue = vec![start];
    let mut next = 0;
    while !came_by.contains_key(&start) {
        let node = queue[next];
        next += 1;
        for edge in graph.outgoing(node) {
            let reader = edge.downstream;
            let inside = components.of_node[reader.0] == components.of_node[start.0];
            if inside && !came_by.contains_key(&reader) {
                came_by.insert(reader, edge);
                queue.push(reader);
            }
        }
    }
    let mut edges = Vec::new();
    let mut node = start;
    loop {
        let edge = came_by[&node];
        edges.push(edge);
        node = edge.upstream;
        if node == start {
            edges.reverse();
            return edges;
        }
    }
}
