//! NATS JetStream: a durable pull consumer whose messages are acknowledged after their commit.
//!
//! What has landed is kept in the lake by sequence (see [`Landed`]), since the server delivers again, and out of order,
//! what a crash left unacknowledged. A stream that was made anew has other sequences, and therefore a position of its own.
//! So has each consumer and subject: what one of them has acknowledged says nothing about what another has yet to read.

use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::consumer::{self, AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{self, Message as NatsMessage};
use futures_util::StreamExt as _;
use pintail_streams::{PositionTable, Writer};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::message::{Message, give_up, take};
use super::{Feed, Landed, SourceContext, SourceError, run};
use crate::raw::RawTable;
use crate::sink::{Batch, Sink, SourceName};

/// So many messages are under way at once, which also bounds the position's text.
const BATCH: usize = 10_000;

/// What is read.
#[derive(Clone, Debug)]
pub struct NatsOptions {
    /// The servers, separated by commas.
    pub url: SecretString,
    /// A token for them.
    pub token: Option<SecretString>,
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
pub struct NatsSource {
    sink: Sink,
    context: SourceContext,
    consumer: PullConsumer,
    landed: Landed,
    /// The position's text, as the lake has it.
    position: String,
    /// Messages that the lake could not take yet. They are kept, and not asked for again: every delivery counts as a try.
    held: Vec<NatsMessage>,
    place: String,
    stream: String,
    max_tries: i64,
}

impl NatsSource {
    /// Connects, and makes the durable consumer when it is missing.
    pub fn open(
        writer: Writer,
        table: RawTable,
        options: &NatsOptions,
        context: SourceContext,
    ) -> Result<Self, SourceError> {
        let place = format!("NATS stream {}", options.stream);
        let (consumer, created) = context.runtime.block_on(connect(options, &place))?;
        let position = PositionTable::source(&format!("nats.{}.{created}.{}", options.stream, reader(options)));
        let source = format!(
            "{} made at {created}, consumer {}, subject {}",
            options.stream,
            options.consumer,
            options.subject.as_deref().unwrap_or("any")
        );
        let name = SourceName { position: position.clone(), source, origin: "nats".to_owned() };
        let (sink, at) = Sink::open(writer, table, name, &Landed::default().to_text())?;
        let landed = Landed::parse(&at).ok_or_else(|| SourceError::Position {
            position,
            reason: format!("`{at}` is not what this version writes"),
        })?;
        let max_tries = i64::from(options.max_tries);
        Ok(Self {
            sink,
            context,
            consumer,
            landed,
            position: at,
            held: Vec::new(),
            place,
            stream: options.stream.clone(),
            max_tries,
        })
    }

    /// Brings messages into the lake until `stop`.
    pub fn run(mut self, stop: watch::Receiver<bool>) -> Result<(), SourceError> {
        let runtime = self.context.runtime.clone();
        run(&mut self, &runtime, stop)
    }

    fn broker(&self, operation: &'static str, error: impl ToString) -> SourceError {
        SourceError::Broker { operation, place: self.place.clone(), reason: error.to_string() }
    }

    async fn gather(&self, stop: &mut watch::Receiver<bool>) -> Result<Vec<NatsMessage>, SourceError> {
        let policy = &self.context.policy;
        let most = usize::try_from(policy.rows).unwrap_or(BATCH).min(BATCH);
        let batch = self.consumer.batch().max_messages(most).expires(self.context.patience());
        let batch = batch.messages().await.map_err(|error| self.broker("ask for messages", error))?;
        let mut batch = std::pin::pin!(batch);
        let (mut messages, mut bytes) = (Vec::new(), 0_u64);
        while bytes < policy.bytes {
            let next = tokio::select! {
                next = batch.next() => next,
                // What came is landed, what has not come stays with the server.
                _ = stop.changed() => None,
            };
            match next {
                Some(Ok(message)) => {
                    bytes += message.length as u64;
                    messages.push(message);
                }
                Some(Err(error)) if messages.is_empty() => return Err(self.broker("read messages", error)),
                Some(Err(_)) | None => break,
            }
        }
        Ok(messages)
    }

    /// Returns the batch of what has not landed, with its sequences.
    fn batch(&self, messages: &[NatsMessage]) -> Result<(Batch, Vec<u64>), SourceError> {
        let (mut batch, mut sequences) = (Batch::default(), Vec::new());
        for message in messages {
            let info = message.info().map_err(|error| self.broker("read a message", error))?;
            let sequence = info.stream_sequence;
            if self.landed.contains(sequence) || sequences.contains(&sequence) {
                metrics::counter!("pintail_source_redelivered_total", "source" => "nats").increment(1);
                continue;
            }
            sequences.push(sequence);
            let found = Message {
                content_type: header(message, "content-type"),
                attributes: attributes(message),
                payload: &message.payload,
                position: format!("stream {} message {sequence}", self.stream),
            };
            match info.delivered <= self.max_tries {
                true => take(&mut batch, "nats", &found, (self.context.now)()),
                false => give_up(&mut batch, "nats", &found, info.delivered),
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

    /// Acknowledges what has landed, and lets the floor follow what the server knows to be acknowledged.
    async fn acknowledge(&mut self, messages: &[NatsMessage]) {
        for message in messages {
            // One that gets lost is delivered again, is known, and is acknowledged again.
            if let Err(error) = message.ack().await {
                tracing::debug!(%error, "a message could not be acknowledged");
            }
        }
        match self.consumer.info().await {
            Ok(info) => self.landed.raise_floor(info.ack_floor.stream_sequence),
            Err(error) => tracing::debug!(%error, "the consumer's state could not be read"),
        }
    }
}

impl Feed for NatsSource {
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
        runtime.block_on(self.acknowledge(&messages));
        Ok(messages.len())
    }

    fn name(&self) -> String {
        self.place.clone()
    }

    fn sink(&self) -> &Sink {
        &self.sink
    }
}

/// Returns the consumer and when the stream was made, in seconds since 1970 UTC.
async fn connect(options: &NatsOptions, place: &str) -> Result<(PullConsumer, i64), SourceError> {
    let failed = |operation: &'static str| {
        let place = place.to_owned();
        move |reason: String| SourceError::Broker { operation, place, reason }
    };
    let mut connect = ConnectOptions::new().name("pintail");
    if let Some(token) = &options.token {
        connect = connect.token(token.expose_secret().to_owned());
    }
    let client = connect.connect(options.url.expose_secret()).await;
    let client = client.map_err(|error| failed("connect")(error.to_string()))?;
    let context = jetstream::new(client);
    let stream = context.get_stream(&options.stream).await;
    let stream = stream.map_err(|error| failed("find the stream, which must be there")(error.to_string()))?;
    let config = pull::Config {
        durable_name: Some(options.consumer.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: options.ack_wait,
        max_ack_pending: i64::try_from(2 * BATCH).unwrap_or(i64::MAX),
        filter_subject: options.subject.clone().unwrap_or_default(),
        ..pull::Config::default()
    };
    let consumer: Result<PullConsumer, _> = stream.get_or_create_consumer(&options.consumer, config).await;
    let consumer = consumer.map_err(|error| failed("make the consumer")(error.to_string()))?;
    if let Some((what, found, expected)) = difference(&consumer.cached_info().config, options) {
        let name = &options.consumer;
        let reason = format!(
            "the server has a consumer `{name}` whose {what} is {found}, and {expected} was expected; put `[ingest.nats]` \
             right, or remove the consumer from the server if nothing else reads by it (`nats consumer rm {} {name}`): it is \
             made anew, and what has landed is known and does not land again unless `consumer` or `subject` has changed",
            options.stream
        );
        return Err(SourceError::Consumer { place: place.to_owned(), reason });
    }
    Ok((consumer, stream.cached_info().created.unix_timestamp()))
}

/// Returns what is different about a consumer that was there, what it is, and what it should be.
fn difference(found: &consumer::Config, options: &NatsOptions) -> Option<(&'static str, String, String)> {
    let subjects = |subjects: &[&str]| match subjects {
        [] => "all".to_owned(),
        some => format!("`{}`", some.join("`, `")),
    };
    let filters: Vec<&str> = std::iter::once(&found.filter_subject)
        .chain(&found.filter_subjects)
        .map(String::as_str)
        .filter(|subject| !subject.is_empty())
        .collect();
    let wanted: Vec<&str> = options.subject.as_deref().filter(|subject| !subject.is_empty()).into_iter().collect();
    if filters != wanted {
        return Some(("subject", subjects(&filters), subjects(&wanted)));
    }
    if found.ack_policy != AckPolicy::Explicit {
        return Some(("way of acknowledging", format!("{:?}", found.ack_policy), "Explicit".to_owned()));
    }
    if 0 < found.max_deliver {
        return Some(("largest number of deliveries", found.max_deliver.to_string(), "no bound".to_owned()));
    }
    if found.ack_wait != options.ack_wait {
        return Some(("`ack_wait`", format!("{:?}", found.ack_wait), format!("{:?}", options.ack_wait)));
    }
    None
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
