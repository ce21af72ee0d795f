//! The envelope as tables: what is read, what is refused and why, and what comes out again.

mod binary;
mod conformance;
mod refused;
mod round_trip;
mod times;

use super::{Event, from_json};

/// Reads one event of a text.
fn read(text: &str) -> Result<Event, String> {
    from_json(text.as_bytes()).map_err(|error| error.to_string())
}

/// Returns an event with `members` beside the four that must be there.
fn with(members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t"{comma}{members}}}"#)
}
