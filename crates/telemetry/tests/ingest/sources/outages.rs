//! Brokers that are not there yet, go away, come back, or say nothing.

use std::time::{Duration, Instant};

use pintail_telemetry::sources::{NatsOptions, Reach, Source, SourceOptions};
use pintail_testkit::services::{Fault, Flaky, free_address, kafka as shared_kafka, nats as shared_nats};
use pintail_testkit::services::{private_kafka, private_nats, unique_name};
use pintail_testkit::wait_until;
use secrecy::SecretString;

use super::kafka::Kafka;
use super::nats::Nats;
use super::{context, event, has, kafka_options, nats_options, run_while};
use crate::harness::{On, Place};

/// Longer than the end may take, however busy the machine.
const END: Duration = Duration::from_secs(2);

#[test]
fn a_nats_server_that_comes_later_and_goes_in_between_is_read_whenever_it_is_there() {
    let place = Place::new(On::Sqlite);
    let (address, folder) = (free_address(), place.folder.path().join("nats"));
    let (url, stream) = (format!("nats://{address}"), unique_name());
    let source = Source::new(SourceOptions::Nats(nats_options(&url, &stream)), context(&place, ""));
    let reader = place.writer();
    let ended = run_while(source, |status| {
        wait_until("it is away", || status.reach() == Reach::Away);
        for id in ["first", "second"] {
            let server = private_nats(&folder, &address, &[]);
            let mut broker = Nats::at(&place, &url);
            broker.options.stream.clone_from(&stream);
            broker.subject = format!("{stream}.in");
            if id == "first" {
                broker.make_stream(&place);
            }
            broker.publish(&place, &[], &event(id));
            wait_until(&format!("{id} is there"), || has(&reader, id));
            assert_eq!(status.reach(), Reach::Up);
            drop(server);
            wait_until("it is away again", || status.reach() == Reach::Away);
        }
    });
    ended.unwrap();
}

#[test]
fn a_broker_of_kafka_that_comes_later_and_goes_in_between_is_read_whenever_it_is_there() {
    let place = Place::new(On::Sqlite);
    let address = free_address();
    // Partitions are asked through the proxy, which the broker names as its own address.
    let proxy = Flaky::before(&address);
    let topic = unique_name();
    let source = Source::new(SourceOptions::Kafka(kafka_options(proxy.endpoint(), &topic)), context(&place, ""));
    let reader = place.writer();
    let ended = run_while(source, |status| {
        wait_until("it is away", || status.reach() == Reach::Away);
        let _server = private_kafka(&place.folder.path().join("kafka"), &address, proxy.endpoint());
        let mut broker = Kafka::at(&place, proxy.endpoint());
        broker.make_topic(&place, &topic);
        broker.produce(&place, 0, &[(&[], &event("first"))]);
        wait_until("first is there", || has(&reader, "first"));
        assert_eq!(status.reach(), Reach::Up);
        proxy.set(Fault::Refuse, 1);
        wait_until("it is away again", || status.reach() == Reach::Away);
        proxy.set(Fault::None, 1);
        broker.produce(&place, 1, &[(&[], &event("second"))]);
        wait_until("second is there", || has(&reader, "second"));
        assert_eq!(status.reach(), Reach::Up);
    });
    ended.unwrap();
}

#[test]
fn the_end_does_not_wait_for_a_broker_that_says_nothing() {
    let place = Place::new(On::Sqlite);
    let nats = Flaky::before(shared_nats().trim_start_matches("nats://"));
    let kafka = Flaky::before(&shared_kafka());
    let stream = unique_name();
    let options = [
        SourceOptions::Nats(nats_options(&format!("nats://{}", nats.endpoint()), &stream)),
        SourceOptions::Kafka(kafka_options(kafka.endpoint(), &stream)),
    ];
    for (options, proxy) in options.into_iter().zip([nats, kafka]) {
        proxy.set(Fault::Silent, 1);
        let name = options.name();
        let mut asked = Instant::now();
        let ended = run_while(Source::new(options, context(&place, "")), |_| {
            wait_until("it is asked", || 0 < proxy.hits());
            asked = Instant::now();
        });
        ended.unwrap();
        assert!(asked.elapsed() < END, "{name}: {:?}", asked.elapsed());
    }
}

#[test]
fn the_end_does_not_wait_for_a_server_that_falls_silent_while_it_is_read() {
    let place = Place::new(On::Sqlite);
    let proxy = Flaky::before(shared_nats().trim_start_matches("nats://"));
    let broker = Nats::new(&place);
    let options =
        NatsOptions { url: SecretString::from(format!("nats://{}", proxy.endpoint())), ..broker.options.clone() };
    let reader = place.writer();
    let mut asked = Instant::now();
    let ended = run_while(Source::new(SourceOptions::Nats(options), context(&place, "")), |_| {
        broker.publish(&place, &[], &event("1"));
        wait_until("it is read", || has(&reader, "1"));
        proxy.set(Fault::Silent, 1);
        // The next answer is held back: that to an acknowledgement, or to a request for messages.
        wait_until("it is silent", || 0 < proxy.hits());
        asked = Instant::now();
    });
    ended.unwrap();
    assert!(asked.elapsed() < END, "{:?}", asked.elapsed());
}
