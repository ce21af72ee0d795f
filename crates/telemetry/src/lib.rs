//! The CloudEvents application: raw events and how they arrive, the sink, decoders, signals and events, rollups.
//!
//! Invariant: an event is acknowledged when it is durable and not before, and lands in the lake once. HTTP is in
//! `pintail-server`; how a consumer reads, writes and advances is in `pintail-streams`.

pub mod blob;
pub mod cloudevents;
pub mod decode;
pub mod import;
pub mod intake;
pub mod letters;
pub mod log;
pub mod measures;
pub mod raw;
pub mod rollup;
pub mod sink;
pub mod sources;
pub mod subject;
