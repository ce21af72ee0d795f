//! A server on a port of its own, and the log behind it.

use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use pintail_server::ingest::{IngestOptions, IngestRoutes, RateLimit, Tokens};
use pintail_server::listen::{Listener, Tls};
use pintail_telemetry::intake::Intake;
use pintail_telemetry::log::{Log, LogOptions, LogPosition, Record, decode};
use pintail_telemetry::sink::SinkStatus;
use pintail_telemetry::sources::SourceStatus;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How a server of a test differs from the usual one.
#[derive(Default)]
pub struct Setup {
    pub tokens: Vec<&'static str>,
    pub body_limit: Option<usize>,
    pub log_limit: Option<u64>,
    pub tls: Option<Tls>,
    pub lake_patience: Option<Duration>,
    pub source_from_certificate: bool,
    pub rate_limit: Option<RateLimit>,
}

pub struct Server {
    pub url: String,
    pub log: Log,
    pub routes: IngestRoutes,
    pub sink: SinkStatus,
    pub source: SourceStatus,
    pub stop: watch::Sender<bool>,
    pub serving: JoinHandle<Result<(), pintail_server::listen::ListenError>>,
    _folder: tempfile::TempDir,
}

/// When everything arrives.
const NOW: i64 = 1_767_323_045_000_000;

pub async fn serve(setup: Setup) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let options = LogOptions { path: folder.path().join("log.sqlite"), limit: setup.log_limit.unwrap_or(1 << 20) };
    let log = Log::open(&options).await.unwrap();
    let secrets: Vec<SecretString> = setup.tokens.into_iter().map(SecretString::from).collect();
    let (sink, source) = (SinkStatus::default(), SourceStatus::new("nats"));
    let routes = IngestRoutes::new(IngestOptions {
        intake: Intake::new(log.clone(), None),
        tokens: Tokens::new(&secrets),
        body_limit: setup.body_limit.unwrap_or(1 << 20),
        sink: sink.clone(),
        source_from_certificate: setup.source_from_certificate,
        rate_limit: setup.rate_limit,
        lake_patience: setup.lake_patience.unwrap_or(Duration::from_secs(300)),
        sources: vec![source.clone()],
        metrics: PrometheusBuilder::new().build_recorder().handle(),
        now: || NOW,
    });
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(address, setup.tls.as_ref()).unwrap();
    let url = listener.url();
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(listener.serve(routes.router(), stopped));
    Server { url, log, routes, sink, source, stop, serving, _folder: folder }
}

impl Server {
    /// Sends `body` and returns the status and the answer.
    pub async fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, serde_json::Value) {
        let mut request = reqwest::Client::new().post(&self.url).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Returns what the log holds.
    pub async fn logged(&self) -> Vec<Record> {
        let entries = self.log.read(LogPosition(0), self.log.last_given()).await.unwrap();
        entries.iter().flat_map(|entry| decode(&entry.body).unwrap()).collect()
    }
}
