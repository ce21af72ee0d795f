//! Gathering from brokers that answer as a test says, with a clock that does not make it wait.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rskafka::record::{Record, RecordAndOffset};
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::connect::{Brokers, Partition};
use super::*;

/// What a partition does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Answers,
    IsSilent,
    Refuses,
    /// It does not say where it begins and ends, either.
    IsAway,
}

#[derive(Clone)]
struct Fake(Arc<Shared>);

struct Shared {
    manners: Vec<Manner>,
    /// Whether those that do not answer do so from now on.
    is_mended: AtomicBool,
    opened: AtomicUsize,
}

struct FakePartition {
    brokers: Fake,
    number: usize,
}

impl Fake {
    fn with(manners: &[Manner]) -> Self {
        let (is_mended, opened) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self(Arc::new(Shared { manners: manners.to_vec(), is_mended, opened }))
    }

    fn manner(&self, number: usize) -> Manner {
        if self.0.is_mended.load(Ordering::Relaxed) { Manner::Answers } else { self.0.manners[number] }
    }
}

impl Brokers for Fake {
    type Partition = FakePartition;

    async fn topics(&self) -> Result<Vec<(String, Vec<i32>)>, String> {
        let numbers = 0..i32::try_from(self.0.manners.len()).unwrap();
        Ok(vec![("t".to_owned(), numbers.collect())])
    }

    async fn open(&self, _: String, number: i32) -> Result<FakePartition, String> {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
        Ok(FakePartition { brokers: self.clone(), number: usize::try_from(number).unwrap() })
    }
}

impl Partition for FakePartition {
    async fn fetch(&self, offset: i64) -> Result<Option<Vec<RecordAndOffset>>, String> {
        match self.brokers.manner(self.number) {
            Manner::Answers if offset < 3 => Ok(Some(vec![event(offset)])),
            Manner::Answers => {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok(Some(Vec::new()))
            }
            Manner::IsSilent => pending().await,
            Manner::Refuses | Manner::IsAway => Err("it has no leader".to_owned()),
        }
    }

    async fn bounds(&self) -> Result<(i64, i64), String> {
        match self.brokers.manner(self.number) {
            Manner::IsAway => Err("it has no leader".to_owned()),
            _ => Ok((0, 3)),
        }
    }
}

fn event(offset: i64) -> RecordAndOffset {
    let value = format!(r#"{{"specversion":"1.0","id":"{offset}","source":"/s","type":"t"}}"#).into_bytes();
    let (key, headers) = (None, BTreeMap::new());
    RecordAndOffset {
        record: Record { key, value: Some(value), headers, timestamp: chrono::DateTime::UNIX_EPOCH },
        offset,
    }
}

fn gathering(fake: &Fake) -> Gathering<Fake> {
    Gathering {
        partitions: Partitions::of(fake.clone(), vec!["t".to_owned()]),
        from_start: true,
        policy: FlushPolicy { rows: 1_000, bytes: 1 << 20, age_micros: 0 },
        age: Duration::from_millis(250),
        status: SourceStatus::new("kafka"),
        now: || 0,
        place: "Kafka".to_owned(),
        missing: Vec::new(),
    }
}

/// Gathers batches, as if each landed, until they reach `goal`; returns how long it took.
async fn gather_until(gathering: &mut Gathering<Fake>, offsets: &mut Offsets, goal: &[(&str, i64)]) -> Duration {
    let (_stop, mut stop) = watch::channel(false);
    let started = Instant::now();
    while !goal.iter().all(|(name, offset)| offsets.get(*name) == Some(offset)) {
        *offsets = gathering.gather(offsets, &mut stop).await.unwrap().offsets;
        assert!(started.elapsed() < Duration::from_secs(120), "{offsets:?}");
    }
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_does_not_answer_delays_nobody_and_is_read_once_it_answers() {
    for manner in [Manner::IsSilent, Manner::Refuses] {
        let fake = Fake::with(&[manner, Manner::Answers]);
        let mut gathering = gathering(&fake);
        let mut offsets = Offsets::new();
        let took = gather_until(&mut gathering, &mut offsets, &[("t/1", 3)]).await;
        assert!(took <= Duration::from_secs(1), "{manner:?}: {took:?}");
        assert_eq!(offsets.get("t/0"), Some(&0), "where it begins is known");
        // Its connection is given up for a new one, which may be asked after the others have long gone on.
        let opened = fake.0.opened.load(Ordering::Relaxed);
        fake.0.is_mended.store(true, Ordering::Relaxed);
        let took = gather_until(&mut gathering, &mut offsets, &[("t/0", 3)]).await;
        assert!(took <= Duration::from_secs(12), "{manner:?}: {took:?}");
        assert!(opened < fake.0.opened.load(Ordering::Relaxed), "{manner:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_was_away_at_the_first_start_begins_at_its_end_like_the_others() {
    let fake = Fake::with(&[Manner::IsAway, Manner::Answers]);
    let from_end = || Gathering { from_start: false, ..gathering(&fake) };
    let mut offsets = Offsets::new();
    // The other one is read, and the lake knows of both.
    gather_until(&mut from_end(), &mut offsets, &[("t/1", 3)]).await;
    assert_eq!(offsets.get("t/0"), Some(&ITS_END));
    // So a later start does not take it for one that was added later.
    fake.0.is_mended.store(true, Ordering::Relaxed);
    let (_stop, mut stop) = watch::channel(false);
    let mut gathering = from_end();
    let begun = gathering.gather(&offsets, &mut stop).await.unwrap();
    assert_eq!((begun.messages, begun.offsets.get("t/0")), (0, Some(&3)));
    // What has not landed is the same the next time.
    assert_eq!(gathering.gather(&offsets, &mut stop).await.unwrap().offsets, begun.offsets);
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_is_added_later_begins_at_its_first_message() {
    let fake = Fake::with(&[Manner::Answers, Manner::Answers]);
    let mut gathering = Gathering { from_start: false, ..gathering(&fake) };
    let mut offsets = Offsets::from([("t/0".to_owned(), 3)]);
    let (_stop, mut stop) = watch::channel(false);
    let gathered = gathering.gather(&offsets, &mut stop).await.unwrap();
    assert_eq!(gathered.messages, 3);
    offsets.insert("t/1".to_owned(), 3);
    assert_eq!(gathered.offsets, offsets);
}

#[tokio::test(start_paused = true)]
async fn when_no_partition_answers_the_source_has_failed() {
    let fake = Fake::with(&[Manner::Refuses, Manner::IsSilent]);
    let mut gathering = gathering(&fake);
    let (_stop, mut stop) = watch::channel(false);
    let mut offsets = Offsets::new();
    let error = loop {
        match gathering.gather(&offsets, &mut stop).await {
            Ok(gathered) => offsets = gathered.offsets,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().starts_with("could not read messages (Kafka): "), "{error}");
    assert_ne!(gathering.status.reach(), crate::sources::Reach::Up);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_did_not_land_is_gathered_again_from_where_the_lake_is() {
    let fake = Fake::with(&[Manner::Answers]);
    let mut gathering = gathering(&fake);
    let (_stop, mut stop) = watch::channel(false);
    let offsets = Offsets::from([("t/0".to_owned(), 1)]);
    for _ in 0..3 {
        let gathered = gathering.gather(&offsets, &mut stop).await.unwrap();
        let ids: Vec<&str> = gathered.batch.arrivals.iter().map(|arrival| arrival.event.id.as_str()).collect();
        assert_eq!((ids, gathered.messages), (vec!["1", "2"], 2));
        assert_eq!(gathered.offsets, Offsets::from([("t/0".to_owned(), 3)]));
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_an_answer() {
    let fake = Fake::with(&[Manner::IsSilent]);
    let mut gathering = gathering(&fake);
    gathering.age = Duration::from_secs(3_600);
    let (stop, mut stopped) = watch::channel(false);
    let started = Instant::now();
    let offsets = Offsets::from([("t/0".to_owned(), 0)]);
    let later = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        stop.send_replace(true);
    };
    let (gathered, ()) = tokio::join!(gathering.gather(&offsets, &mut stopped), later);
    assert_eq!((gathered.unwrap().messages, started.elapsed()), (0, Duration::from_secs(3)));
}
