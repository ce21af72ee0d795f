//! The pure half of Pintail: what scripts mean, what a plan is, which SQL will be sent, and every decision that a
//! protocol makes.
//!
//! Invariant: no IO, no async, no clock, no randomness, no environment, no DuckDB. Time, ids and facts come in as
//! arguments; `clippy.toml` beside this crate forbids the rest. What is deliberately not here: wire formats of the
//! faces (cli, server) and anything that opens a file or a connection.

pub mod annotation;
pub mod asset;
pub mod connection;
pub mod diagnostic;
pub mod graph;
pub mod id;
pub mod lineage;
pub mod partition;
pub mod plan;
pub mod retention;
pub mod schema;
pub mod select;
pub mod source;
pub mod sql;
pub mod stream;
pub mod version;
pub mod write;
