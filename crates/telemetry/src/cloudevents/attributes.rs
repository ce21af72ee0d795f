//! The attributes of an event one by one, whichever mode brought them: names, types, and what each may hold.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::error::EventError;
use super::event::{Event, Payload};
use super::time::EventTime;

/// The attributes that must be there.
const REQUIRED: [&str; 4] = ["specversion", "id", "source", "type"];

/// The longest `type` that is taken, in bytes as a URL writes it: the lake makes a folder `type=…` of it, whose name may
/// have 255 on common file systems.
const LONGEST_TYPE: usize = 200;

/// Extensions whose value may be a list of texts; the format knows no lists, and vendors send one.
const TEXT_LISTS: [&str; 1] = ["tags"];

/// The value of an attribute as it came.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// A JSON value.
    Json(&'a RawValue),
    /// Text, as headers have it.
    Text(&'a str),
}

impl<'a> Value<'a> {
    /// Returns what kind of value it is.
    fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "text",
            Value::Json(raw) => kind_of(raw),
        }
    }

    /// Returns the text; `None` when it is no text.
    fn text(&self) -> Option<Cow<'a, str>> {
        match self {
            Value::Text(text) => Some(Cow::Borrowed(text)),
            Value::Json(raw) => serde_json::from_str::<Cow<'a, str>>(raw.get()).ok(),
        }
    }

    /// Returns whether it says that the attribute is not set.
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Value::Json(raw) if raw.get() == "null")
    }
}

/// Returns what kind of JSON value `raw` is, for people.
pub(super) fn kind_of(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "text",
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// The attributes of an event until all of them have been seen.
#[derive(Debug, Default)]
pub(super) struct Draft {
    takes_long_types: bool,
    /// The source of an event that names none.
    fallback_source: Option<String>,
    spec_version: Option<String>,
    id: Option<String>,
    source: Option<String>,
    kind: Option<String>,
    subject: Option<String>,
    time: Option<EventTime>,
    data_content_type: Option<String>,
    data_version: Option<String>,
    producer: Option<String>,
    extras: Vec<(String, String)>,
}

impl Draft {
    /// Returns one of an event that is of `source` when it names none.
    pub(super) fn of(source: Option<&str>) -> Self {
        Self { fallback_source: source.map(str::to_owned), ..Self::default() }
    }

    /// Returns the draft of an event that was taken in before, also by a version that took a `type` of any length.
    pub(super) fn taken() -> Self {
        Self { takes_long_types: true, ..Self::default() }
    }

    /// Takes the attribute `name`, which was not given before.
    pub(super) fn set(&mut self, name: &str, value: Value<'_>) -> Result<(), EventError> {
        check_name(name)?;
        if value.is_null() {
            return Ok(());
        }
        match name {
            "specversion" => {
                let text = text_of(name, value)?;
                if text != "1.0" {
                    return Err(wrong(name, "1.0", &format!("`{}`", shortened(&text))));
                }
                self.spec_version = Some(text);
            }
            "id" => self.id = Some(text_of(name, value)?),
            "source" => self.source = Some(uri_of(name, value)?),
            "type" => {
                let text = text_of(name, value)?;
                if !self.takes_long_types {
                    check_type(&text)?;
                }
                self.kind = Some(text);
            }
            "subject" => self.subject = Some(text_of(name, value)?),
            "time" => self.time = Some(time_of(value)?),
            "datacontenttype" => self.data_content_type = Some(content_type_of(name, value)?),
            "dataversion" => self.data_version = Some(text_of(name, value)?),
            "producer" => self.producer = Some(text_of(name, value)?),
            "dataschema" => {
                let uri = uri_of(name, value)?;
                if !has_scheme(&uri) {
                    return Err(wrong(name, "an absolute URI", &format!("`{}`", shortened(&uri))));
                }
                self.extras.push((name.to_owned(), json_text(&uri)));
            }
            "signature" | "raweventid" => self.extras.push((name.to_owned(), json_text(&text_of(name, value)?))),
            _ => self.extras.push((name.to_owned(), extension_of(name, value)?)),
        }
        Ok(())
    }

    /// Returns the content type that was given.
    pub(super) fn content_type(&self) -> Option<&str> {
        self.data_content_type.as_deref()
    }

    /// Returns the event, when nothing that must be there is missing.
    pub(super) fn finish(self, data: Payload) -> Result<Event, EventError> {
        let source = self.source.or(self.fallback_source);
        let found = [&self.spec_version, &self.id, &source, &self.kind];
        let missing: Vec<&str> =
            REQUIRED.into_iter().zip(found).filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        let (Some(id), Some(source), Some(kind), true) = (self.id, source, self.kind, missing.is_empty()) else {
            let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
            return Err(EventError::new(format!("the event has no {}", names.join(", "))));
        };
        Ok(Event {
            id,
            source,
            kind,
            subject: self.subject,
            time: self.time,
            data_content_type: self.data_content_type,
            data_version: self.data_version,
            producer: self.producer,
            extras: self.extras,
            data,
        })
    }
}

/// Names are of small letters and digits; a person who wrote another one is told the nearest that can be.
fn check_name(name: &str) -> Result<(), EventError> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Ok(());
    }
    let near: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let hint = if near.is_empty() { String::new() } else { format!(", such as `{near}`") };
    let reason = format!("cannot be the name of an attribute: small letters and digits were expected{hint}");
    Err(EventError::of_attribute(name, reason))
}

/// Refuses a `type` that no folder can be named after.
pub(crate) fn check_type(kind: &str) -> Result<(), EventError> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let length: usize = kind.as_bytes().iter().map(|byte| if is_plain(byte) { 1 } else { 3 }).sum();
    if length <= LONGEST_TYPE {
        return Ok(());
    }
    let expected = format!(
        "of at most {LONGEST_TYPE} bytes as a URL writes it (a letter, a digit and each of `-_.~` is one, each other byte \
         is three), because folders are named after it"
    );
    Err(wrong("type", &expected, &format!("{length} in `{}`", shortened(kind))))
}

fn text_of(name: &str, value: Value<'_>) -> Result<String, EventError> {
    let Some(text) = value.text() else { return Err(wrong(name, "text", value.kind())) };
    if text.is_empty() {
        return Err(wrong(name, "text that is not empty", "\"\""));
    }
    if let Some(bad) = text.chars().find(|c| c.is_control()) {
        return Err(wrong(name, "text without control characters", &format!("U+{:04X}", u32::from(bad))));
    }
    Ok(text.into_owned())
}

fn uri_of(name: &str, value: Value<'_>) -> Result<String, EventError> {
    let text = text_of(name, value)?;
    match text.chars().any(|c| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\\' | '^' | '`' | '{' | '|' | '}')) {
        true => Err(wrong(name, "a URI", &format!("`{}`", shortened(&text)))),
        false => Ok(text),
    }
}

fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn time_of(value: Value<'_>) -> Result<EventTime, EventError> {
    let Some(text) = value.text() else { return Err(wrong("time", "RFC 3339 text", value.kind())) };
    EventTime::parse(&text).map_err(|error| {
        let found = format!("`{}`: {error}", shortened(&text));
        wrong("time", "RFC 3339 such as `2026-01-02T03:04:05Z`", &found)
    })
}

/// `type/subtype`, then parameters.
fn content_type_of(name: &str, value: Value<'_>) -> Result<String, EventError> {
    let text = text_of(name, value)?;
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    match essence.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => Ok(text),
        _ => Err(wrong(name, "a media type such as `application/json`", &format!("`{}`", shortened(&text)))),
    }
}

/// Returns the JSON of an extension: text, a boolean or a whole number, as it came.
fn extension_of(name: &str, value: Value<'_>) -> Result<String, EventError> {
    let raw = match value {
        Value::Text(_) => return Ok(json_text(&text_of(name, value)?)),
        Value::Json(raw) => raw.get(),
    };
    match raw.as_bytes().first() {
        // An extension may be empty text, other than the attributes of the specification.
        Some(b'"' | b't' | b'f') => Ok(raw.to_owned()),
        Some(b'-' | b'0'..=b'9') if !raw.contains(['.', 'e', 'E']) => Ok(raw.to_owned()),
        Some(b'[') if TEXT_LISTS.contains(&name) => Ok(texts_of(raw)),
        _ => {
            let found =
                if value.kind() == "a number" { format!("`{}`", shortened(raw)) } else { value.kind().to_owned() };
            Err(wrong(name, "text, a boolean or a whole number", &found))
        }
    }
}

/// Returns the texts of a list; what is no text is left out.
fn texts_of(list: &str) -> String {
    let members: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
    let texts: Vec<&str> = members.iter().map(|member| member.get()).filter(|member| member.starts_with('"')).collect();
    format!("[{}]", texts.join(","))
}

pub(super) fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn wrong(attribute: &str, expected: &str, found: &str) -> EventError {
    EventError::of_attribute(attribute, format!("must be {expected}, found {found}"))
}

/// Cuts what a person need not read whole.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
