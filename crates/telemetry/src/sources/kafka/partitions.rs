//! All partitions at once: each is asked on its own, so that one that does not answer delays nobody else.
//!
//! Every question is under way until it is answered or its time is up, also while a batch lands. A partition that has
//! failed is opened anew, since its connection may be dead and not know it, after longer and longer pauses.

use std::panic;
use std::sync::Arc;
use std::time::Duration;

use rskafka::record::RecordAndOffset;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connect::{Brokers, Partition};
use super::{ITS_END, Offsets};
use crate::sources::PATIENCE;

/// How often new partitions are looked for, and how often topics that are missing.
const LOOK: Duration = Duration::from_secs(60);
const LOOK_FOR_MISSING: Duration = Duration::from_secs(5);

/// How long nothing is asked after an answer without messages.
const NOTHING_THERE: Duration = Duration::from_millis(100);

/// How long a partition that has failed is left alone at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// What has been heard of a partition or of the topics.
#[derive(Debug)]
pub(super) enum News {
    /// A partition is open, which has messages in `[first, end)`.
    Opened { partition: Name, first: i64, end: i64 },
    /// A partition's messages from `offset` on.
    Messages { partition: Name, offset: i64, records: Vec<RecordAndOffset> },
    /// A partition has nothing at `offset`; its messages are in `[first, end)`.
    Gap { partition: Name, offset: i64, first: i64, end: i64 },
    /// A partition does not answer, or refuses.
    Failed { reason: String },
    /// The topics were listed: partitions of those that the lake does not know, and which should be there and are not.
    Topics { new: Vec<Name>, missing: Vec<String> },
    /// The topics could not be listed.
    Unlisted { reason: String },
    /// Nothing that anybody needs to know.
    Nothing,
}

/// `topic/partition`, as the lake knows it.
pub(super) type Name = String;

enum Answer<P> {
    Topics(Result<Vec<(String, Vec<i32>)>, String>),
    Opened { partition: usize, opened: Result<(P, i64, i64), String> },
    Fetched { partition: usize, offset: i64, fetched: Result<Fetched, String> },
}

enum Fetched {
    Messages(Vec<RecordAndOffset>),
    Gap { first: i64, end: i64 },
}

struct Known<P> {
    name: Name,
    topic: String,
    number: i32,
    open: Option<Arc<P>>,
    is_asked: bool,
    /// How long it is left alone, since it has failed; `None` when it has not.
    pause: Option<Duration>,
}

/// The partitions of some topics.
pub(super) struct Partitions<B: Brokers> {
    brokers: Arc<B>,
    topics: Vec<String>,
    known: Vec<Known<B::Partition>>,
    under_way: JoinSet<Answer<B::Partition>>,
}

impl<B: Brokers> Partitions<B> {
    /// Returns the partitions of `topics`, which are looked for from now on. Runs on tokio.
    pub(super) fn of(brokers: B, topics: Vec<String>) -> Self {
        let brokers = Arc::new(brokers);
        let mut partitions = Self { brokers, topics, known: Vec::new(), under_way: JoinSet::new() };
        partitions.look(Duration::ZERO);
        partitions
    }

    /// Returns whether no partition answers, or none is known yet.
    pub(super) fn have_all_failed(&self) -> bool {
        self.known.iter().all(|partition| partition.pause.is_some())
    }

    /// Asks every partition that is not asked already: for its messages from `offsets` on when it is open and begins somewhere.
    pub(super) fn ask(&mut self, offsets: &Offsets) {
        for (index, partition) in self.known.iter_mut().enumerate().filter(|(_, partition)| !partition.is_asked) {
            partition.is_asked = true;
            let offset = offsets.get(&partition.name).filter(|offset| **offset != ITS_END);
            match (&partition.open, offset) {
                (Some(open), Some(offset)) => self.under_way.spawn(fetch(index, Arc::clone(open), *offset)),
                _ => self.under_way.spawn(open(index, Arc::clone(&self.brokers), partition)),
            };
        }
    }

    /// Waits for the next answer, whichever it is. Nothing is lost when the caller does not wait to its end.
    pub(super) async fn next(&mut self, offsets: &Offsets) -> News {
        let answered = self.under_way.join_next().await.expect("topics are always looked for");
        match answered.unwrap_or_else(|error| panic::resume_unwind(error.into_panic())) {
            Answer::Topics(Ok(topics)) => self.note_topics(topics, offsets),
            Answer::Topics(Err(reason)) => {
                self.look(LOOK_FOR_MISSING);
                News::Unlisted { reason }
            }
            Answer::Opened { partition, opened: Ok((open, first, end)) } => {
                let known = &mut self.known[partition];
                (known.open, known.is_asked) = (Some(Arc::new(open)), false);
                News::Opened { partition: known.name.clone(), first, end }
            }
            Answer::Opened { partition, opened: Err(reason) } => self.note_failure(partition, reason),
            Answer::Fetched { partition, offset, fetched } => {
                let known = &mut self.known[partition];
                known.is_asked = false;
                let name = known.name.clone();
                match fetched {
                    Err(reason) => self.note_failure(partition, reason),
                    Ok(fetched) => {
                        known.note_answer();
                        match fetched {
                            // It was asked before a batch that did not land.
                            _ if offsets.get(&name) != Some(&offset) => News::Nothing,
                            Fetched::Messages(records) => News::Messages { partition: name, offset, records },
                            Fetched::Gap { first, end } => News::Gap { partition: name, offset, first, end },
                        }
                    }
                }
            }
        }
    }

    fn look(&mut self, pause: Duration) {
        let brokers = Arc::clone(&self.brokers);
        self.under_way.spawn(async move {
            sleep(pause).await;
            Answer::Topics(in_time(brokers.topics()).await)
        });
    }

    fn note_topics(&mut self, found: Vec<(String, Vec<i32>)>, offsets: &Offsets) -> News {
        let (mut new, mut missing) = (Vec::new(), Vec::new());
        for wanted in &self.topics {
            let Some((topic, numbers)) = found.iter().find(|(topic, _)| topic == wanted) else {
                missing.push(wanted.clone());
                continue;
            };
            let of_topic = format!("{topic}/");
            if !offsets.keys().any(|name| name.starts_with(&of_topic)) {
                new.extend(numbers.iter().map(|number| format!("{topic}/{number}")));
            }
            for number in numbers {
                let name = format!("{topic}/{number}");
                if self.known.iter().any(|known| known.name == name) {
                    continue;
                }
                let (topic, number) = (topic.clone(), *number);
                let (open, is_asked, pause) = (None, false, None);
                self.known.push(Known { name, topic, number, open, is_asked, pause });
            }
        }
        self.look(if missing.is_empty() { LOOK } else { LOOK_FOR_MISSING });
        News::Topics { new, missing }
    }

    fn note_failure(&mut self, partition: usize, reason: String) -> News {
        let known = &mut self.known[partition];
        let is_first = known.pause.is_none();
        known.open = None;
        known.is_asked = false;
        known.pause = Some(known.pause.map_or(PAUSES.0, |pause| (pause * 2).min(PAUSES.1)));
        let name = known.name.clone();
        // When none answers it is the source that is away.
        if is_first && !self.have_all_failed() {
            tracing::warn!(partition = name, reason, "the partition is away; it is tried again, the others go on");
        }
        News::Failed { reason }
    }
}

impl<P> Known<P> {
    fn note_answer(&mut self) {
        if self.pause.take().is_some() {
            tracing::warn!(partition = self.name, "the partition is back");
        }
    }
}

/// Opens a partition, once it has been left alone for long enough.
fn open<B: Brokers>(
    index: usize,
    brokers: Arc<B>,
    partition: &Known<B::Partition>,
) -> impl Future<Output = Answer<B::Partition>> + Send + use<B> {
    let (topic, number, pause) = (partition.topic.clone(), partition.number, partition.pause);
    async move {
        sleep(pause.unwrap_or_default()).await;
        let opening = async {
            let open = brokers.open(topic, number).await?;
            let (first, end) = open.bounds().await?;
            Ok((open, first, end))
        };
        Answer::Opened { partition: index, opened: in_time(opening).await }
    }
}

async fn fetch<P: Partition>(index: usize, open: Arc<P>, offset: i64) -> Answer<P> {
    let fetching = async {
        match open.fetch(offset).await? {
            Some(records) => {
                if records.is_empty() {
                    // The mark of a transaction at the end is answered at once, and shows no message.
                    sleep(NOTHING_THERE).await;
                }
                Ok(Fetched::Messages(records))
            }
            None => open.bounds().await.map(|(first, end)| Fetched::Gap { first, end }),
        }
    };
    Answer::Fetched { partition: index, offset, fetched: in_time(fetching).await }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = || format!("there was no answer within {} seconds", PATIENCE.as_secs());
    timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(late()))
}
