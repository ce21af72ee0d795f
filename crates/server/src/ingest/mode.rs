//! Which of the three modes a request has, and its events.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode;
use pintail_telemetry::cloudevents::{Attributes, Event, EventError, from_batch_of, from_binary_of, from_json_of};

use super::answer::Refused;

/// What a request holds.
#[derive(Debug)]
pub(super) enum Content {
    /// One event, in structured or binary mode.
    One(Box<Event>),
    /// A batch, each element an event or why it is none, with its bytes.
    Batch(Vec<Element>),
}

/// One element of a batch.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) raw: Vec<u8>,
    pub(super) event: Result<Event, EventError>,
}

/// Reads the events of a request, which are of `source` when they name none.
pub(super) fn content(headers: &HeaderMap, body: &[u8], source: Option<&str>) -> Result<Content, Refused> {
    let content_type = match headers.get(CONTENT_TYPE).map(|value| value.to_str()) {
        None => None,
        Some(Ok(text)) => Some(text),
        Some(Err(_)) => return Err(Refused::mode("`Content-Type` must be ASCII text")),
    };
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/cloudevents+json" => Ok(Content::One(Box::new(from_json_of(body, source)?))),
        "application/cloudevents-batch+json" => {
            let elements = from_batch_of(body, source)?;
            let element = |found: pintail_telemetry::cloudevents::BatchElement<'_>| Element {
                raw: found.raw.as_bytes().to_vec(),
                event: found.event,
            };
            Ok(Content::Batch(elements.into_iter().map(element).collect()))
        }
        other if other.starts_with("application/cloudevents") => {
            Err(Refused::mode(&format!("events in the format `{other}` are not read; send them as JSON")))
        }
        _ if headers.keys().any(is_attribute) => {
            Ok(Content::One(Box::new(from_binary_of(&attributes(headers)?, content_type, body, source)?)))
        }
        _ => Err(Refused::mode(
            "the request is in none of the modes of CloudEvents; send `Content-Type: application/cloudevents+json` for one \
             event, `application/cloudevents-batch+json` for a list, or attributes as `ce-` headers",
        )),
    }
}

fn is_attribute(name: &HeaderName) -> bool {
    name.as_str().starts_with("ce-")
}

/// Returns the attributes in `ce-` headers, whose values are percent-encoded UTF-8.
fn attributes(headers: &HeaderMap) -> Result<Attributes, Refused> {
    let named = headers.iter().filter_map(|(name, value)| Some((name.as_str().strip_prefix("ce-")?, value)));
    named
        .map(|(name, value)| {
            let value = value.as_bytes();
            // A value in quotes is the text between them.
            let inner = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
            let text = percent_decode(inner).decode_utf8();
            let text =
                text.map_err(|_| Refused::mode(&format!("header `ce-{name}` is not UTF-8 when it is decoded")))?;
            Ok((name.to_owned(), text.into_owned()))
        })
        .collect()
}
