//! Events of one payload: each element of `events` becomes a row, or a fault that says why not.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::fault::Fault;
use super::near::NearNames;
use super::{event_names, json, time};

/// A decoded event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// Its name.
    pub name: &'static str,
    /// UTC microseconds.
    pub timestamp: i64,
    /// How long it lasted, in nanoseconds.
    pub duration: Option<u64>,
    /// JSON text.
    pub metadata: Option<Cow<'a, str>>,
    /// Words in lower case.
    pub tags: Option<Vec<Cow<'a, str>>>,
}

/// Decodes the elements of `events`; of those with one name and time, the last of the payload counts.
pub fn decode_events<'a>(
    elements: &[&'a RawValue],
    now_micros: i64,
    near: &mut NearNames,
    faults: &mut Vec<Fault>,
) -> Vec<Event<'a>> {
    let mut events: Vec<Event<'a>> = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        match decode_event(element, now_micros, near) {
            Ok(event) => events.push(event),
            Err(reason) => faults.push(Fault::part(format!("events[{index}]"), element, reason)),
        }
    }
    events.sort_by_key(|event| (event.timestamp, event.name));
    events.dedup_by(|later, kept| {
        let is_same = (later.timestamp, later.name) == (kept.timestamp, kept.name);
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    events
}

fn decode_event<'a>(element: &'a RawValue, now_micros: i64, near: &mut NearNames) -> Result<Event<'a>, String> {
    let Ok(object) = json::object(element.get()) else {
        return Err(format!("expected an object with name and timestamp, found {}", json::found(Some(element))));
    };
    let name = object.value("name").and_then(json::string).filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(format!("expected a text as `name`, found {}", json::found(object.get("name"))));
    };
    let Some(name) = event_names::known(&name) else { return Err(near.unknown_event(&name)) };
    let about = |reason: String| format!("`{name}`: {reason}");
    let timestamp = time::timestamp(object.get("timestamp"), now_micros).map_err(about)?;
    let duration = object.value("durationNs").map(duration).transpose().map_err(about)?;
    let metadata = object.value("metadata").map(metadata).transpose().map_err(about)?.flatten();
    let tags = object.value("tags").map(tags).transpose().map_err(about)?;
    Ok(Event { name, timestamp, duration, metadata, tags })
}

fn duration(value: &RawValue) -> Result<u64, String> {
    let number = value.get().parse().ok().filter(|_| json::is_number(value));
    let found = || json::found(Some(value));
    number.ok_or_else(|| format!("expected whole nanoseconds, 0 or more, as `durationNs`, found {}", found()))
}

/// Reads JSON that stands in a text, or as itself; an empty text is none.
fn metadata(value: &RawValue) -> Result<Option<Cow<'_, str>>, String> {
    let text = match json::string(value) {
        Some(text) if text.is_empty() => return Ok(None),
        Some(text) => text,
        None if value.get().starts_with(['{', '[']) => Cow::Borrowed(value.get()),
        None => return Err(format!("expected JSON text as `metadata`, found {}", json::found(Some(value)))),
    };
    match serde_json::from_str::<IgnoredAny>(&text) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(format!("expected JSON text as `metadata`, found {}: {error}", json::found(Some(value)))),
    }
}

fn tags(value: &RawValue) -> Result<Vec<Cow<'_, str>>, String> {
    let Some(elements) = json::array(value) else {
        return Err(format!("expected a list of texts as `tags`, found {}", json::found(Some(value))));
    };
    let tag = |element: &'_ RawValue| match json::string(element) {
        Some(tag) if tag.chars().any(char::is_uppercase) => {
            Err(format!("expected lower case in `tags`, found {}", json::shortened(element.get())))
        }
        Some(_) => Ok(()),
        None => Err(format!("expected texts in `tags`, found {}", json::found(Some(element)))),
    };
    elements.iter().try_for_each(|element| tag(element))?;
    Ok(elements.into_iter().filter_map(json::string).collect())
}

#[cfg(test)]
mod tests;
