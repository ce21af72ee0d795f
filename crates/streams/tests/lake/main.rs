//! Streams on real lakes: SQLite and Postgres catalogs, the engine's own faults, and processes of their own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commits;
mod consumers;
mod decoding;
mod harness;
mod losses;
mod outages;
mod owners;
mod replays;
mod rereads;
