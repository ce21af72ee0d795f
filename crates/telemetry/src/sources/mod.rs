//! Brokers as sources: what they hold lands in the lake with the position in the same commit, and is acknowledged after.
//!
//! Invariant: where a source goes on is what the lake says, never what the broker says. A message that cannot be an event
//! is a dead letter in the commit of its neighbours, with its bytes, its reason and where it lay; nothing is tried for ever.
//! A broker that is away, also at the start, holds up nobody else: it is tried again, which is said once, and once when it
//! is back.

mod kafka;
mod landed;
mod message;
mod nats;
mod status;
mod tls;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use pintail_engine::EngineError;
use pintail_streams::{PositionTable, Writer};
use tokio::runtime::Handle;
use tokio::sync::watch;

pub use kafka::{KafkaOptions, Sasl, SaslMechanism};
pub use landed::Landed;
pub use nats::NatsOptions;
pub use status::{Reach, SourceStatus};
pub use tls::{ClientTls, TlsError};

use crate::blob::{BlobError, Blobs};
use crate::raw::{LayoutError, RawTable};
use crate::sink::{Batch, FlushPolicy, LandError};

/// How long a source waits at first, and at most, when something is away.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// How long a broker may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A source that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The broker is away or refuses.
    #[error("could not {operation} ({place}): {reason}")]
    Broker {
        /// `read the stream`.
        operation: &'static str,
        /// The broker and what is read of it, without secrets.
        place: String,
        /// What it said.
        reason: String,
    },
    /// The broker has a consumer that reads something else, or otherwise.
    #[error("the consumer cannot be used ({place}): {reason}")]
    Consumer {
        /// The broker and what is read of it, without secrets.
        place: String,
        /// What is different, and what to do.
        reason: String,
    },
    /// A file that says who we are, or whom to trust, cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The lake's position is of something else.
    #[error("the position of {position} in the lake cannot be used: {reason}")]
    Position {
        /// The position's table.
        position: PositionTable,
        /// Why, and what to do.
        reason: String,
    },
    /// A large payload could not be stored.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The lake cannot be opened.
    #[error("the lake cannot be opened")]
    Lake(#[from] EngineError),
    /// The lake's table cannot take events.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The batch did not land.
    #[error(transparent)]
    Land(#[from] LandError),
    /// It was asked to stop while it waited for the broker.
    #[error("it was stopped")]
    Stopped,
}

impl SourceError {
    /// Returns whether going on would be wrong, however long one waits.
    fn is_final(&self) -> bool {
        matches!(
            self,
            SourceError::Consumer { .. }
                | SourceError::Tls(_)
                | SourceError::Position { .. }
                | SourceError::Layout(LayoutError::Columns { .. })
                | SourceError::Land(LandError::Moved { .. })
        )
    }
}

/// Opens the lake for a source, which does so whenever it has reached its broker.
pub type OpenLake = Arc<dyn Fn() -> Result<Writer, EngineError> + Send + Sync>;

/// What every source needs beside its broker.
#[derive(Clone)]
pub struct SourceContext {
    /// Opens the lake.
    pub lake: OpenLake,
    /// Where events go.
    pub table: RawTable,
    /// When a batch is full.
    pub policy: FlushPolicy,
    /// Where large payloads go.
    pub blobs: Option<Blobs>,
    /// Runs the client.
    pub runtime: Handle,
    /// The time, in microseconds since 1970 UTC.
    pub now: fn() -> i64,
}

impl SourceContext {
    /// Returns how long a batch may be gathered: the age of a flush, and long enough to ask a broker.
    fn patience(&self) -> Duration {
        Duration::from_micros(self.policy.age_micros.unsigned_abs()).max(Duration::from_millis(250))
    }

    /// Moves the large payloads of a batch out.
    async fn move_out(&self, batch: &mut Batch) -> Result<(), BlobError> {
        if let Some(blobs) = &self.blobs {
            for arrival in &mut batch.arrivals {
                blobs.move_out(arrival).await?;
            }
        }
        Ok(())
    }
}

/// Which broker is read, and how.
#[derive(Clone, Debug)]
pub enum SourceOptions {
    /// A stream of NATS JetStream.
    Nats(NatsOptions),
    /// Topics of Kafka.
    Kafka(KafkaOptions),
}

impl SourceOptions {
    /// Returns how the source is called where people and metrics see it.
    pub fn name(&self) -> &'static str {
        match self {
            SourceOptions::Nats(_) => nats::ORIGIN,
            SourceOptions::Kafka(_) => kafka::ORIGIN,
        }
    }

    fn open(
        &self,
        context: &SourceContext,
        status: &SourceStatus,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Box<dyn Feed>, SourceError> {
        Ok(match self {
            SourceOptions::Nats(options) => Box::new(nats::NatsFeed::open(options, context, status, stop)?),
            SourceOptions::Kafka(options) => Box::new(kafka::KafkaFeed::open(options, context, status, stop)?),
        })
    }
}

impl fmt::Display for SourceOptions {
    /// What is read, for people, without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceOptions::Nats(options) => f.write_str(&nats::place(options)),
            SourceOptions::Kafka(options) => f.write_str(&kafka::place(options)),
        }
    }
}

/// A source whose broker has been reached.
trait Feed {
    /// Gathers a batch and lands it; returns how many messages it had. `stop` cuts the gathering short.
    fn step(&mut self, stop: &mut watch::Receiver<bool>) -> Result<usize, SourceError>;
}

/// A source. It stays on one thread, which is not one of tokio's.
pub struct Source {
    options: SourceOptions,
    context: SourceContext,
    status: SourceStatus,
}

impl Source {
    /// Returns the source; nothing is asked yet.
    pub fn new(options: SourceOptions, context: SourceContext) -> Self {
        let status = SourceStatus::new(options.name());
        Self { options, context, status }
    }

    /// Returns what others may know of it.
    pub fn status(&self) -> SourceStatus {
        self.status.clone()
    }

    /// Brings messages into the lake until `stop`. While the broker or the lake is away it waits longer and longer, and
    /// begins anew when the broker was: a connection may be dead and not know it. It ends by itself only when going on
    /// would be wrong.
    pub fn run(self, mut stop: watch::Receiver<bool>) -> Result<(), SourceError> {
        let mut feed: Option<Box<dyn Feed>> = None;
        let mut waits = pauses();
        let mut has_been_up = false;
        while !*stop.borrow() {
            match self.step(&mut feed, &mut stop) {
                Ok(messages) => {
                    metrics::counter!("pintail_source_messages_total", "source" => self.options.name())
                        .increment(messages as u64);
                    self.status.landed();
                    has_been_up = true;
                    waits = pauses();
                }
                Err(SourceError::Stopped) => break,
                // Files that were right may be half written: somebody is renewing them.
                Err(error) if error.is_final() && !(has_been_up && matches!(error, SourceError::Tls(_))) => {
                    return Err(error);
                }
                Err(error) => {
                    metrics::counter!("pintail_source_errors_total", "source" => self.options.name()).increment(1);
                    if let SourceError::Broker { .. } = error {
                        feed = None;
                    }
                    self.status.failed(&error);
                    let pause = waits.next().unwrap_or(PAUSES.1);
                    self.context.runtime.block_on(async {
                        let _ = tokio::time::timeout(pause, stopped(&mut stop)).await;
                    });
                }
            }
        }
        Ok(())
    }

    fn step(&self, feed: &mut Option<Box<dyn Feed>>, stop: &mut watch::Receiver<bool>) -> Result<usize, SourceError> {
        let open = match feed.take() {
            Some(open) => open,
            None => self.options.open(&self.context, &self.status, stop)?,
        };
        feed.insert(open).step(stop)
    }
}

fn pauses() -> impl Iterator<Item = Duration> {
    let schedule = ExponentialBuilder::default().with_min_delay(PAUSES.0).with_max_delay(PAUSES.1);
    schedule.with_jitter().without_max_times().build()
}

/// Returns when `stop` says so, or nobody can say it any more.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|is_stopped| *is_stopped).await;
}

/// Waits for what a broker answers: not for ever, and not beyond the end.
async fn ask<T, E: ToString>(
    stop: &mut watch::Receiver<bool>,
    failed: impl Fn(String) -> SourceError,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, SourceError> {
    tokio::select! {
        answer = tokio::time::timeout(PATIENCE, answer) => match answer {
            Ok(answer) => answer.map_err(|error| failed(error.to_string())),
            Err(_) => Err(failed(format!("there was no answer within {} seconds", PATIENCE.as_secs()))),
        },
        () = stopped(stop) => Err(SourceError::Stopped),
    }
}
