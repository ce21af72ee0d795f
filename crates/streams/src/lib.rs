//! Exactly-once consumers on the change feed of a lake: read a span once, decode it, write rows, rollups, dead letters
//! and cursor in one transaction.
//!
//! Invariant: a cursor lives in the lake, in the commit of the rows it stands for; leases and progress live in the lake's
//! guard. What to do is decided in `pintail_core::stream`; here it is done. The store is never seen from here, and what
//! an event means is up to a [`Decoder`].

pub mod audit;
pub mod commit;
pub mod consumer;
pub mod cursors;
pub mod dead_letter;
pub mod decoder;
pub mod measures;
pub mod position;
pub mod rollup;
pub mod service;
pub mod writer;

pub use commit::{Commit, Outcome};
pub use dead_letter::{DeadLetter, EventName};
pub use decoder::{Dead, Decoded, Decoder, EventColumns, Identity, Parent, ResolveError, Target};
pub use position::{Move, Position, PositionTable};
pub use rollup::{Drift, Healing, Rollup};
pub use writer::Writer;
