//! One function an endpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pintail_telemetry::log::{Arrival, Record, Refusal};
use serde_json::json;

use super::answer::{Accepted, Refused, RefusedElement};
use super::mode::{Content, Element, content};
use super::readiness::{Facts, decide};
use super::{Shared, body};

/// Reading a body of this size takes as long as a few hundred small requests.
const LARGE: usize = 256 << 10;

/// Takes events and answers when they are durable.
pub(super) async fn receive(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let started = Instant::now();
    if !shared.options.tokens.allow(&headers) {
        return Err(Refused::unauthorized());
    }
    let (bytes, _room) = body::read(&shared, &headers, body).await?;
    let received_micros = (shared.options.now)();
    let event = |event| Record::Event(Arrival { event, received_micros });
    let length = bytes.len();
    let (records, refused) = match read(headers, bytes).await? {
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
async fn read(headers: HeaderMap, bytes: Bytes) -> Result<Content, Refused> {
    if bytes.len() < LARGE {
        return content(&headers, &bytes);
    }
    let reading = tokio::task::spawn_blocking(move || content(&headers, &bytes));
    reading.await.unwrap_or_else(|_| Err(Refused::fault()))
}

/// Returns the records of a batch, and which of its elements are no events.
fn batch(
    elements: Vec<Element>,
    event: impl Fn(pintail_telemetry::cloudevents::Event) -> Record,
) -> (Vec<Record>, Vec<RefusedElement>) {
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
