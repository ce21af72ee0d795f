//! HTTP ingest: CloudEvents in, answered when they are durable; health and metrics beside it.
//!
//! Invariant: 202 means on disk. What is not accepted is said with its place and with what to do, and only what may be
//! sent again is answered with 503. A bad element of a batch is as durable as its neighbours: it goes to the dead letters.

mod answer;
mod authority;
mod body;
mod handlers;
mod limits;
mod measures;
mod mode;
mod readiness;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use pintail_telemetry::intake::Intake;
use pintail_telemetry::sink::SinkStatus;
use pintail_telemetry::sources::SourceStatus;
use tokio::sync::Semaphore;
use tower_http::decompression::RequestDecompressionLayer;

use limits::Limits;

pub use authority::Tokens;
pub use limits::RateLimit;
pub use measures::describe;

/// So many bytes of requests are in memory at once; more are asked to come again.
const IN_FLIGHT: usize = 256 << 20;

/// What the routes need.
pub struct IngestOptions {
    /// The way in.
    pub intake: Intake,
    /// Who may send; everybody when there are none.
    pub tokens: Tokens,
    /// Whether the certificate of a client says which source it may send.
    pub source_from_certificate: bool,
    /// How often a client may send; as often as it likes when absent.
    pub rate_limit: Option<RateLimit>,
    /// The largest body, in bytes; of a packed one, when it is unpacked.
    pub body_limit: usize,
    /// Whether the lake takes what is sent.
    pub sink: SinkStatus,
    /// How long it may be away before requests should go elsewhere.
    pub lake_patience: Duration,
    /// The brokers that are read beside HTTP.
    pub sources: Vec<SourceStatus>,
    /// Prints the metrics.
    pub metrics: PrometheusHandle,
    /// The time of arrivals, in microseconds since 1970 UTC.
    pub now: fn() -> i64,
}

/// What handlers share.
struct Shared {
    options: IngestOptions,
    /// Room for bodies, in KiB.
    room: Semaphore,
    limits: Option<Limits>,
    is_draining: AtomicBool,
}

/// The routes, and the word that they are about to go.
#[derive(Clone)]
pub struct IngestRoutes {
    shared: Arc<Shared>,
}

impl IngestRoutes {
    /// Returns the routes.
    pub fn new(options: IngestOptions) -> Self {
        let room = Semaphore::new(IN_FLIGHT.max(options.body_limit) / body::KIB);
        let limits = options.rate_limit.map(Limits::new);
        Self { shared: Arc::new(Shared { options, room, limits, is_draining: AtomicBool::new(false) }) }
    }

    /// Returns them for axum.
    pub fn router(&self) -> Router {
        // An encoding that is not unpacked is refused with a word.
        let unpack = RequestDecompressionLayer::new().pass_through_unaccepted(true);
        let events = post(handlers::receive).layer(unpack);
        Router::new()
            .route("/", events.clone())
            .route("/events", events)
            .route("/health", get(handlers::health))
            .route("/ready", get(handlers::ready))
            .route("/metrics", get(handlers::metrics))
            .fallback(handlers::no_such_path)
            .method_not_allowed_fallback(handlers::other_method)
            .with_state(self.shared.clone())
    }

    /// Says from now on that the server is not ready, so that nobody sends it new requests.
    pub fn drain(&self) {
        self.shared.is_draining.store(true, Ordering::Relaxed);
    }
}
