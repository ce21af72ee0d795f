//! Binary mode: attributes beside the payload, as headers of HTTP, NATS or Kafka have them.
//!
//! The transport takes its prefix off (`ce-`, `ce_`) and its encoding away; a header that is given twice counts once, with
//! its first value, as keys do in structured mode.

use super::attributes::{Draft, Value};
use super::error::EventError;
use super::event::{Event, Payload};

/// Attributes by name, without the transport's prefix, in their order.
pub type Attributes = Vec<(String, String)>;

/// Reads an event from its attributes, the content type of the transport, and the payload.
pub fn from_binary(attributes: &Attributes, content_type: Option<&str>, payload: &[u8]) -> Result<Event, EventError> {
    from_binary_of(attributes, content_type, payload, None)
}

/// Does the same for an event that is of `source` when it names none.
pub fn from_binary_of(
    attributes: &Attributes,
    content_type: Option<&str>,
    payload: &[u8],
    source: Option<&str>,
) -> Result<Event, EventError> {
    let mut draft = Draft::of(source);
    for (index, (name, value)) in attributes.iter().enumerate() {
        let is_first = attributes[..index].iter().all(|(earlier, _)| earlier != name);
        // The content type has a header of its own, and the payload is the body.
        if matches!(name.as_str(), "datacontenttype" | "data" | "data_base64") {
            let reason = "is no attribute of binary mode: the payload is the body, and `Content-Type` says what it is";
            return Err(EventError::of_attribute(name, reason));
        }
        if is_first {
            draft.set(name, Value::Text(value))?;
        }
    }
    if let Some(content_type) = content_type {
        draft.set("datacontenttype", Value::Text(content_type))?;
    }
    let data = Payload::of_bytes(payload, draft.content_type()).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        EventError::new(format!("the payload is said to be JSON and is not: {error} ({place} of the payload)"))
    })?;
    draft.finish(data)
}
