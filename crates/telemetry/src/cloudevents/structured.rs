//! Structured mode: one JSON object an event, or a list of them.
//!
//! The object is scanned without being turned into values, so that the payload stays as it is and the first of two equal
//! keys counts.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::attributes::{Draft, Value, kind_of};
use super::error::{EventError, Place};
use super::event::{Event, Payload, decode_base64};

/// One element of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchElement<'a> {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its text.
    pub raw: &'a str,
    /// The event, or why it is none.
    pub event: Result<Event, EventError>,
}

/// Reads one event.
pub fn from_json(body: &[u8]) -> Result<Event, EventError> {
    from_json_of(body, None)
}

/// Reads one event, which is of `source` when it names none.
pub fn from_json_of(body: &[u8], source: Option<&str>) -> Result<Event, EventError> {
    one(body, Draft::of(source))
}

/// Reads an event that was taken in before: what later versions do not take any more is no damage.
pub(crate) fn from_taken_json(body: &[u8]) -> Result<Event, EventError> {
    one(body, Draft::taken())
}

fn one(body: &[u8], draft: Draft) -> Result<Event, EventError> {
    let text = text_of(body)?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
    event_of(text, raw.get(), draft)
}

/// Reads a list of events; what is no list at all is refused as a whole, and one that is broken off too.
pub fn from_batch(body: &[u8]) -> Result<Vec<BatchElement<'_>>, EventError> {
    from_batch_of(body, None)
}

/// Reads a list of events, which are of `source` when they name none.
pub fn from_batch_of<'a>(body: &'a [u8], source: Option<&str>) -> Result<Vec<BatchElement<'a>>, EventError> {
    let text = text_of(body)?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| syntax(text, &error))?;
    if !whole.get().starts_with('[') {
        let reason = format!("a batch must be a list of events, found {}", kind_of(whole));
        return Err(EventError::new(reason).at(Place::in_text(text, offset(text, whole.get()))));
    }
    let elements: Vec<&RawValue> = serde_json::from_str(whole.get()).map_err(|error| syntax(text, &error))?;
    let numbered = elements.into_iter().enumerate();
    let event = |raw: &RawValue| event_of(text, raw.get(), Draft::of(source));
    Ok(numbered.map(|(index, raw)| BatchElement { index, raw: raw.get(), event: event(raw) }).collect())
}

fn text_of(body: &[u8]) -> Result<&str, EventError> {
    std::str::from_utf8(body).map_err(|error| {
        let valid = String::from_utf8_lossy(&body[..error.valid_up_to()]).into_owned();
        EventError::new("the text must be UTF-8").at(Place::in_text(&valid, valid.len()))
    })
}

fn syntax(text: &str, error: &serde_json::Error) -> EventError {
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or(&message);
    let line_start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let byte = line_start + error.column().saturating_sub(1);
    EventError::new(format!("this is not JSON: {reason}")).at(Place::in_text(text, byte))
}

/// Returns where `part`, a piece of `text`, begins.
fn offset(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Reads the event `object`, which is a piece of `text`, into `draft`.
fn event_of(text: &str, object: &str, mut draft: Draft) -> Result<Event, EventError> {
    let start = Place::in_text(text, offset(text, object));
    if !object.starts_with('{') {
        let raw: &RawValue = serde_json::from_str(object).expect("a piece of JSON is JSON");
        return Err(EventError::new(format!("an event must be an object, found {}", kind_of(raw))).at(start));
    }
    let members = members(object).map_err(|error| syntax(text, &error))?;
    let mut seen = HashSet::new();
    let (mut data, mut base64) = (None, None);
    for (name, raw) in &members {
        if !seen.insert(name.as_ref()) {
            continue;
        }
        match name.as_ref() {
            "data" => data = Some(*raw),
            "data_base64" => base64 = Some(*raw).filter(|raw| raw.get() != "null"),
            _ => {
                let set = draft.set(name, Value::Json(raw));
                set.map_err(|error| error.at(Place::in_text(text, offset(text, raw.get()))))?;
            }
        }
    }
    let data = payload(text, data, base64)?;
    draft.finish(data).map_err(|error| error.at(start))
}

fn payload(text: &str, data: Option<&RawValue>, base64: Option<&RawValue>) -> Result<Payload, EventError> {
    match (data, base64) {
        (None, None) => Ok(Payload::None),
        (Some(json), None) => Ok(Payload::Json(json.get().to_owned())),
        (Some(_), Some(raw)) => {
            let error = EventError::new("an event must have `data` or `data_base64`, not both");
            Err(error.at(Place::in_text(text, offset(text, raw.get()))))
        }
        (None, Some(raw)) => {
            let wrong = |reason: String| {
                let error = EventError::of_attribute("data_base64", reason);
                error.at(Place::in_text(text, offset(text, raw.get())))
            };
            let Ok(encoded) = serde_json::from_str::<Cow<'_, str>>(raw.get()) else {
                return Err(wrong(format!("must be base64 text, found {}", kind_of(raw))));
            };
            decode_base64(&encoded).map_err(|error| wrong(format!("must be base64 text: {error}")))?;
            Ok(Payload::Base64(encoded.into_owned()))
        }
    }
}

type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// Returns the members of an object in their order, equal keys included.
fn members(object: &str) -> Result<Members<'_>, serde_json::Error> {
    struct InOrder;
    impl<'de> Visitor<'de> for InOrder {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(key) = map.next_key::<&'de RawValue>()? {
                let name: Cow<'de, str> = serde_json::from_str(key.get()).map_err(serde::de::Error::custom)?;
                members.push((name, map.next_value()?));
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(object).deserialize_map(InOrder)
}
