//! One function an endpoint.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use pintail_telemetry::cloudevents::Event;
use pintail_telemetry::log::{Arrival, Record, Refusal};
use serde_json::json;

use super::answer::{Accepted, Refused, RefusedElement};
use super::limits::Client;
use super::mode::{Content, Element, content};
use super::readiness::{Facts, decide};
use super::{IngestOptions, Shared, body};
use crate::peer::Peer;

/// Reading a body of this size takes as long as a few hundred small requests.
const LARGE: usize = 256 << 10;

/// Takes events and answers when they are durable.
pub(super) async fn receive(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let started = Instant::now();
    let names = peer.map(|Extension(peer)| peer.names).unwrap_or_default();
    if let Some(limits) = &shared.limits {
        let client = names.first().map_or(Client::At(address.ip()), |name| Client::Named(name.clone()));
        limits.take(&client).map_err(Refused::too_often)?;
    }
    if !shared.options.tokens.allow(&headers) {
        return Err(Refused::unauthorized());
    }
    let sources = Sources::of(&shared.options, names)?;
    // What is left of it was not unpacked on the way here.
    if let Some(encoding) = headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        return Err(Refused::encoding(&String::from_utf8_lossy(encoding.as_bytes())));
    }
    let (bytes, _room) = body::read(&shared, &headers, body).await?;
    let received_micros = (shared.options.now)();
    let event = |event| Record::Event(Arrival { event, received_micros });
    let length = bytes.len();
    let content = read(headers, bytes, sources.fallback()).await?;
    sources.check(&content)?;
    let (records, refused) = match content {
        Content::One(one) => (vec![event(*one)], Vec::new()),
        Content::Batch(elements) => batch(elements, event),
    };
    let accepted = records.len() - refused.len();
    if !records.is_empty() {
        shared.options.intake.accept(records).await?;
    }
    metrics::counter!("pintail_ingest_events_total").increment(accepted as u64);
    metrics::counter!("pintail_ingest_bad_elements_total").increment(refused.len() as u64);
    metrics::counter!("pintail_ingest_bytes_total").increment(length as u64);
    metrics::histogram!("pintail_ingest_request_seconds").record(started.elapsed().as_secs_f64());
    // A sender that looks at the status only must see that nothing of its batch was an event.
    let is_all_bad = accepted == 0 && !refused.is_empty();
    let status = if is_all_bad { StatusCode::BAD_REQUEST } else { StatusCode::ACCEPTED };
    Ok((status, Json(Accepted { accepted, refused })).into_response())
}

/// Reads the events of a request; a large one on a thread of its own, so that it holds up nobody else's.
async fn read(headers: HeaderMap, bytes: Bytes, source: Option<String>) -> Result<Content, Refused> {
    if bytes.len() < LARGE {
        return content(&headers, &bytes, source.as_deref());
    }
    let reading = tokio::task::spawn_blocking(move || content(&headers, &bytes, source.as_deref()));
    reading.await.unwrap_or_else(|_| Err(Refused::fault()))
}

/// Which sources a client may send.
enum Sources {
    All,
    /// Those that its certificate names, of which the first is that of events without one.
    Of(Arc<[String]>),
}

impl Sources {
    fn of(options: &IngestOptions, names: Arc<[String]>) -> Result<Self, Refused> {
        match (options.source_from_certificate, names.is_empty()) {
            (false, _) => Ok(Sources::All),
            (true, false) => Ok(Sources::Of(names)),
            (true, true) => Err(Refused::nameless()),
        }
    }

    fn fallback(&self) -> Option<String> {
        match self {
            Sources::All => None,
            Sources::Of(names) => names.first().cloned(),
        }
    }

    /// Refuses a request of which any event is of another source: who forges one is not believed about the others.
    fn check(&self, content: &Content) -> Result<(), Refused> {
        let Sources::Of(names) = self else { return Ok(()) };
        let check = |event: &Event, index| match names.contains(&event.source) {
            true => Ok(()),
            false => Err(Refused::not_yours(&event.source, names, index)),
        };
        match content {
            Content::One(event) => check(event, None),
            Content::Batch(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    if let Ok(event) = &element.event {
                        check(event, Some(index))?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Says what there is instead.
pub(super) async fn no_such_path(uri: Uri) -> Refused {
    Refused::no_such_path(uri.path())
}

/// Says which methods there are instead.
pub(super) async fn other_method(method: Method, uri: Uri) -> Refused {
    Refused::method(method.as_str(), uri.path())
}

/// Returns the records of a batch, and which of its elements are no events.
fn batch(elements: Vec<Element>, event: impl Fn(Event) -> Record) -> (Vec<Record>, Vec<RefusedElement>) {
    let mut refused = Vec::new();
    let mut records = Vec::with_capacity(elements.len());
    for (index, element) in elements.into_iter().enumerate() {
        match element.event {
            Ok(found) => records.push(event(found)),
            Err(error) => {
                let reason = error.to_string();
                let part = Some(format!("element {index} of the batch"));
                records.push(Record::Refused(Refusal { part, reason: reason.clone(), raw: element.raw }));
                refused.push(RefusedElement { index, reason });
            }
        }
    }
    (records, refused)
}

/// Says that the process runs.
pub(super) async fn health() -> Json<serde_json::Value> {
    Json(json!({"status": "ok"}))
}

/// Says whether requests should be sent here, and why not.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let options = &shared.options;
    let log = options.intake.log();
    let readiness = decide(&Facts {
        is_draining: shared.is_draining.load(Ordering::Relaxed),
        lake: (options.sink.lake(), options.sink.since()),
        lake_patience: options.lake_patience,
        held: log.held(),
        limit: log.limit(),
        sources: options.sources.iter().map(|source| (source.name(), source.reach())).collect(),
    });
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}

/// Prints the metrics.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> String {
    let log = shared.options.intake.log();
    metrics::gauge!("pintail_ingest_log_bytes").set(log.held() as f64);
    shared.options.metrics.render()
}
