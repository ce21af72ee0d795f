//! Network faces: HTTP ingest, metrics and health; wire types and conversions only.
//!
//! Invariant: nothing is decided here that would be decided differently without a network.

pub mod ingest;
pub mod listen;
mod peer;
