//! The consumer protocol: from what a lake says to what a pass does, without any IO.
//!
//! Invariant: a cursor at `n` means that every row which a snapshot up to and including `n` brought into the source is
//! where it belongs, or recorded as skipped or dead. It moves only by a [`Permit`], which only a decision gives, and only
//! with the last window of what was decided. What cannot be read any more is a gap and never passed over in silence.
//! Deliberately not here: how a window is decoded, and how a commit is proved.

mod decide;
mod gap;
mod permit;
mod touch;
mod window;

#[cfg(test)]
mod simulation;

pub use decide::{Decision, Facts, SeenSnapshot, Span, SpanLimits, decide, decide_first};
pub use gap::{Gap, GapPolicy, Passage};
pub use permit::{Part, Permit};
pub use touch::{Kinds, Touch, touch};
pub use window::{WindowCount, WindowLimits};

/// The decoders that `decoder = "…"` of a consumer may name; what each does is in the crate `telemetry`.
pub const DECODERS: [&str; 1] = ["cloudevents-default"];

/// The columns of a table of raw events; their types and their layout are in the crate `telemetry`.
pub const RAW_EVENT_COLUMNS: [&str; 13] = [
    "subject",
    "time",
    "type",
    "id",
    "source",
    "producer",
    "data_content_type",
    "data_version",
    "extras",
    "data",
    "data_base64",
    "data_index_key",
    "voids_id",
];

/// Returns what is wrong with `name` as the name of a consumer: it is part of the names of tables and of files.
pub fn problem_of_consumer_name(name: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    match name {
        "" => Some("it is empty"),
        _ if 63 < name.len() => Some("it is longer than 63 characters"),
        _ if !name.starts_with(|c: char| c.is_ascii_lowercase()) => Some("it begins with no lower-case letter"),
        _ if !name.chars().all(is_plain) => Some("it has a character that is no lower-case letter, digit, `_` or `-`"),
        _ => None,
    }
}
