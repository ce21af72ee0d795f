//! The foreground server: HTTP into the log, the log into the lake, until the user stops it.
//!
//! The end goes against the flow: no new requests, then what has begun, then what waits in the log. Whatever is killed in
//! between is in the log, and lands at the next start.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use pintail_server::ingest::{IngestOptions, IngestRoutes, RateLimit, Tokens};
use pintail_server::listen::{Listener, Tls, choose_cryptography};
use pintail_telemetry::intake::Intake;
use pintail_telemetry::log::{Log, LogOptions};
use pintail_telemetry::sink::LogSink;
use pintail_telemetry::sources::Source;
use serde_json::json;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use super::parts::Parts;
use super::stopping::stop_on_signal;
use crate::app::App;
use crate::environment::now;
use crate::exit::Exit;
use crate::failure::Failure;

/// A lake that is away for longer needs somebody: requests had better go where one is reached.
const LAKE_PATIENCE: Duration = Duration::from_secs(300);

/// Serves until the user stops it.
pub fn run(listen: Option<SocketAddr>, app: &App) -> Result<Exit, Failure> {
    choose_cryptography();
    let pintail = app.open_for_question()?;
    let parts = Parts { app, pintail: &pintail };
    app.require(pintail.project(), &parts.config().missing())?;
    if let Some(address) = listen.filter(|address| !parts.config().may_listen_on(address)) {
        return Err(Failure::usage(format!("ingest would listen on {address} and take events from anybody")).with_hint(
            "add `tokens = [\"${INGEST_TOKEN}\"]` or a `client_ca` to [ingest]; `open = true` says that it is meant",
        ));
    }
    let metrics = PrometheusBuilder::new().install_recorder();
    let metrics = metrics.map_err(|error| Failure::internal(format!("could not count: {error}")))?;
    pintail_server::ingest::describe();
    pintail_telemetry::measures::describe();
    let runtime = Runtime::new().map_err(|error| Failure::internal(format!("could not start: {error}")))?;
    let config = parts.config();
    let options = LogOptions { path: config.log.clone(), limit: config.log_limit.0 };
    let log = runtime.block_on(Log::open(&options)).map_err(|error| broken(&error))?;
    let writer = parts.writer(parts.sinks())?;
    let sink = LogSink::open(writer, parts.table(), log.clone(), parts.policy(), runtime.handle().clone());
    let sink = sink.map_err(|error| broken(&error))?;
    let listener = Listener::bind(listen.unwrap_or(config.listen), tls(&parts).as_ref());
    let listener = listener.map_err(|error| broken(&error))?;
    let sources = sources(&parts, runtime.handle())?;
    let routes = IngestRoutes::new(IngestOptions {
        intake: Intake::new(log.clone(), Some(parts.blobs()?)),
        tokens: Tokens::new(&config.tokens),
        source_from_certificate: config.source_from_certificate,
        rate_limit: config.rate_limit.map(|limit| RateLimit { per_second: limit.per_second, burst: limit.burst }),
        body_limit: usize::try_from(config.body_limit.0).unwrap_or(usize::MAX),
        sink: sink.status(),
        lake_patience: LAKE_PATIENCE,
        sources: sources.iter().map(Source::status).collect(),
        metrics,
        now: || now().timestamp_micros(),
    });
    let stop = {
        let _entered = runtime.enter();
        stop_on_signal()?
    };
    let sources = sources.into_iter().map(|source| read(source, &stop)).collect();
    tell(&parts, &listener.url(), log.held());
    let serving = Serving { runtime, log, routes, stop };
    serving.run(listener, sink, sources)
}

/// What runs on a thread of its own until the server stops.
type Work = JoinHandle<Result<(), Failure>>;

/// Returns the brokers that `[ingest]` names; nothing is asked yet.
fn sources(parts: &Parts<'_>, runtime: &Handle) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for options in parts.sources() {
        parts.app.terminal.talk(&format!("reading {options}"));
        sources.push(Source::new(options, parts.source_context(runtime.clone())?));
    }
    Ok(sources)
}

/// Reads a broker on a thread of its own; one that ends before it is asked to ends the server too.
fn read(source: Source, stop: &watch::Sender<bool>) -> Work {
    start(stop, move |stopped| source.run(stopped).map_err(|error| broken(&error)))
}

/// Starts `work` on a thread of its own, whose end, also by a panic, stops everything else.
fn start(
    stop: &watch::Sender<bool>,
    work: impl FnOnce(watch::Receiver<bool>) -> Result<(), Failure> + Send + 'static,
) -> Work {
    let (stop, stopped) = (StopOnDrop(stop.clone()), stop.subscribe());
    std::thread::spawn(move || {
        let _stop = stop;
        work(stopped)
    })
}

struct Serving {
    runtime: Runtime,
    log: Log,
    routes: IngestRoutes,
    stop: watch::Sender<bool>,
}

impl Serving {
    fn run(self, listener: Listener, sink: LogSink, sources: Vec<Work>) -> Result<Exit, Failure> {
        // The sink goes on after the server has stopped, until the log is empty.
        let (sink_stop, sink_stopped) = watch::channel(false);
        let sinking = start(&self.stop, move |_| sink.run(sink_stopped).map_err(|error| broken(&error)));
        let mut stopped = self.stop.subscribe();
        let routes = self.routes.clone();
        self.runtime.spawn(async move {
            let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
            routes.drain();
        });
        let served = self.runtime.block_on(listener.serve(self.routes.router(), self.stop.subscribe()));
        // A server that failed takes the others with it.
        self.stop.send_replace(true);
        let ended: Vec<Result<(), Failure>> = sources.into_iter().map(end_of).collect();
        sink_stop.send_replace(true);
        let sunk = end_of(sinking);
        self.runtime.block_on(self.log.close());
        served.map_err(|error| broken(&error))?;
        sunk?;
        ended.into_iter().collect::<Result<(), Failure>>()?;
        Ok(Exit::Ok)
    }
}

fn end_of(work: Work) -> Result<(), Failure> {
    let panicked = "a part of ingest panicked; what was answered is in the log, and lands at the next start";
    work.join().unwrap_or_else(|_| Err(Failure::internal(panicked)))
}

/// Also when the thread panics.
struct StopOnDrop(watch::Sender<bool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

fn tls(parts: &Parts<'_>) -> Option<Tls> {
    let files = parts.config().tls.as_ref()?;
    Some(Tls {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        client_authority: files.client_ca.clone(),
    })
}

fn tell(parts: &Parts<'_>, url: &str, waiting: u64) {
    let (lake, table, terminal) = (&parts.config().lake, parts.table(), &parts.app.terminal);
    if terminal.is_json {
        let table = table.to_string();
        terminal.json_line(&json!({"listening": url, "lake": lake.as_str(), "table": table, "log_bytes": waiting}));
    }
    terminal.talk(&format!("listening on {url}, events go to {table} of lake {lake}; Ctrl-C stops"));
    if 0 < waiting {
        terminal.talk(&format!("{waiting} bytes from before wait in the log, and land now"));
    }
}

fn broken(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::advised(Exit::Internal, error)
}
