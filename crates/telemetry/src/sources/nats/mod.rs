//! NATS JetStream: a durable pull consumer whose messages are acknowledged after their commit.
//!
//! What has landed is kept in the lake by sequence (see [`Landed`]), since the server delivers again, and out of order,
//! what a crash left unacknowledged. A stream that was made anew has other sequences, and therefore a position of its own.
//! So has each consumer and subject: what one of them has acknowledged says nothing about what another has yet to read.

mod connect;

use std::path::PathBuf;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::Message as NatsMessage;
use async_nats::jetstream::consumer::PullConsumer;
use futures_util::StreamExt as _;
use pintail_streams::PositionTable;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::message::{Message, give_up, take};
use super::{ClientTls, Feed, Landed, PATIENCE, SourceContext, SourceError, SourceStatus, stopped};
use crate::sink::{Batch, Sink, SourceName};

/// How the source is called where people and metrics see it.
pub(super) const ORIGIN: &str = "nats";

/// So many messages are under way at once, which also bounds the position's text.
const BATCH: usize = 10_000;

/// How often it is looked whether the connection is still there.
const LOOK: Duration = Duration::from_millis(250);

/// A server that has taken a request and has not refused it for so long serves it.
const TAKEN: Duration = Duration::from_secs(1);

/// After the end has been asked for, acknowledging may take so long.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What is read.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The servers, separated by commas.
    pub url: SecretString,
    /// A token for them.
    pub token: Option<SecretString>,
    /// A user and the password.
    pub user: Option<(String, SecretString)>,
    /// A file with a user's JWT and key.
    pub credentials: Option<PathBuf>,
    /// TLS; without it, what the URL says.
    pub tls: Option<ClientTls>,
    /// The stream, which must be there.
    pub stream: String,
    /// The durable consumer's name.
    pub consumer: String,
    /// Only these subjects.
    pub subject: Option<String>,
    /// A message that is delivered more often is a dead letter.
    pub max_tries: u32,
    /// After so long the server delivers again what was not acknowledged.
    pub ack_wait: Duration,
}

/// An open stream.
pub(super) struct NatsFeed {
    sink: Sink,
    context: SourceContext,
    status: SourceStatus,
    client: async_nats::Client,
    consumer: PullConsumer,
    landed: Landed,
    /// The position's text, as the lake has it.
    position: String,
    /// Messages that the lake could not take yet. They are kept, and not asked for again: every delivery counts as a try.
    held: Vec<NatsMessage>,
    options: NatsOptions,
}

impl NatsFeed {
    /// Connects, makes the durable consumer when it is missing, and opens the lake.
    pub(super) fn open(
        options: &NatsOptions,
        context: &SourceContext,
        status: &SourceStatus,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Self, SourceError> {
        let connection = context.runtime.block_on(connect::connect(options, stop))?;
        let created = connection.created;
        let position = PositionTable::source(&format!("nats.{}.{created}.{}", options.stream, reader(options)));
        let source = format!(
            "{} made at {created}, consumer {}, subject {}",
            options.stream,
            options.consumer,
            options.subject.as_deref().unwrap_or("any")
        );
        let name = SourceName { position: position.clone(), source, origin: ORIGIN.to_owned() };
        let (sink, at) = Sink::open((context.lake)()?, context.table.clone(), name, &Landed::default().to_text())?;
        let landed = Landed::parse(&at).ok_or_else(|| SourceError::Position {
            position,
            reason: format!("`{at}` is not what this version writes"),
        })?;
        Ok(Self {
            sink,
            context: context.clone(),
            status: status.clone(),
            client: connection.client,
            consumer: connection.consumer,
            landed,
            position: at,
            held: Vec::new(),
            options: options.clone(),
        })
    }

    fn broker(&self, operation: &'static str, error: impl ToString) -> SourceError {
        SourceError::Broker { operation, place: place(&self.options), reason: error.to_string() }
    }

    async fn gather(&self, stop: &mut watch::Receiver<bool>) -> Result<Vec<NatsMessage>, SourceError> {
        let policy = &self.context.policy;
        let most = usize::try_from(policy.rows).unwrap_or(BATCH).min(BATCH);
        let started = Instant::now();
        let asking = self.consumer.batch().max_messages(most).expires(self.context.patience()).messages();
        let batch = super::ask(stop, |reason| self.broker("ask for messages", reason), asking).await?;
        let mut batch = std::pin::pin!(batch);
        let (mut messages, mut bytes) = (Vec::new(), 0_u64);
        while bytes < policy.bytes {
            let next = tokio::select! {
                next = timeout(LOOK, batch.next()) => next,
                // What came is landed, what has not come stays with the server.
                () = stopped(stop) => return Ok(messages),
            };
            match next {
                Ok(Some(Ok(message))) => {
                    bytes += message.length as u64;
                    messages.push(message);
                }
                Ok(Some(Err(error))) if messages.is_empty() => return Err(self.broker("read messages", error)),
                Ok(Some(Err(_)) | None) => break,
                Err(_) if self.client.connection_state() != State::Connected => match messages.is_empty() {
                    true => return Err(self.broker("read messages", "the connection is lost")),
                    false => break,
                },
                Err(_) if TAKEN <= started.elapsed() => self.status.reached(),
                Err(_) => {}
            }
        }
        self.status.reached();
        Ok(messages)
    }

    /// Returns the batch of what has not landed, with its sequences.
    fn batch(&self, messages: &[NatsMessage]) -> Result<(Batch, Vec<u64>), SourceError> {
        let (mut batch, mut sequences) = (Batch::default(), Vec::new());
        for message in messages {
            let info = message.info().map_err(|error| self.broker("read a message", error))?;
            let sequence = info.stream_sequence;
            if self.landed.contains(sequence) || sequences.contains(&sequence) {
                metrics::counter!("pintail_source_redelivered_total", "source" => ORIGIN).increment(1);
                continue;
            }
            sequences.push(sequence);
            let found = Message {
                content_type: header(message, "content-type"),
                attributes: attributes(message),
                payload: &message.payload,
                position: format!("stream {} message {sequence}", self.options.stream),
            };
            match info.delivered <= i64::from(self.options.max_tries) {
                true => take(&mut batch, ORIGIN, &found, (self.context.now)()),
                false => give_up(&mut batch, ORIGIN, &found, info.delivered),
            }
        }
        Ok((batch, sequences))
    }

    fn land(&mut self, messages: &[NatsMessage]) -> Result<(), SourceError> {
        let (mut batch, sequences) = self.batch(messages)?;
        if sequences.is_empty() {
            return Ok(());
        }
        self.context.runtime.block_on(self.context.move_out(&mut batch))?;
        let mut landed = self.landed.clone();
        landed.add(sequences);
        let to = landed.to_text();
        self.sink.land(&self.position, &to, batch)?;
        (self.position, self.landed) = (to, landed);
        Ok(())
    }

    /// Acknowledges what has landed, and lets the floor follow what the server knows to be acknowledged. What gets lost of
    /// it is delivered again, is known, and is acknowledged again.
    async fn acknowledge(&mut self, messages: &[NatsMessage], stop: &mut watch::Receiver<bool>) {
        let consumer = &mut self.consumer;
        let acknowledging = async {
            for message in messages {
                if let Err(error) = message.ack().await {
                    tracing::debug!(%error, "a message could not be acknowledged");
                }
            }
            consumer.info().await.map(|info| info.ack_floor.stream_sequence)
        };
        let the_end = async {
            stopped(stop).await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            floor = timeout(PATIENCE, acknowledging) => match floor {
                Ok(Ok(floor)) => self.landed.raise_floor(floor),
                Ok(Err(error)) => tracing::debug!(%error, "the consumer's state could not be read"),
                Err(_) => tracing::debug!("the server does not take acknowledgements"),
            },
            () = the_end => {}
        }
    }
}

impl Feed for NatsFeed {
    fn step(&mut self, stop: &mut watch::Receiver<bool>) -> Result<usize, SourceError> {
        let runtime = self.context.runtime.clone();
        let mut messages = std::mem::take(&mut self.held);
        if messages.is_empty() {
            messages = runtime.block_on(self.gather(stop))?;
        }
        if let Err(error) = self.land(&messages) {
            self.held = messages;
            return Err(error);
        }
        if !messages.is_empty() {
            runtime.block_on(self.acknowledge(&messages, stop));
        }
        Ok(messages.len())
    }
}

/// Says what is read, for people.
pub(super) fn place(options: &NatsOptions) -> String {
    format!("NATS stream {}", options.stream)
}

/// Returns what tells one reader of a stream from another in the name of a table, where neither case nor every character
/// counts.
fn reader(options: &NatsOptions) -> String {
    let identity =
        format!("{}\n{}\n{}", options.stream, options.consumer, options.subject.as_deref().unwrap_or_default());
    Sha256::digest(identity)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn header<'m>(message: &'m NatsMessage, name: &str) -> Option<&'m str> {
    let headers = message.headers.as_ref()?;
    let (_, values) = headers.iter().find(|(found, _)| found.to_string().eq_ignore_ascii_case(name))?;
    values.first().map(|value| value.as_str())
}

fn attributes(message: &NatsMessage) -> Vec<(String, String)> {
    let Some(headers) = &message.headers else { return Vec::new() };
    let named = headers.iter().filter_map(|(name, values)| {
        let name = name.to_string().to_ascii_lowercase();
        Some((name.strip_prefix("ce-")?.to_owned(), values.first()?.as_str().to_owned()))
    });
    named.collect()
}
