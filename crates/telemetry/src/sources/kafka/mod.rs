//! Kafka: every partition of some topics, read from the offsets that the lake has.
//!
//! No consumer group and no committed offsets: the lake's position is the only one. Messages that the broker has removed
//! before they were read are not passed in silence: the gap is a dead letter, in the commit that goes on behind it.

mod connect;
mod gather;
mod partitions;

use std::collections::BTreeMap;

use pintail_streams::PositionTable;
use rskafka::client::Client;
use secrecy::SecretString;
use tokio::sync::watch;

use super::{ClientTls, Feed, SourceContext, SourceError, SourceStatus};
use crate::sink::{Batch, Sink, SourceName};

use gather::{Gathered, Gathering};

/// How the source is called where people and metrics see it.
pub(super) const ORIGIN: &str = "kafka";

/// What is read.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// Brokers as `host:port`.
    pub brokers: Vec<String>,
    /// The topics, which must be there.
    pub topics: Vec<String>,
    /// Whether a topic that the lake does not know begins at its first message, or behind its last. A partition that is
    /// added to a topic later always begins at its first.
    pub from_start: bool,
    /// TLS; without it, plain connections.
    pub tls: Option<ClientTls>,
    /// Who we are.
    pub sasl: Option<Sasl>,
}

/// A user of the brokers.
#[derive(Clone, Debug)]
pub struct Sasl {
    /// How the password is shown.
    pub mechanism: SaslMechanism,
    /// The user.
    pub user: String,
    /// The password.
    pub password: SecretString,
}

/// How a password is shown to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    /// As it is, which is for connections with TLS.
    Plain,
    /// By a challenge, with SHA-256.
    ScramSha256,
    /// By a challenge, with SHA-512.
    ScramSha512,
}

impl SaslMechanism {
    /// All of them, with the words for them.
    pub const ALL: [(&str, SaslMechanism); 3] = [
        ("plain", SaslMechanism::Plain),
        ("scram-sha-256", SaslMechanism::ScramSha256),
        ("scram-sha-512", SaslMechanism::ScramSha512),
    ];
}

/// The next offset of each partition, by `topic/partition`.
type Offsets = BTreeMap<String, i64>;

/// Stands for the offset of a partition that begins at its end and has not said yet where that is.
const ITS_END: i64 = -1;

/// Open topics.
pub(super) struct KafkaFeed {
    sink: Sink,
    context: SourceContext,
    gathering: Gathering<Client>,
    offsets: Offsets,
    /// The position's text, as the lake has it.
    position: String,
}

impl KafkaFeed {
    /// Connects and opens the lake.
    pub(super) fn open(
        options: &KafkaOptions,
        context: &SourceContext,
        status: &SourceStatus,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Self, SourceError> {
        let client = context.runtime.block_on(connect::connect(options, stop))?;
        let position = PositionTable::source("kafka");
        let name = SourceName { position: position.clone(), source: ORIGIN.to_owned(), origin: ORIGIN.to_owned() };
        let (sink, at) = Sink::open((context.lake)()?, context.table.clone(), name, "{}")?;
        let offsets = serde_json::from_str(&at).map_err(|_| SourceError::Position {
            position,
            reason: format!("`{at}` is not what this version writes"),
        })?;
        let _on_tokio = context.runtime.enter();
        let gathering = Gathering::of(client, options, context, status);
        Ok(Self { sink, context: context.clone(), gathering, offsets, position: at })
    }

    /// Lands `batch`, which ends at `offsets`.
    fn land(&mut self, batch: Batch, offsets: Offsets) -> Result<(), SourceError> {
        let to = serde_json::to_string(&offsets).expect("numbers by name are JSON");
        self.sink.land(&self.position, &to, batch)?;
        (self.position, self.offsets) = (to, offsets);
        Ok(())
    }
}

impl Feed for KafkaFeed {
    fn step(&mut self, stop: &mut watch::Receiver<bool>) -> Result<usize, SourceError> {
        let runtime = self.context.runtime.clone();
        let gathered = runtime.block_on(self.gathering.gather(&self.offsets, stop))?;
        let Gathered { mut batch, offsets, messages, .. } = gathered;
        // A message may hold no event at all, and is passed all the same.
        if offsets == self.offsets && batch.letters.is_empty() {
            return Ok(0);
        }
        runtime.block_on(self.context.move_out(&mut batch))?;
        self.land(batch, offsets)?;
        Ok(messages)
    }
}

/// Says what is read, for people.
pub(super) fn place(options: &KafkaOptions) -> String {
    format!("Kafka at {}, topics {}", options.brokers.join(", "), options.topics.join(", "))
}
