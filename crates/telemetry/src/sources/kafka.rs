//! Kafka: every partition of some topics, read from the offsets that the lake has.
//!
//! No consumer group and no committed offsets: the lake's position is the only one. Messages that the broker has removed
//! before they were read are not passed in silence: the gap is a dead letter, in the commit that goes on behind it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use pintail_streams::dead_letter::{DeadLetter, EventName};
use pintail_streams::{PositionTable, Writer};
use rskafka::BackoffConfig;
use rskafka::client::error::{Error as KafkaError, ProtocolError};
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::RecordAndOffset;
use tokio::sync::watch;

use super::message::{Message, take};
use super::{Feed, SourceContext, SourceError, run};
use crate::raw::RawTable;
use crate::sink::{Batch, Sink, SourceName};

/// The most that one answer of a broker may hold.
const FETCH_BYTES: i32 = 8 << 20;

/// How long a broker waits for messages before it says that there are none.
const FETCH_WAIT_MS: i32 = 200;

/// How long a broker may take for an answer; the other partitions go on then.
const FETCH_PATIENCE: Duration = Duration::from_secs(30);

/// How long the client tries again by itself before it says so.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);

/// How often new partitions are looked for.
const LOOK: Duration = Duration::from_secs(60);

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
}

/// The next offset of each partition, by `topic/partition`.
type Offsets = BTreeMap<String, i64>;

struct Partition {
    name: String,
    client: Arc<PartitionClient>,
}

/// A batch while it is gathered.
struct Gathered {
    batch: Batch,
    /// Those behind it.
    offsets: Offsets,
    messages: usize,
    bytes: u64,
    /// Partitions that have failed, and why.
    failures: Vec<(String, SourceError)>,
}

impl Gathered {
    fn behind(offsets: Offsets) -> Self {
        Self { batch: Batch::default(), offsets, messages: 0, bytes: 0, failures: Vec::new() }
    }

    fn has_failed(&self, partition: &Partition) -> bool {
        self.failures.iter().any(|(name, _)| *name == partition.name)
    }
}

/// Open topics.
pub struct KafkaSource {
    sink: Sink,
    context: SourceContext,
    options: KafkaOptions,
    client: Client,
    partitions: Vec<Partition>,
    looked: Instant,
    offsets: Offsets,
    position: String,
}

impl KafkaSource {
    /// Connects and finds the partitions.
    pub fn open(
        writer: Writer,
        table: RawTable,
        options: &KafkaOptions,
        context: SourceContext,
    ) -> Result<Self, SourceError> {
        let place = place(options);
        let backoff = BackoffConfig { deadline: Some(CLIENT_PATIENCE), ..BackoffConfig::default() };
        let connecting =
            ClientBuilder::new(options.brokers.clone()).client_id("pintail").backoff_config(backoff).build();
        let client =
            context.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), connecting).await });
        let client = match client {
            Ok(client) => client.map_err(|error| error.to_string()),
            Err(_) => Err("no broker answered within 30 seconds".to_owned()),
        };
        let client = client.map_err(|reason| SourceError::Broker { operation: "connect", place, reason })?;
        let position = PositionTable::source("kafka");
        let name = SourceName { position: position.clone(), source: "kafka".to_owned(), origin: "kafka".to_owned() };
        let (sink, at) = Sink::open(writer, table, name, "{}")?;
        let offsets = serde_json::from_str(&at).map_err(|_| SourceError::Position {
            position,
            reason: format!("`{at}` is not what this version writes"),
        })?;
        let (partitions, looked, options) = (Vec::new(), Instant::now(), options.clone());
        let mut source = Self { sink, context, options, client, partitions, looked, offsets, position: at };
        source.find_partitions()?;
        Ok(source)
    }

    /// Brings messages into the lake until `stop`.
    pub fn run(mut self, stop: watch::Receiver<bool>) -> Result<(), SourceError> {
        let runtime = self.context.runtime.clone();
        run(&mut self, &runtime, stop)
    }

    fn broker(&self, operation: &'static str, error: impl ToString) -> SourceError {
        SourceError::Broker { operation, place: place(&self.options), reason: error.to_string() }
    }

    /// Opens partitions that are not open yet, and gives those that the lake does not know their beginning, which stands in
    /// the lake from then on: what comes after it is read, however long nothing lands.
    fn find_partitions(&mut self) -> Result<(), SourceError> {
        self.looked = Instant::now();
        let runtime = self.context.runtime.clone();
        let topics =
            runtime.block_on(self.client.list_topics()).map_err(|error| self.broker("list the topics", error))?;
        let (mut begins, mut found) = (Vec::new(), Vec::new());
        for wanted in self.options.topics.clone() {
            let Some(topic) = topics.iter().find(|topic| topic.name == wanted) else {
                return Err(self.broker("find the topic, which must be there", format!("there is no `{wanted}`")));
            };
            let of_topic = format!("{wanted}/");
            let is_new = !self.offsets.keys().any(|name| name.starts_with(&of_topic));
            for partition in &topic.partitions {
                let name = format!("{wanted}/{partition}");
                if self.partitions.iter().chain(&found).any(|open| open.name == name) {
                    continue;
                }
                let client = self.client.partition_client(wanted.clone(), *partition, UnknownTopicHandling::Error);
                let client = runtime.block_on(client).map_err(|error| self.broker("open a partition", error))?;
                let ask = |at| {
                    let offset = runtime.block_on(client.get_offset(at));
                    offset.map_err(|error| self.broker("ask for an offset", error))
                };
                match self.offsets.get(&name) {
                    Some(offset) => self.check_end(&name, *offset, ask(OffsetAt::Latest)?)?,
                    None => {
                        let is_from_end = is_new && !self.options.from_start;
                        let offset = ask(if is_from_end { OffsetAt::Latest } else { OffsetAt::Earliest })?;
                        begins.push((name.clone(), offset));
                    }
                }
                found.push(Partition { name, client: Arc::new(client) });
            }
        }
        if !begins.is_empty() {
            let mut offsets = self.offsets.clone();
            offsets.extend(begins);
            self.land(Batch::default(), offsets)?;
        }
        self.partitions.extend(found);
        Ok(())
    }

    /// Lands `batch`, which ends at `offsets`.
    fn land(&mut self, batch: Batch, offsets: Offsets) -> Result<(), SourceError> {
        let to = serde_json::to_string(&offsets).expect("numbers by name are JSON");
        self.sink.land(&self.position, &to, batch)?;
        (self.position, self.offsets) = (to, offsets);
        Ok(())
    }

    /// Gathers until the batch is full, old enough, or `stop`. A partition that fails is left out of the rest of it.
    async fn gather(&self, stop: &mut watch::Receiver<bool>) -> Result<Gathered, SourceError> {
        let policy = &self.context.policy;
        let mut gathered = Gathered::behind(self.offsets.clone());
        // From the beginning while nothing has come, from the first message afterwards.
        let mut started = Instant::now();
        loop {
            let was_empty = gathered.messages == 0;
            let fetches = self.partitions.iter().filter(|partition| !gathered.has_failed(partition)).map(|partition| {
                let offset = gathered.offsets.get(&partition.name).copied().unwrap_or_default();
                async move {
                    let fetch = partition.client.fetch_records(offset, 1..FETCH_BYTES, FETCH_WAIT_MS);
                    (partition, offset, tokio::time::timeout(FETCH_PATIENCE, fetch).await)
                }
            });
            let answers = tokio::select! {
                answers = join_all(fetches) => answers,
                _ = stop.changed() => break,
            };
            for (partition, offset, answer) in answers {
                let answer = answer.unwrap_or_else(|_| Err(KafkaError::Timeout));
                if let Err(error) = self.bring(&mut gathered, partition, offset, answer).await {
                    gathered.failures.push((partition.name.clone(), error));
                }
            }
            if was_empty && 0 < gathered.messages {
                started = Instant::now();
            }
            let is_full = policy.rows <= gathered.messages as u64 || policy.bytes <= gathered.bytes;
            let is_alone = gathered.failures.len() == self.partitions.len();
            if is_full || is_alone || self.context.patience() <= started.elapsed() {
                break;
            }
        }
        // What the other partitions have brought is landed: it does not wait for one that is away.
        let is_empty = gathered.messages == 0 && gathered.batch.letters.is_empty();
        settle(std::mem::take(&mut gathered.failures), is_empty)?;
        Ok(gathered)
    }

    /// Adds what a partition has answered.
    async fn bring(
        &self,
        gathered: &mut Gathered,
        partition: &Partition,
        offset: i64,
        answer: Result<(Vec<RecordAndOffset>, i64), KafkaError>,
    ) -> Result<(), SourceError> {
        let records = match answer {
            Ok((records, _)) => records,
            Err(KafkaError::ServerError { protocol_error: ProtocolError::OffsetOutOfRange, .. }) => {
                let next = self.pass_gap(partition, offset, &mut gathered.batch).await?;
                gathered.offsets.insert(partition.name.clone(), next);
                return Ok(());
            }
            Err(error) => return Err(self.broker("read messages", error)),
        };
        for record in records.iter().filter(|record| offset <= record.offset) {
            gathered.messages += 1;
            gathered.bytes += record.record.approximate_size() as u64;
            self.take(&mut gathered.batch, partition, record);
            gathered.offsets.insert(partition.name.clone(), record.offset + 1);
        }
        Ok(())
    }

    fn take(&self, batch: &mut Batch, partition: &Partition, record: &RecordAndOffset) {
        let header = |name: &str| record.record.headers.get(name).and_then(|value| std::str::from_utf8(value).ok());
        let attributes = record.record.headers.iter().filter_map(|(name, value)| {
            let value = String::from_utf8_lossy(value).into_owned();
            Some((name.strip_prefix("ce_")?.to_owned(), value))
        });
        let message = Message {
            content_type: header("content-type"),
            attributes: attributes.collect(),
            payload: record.record.value.as_deref().unwrap_or_default(),
            position: format!("{} offset {}", partition.name, record.offset),
        };
        take(batch, "kafka", &message, (self.context.now)());
    }

    /// Refuses a position that is behind the end of its partition: what is there now is something else.
    fn check_end(&self, name: &str, offset: i64, end: i64) -> Result<(), SourceError> {
        if offset <= end {
            return Ok(());
        }
        let reason = format!(
            "{name} ends at {end}, and the lake has read up to {offset}: the topic was made anew; give it another name, or \
             take its entry out of the position"
        );
        Err(SourceError::Position { position: self.sink.name().position.clone(), reason })
    }

    /// Says what an offset that the broker does not have means, and returns where to go on.
    async fn pass_gap(&self, partition: &Partition, offset: i64, batch: &mut Batch) -> Result<i64, SourceError> {
        let ask = |at| partition.client.get_offset(at);
        let first = ask(OffsetAt::Earliest).await.map_err(|error| self.broker("ask for an offset", error))?;
        let end = ask(OffsetAt::Latest).await.map_err(|error| self.broker("ask for an offset", error))?;
        self.check_end(&partition.name, offset, end)?;
        batch.letters.push(DeadLetter {
            origin: "kafka".to_owned(),
            position: format!("{} offset {offset}", partition.name),
            part: None,
            reason: format!("the broker has removed the messages from {offset} up to {first} before they were read"),
            raw: Vec::new(),
            decoder: None,
            event: EventName::default(),
        });
        Ok(first)
    }
}

impl Feed for KafkaSource {
    fn step(&mut self, stop: &mut watch::Receiver<bool>) -> Result<usize, SourceError> {
        let runtime = self.context.runtime.clone();
        if LOOK <= self.looked.elapsed() {
            self.find_partitions()?;
        }
        let Gathered { mut batch, offsets, messages, .. } = runtime.block_on(self.gather(stop))?;
        // A message may hold no event at all, and is passed all the same.
        if offsets == self.offsets && batch.letters.is_empty() {
            return Ok(0);
        }
        runtime.block_on(self.context.move_out(&mut batch))?;
        self.land(batch, offsets)?;
        Ok(messages)
    }

    fn name(&self) -> String {
        place(&self.options)
    }

    fn sink(&self) -> &Sink {
        &self.sink
    }
}

/// Says which partitions have failed. Fails itself when the others have brought nothing, or when going on would be wrong.
fn settle(mut failures: Vec<(String, SourceError)>, is_empty: bool) -> Result<(), SourceError> {
    let wrong = failures.iter().position(|(_, error)| error.is_final());
    let returned = wrong.or(Some(0).filter(|_| is_empty && !failures.is_empty()));
    let returned = returned.map(|index| failures.swap_remove(index));
    for (partition, error) in failures {
        metrics::counter!("pintail_source_errors_total", "source" => "kafka").increment(1);
        tracing::error!(error = &error as &dyn std::error::Error, partition, "the partition is left out for now");
    }
    returned.map_or(Ok(()), |(_, error)| Err(error))
}

fn place(options: &KafkaOptions) -> String {
    format!("Kafka at {}, topics {}", options.brokers.join(", "), options.topics.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away(partition: &str) -> (String, SourceError) {
        let (operation, place) = ("read messages", partition.to_owned());
        (partition.to_owned(), SourceError::Broker { operation, place, reason: "away".to_owned() })
    }

    #[test]
    fn partitions_that_fail_stop_a_batch_only_when_it_is_empty_or_going_on_is_wrong() {
        let is_empty = true;
        assert!(settle(vec![away("t/0"), away("t/1")], !is_empty).is_ok());
        assert!(settle(vec![away("t/0")], is_empty).is_err());
        assert!(settle(Vec::new(), is_empty).is_ok());
        let position = PositionTable::source("kafka");
        let wrong = ("t/1".to_owned(), SourceError::Position { position, reason: "made anew".to_owned() });
        let error = settle(vec![away("t/0"), wrong], !is_empty).unwrap_err();
        assert!(error.is_final(), "{error}");
    }
}
