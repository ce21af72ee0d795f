//! What is answered: a status, and JSON that says what happened and what to do.

use std::time::Duration;

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use pintail_telemetry::cloudevents::EventError;
use pintail_telemetry::intake::IntakeError;
use serde::Serialize;

/// After how many seconds a refused request may come again.
const AGAIN: Duration = Duration::from_secs(5);

/// What there is, for whoever asks for something else.
const PATHS: &str = "events are taken by POST at `/` and `/events`; `/health`, `/ready` and `/metrics` are read by GET";

/// A request that was not accepted; nothing of it was kept.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    /// The label of the metric.
    pub(super) cause: &'static str,
    message: String,
    place: Option<Place>,
    attribute: Option<String>,
    /// When it may come again.
    again: Option<Duration>,
}

/// A place in the body.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Place {
    byte: usize,
    line: usize,
    column: usize,
}

/// What was accepted.
#[derive(Debug, Serialize)]
pub(super) struct Accepted {
    /// Events that are durable.
    pub(super) accepted: usize,
    /// Elements that went to the dead letters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) refused: Vec<RefusedElement>,
}

/// An element that is no event.
#[derive(Debug, Serialize)]
pub(super) struct RefusedElement {
    /// Its place in the list, from 0.
    pub(super) index: usize,
    /// Why.
    pub(super) reason: String,
}

#[derive(Serialize)]
struct Failure {
    error: Explained,
}

#[derive(Serialize)]
struct Explained {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<String>,
}

impl Refused {
    fn new(status: StatusCode, cause: &'static str, message: impl Into<String>) -> Self {
        let again = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(AGAIN);
        Self { status, cause, message: message.into(), place: None, attribute: None, again }
    }

    pub(super) fn mode(message: &str) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "mode", message)
    }

    pub(super) fn unauthorized() -> Self {
        let message = "send `Authorization: Bearer <token>` with one of the tokens of `[ingest]`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// The client's certificate says nothing that could be a source.
    pub(super) fn nameless() -> Self {
        let message = "events are taken of the source that your certificate names, and it has neither a common name nor a URI \
                       among its names";
        Self::new(StatusCode::FORBIDDEN, "nameless", message)
    }

    /// An event is of another source than the client may send.
    pub(super) fn not_yours(source: &str, names: &[String], index: Option<usize>) -> Self {
        let place = index.map_or_else(String::new, |index| format!(" of element {index}"));
        let names = names.join("`, `");
        let message = format!(
            "`source`{place} is `{source}`, and your certificate is of `{names}`; leave `source` out, or send what is yours; \
             nothing of this request was kept"
        );
        Self { attribute: Some("source".to_owned()), ..Self::new(StatusCode::FORBIDDEN, "not_yours", message) }
    }

    pub(super) fn too_often(wait: Duration) -> Self {
        let message = "you send more often than `rate_limit` allows; nothing of this request was kept, send larger batches, or \
                       come again later";
        Self { again: Some(wait), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_often", message) }
    }

    pub(super) fn encoding(name: &str) -> Self {
        let message = format!("a body in the encoding `{name}` is not read; send it as it is, or as `gzip`");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding", message)
    }

    pub(super) fn no_such_path(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "path", format!("there is nothing at `{path}`: {PATHS}"))
    }

    pub(super) fn method(method: &str, path: &str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method", format!("`{path}` does not take {method}: {PATHS}"))
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes; send smaller batches, or raise `body_limit`");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub(super) fn too_slow(limit: Duration) -> Self {
        let message = format!("the body did not arrive within {} seconds", limit.as_secs());
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
    }

    pub(super) fn broken_off(error: &axum::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "broken_off", format!("the body was broken off: {error}"))
    }

    pub(super) fn fault() -> Self {
        let message = "reading the body panicked, which is a fault of Pintail; nothing of this request was kept";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", message)
    }

    pub(super) fn busy() -> Self {
        let message = "too many bytes are being received; nothing of this request was kept, send it again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }
}

impl From<EventError> for Refused {
    fn from(error: EventError) -> Self {
        let place = error.place.map(|place| Place { byte: place.byte, line: place.line, column: place.column });
        Self {
            place,
            attribute: error.attribute.clone(),
            ..Self::new(StatusCode::BAD_REQUEST, "not_an_event", error.to_string())
        }
    }
}

impl From<IntakeError> for Refused {
    fn from(error: IntakeError) -> Self {
        tracing::warn!(error = &error as &dyn std::error::Error, "a request could not be made durable");
        let message = format!("{error}; nothing of this request was kept, send it again");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_durable", message)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        metrics::counter!("pintail_ingest_refused_total", "reason" => self.cause).increment(1);
        let explained = Explained { message: self.message, place: self.place, attribute: self.attribute };
        let mut response = (self.status, Json(Failure { error: explained })).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(again) = self.again {
            // Whole seconds, of which the last has passed.
            let seconds = again.as_secs() + u64::from(0 < again.subsec_nanos());
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
