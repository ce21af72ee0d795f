//! An event as it was understood: attributes, extensions, payload.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::time::EventTime;

/// Base64 as people send it: with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A CloudEvent.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// `id`, not empty.
    pub id: String,
    /// `source`, not empty.
    pub source: String,
    /// `type`, not empty.
    pub kind: String,
    /// `subject`.
    pub subject: Option<String>,
    /// `time`.
    pub time: Option<EventTime>,
    /// `datacontenttype`.
    pub data_content_type: Option<String>,
    /// `dataversion`: selects a vendor's version of the payload.
    pub data_version: Option<String>,
    /// `producer`.
    pub producer: Option<String>,
    /// The attributes without a field of their own, as JSON values in the order in which they came.
    pub extras: Vec<(String, String)>,
    /// The payload.
    pub data: Payload,
}

/// What an event carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    None,
    /// A JSON value, as it was sent.
    Json(String),
    /// Base64, as it was sent.
    Base64(String),
    /// The bytes lie in the blob store.
    Stored {
        /// The object's key.
        key: String,
    },
}

impl Event {
    /// Returns `subject!time!type!source!id` with the time in whole seconds of UTC: what makes two deliveries the same
    /// event.
    pub fn identity(&self) -> String {
        let time = self.time.map(EventTime::whole_seconds).unwrap_or_default();
        let subject = self.subject.as_deref().unwrap_or_default();
        format!("{subject}!{time}!{}!{}!{}", self.kind, self.source, self.id)
    }

    /// Returns the extras as one JSON object, `{}` when there are none.
    pub fn extras_json(&self) -> String {
        let mut text = String::from("{");
        for (index, (name, value)) in self.extras.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Names are of letters and digits, and values are JSON.
            text.push_str(&format!("{comma}\"{name}\":{value}"));
        }
        text.push('}');
        text
    }

    /// Returns about how many bytes the event takes in memory.
    pub fn size(&self) -> usize {
        let texts = [&self.subject, &self.data_content_type, &self.data_version, &self.producer];
        let optional: usize = texts.into_iter().flatten().map(String::len).sum();
        let extras: usize = self.extras.iter().map(|(name, value)| name.len() + value.len()).sum();
        128 + self.id.len() + self.source.len() + self.kind.len() + optional + extras + self.data.text_length()
    }
}

impl Payload {
    /// Returns the length of the payload's text.
    pub fn text_length(&self) -> usize {
        match self {
            Payload::None => 0,
            Payload::Json(text) | Payload::Base64(text) => text.len(),
            Payload::Stored { key } => key.len(),
        }
    }

    /// Returns the payload's bytes, decoded once; `None` when they are elsewhere or there are none.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Payload::None | Payload::Stored { .. } => None,
            Payload::Json(text) => Some(text.clone().into_bytes()),
            Payload::Base64(text) => decode_base64(text).ok(),
        }
    }

    /// Returns the payload of `bytes` under the rule of the format: JSON where the content type says so, or where there
    /// is none and it is JSON; base64 otherwise.
    pub fn of_bytes(bytes: &[u8], content_type: Option<&str>) -> Result<Self, serde_json::Error> {
        if bytes.is_empty() {
            return Ok(Payload::None);
        }
        let parsed = serde_json::from_slice::<&serde_json::value::RawValue>(bytes);
        match (parsed, content_type.is_none_or(is_json)) {
            (Ok(json), true) => Ok(Payload::Json(json.get().to_owned())),
            (Err(error), true) if content_type.is_some() => Err(error),
            _ => Ok(Payload::Base64(base64::engine::general_purpose::STANDARD.encode(bytes))),
        }
    }
}

/// Decodes base64 with or without padding; line breaks and blanks in it mean nothing.
pub(super) fn decode_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let dense: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return LENIENT.decode(dense);
    }
    LENIENT.decode(text)
}

/// Returns whether a content type is JSON: `…/json` or `…+json`, whatever its parameters.
pub fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = essence.split_once('/').map_or("", |(_, subtype)| subtype);
    subtype == "json" || subtype.ends_with("+json")
}
