//! A message of a broker as events: structured, batch or binary, by its headers.

use pintail_streams::dead_letter::DeadLetter;

use crate::cloudevents::{Attributes, Event, EventError, from_batch, from_binary, from_json};
use crate::log::Arrival;
use crate::sink::Batch;

/// A message, without its broker.
pub(super) struct Message<'a> {
    /// `content-type`.
    pub(super) content_type: Option<&'a str>,
    /// Attributes of binary mode, without the transport's prefix; empty in the other modes.
    pub(super) attributes: Attributes,
    /// The payload.
    pub(super) payload: &'a [u8],
    /// Where it lay, for people: `stream EVENTS message 7`.
    pub(super) position: String,
}

/// Puts the events of `message` into `batch`, and what is none to the dead letters.
pub(super) fn take(batch: &mut Batch, origin: &str, message: &Message<'_>, received_micros: i64) {
    let letter = |part, reason, raw: &[u8]| DeadLetter {
        origin: origin.to_owned(),
        position: message.position.clone(),
        part,
        reason,
        raw: raw.to_vec(),
        decoder: None,
    };
    let event = |batch: &mut Batch, event: Event, position: String| {
        batch.arrivals.push(Arrival { event, received_micros });
        batch.positions.push(position);
    };
    if is_batch(message.content_type) {
        match from_batch(message.payload) {
            Err(error) => batch.letters.push(letter(None, error.to_string(), message.payload)),
            Ok(elements) => {
                for element in elements {
                    let part = format!("element {} of the batch", element.index);
                    match element.event {
                        Ok(found) => event(batch, found, format!("{} {part}", message.position)),
                        Err(error) => batch.letters.push(letter(Some(part), error.to_string(), element.raw.as_bytes())),
                    }
                }
            }
        }
        return;
    }
    match one(message) {
        Ok(found) => event(batch, found, message.position.clone()),
        Err(error) => batch.letters.push(letter(None, error.to_string(), message.payload)),
    }
}

/// Puts a message to the dead letters that was delivered too often.
pub(super) fn give_up(batch: &mut Batch, origin: &str, message: &Message<'_>, deliveries: i64) {
    batch.letters.push(DeadLetter {
        origin: origin.to_owned(),
        position: message.position.clone(),
        part: None,
        reason: format!(
            "it was delivered {deliveries} times and has never landed: something ends the process that takes it"
        ),
        raw: message.payload.to_vec(),
        decoder: None,
    });
}

fn one(message: &Message<'_>) -> Result<Event, EventError> {
    match message.attributes.is_empty() {
        true => from_json(message.payload),
        false => from_binary(&message.attributes, message.content_type, message.payload),
    }
}

fn is_batch(content_type: Option<&str>) -> bool {
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/cloudevents-batch+json")
}
