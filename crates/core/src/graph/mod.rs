//! The graph of scripts and assets: edges with their reason, cycles, topological order.
