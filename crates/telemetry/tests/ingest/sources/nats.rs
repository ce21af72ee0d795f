//! NATS JetStream: messages in all modes, crashes, redelivery, and consumers that are something else.

use std::time::Duration;

use async_nats::jetstream::{self, stream};
use pintail_telemetry::sources::{NatsOptions, Reach, Source, SourceOptions};
use pintail_testkit::services::{nats, unique_name};
use pintail_testkit::wait_until;
use secrecy::SecretString;

use super::{IDS, LETTERS, context, crash, event, has, refusal, run_until, run_while};
use crate::harness::{On, Place, rows};

/// A stream that nobody else uses.
pub struct Nats {
    pub options: NatsOptions,
    pub context: jetstream::Context,
    pub subject: String,
}

impl Nats {
    /// Makes it on the shared server.
    pub fn new(place: &Place) -> Self {
        let broker = Self::at(place, &nats());
        broker.make_stream(place);
        broker
    }

    /// Returns what will be a stream of the server at `url`, which is there.
    pub fn at(place: &Place, url: &str) -> Self {
        let stream = unique_name();
        let subject = format!("{stream}.in");
        let context = place.runtime.block_on(async { jetstream::new(async_nats::connect(url).await.unwrap()) });
        let options = NatsOptions {
            url: SecretString::from(url),
            token: None,
            user: None,
            credentials: None,
            tls: None,
            stream,
            consumer: "pintail".to_owned(),
            subject: None,
            max_tries: 3,
            ack_wait: Duration::from_secs(1),
        };
        Self { options, context, subject }
    }

    pub fn make_stream(&self, place: &Place) {
        let (name, subjects) = (self.options.stream.clone(), vec![format!("{}.>", self.options.stream)]);
        let config = stream::Config { name, subjects, ..stream::Config::default() };
        place.runtime.block_on(self.context.create_stream(config)).unwrap();
    }

    pub fn publish(&self, place: &Place, headers: &[(&str, &str)], payload: &str) {
        self.publish_to(place, &self.subject, headers, payload);
    }

    pub fn publish_to(&self, place: &Place, subject: &str, headers: &[(&str, &str)], payload: &str) {
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

    pub fn source(&self, place: &Place, fault: &str) -> Source {
        Source::new(SourceOptions::Nats(self.options.clone()), context(place, fault))
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
    run_until(&place, &["last"], broker.source(&place, ""));
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
    crash(broker.source(&place, "written=panic"));
    broker.publish(&place, &[], &event("2"));
    // The older message is not delivered before its time is up; the newer one must not push it out.
    run_until(&place, &["1", "2"], broker.source(&place, ""));
    broker.publish(&place, &[], &event("3"));
    crash(broker.source(&place, "committed=panic"));
    broker.publish(&place, &[], &event("4"));
    run_until(&place, &["4"], broker.source(&place, ""));
    // Message 3 is delivered again, known, and acknowledged.
    let ended = run_while(broker.source(&place, ""), |_| {
        wait_until("everything is acknowledged", || place.runtime.block_on(acknowledged(&broker)) == 4);
    });
    ended.unwrap();
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
    crash(broker.source(&place, "written=panic"));
    broker.publish(&place, &[], &event("good"));
    let letters = |writer: &pintail_streams::Writer| rows(writer, "SELECT reason FROM lake._pintail.dead_letters");
    let reader = place.writer();
    let ended = run_while(broker.source(&place, ""), |_| {
        wait_until("the message is given up", || !letters(&reader).is_empty());
    });
    ended.unwrap();
    let writer = place.writer();
    assert_eq!(rows(&writer, IDS), ["good"]);
    assert!(letters(&writer)[0].starts_with("it was delivered 2 times and has never landed"));
}

#[test]
fn a_stream_that_is_made_later_is_read_from_then_on() {
    let place = Place::new(On::Sqlite);
    let mut broker = Nats::new(&place);
    broker.options.stream = unique_name();
    broker.subject = format!("{}.in", broker.options.stream);
    let reader = place.writer();
    let ended = run_while(broker.source(&place, ""), |status| {
        wait_until("it is away", || status.reach() == Reach::Away);
        broker.make_stream(&place);
        broker.publish(&place, &[], &event("1"));
        wait_until("its message is there", || has(&reader, "1"));
        assert_eq!(status.reach(), Reach::Up);
    });
    ended.unwrap();
}

#[test]
fn another_subject_begins_with_its_first_message_whatever_was_acknowledged() {
    let place = Place::new(On::Sqlite);
    let mut broker = Nats::new(&place);
    let (first, second) = (format!("{}.first", broker.options.stream), format!("{}.second", broker.options.stream));
    broker.publish_to(&place, &second, &[], &event("older"));
    broker.publish_to(&place, &first, &[], &event("read"));
    broker.options.subject = Some(first.clone());
    run_until(&place, &["read"], broker.source(&place, ""));
    // The same consumer, which reads something else on the server.
    broker.options.subject = Some(second.clone());
    let error = refusal(broker.source(&place, ""));
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
        run_until(&place, &[id], broker.source(&place, ""));
    }
    // What the first had landed is known to the one that took its place.
    assert_eq!(rows(&place.writer(), IDS), ["newest", "older", "read"]);
}

#[test]
fn a_consumer_that_would_lose_or_wait_otherwise_is_refused() {
    let place = Place::new(On::Sqlite);
    let mut broker = Nats::new(&place);
    let made = run_while(broker.source(&place, ""), |status| {
        wait_until("the consumer is made", || status.reach() == Reach::Up);
    });
    made.unwrap();
    broker.options.ack_wait = Duration::from_secs(7);
    let error = refusal(broker.source(&place, ""));
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
    let error = refusal(broker.source(&place, ""));
    assert!(
        error.to_string().contains("whose largest number of deliveries is 2, and no bound was expected"),
        "{error}"
    );
}
