//! `ingest`: events into the lake, from senders or from files.

mod import;
pub mod parts;
mod serve;
mod stopping;

use clap::Args;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to take in.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail ingest                     takes CloudEvents over HTTP until Ctrl-C
  curl -i http://127.0.0.1:8080/ -H 'Content-Type: application/cloudevents+json' \\
    -d '{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/me\",\"type\":\"hello\",\"data\":{\"a\":1}}'
  pintail query 'FROM raw_events'
  pintail ingest --from events.ndjson     imports a file: .ndjson, .csv or .parquet
  pintail ingest --from archive/          imports every such file below a folder

An event is answered with 202 when it is on disk, and is in the lake within `flush_age`. Settings,
and the sources NATS and Kafka, stand under `[ingest]` in pintail.toml.")]
pub struct IngestArgs {
    /// Listen on this address instead of `listen` in pintail.toml; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = crate::metrics::address)]
    listen: Option<std::net::SocketAddr>,
    /// Import a file, or every file below a folder, instead of listening; what is imported already is left out
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    from: Option<std::path::PathBuf>,
}

/// Runs the command.
pub fn run(args: &IngestArgs, app: &App) -> Result<Exit, Failure> {
    match &args.from {
        Some(path) => import::run(path, app),
        None => serve::run(args.listen, app),
    }
}
