//! The CloudEvents 1.0 envelope: structured, batch and binary mode in, structured mode out.
//!
//! Invariant: a payload is kept as it was sent, digit by digit, and of an attribute that is given twice the first counts.
//! What is not an event is refused with its place and with what was expected; nothing is guessed or repaired. Which
//! transport brought an event is not known here, nor what its payload means.

mod attributes;
mod binary;
mod error;
mod event;
mod structured;
mod time;
mod write;

pub(crate) use attributes::check_type;
pub use binary::{Attributes, from_binary, from_binary_of};
pub use error::{EventError, Place};
pub use event::{Event, Payload, is_json};
pub(crate) use structured::from_taken_json;
pub use structured::{BatchElement, from_batch, from_batch_of, from_json, from_json_of};
pub use time::{EventTime, TimeError};

#[cfg(test)]
mod tests;
