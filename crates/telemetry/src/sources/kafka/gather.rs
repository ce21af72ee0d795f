//! A batch of Kafka's messages: gathered from whichever partition has some, until it is full, old enough, or the end.

use std::time::Duration;

use pintail_streams::PositionTable;
use pintail_streams::dead_letter::{DeadLetter, EventName};
use rskafka::record::RecordAndOffset;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::connect::Brokers;
use super::partitions::{News, Partitions};
use super::{ITS_END, KafkaOptions, ORIGIN, Offsets, place};
use crate::sink::{Batch, FlushPolicy};
use crate::sources::message::{Message, take};
use crate::sources::{SourceContext, SourceError, SourceStatus, stopped};

/// Where partitions begin stands in the lake so soon after it is known.
const BEGINNINGS: Duration = Duration::from_millis(250);

/// A batch while it is gathered.
pub(super) struct Gathered {
    pub(super) batch: Batch,
    /// Those behind it.
    pub(super) offsets: Offsets,
    pub(super) messages: usize,
    bytes: u64,
    /// When it is old enough: an age from the beginning while nothing has come, from the first message afterwards.
    end: Instant,
    is_touched: bool,
}

impl Gathered {
    fn behind(offsets: &Offsets, age: Duration) -> Self {
        let (batch, offsets) = (Batch::default(), offsets.clone());
        Self { batch, offsets, messages: 0, bytes: 0, end: Instant::now() + age, is_touched: false }
    }

    /// Notes where a partition begins.
    fn begin(&mut self, partition: String, offset: i64) {
        self.offsets.insert(partition, offset);
        self.touch(BEGINNINGS);
    }

    /// Says that something has come, which waits for `age` at most.
    fn touch(&mut self, age: Duration) {
        let end = Instant::now() + age;
        self.end = if self.is_touched { self.end.min(end) } else { end };
        self.is_touched = true;
    }
}

/// What gathers.
pub(super) struct Gathering<B: Brokers> {
    partitions: Partitions<B>,
    from_start: bool,
    policy: FlushPolicy,
    age: Duration,
    status: SourceStatus,
    now: fn() -> i64,
    place: String,
    /// Topics that were said to be missing.
    missing: Vec<String>,
}

impl<B: Brokers> Gathering<B> {
    /// Returns what gathers from `brokers`. Runs on tokio.
    pub(super) fn of(brokers: B, options: &KafkaOptions, context: &SourceContext, status: &SourceStatus) -> Self {
        Self {
            partitions: Partitions::of(brokers, options.topics.clone()),
            from_start: options.from_start,
            policy: context.policy,
            age: context.patience(),
            status: status.clone(),
            now: context.now,
            place: place(options),
            missing: Vec::new(),
        }
    }

    /// Gathers what lies behind `offsets`. Fails when nothing has come and no partition answers.
    pub(super) async fn gather(
        &mut self,
        offsets: &Offsets,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Gathered, SourceError> {
        let mut gathered = Gathered::behind(offsets, self.age);
        loop {
            self.partitions.ask(&gathered.offsets);
            let news = tokio::select! {
                news = self.partitions.next(&gathered.offsets) => news,
                () = sleep_until(gathered.end) => break,
                () = stopped(stop) => break,
            };
            self.bring(&mut gathered, news)?;
            let is_full = self.policy.rows <= gathered.messages as u64 || self.policy.bytes <= gathered.bytes;
            if is_full || gathered.end <= Instant::now() {
                break;
            }
        }
        Ok(gathered)
    }

    /// Adds what was heard.
    fn bring(&mut self, gathered: &mut Gathered, news: News) -> Result<(), SourceError> {
        match news {
            News::Nothing => {}
            News::Opened { partition, first, end } => match gathered.offsets.get(&partition) {
                Some(&ITS_END) => gathered.begin(partition, end),
                Some(offset) => check_end(&partition, *offset, end)?,
                None => gathered.begin(partition, first),
            },
            News::Messages { partition, offset, records } => {
                self.status.reached();
                let new: Vec<RecordAndOffset> = records.into_iter().filter(|record| offset <= record.offset).collect();
                if let Some(last) = new.last() {
                    gathered.touch(self.age);
                    for record in &new {
                        gathered.messages += 1;
                        gathered.bytes += record.record.approximate_size() as u64;
                        self.take(&mut gathered.batch, &partition, record);
                    }
                    gathered.offsets.insert(partition, last.offset + 1);
                }
            }
            News::Gap { partition, offset, first, end } => {
                check_end(&partition, offset, end)?;
                gathered.touch(self.age);
                gathered.batch.letters.push(removed(&partition, offset, first));
                gathered.offsets.insert(partition, first);
            }
            News::Failed { reason } if self.partitions.have_all_failed() && !gathered.is_touched => {
                return Err(self.broker("read messages", reason));
            }
            News::Unlisted { reason } if self.partitions.have_all_failed() && !gathered.is_touched => {
                return Err(self.broker("list the topics", reason));
            }
            // The partitions that answer go on; what is new is found later.
            News::Failed { .. } | News::Unlisted { .. } => {}
            News::Topics { new, missing } => {
                // All of a topic at once: once the lake knows it, a partition that it does not know was added later.
                if !self.from_start {
                    new.into_iter().for_each(|partition| gathered.begin(partition, ITS_END));
                }
                let is_nobody_there = self.partitions.have_all_failed() && !gathered.is_touched;
                if !missing.is_empty() && is_nobody_there {
                    let reason = format!("there is no `{}`", missing.join("`, no `"));
                    return Err(self.broker("find the topics, which must be there", reason));
                }
                if self.missing != missing && !missing.is_empty() {
                    tracing::warn!(topics = missing.join(", "), "these topics are not there; the others are read");
                }
                self.missing = missing;
            }
        }
        Ok(())
    }

    fn take(&self, batch: &mut Batch, partition: &str, record: &RecordAndOffset) {
        let header = |name: &str| record.record.headers.get(name).and_then(|value| std::str::from_utf8(value).ok());
        let attributes = record.record.headers.iter().filter_map(|(name, value)| {
            let value = String::from_utf8_lossy(value).into_owned();
            Some((name.strip_prefix("ce_")?.to_owned(), value))
        });
        let message = Message {
            content_type: header("content-type"),
            attributes: attributes.collect(),
            payload: record.record.value.as_deref().unwrap_or_default(),
            position: format!("{partition} offset {}", record.offset),
        };
        take(batch, ORIGIN, &message, (self.now)());
    }

    fn broker(&self, operation: &'static str, reason: String) -> SourceError {
        SourceError::Broker { operation, place: self.place.clone(), reason }
    }
}

/// Refuses a position that is behind the end of its partition: what is there now is something else.
fn check_end(partition: &str, offset: i64, end: i64) -> Result<(), SourceError> {
    if offset <= end {
        return Ok(());
    }
    let reason = format!(
        "{partition} ends at {end}, and the lake has read up to {offset}: the topic was made anew; give it another name, or \
         take its entry out of the position"
    );
    Err(SourceError::Position { position: PositionTable::source("kafka"), reason })
}

/// Says that messages are gone that were never read.
fn removed(partition: &str, offset: i64, first: i64) -> DeadLetter {
    DeadLetter {
        origin: ORIGIN.to_owned(),
        position: format!("{partition} offset {offset}"),
        part: None,
        reason: format!("the broker has removed the messages from {offset} up to {first} before they were read"),
        raw: Vec::new(),
        decoder: None,
        event: EventName::default(),
    }
}

#[cfg(test)]
mod tests;
