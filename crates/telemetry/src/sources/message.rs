//! A message of a broker as events: structured, batch or binary, by its headers.

use std::borrow::Cow;

use pintail_streams::dead_letter::{DeadLetter, EventName};

use crate::cloudevents::{Attributes, Event, EventError, Payload, from_batch, from_binary, from_json};
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

impl Message<'_> {
    /// Returns all that is needed to take the message again: in binary mode, where the attributes stand beside the payload,
    /// an object as in structured mode.
    fn whole(&self) -> Cow<'_, [u8]> {
        if self.attributes.is_empty() || is_batch(self.content_type) {
            return Cow::Borrowed(self.payload);
        }
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let mut members: Vec<(&str, String)> =
            self.attributes.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        members.extend(self.content_type.map(|content_type| ("datacontenttype", text(content_type))));
        // What is said to be JSON and is not keeps its bytes.
        let payload =
            Payload::of_bytes(self.payload, self.content_type).or_else(|_| Payload::of_bytes(self.payload, Some("")));
        match payload {
            Ok(Payload::Json(json)) => members.push(("data", json)),
            Ok(Payload::Base64(base64)) => members.push(("data_base64", text(&base64))),
            Ok(Payload::None | Payload::Stored { .. }) | Err(_) => {}
        }
        let members: Vec<String> = members.iter().map(|(name, value)| format!("{}:{value}", text(name))).collect();
        Cow::Owned(format!("{{{}}}", members.join(",")).into_bytes())
    }
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
        event: EventName::default(),
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
        Err(error) => batch.letters.push(letter(None, error.to_string(), &message.whole())),
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
        raw: message.whole().into_owned(),
        decoder: None,
        event: EventName::default(),
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn message<'a>(attributes: &[(&str, &str)], content_type: Option<&'a str>, payload: &'a [u8]) -> Message<'a> {
        let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Message { content_type, attributes, payload, position: "message 1".to_owned() }
    }

    fn letter_of(message: &Message<'_>) -> String {
        let mut batch = Batch::default();
        take(&mut batch, "nats", message, 0);
        String::from_utf8(batch.letters.remove(0).raw).unwrap()
    }

    #[test]
    fn the_letter_of_a_message_in_binary_mode_has_its_attributes() {
        let attributes = [("specversion", "1.0"), ("id", "a\"b"), ("source", "/s")];
        expect![[
            r#"{"specversion":"1.0","id":"a\"b","source":"/s","datacontenttype":"application/json","data":{"a": 1.10}}"#
        ]]
        .assert_eq(&letter_of(&message(&attributes, Some("application/json"), b"{\"a\": 1.10}")));
        expect![[r#"{"specversion":"1.0","id":"a\"b","source":"/s","data_base64":"/w=="}"#]]
            .assert_eq(&letter_of(&message(&attributes, None, b"\xff")));
        expect![[r#"{"specversion":"1.0","id":"a\"b","source":"/s","datacontenttype":"application/json","data_base64":"ew=="}"#]]
            .assert_eq(&letter_of(&message(&attributes, Some("application/json"), b"{")));
        expect![[r#"{"specversion":"1.0","id":"a\"b","source":"/s"}"#]].assert_eq(&letter_of(&message(
            &attributes,
            None,
            b"",
        )));
    }

    #[test]
    fn the_letter_of_a_message_in_the_other_modes_is_its_payload() {
        assert_eq!(letter_of(&message(&[], None, b"{\"id\": ")), "{\"id\": ");
        let batch = message(&[("id", "1")], Some("application/cloudevents-batch+json"), b"[");
        assert_eq!(letter_of(&batch), "[");
    }

    #[test]
    fn the_letter_of_a_message_that_is_given_up_can_be_taken_again() {
        let attributes = [("specversion", "1.0"), ("id", "1"), ("source", "/s"), ("type", "t"), ("subject", "car")];
        let message = message(&attributes, Some("text/plain"), b"some text");
        let mut batch = Batch::default();
        give_up(&mut batch, "nats", &message, 4);
        assert_eq!(from_json(&batch.letters[0].raw), one(&message));
    }
}
