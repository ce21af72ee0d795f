//! The stable topological order and the layers, over components, so that a cycle cannot hide what comes after it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Graph;
use super::cycle::Components;

/// Sets the order and the layers of `graph`.
pub(super) fn arrange(graph: &mut Graph, components: &Components) {
    let between = |upstream: usize, downstream: usize| components.of_node[upstream] != components.of_node[downstream];
    let mut waiting = vec![0_usize; components.members.len()];
    for edge in &graph.edges {
        if between(edge.upstream.0, edge.downstream.0) {
            waiting[components.of_node[edge.downstream.0]] += 1;
        }
    }
    // Components are numbered by their first member's name, so the smallest number is the first name.
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..waiting.len()).filter(|component| waiting[*component] == 0).map(Reverse).collect();
    let mut component_layers = vec![0_usize; waiting.len()];
    let mut order = Vec::with_capacity(graph.len());
    while let Some(Reverse(component)) = ready.pop() {
        for node in &components.members[component] {
            order.push(*node);
            for edge in graph.outgoing(*node) {
                let reader = components.of_node[edge.downstream.0];
                if reader == component {
                    continue;
                }
                component_layers[reader] = component_layers[reader].max(component_layers[component] + 1);
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.push(Reverse(reader));
                }
            }
        }
    }
    debug_assert_eq!(order.len(), graph.len(), "every component becomes ready, since components form no cycle");
    graph.layers = components.of_node.iter().map(|component| component_layers[*component]).collect();
    graph.order = order;
}
