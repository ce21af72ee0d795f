//! Kafka: messages in all modes, crashes, partitions that fail or are new, and topics that are something else.

use pintail_telemetry::sources::{KafkaOptions, Source, SourceOptions};
use pintail_testkit::services::{kafka, unique_name};
use pintail_testkit::wait_until;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::record::Record;

use super::{IDS, LETTERS, context, crash, event, has, refusal, run_until, run_while};
use crate::harness::{On, Place, RECEIVED, rows};

/// A topic of two partitions that nobody else uses.
pub struct Kafka {
    pub options: KafkaOptions,
    pub client: rskafka::client::Client,
}

impl Kafka {
    /// Makes it on the shared broker.
    pub fn new(place: &Place) -> Self {
        let mut broker = Self::at(place, &kafka());
        broker.make_topic(place, &unique_name());
        broker
    }

    /// Returns the broker at `address`, which is there, without a topic.
    pub fn at(place: &Place, address: &str) -> Self {
        let client = place.runtime.block_on(ClientBuilder::new(vec![address.to_owned()]).build()).unwrap();
        let (brokers, topics) = (vec![address.to_owned()], Vec::new());
        Self { options: KafkaOptions { brokers, topics, from_start: true, tls: None, sasl: None }, client }
    }

    /// Makes the topic `name`, which is read from then on.
    pub fn make_topic(&mut self, place: &Place, name: &str) {
        let controller = self.client.controller_client().unwrap();
        place.runtime.block_on(controller.create_topic(name, 2, 1, 5_000)).unwrap();
        self.options.topics = vec![name.to_owned()];
    }

    pub fn produce(&self, place: &Place, partition: i32, messages: &[(&[(&str, &str)], &str)]) {
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

    pub fn source(&self, place: &Place, fault: &str) -> Source {
        Source::new(SourceOptions::Kafka(self.options.clone()), context(place, fault))
    }
}

/// Returns how far the lake is in Kafka; empty when it knows nothing of it.
pub fn kafka_position(reader: &pintail_streams::Writer) -> String {
    let name = ("_pintail", "position_kafka");
    let absent = pintail_engine::lake::absent_names(reader.session(), reader.alias(), &[name]).unwrap();
    if absent.is_empty() {
        rows(reader, "SELECT position FROM lake._pintail.position_kafka").concat()
    } else {
        String::new()
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
    run_until(&place, &["a", "b", "c"], broker.source(&place, ""));
    for (number, point) in ["checked", "written", "stamped", "committed"].into_iter().enumerate() {
        broker.produce(&place, i32::try_from(number % 2).unwrap(), &[(&[], &event(point))]);
        crash(broker.source(&place, &format!("{point}=panic")));
    }
    broker.produce(&place, 0, &[(&[], &event("z"))]);
    run_until(&place, &["z"], broker.source(&place, ""));
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
    run_until(&place, &["a"], broker.source(&place, ""));
    let topic = &broker.options.topics[0];
    let writer = place.writer();
    let ahead = format!("UPDATE lake._pintail.position_kafka SET position = '{{\"{topic}/0\":99,\"{topic}/1\":0}}'");
    crate::harness::foreign(&writer, &ahead);
    let error = refusal(broker.source(&place, ""));
    assert!(error.to_string().contains("ends at 1, and the lake has read up to 99"), "{error}");
}

#[test]
fn a_partition_that_fails_does_not_keep_the_others_out() {
    let place = Place::new(On::Sqlite);
    let (gone, mut kept) = (Kafka::new(&place), Kafka::new(&place));
    let own = kept.options.topics.clone();
    kept.options.topics.extend(gone.options.topics.clone());
    let source = kept.source(&place, "");
    kept.options.topics = own;
    let reader = place.writer();
    let ended = run_while(source, |_| {
        wait_until("all partitions have begun", || kafka_position(&reader).matches('/').count() == 4);
        place.runtime.block_on(async {
            let controller = gone.client.controller_client().unwrap();
            controller.delete_topic(gone.options.topics[0].clone(), 5_000).await.unwrap();
        });
        kept.produce(&place, 0, &[(&[], &event("a"))]);
        kept.produce(&place, 1, &[(&[], &event("b"))]);
        wait_until("the others land", || has(&reader, "a") && has(&reader, "b"));
    });
    ended.unwrap();
}

#[test]
fn from_the_end_is_from_the_end_of_the_first_start() {
    let place = Place::new(On::Sqlite);
    let mut broker = Kafka::new(&place);
    broker.options.from_start = false;
    broker.produce(&place, 0, &[(&[], &event("before"))]);
    let reader = place.writer();
    let begun = run_while(broker.source(&place, ""), |_| {
        wait_until("both partitions have begun", || kafka_position(&reader).matches('/').count() == 2);
    });
    begun.unwrap();
    broker.produce(&place, 0, &[(&[], &event("between"))]);
    run_until(&place, &["between"], broker.source(&place, ""));
    // A partition that is added to a topic which the lake knows has nothing that is older than the first start.
    broker.produce(&place, 1, &[(&[], &event("added"))]);
    let topic = &broker.options.topics[0];
    let one = format!("UPDATE lake._pintail.position_kafka SET position = '{{\"{topic}/0\":2}}'");
    crate::harness::foreign(&place.writer(), &one);
    run_until(&place, &["added"], broker.source(&place, ""));
    assert_eq!(rows(&place.writer(), IDS), ["added", "between"]);
}

#[test]
fn a_message_without_any_event_is_passed() {
    let place = Place::new(On::Sqlite);
    let broker = Kafka::new(&place);
    broker.produce(&place, 0, &[(&[("content-type", "application/cloudevents-batch+json")], "[]")]);
    let topic = &broker.options.topics[0];
    let passed = format!(r#"{{"{topic}/0":1,"{topic}/1":0}}"#);
    let reader = place.writer();
    let ended = run_while(broker.source(&place, ""), |_| {
        wait_until("it is passed", || kafka_position(&reader) == passed);
    });
    ended.unwrap();
}
