//! Brokers as sources: real servers, messages in all modes, crashes and redelivery.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use async_nats::jetstream::{self, stream};
use pintail_telemetry::raw::RawTable;
use pintail_telemetry::sink::FlushPolicy;
use pintail_telemetry::sources::{KafkaOptions, KafkaSource, NatsOptions, NatsSource, SourceContext, SourceError};
use pintail_testkit::services::{kafka, nats, unique_name};
use pintail_testkit::wait_until;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::record::Record;
use secrecy::SecretString;
use tokio::sync::watch;

use crate::harness::{On, Place, RECEIVED, rows};

const IDS: &str = "SELECT id FROM lake.main.raw_events ORDER BY id";
const LETTERS: &str = "SELECT position, reason, decode(raw) FROM lake._pintail.dead_letters ORDER BY position";

fn event(id: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/s","type":"t"}}"#)
}

fn context(place: &Place) -> SourceContext {
    SourceContext {
        policy: FlushPolicy { rows: 1_000, bytes: 1 << 20, age_micros: 0 },
        blobs: None,
        runtime: place.runtime.handle().clone(),
        now: || RECEIVED,
    }
}

/// Runs a source until the lake has `ids`, stops it, and returns how it ended.
fn run_until(place: &Place, ids: &[&str], run: impl FnOnce(watch::Receiver<bool>) -> Result<(), SourceError> + Send) {
    let (stop, stopped) = watch::channel(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(move || run(stopped));
        let reader = place.writer();
        wait_until(&format!("{ids:?} are there"), || running.is_finished() || ids.iter().all(|id| has(&reader, id)));
        stop.send_replace(true);
        running.join().unwrap().unwrap();
    });
}

fn has(writer: &pintail_streams::Writer, id: &str) -> bool {
    let absent = pintail_engine::lake::absent_names(writer.session(), writer.alias(), &[("main", "raw_events")]);
    absent.unwrap().is_empty()
        && rows(writer, &format!("SELECT 1 FROM lake.main.raw_events WHERE id = '{id}'")).len() == 1
}

struct Nats {
    options: NatsOptions,
    context: jetstream::Context,
    subject: String,
}

impl Nats {
    fn new(place: &Place) -> Self {
        let stream = unique_name();
        let subject = format!("{stream}.in");
        let context = place.runtime.block_on(async {
            let context = jetstream::new(async_nats::connect(nats()).await.unwrap());
            let subjects = vec![format!("{stream}.>")];
            let config = stream::Config { name: stream.clone(), subjects, ..stream::Config::default() };
            context.create_stream(config).await.unwrap();
            context
        });
        let options = NatsOptions {
            url: SecretString::from(nats()),
            token: None,
            stream,
            consumer: "pintail".to_owned(),
            subject: None,
            max_tries: 3,
            ack_wait: Duration::from_secs(1),
        };
        Self { options, context, subject }
    }

    fn publish(&self, place: &Place, headers: &[(&str, &str)], payload: &str) {
        self.publish_to(place, &self.subject, headers, payload);
    }

    fn publish_to(&self, place: &Place, subject: &str, headers: &[(&str, &str)], payload: &str) {
        let mut map = async_nats::HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        let payload = payload.to_owned().into();
        let publish = async {
            let acknowledged = self.context.publish_with_headers(subject.to_owned(), map, payload).await.unwrap();
            acknowledged.await.unwrap();
        };
        place.runtime.block_on(publish);
    }

    fn open(&self, place: &Place, fault: &str) -> NatsSource {
        NatsSource::open(place.writer_with(fault), RawTable::default(), &self.options, context(place)).unwrap()
    }

    /// Runs a source that dies at `fault`.
    fn crash(&self, place: &Place, fault: &str) {
        let source = Mutex::new(Some(self.open(place, fault)));
        let (_stop, stopped) = watch::channel(false);
        let died = catch_unwind(AssertUnwindSafe(|| source.lock().unwrap().take().unwrap().run(stopped)));
        assert!(died.is_err(), "{fault}");
    }
}

#[test]
fn messages_of_nats_land_in_all_modes_and_bad_ones_are_dead_letters() {
    let place = Place::new(On::Sqlite);
    let broker = Nats::new(&place);
    broker.publish(&place, &[], &event("structured"));
    broker.publish(&place, &[], "{\"specversion\":");
    let binary = [("ce-specversion", "1.0"), ("ce-id", "binary"), ("ce-source", "/s"), ("ce-type", "t")];
    broker.publish(&place, &binary, "{\"a\":1.10}");
    let batch = format!("[{}, 1, {}]", event("first"), event("last"));
    broker.publish(&place, &[("Content-Type", "application/cloudevents-batch+json")], &batch);
    run_until(&place, &["last"], |stop| broker.open(&place, "").run(stop));
    let writer = place.writer();
    assert_eq!(rows(&writer, IDS), ["binary", "first", "last", "structured"]);
    let stream = &broker.options.stream;
    assert_eq!(
        rows(&writer, LETTERS),
        [
            format!(
                "stream {stream} message 2|line 1, column 15: this is not JSON: EOF while parsing a value|{{\"specversion\":"
            ),
            format!("stream {stream} message 4|line 1, column 63: an event must be an object, found a number|1"),
        ]
    );
}

#[test]
fn a_crash_before_or_after_the_commit_is_made_good_by_redelivery() {
    let place = Place::new(On::Sqlite);
    let broker = Nats::new(&place);
    broker.publish(&place, &[], &event("1"));
    broker.crash(&place, "written=panic");
    broker.publish(&place, &[], &event("2"));
    // The older message is not delivered before its time is up; the newer one must not push it out.
    run_until(&place, &["1", "2"], |stop| broker.open(&place, "").run(stop));
    broker.publish(&place, &[], &event("3"));
    broker.crash(&place, "committed=panic");
    broker.publish(&place, &[], &event("4"));
    let source = broker.open(&place, "");
    run_until(&place, &["4"], |stop| source.run(stop));
    // Message 3 is delivered again, known, and acknowledged.
    let (stop, stopped) = watch::channel(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| broker.open(&place, "").run(stopped));
        wait_until("everything is acknowledged", || place.runtime.block_on(acknowledged(&broker)) == 4);
        stop.send_replace(true);
        running.join().unwrap().unwrap();
    });
    assert_eq!(rows(&place.writer(), IDS), ["1", "2", "3", "4"]);
}

async fn acknowledged(broker: &Nats) -> u64 {
    let stream = broker.context.get_stream(&broker.options.stream).await.unwrap();
    stream.consumer_info("pintail").await.unwrap().ack_floor.stream_sequence
}

#[test]
fn a_message_that_ends_the_process_again_and_again_is_given_up() {
    let place = Place::new(On::Sqlite);
    let mut broker = Nats::new(&place);
    broker.options.max_tries = 1;
    broker.publish(&place, &[], &event("bad"));
    broker.crash(&place, "written=panic");
    broker.publish(&place, &[], &event("good"));
    let letters = |writer: &pintail_streams::Writer| rows(writer, "SELECT reason FROM lake._pintail.dead_letters");
    let (stop, stopped) = watch::channel(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| broker.open(&place, "").run(stopped));
        let reader = place.writer();
        wait_until("the message is given up", || running.is_finished() || !letters(&reader).is_empty());
        stop.send_replace(true);
        running.join().unwrap().unwrap();
    });
    let writer = place.writer();
    assert_eq!(rows(&writer, IDS), ["good"]);
    assert!(letters(&writer)[0].starts_with("it was delivered 2 times and has never landed"));
}

#[test]
fn a_stream_that_is_not_there_is_named() {
    let place = Place::new(On::Sqlite);
    let mut broker = Nats::new(&place);
    broker.options.stream = "missing".to_owned();
    let error = NatsSource::open(place.writer(), RawTable::default(), &broker.options, context(&place)).err().unwrap();
    assert!(
        error.to_string().starts_with("could not find the stream, which must be there (NATS stream missing)"),
        "{error}"
    );
}

#[test]
fn another_subject_begins_with_its_first_message_whatever_was_acknowledged() {
    let place = Place::new(On::Sqlite);
    let mut broker = Nats::new(&place);
    let (first, second) = (format!("{}.first", broker.options.stream), format!("{}.second", broker.options.stream));
    broker.publish_to(&place, &second, &[], &event("older"));
    broker.publish_to(&place, &first, &[], &event("read"));
    broker.options.subject = Some(first.clone());
    run_until(&place, &["read"], |stop| broker.open(&place, "").run(stop));
    // The same consumer, which reads something else on the server.
    broker.options.subject = Some(second.clone());
    let error = NatsSource::open(place.writer(), RawTable::default(), &broker.options, context(&place)).err().unwrap();
    let expected = format!("a consumer `pintail` whose subject is `{first}`, and `{second}` was expected; put");
    assert!(error.to_string().contains(&expected), "{error}");
    // Another one; and one of the first name, made anew.
    for (consumer, id) in [("other", "older"), ("pintail", "newest")] {
        broker.options.consumer = consumer.to_owned();
        if consumer == "pintail" {
            let stream = place.runtime.block_on(broker.context.get_stream(&broker.options.stream)).unwrap();
            place.runtime.block_on(stream.delete_consumer("pintail")).unwrap();
            broker.options.subject = Some(first.clone());
            broker.publish_to(&place, &first, &[], &event("newest"));
        }
        run_until(&place, &[id], |stop| broker.open(&place, "").run(stop));
    }
    // What the first had landed is known to the one that took its place.
    assert_eq!(rows(&place.writer(), IDS), ["newest", "older", "read"]);
}

#[test]
fn a_consumer_that_would_lose_or_wait_otherwise_is_refused() {
    let place = Place::new(On::Sqlite);
    let mut broker = Nats::new(&place);
    drop(broker.open(&place, ""));
    broker.options.ack_wait = Duration::from_secs(7);
    let error = NatsSource::open(place.writer(), RawTable::default(), &broker.options, context(&place)).err().unwrap();
    assert!(error.to_string().contains("whose `ack_wait` is 1s, and 7s was expected"), "{error}");
    let bounded = jetstream::consumer::pull::Config {
        durable_name: Some("bounded".to_owned()),
        max_deliver: 2,
        ..jetstream::consumer::pull::Config::default()
    };
    place.runtime.block_on(async {
        let stream = broker.context.get_stream(&broker.options.stream).await.unwrap();
        stream.create_consumer(bounded).await.unwrap();
    });
    broker.options.consumer = "bounded".to_owned();
    let error = NatsSource::open(place.writer(), RawTable::default(), &broker.options, context(&place)).err().unwrap();
    assert!(
        error.to_string().contains("whose largest number of deliveries is 2, and no bound was expected"),
        "{error}"
    );
}

struct Kafka {
    options: KafkaOptions,
    client: rskafka::client::Client,
}

impl Kafka {
    fn new(place: &Place) -> Self {
        let topic = unique_name();
        let client = place.runtime.block_on(async {
            let client = ClientBuilder::new(vec![kafka()]).build().await.unwrap();
            client.controller_client().unwrap().create_topic(topic.clone(), 2, 1, 5_000).await.unwrap();
            client
        });
        let options = KafkaOptions { brokers: vec![kafka()], topics: vec![topic], from_start: true };
        Self { options, client }
    }

    fn produce(&self, place: &Place, partition: i32, messages: &[(&[(&str, &str)], &str)]) {
        let record = |(headers, value): &(&[(&str, &str)], &str)| Record {
            key: None,
            value: Some(value.as_bytes().to_vec()),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect(),
            timestamp: chrono::DateTime::from_timestamp_micros(RECEIVED).unwrap(),
        };
        let records: Vec<Record> = messages.iter().map(record).collect();
        place.runtime.block_on(async {
            let topic = self.options.topics[0].clone();
            let client = self.client.partition_client(topic, partition, UnknownTopicHandling::Retry).await.unwrap();
            client.produce(records, Compression::NoCompression).await.unwrap();
        });
    }

    fn open(&self, place: &Place, fault: &str) -> KafkaSource {
        KafkaSource::open(place.writer_with(fault), RawTable::default(), &self.options, context(place)).unwrap()
    }
}

#[test]
fn messages_of_kafka_land_once_from_every_partition_whatever_crashes() {
    let place = Place::new(On::Sqlite);
    let broker = Kafka::new(&place);
    let binary = [
        ("ce_specversion", "1.0"),
        ("ce_id", "b"),
        ("ce_source", "/s"),
        ("ce_type", "t"),
        ("content-type", "text/plain"),
    ];
    broker.produce(&place, 0, &[(&[], &event("a")), (&[], "no event"), (&binary, "text")]);
    broker.produce(&place, 1, &[(&[], &event("c"))]);
    run_until(&place, &["a", "b", "c"], |stop| broker.open(&place, "").run(stop));
    for (number, point) in ["checked", "written", "stamped", "committed"].into_iter().enumerate() {
        broker.produce(&place, i32::try_from(number % 2).unwrap(), &[(&[], &event(point))]);
        let source = Mutex::new(Some(broker.open(&place, &format!("{point}=panic"))));
        let (_stop, stopped) = watch::channel(false);
        let died = catch_unwind(AssertUnwindSafe(|| source.lock().unwrap().take().unwrap().run(stopped)));
        assert!(died.is_err(), "{point}");
    }
    broker.produce(&place, 0, &[(&[], &event("z"))]);
    run_until(&place, &["z"], |stop| broker.open(&place, "").run(stop));
    let writer = place.writer();
    assert_eq!(rows(&writer, IDS), ["a", "b", "c", "checked", "committed", "stamped", "written", "z"]);
    let topic = &broker.options.topics[0];
    assert_eq!(
        rows(&writer, LETTERS),
        [format!("{topic}/0 offset 1|line 1, column 2: this is not JSON: expected ident|no event")]
    );
    let position = "SELECT position FROM lake._pintail.position_kafka";
    assert_eq!(rows(&writer, position), [format!(r#"{{"{topic}/0":6,"{topic}/1":3}}"#)]);
}

#[test]
fn a_topic_that_was_made_anew_is_refused() {
    let place = Place::new(On::Sqlite);
    let broker = Kafka::new(&place);
    broker.produce(&place, 0, &[(&[], &event("a"))]);
    run_until(&place, &["a"], |stop| broker.open(&place, "").run(stop));
    let topic = &broker.options.topics[0];
    let writer = place.writer();
    let ahead = format!("UPDATE lake._pintail.position_kafka SET position = '{{\"{topic}/0\":99,\"{topic}/1\":0}}'");
    crate::harness::foreign(&writer, &ahead);
    let error = KafkaSource::open(place.writer(), RawTable::default(), &broker.options, context(&place)).err().unwrap();
    assert!(error.to_string().contains("ends at 1, and the lake has read up to 99"), "{error}");
}

#[test]
fn a_partition_that_fails_does_not_keep_the_others_out() {
    let place = Place::new(On::Sqlite);
    let (gone, mut kept) = (Kafka::new(&place), Kafka::new(&place));
    let topics = [gone.options.topics.clone(), kept.options.topics.clone()].concat();
    let kept_topics = std::mem::replace(&mut kept.options.topics, topics);
    let source = kept.open(&place, "");
    place.runtime.block_on(async {
        let controller = gone.client.controller_client().unwrap();
        controller.delete_topic(gone.options.topics[0].clone(), 5_000).await.unwrap();
    });
    wait_until("the topic is gone", || {
        let topics = place.runtime.block_on(gone.client.list_topics()).unwrap();
        !topics.iter().any(|topic| topic.name == gone.options.topics[0])
    });
    kept.options.topics = kept_topics;
    kept.produce(&place, 0, &[(&[], &event("a"))]);
    kept.produce(&place, 1, &[(&[], &event("b"))]);
    run_until(&place, &["a", "b"], |stop| source.run(stop));
}

#[test]
fn from_the_end_is_from_the_end_of_the_first_start() {
    let place = Place::new(On::Sqlite);
    let mut broker = Kafka::new(&place);
    broker.options.from_start = false;
    broker.produce(&place, 0, &[(&[], &event("before"))]);
    drop(broker.open(&place, ""));
    broker.produce(&place, 0, &[(&[], &event("between"))]);
    run_until(&place, &["between"], |stop| broker.open(&place, "").run(stop));
    // A partition that is added to a topic which the lake knows has nothing that is older than the first start.
    broker.produce(&place, 1, &[(&[], &event("added"))]);
    let topic = &broker.options.topics[0];
    let one = format!("UPDATE lake._pintail.position_kafka SET position = '{{\"{topic}/0\":2}}'");
    crate::harness::foreign(&place.writer(), &one);
    run_until(&place, &["added"], |stop| broker.open(&place, "").run(stop));
    assert_eq!(rows(&place.writer(), IDS), ["added", "between"]);
}

#[test]
fn a_message_without_any_event_is_passed() {
    let place = Place::new(On::Sqlite);
    let broker = Kafka::new(&place);
    broker.produce(&place, 0, &[(&[("content-type", "application/cloudevents-batch+json")], "[]")]);
    let topic = &broker.options.topics[0];
    let passed = [format!(r#"{{"{topic}/0":1,"{topic}/1":0}}"#)];
    let source = broker.open(&place, "");
    let (stop, stopped) = watch::channel(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| source.run(stopped));
        let reader = place.writer();
        wait_until("it is passed", || {
            running.is_finished() || rows(&reader, "SELECT position FROM lake._pintail.position_kafka") == passed
        });
        stop.send_replace(true);
        running.join().unwrap().unwrap();
    });
    assert_eq!(rows(&place.writer(), "SELECT position FROM lake._pintail.position_kafka"), passed);
}
