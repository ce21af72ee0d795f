//! Raw events through a consumer into signals, events and rollups, on lakes of every kind.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod cases;
mod end_to_end;
mod faults;
mod harness;
mod replays;
