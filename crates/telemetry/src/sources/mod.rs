//! Brokers as sources: what they hold lands in the lake with the position in the same commit, and is acknowledged after.
//!
//! Invariant: where a source goes on is what the lake says, never what the broker says. A message that cannot be an event
//! is a dead letter in the commit of its neighbours, with its bytes, its reason and where it lay; nothing is tried for ever.

mod kafka;
mod landed;
mod message;
mod nats;

use std::time::Duration;

use pintail_streams::PositionTable;
use tokio::runtime::Handle;
use tokio::sync::watch;

pub use kafka::{KafkaOptions, KafkaSource};
pub use landed::Landed;
pub use nats::{NatsOptions, NatsSource};

use crate::blob::{BlobError, Blobs};
use crate::raw::LayoutError;
use crate::sink::{Batch, FlushPolicy, LandError, Sink};

/// How long a source waits when something is away.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

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
    /// The lake's table cannot take events.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The batch did not land.
    #[error(transparent)]
    Land(#[from] LandError),
}

impl SourceError {
    /// Returns whether going on would be wrong, however long one waits.
    fn is_final(&self) -> bool {
        matches!(
            self,
            SourceError::Consumer { .. }
                | SourceError::Position { .. }
                | SourceError::Layout(_)
                | SourceError::Land(LandError::Moved { .. })
        )
    }
}

/// What every source needs beside its broker.
#[derive(Clone)]
pub struct SourceContext {
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

/// A source that is open.
trait Feed {
    /// Gathers a batch and lands it; returns how many messages it had. `stop` cuts the gathering short.
    fn step(&mut self, stop: &mut watch::Receiver<bool>) -> Result<usize, SourceError>;

    /// For logs.
    fn name(&self) -> String;

    /// The sink that it feeds.
    fn sink(&self) -> &Sink;
}

/// Steps until `stop`, and waits longer and longer while something is away.
fn run(feed: &mut dyn Feed, runtime: &Handle, mut stop: watch::Receiver<bool>) -> Result<(), SourceError> {
    let mut pause = Duration::from_millis(200);
    while !*stop.borrow_and_update() {
        match feed.step(&mut stop) {
            Ok(messages) => {
                metrics::counter!("pintail_source_messages_total", "source" => feed.sink().name().origin.clone())
                    .increment(messages as u64);
                pause = Duration::from_millis(200);
            }
            Err(error) if error.is_final() => return Err(error),
            Err(error) => {
                let source = feed.sink().name().origin.clone();
                metrics::counter!("pintail_source_errors_total", "source" => source).increment(1);
                tracing::error!(error = &error as &dyn std::error::Error, source = feed.name(), "the source waits");
                pause = (pause * 2).min(LONGEST_PAUSE);
                runtime.block_on(async {
                    let _ = tokio::time::timeout(pause, stop.changed()).await;
                });
            }
        }
    }
    Ok(())
}
