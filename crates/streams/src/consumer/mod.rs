//! Consumers: named readers of one table's change feed, each with a cursor in the lake.
//!
//! A pass observes (`observe`), decides (`pintail_core::stream`), reads the span once into bounded windows (`read`),
//! decodes them on several threads (`decoding`), and commits rows, rollups, dead letters and cursor together (`write`).
//! Invariant: all that a consumer keeps between two passes can be read again from the lake and its guard.

mod begin;
mod decoding;
mod gaps;
mod heal;
mod in_place;
mod lease;
mod letters;
mod observe;
mod outcome;
mod pass;
mod ranges;
mod read;
mod remove;
mod replace;
mod report;
mod reread;
mod reset;
mod script;
mod shard;
mod source;
mod state;
mod tables;
mod write;

pub use heal::{Looked, Rebuild};
pub use lease::{Holder, Ownership};
pub use outcome::{Landed, Pass, PassError, Phases};
pub use pass::{Consumer, system_now};
pub use remove::{Removed, known, remove};
pub use reread::Range;
pub use script::{Place, ScriptFeed, script_feed};
pub use shard::Shard;
pub(crate) use source::table_of;
pub use source::{Source, Spec, Start};
pub use state::{Condition, State, state_of};
pub use write::Existing;
