//! Raw events through a consumer into signals, events and rollups, on lakes of every kind.

mod end_to_end;
mod harness;
