//! A part of a payload that could not be decoded, before it is known which row of the batch it belongs to.

use serde_json::value::RawValue;

/// What is wrong with a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The part, such as `signals[3]`; the whole payload when absent.
    pub part: Option<String>,
    /// What was expected and what is there.
    pub reason: String,
    /// The bytes of the part.
    pub raw: Vec<u8>,
}

impl Fault {
    /// Returns the fault of a whole payload.
    pub fn whole(raw: &[u8], reason: impl Into<String>) -> Self {
        Self { part: None, reason: reason.into(), raw: raw.to_vec() }
    }

    /// Returns the fault of `part`, whose text is `raw`.
    pub fn part(part: impl Into<String>, raw: &RawValue, reason: impl Into<String>) -> Self {
        Self { part: Some(part.into()), reason: reason.into(), raw: raw.get().as_bytes().to_vec() }
    }
}
