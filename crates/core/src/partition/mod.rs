//! Partitions: the kinds, the calendar with time zones, windows, enumeration, and mapping between kinds.
//!
//! Invariant: the windows of one spec tile time: every instant lies in exactly one, also where clocks change. An
//! identity is text that is safe in a path, a URI and a shell without quoting.
//!
//! Not here: the values of dynamic partitions (they come from payloads and columns), the clock (`now` is an argument), and
//! the statements that write a slice (`sql`).

mod calendar;
mod error;
mod increment;
mod layout;
mod mapping;
mod parse;
mod payload;
mod period;
mod range;
mod sql;
mod zone;

#[cfg(test)]
mod tests;

use std::fmt;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

pub use error::PartitionError;
pub use increment::{Increment, KeyKind, TOLERANCE, typed};
pub use layout::{LayoutError, SliceLayout, layout, slice_bounds};
pub use mapping::{Mapping, Targets, check_map, infer_map, map_partitions, required_partitions, translate_argument};
pub use payload::{PayloadError, payload_key, value_key};
pub use range::Partitions;

/// The identity of one partition, such as `2026-06-19`, `2026-05-16T09`, `2026-W20`, `2026-05` or a dynamic value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartitionKey(pub String);

impl PartitionKey {
    /// Returns the identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The time that a partition covers: `[start, end)` as UTC instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Window {
    /// The first instant.
    pub start: DateTime<Utc>,
    /// The first instant that is no longer inside.
    pub end: DateTime<Utc>,
}

/// The calendar unit of a time partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeUnit {
    /// One hour; identity in UTC without a zone, with the offset in a zone.
    Hour,
    /// One local day; 23 or 25 hours where clocks change.
    Day,
    /// ISO week, Monday to Monday.
    Week,
    /// Calendar month.
    Month,
}

impl TimeUnit {
    /// Returns the word that `partitioned` uses.
    pub fn word(self) -> &'static str {
        match self {
            TimeUnit::Hour => "hourly",
            TimeUnit::Day => "daily",
            TimeUnit::Week => "weekly",
            TimeUnit::Month => "monthly",
        }
    }
}

/// What `partitioned` declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionSpec {
    /// `partitioned daily|hourly|weekly|monthly [by=<column>] [tz=] [start=]`.
    Time(TimeSpec),
    /// `partitioned dynamic key=<$.path|column> [tolerance=]`.
    Dynamic {
        /// The payload path (`$.a.b`) or the column.
        key: String,
        /// How far beyond now a value may lie and still be taken.
        tolerance: Option<std::time::Duration>,
    },
}

/// A time partition's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpec {
    /// The unit.
    pub unit: TimeUnit,
    /// The column that the slice's window is on.
    pub by: Option<String>,
    /// The zone when given; UTC otherwise.
    pub tz: Option<Tz>,
    /// The first local date that is expected to exist.
    pub start: Option<chrono::NaiveDate>,
    /// How long after its end a slice stays; for ever when absent.
    pub retention: Option<std::time::Duration>,
}
