//! Brokers as sources: what their tests share.

mod kafka;
mod logins;
mod nats;
mod outages;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use pintail_telemetry::raw::RawTable;
use pintail_telemetry::sink::FlushPolicy;
use pintail_telemetry::sources::{KafkaOptions, NatsOptions, Source, SourceContext, SourceError, SourceStatus};
use pintail_testkit::wait_until;
use secrecy::SecretString;
use tokio::sync::watch;

use crate::harness::{Place, RECEIVED, rows};

const IDS: &str = "SELECT id FROM lake.main.raw_events ORDER BY id";
const LETTERS: &str = "SELECT position, reason, decode(raw) FROM lake._pintail.dead_letters ORDER BY position";

fn event(id: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/s","type":"t"}}"#)
}

fn context(place: &Place, fault: &str) -> SourceContext {
    SourceContext {
        lake: place.lake(fault),
        table: RawTable::default(),
        policy: FlushPolicy { rows: 1_000, bytes: 1 << 20, age_micros: 0 },
        blobs: None,
        runtime: place.runtime.handle().clone(),
        now: || RECEIVED,
    }
}

/// Runs a source while `meanwhile` does what a test needs, and stops it.
fn run_while(source: Source, meanwhile: impl FnOnce(&SourceStatus)) -> Result<(), SourceError> {
    let (stop, stopped) = watch::channel(false);
    let status = source.status();
    std::thread::scope(|scope| {
        // It goes with this closure, so that a test that fails ends.
        let stop = stop;
        let running = scope.spawn(move || source.run(stopped));
        meanwhile(&status);
        stop.send_replace(true);
        running.join().unwrap()
    })
}

/// Runs a source until the lake has `ids`.
fn run_until(place: &Place, ids: &[&str], source: Source) {
    let reader = place.writer();
    let ended = run_while(source, |_| {
        wait_until(&format!("{ids:?} are there"), || ids.iter().all(|id| has(&reader, id)));
    });
    ended.unwrap();
}

/// Runs a source that ends by itself, and returns why.
fn refusal(source: Source) -> String {
    let (_stop, stopped) = watch::channel(false);
    source.run(stopped).unwrap_err().to_string()
}

/// Runs a source that dies of its fault.
fn crash(source: Source) {
    let source = Mutex::new(Some(source));
    let (_stop, stopped) = watch::channel(false);
    let died = catch_unwind(AssertUnwindSafe(|| source.lock().unwrap().take().unwrap().run(stopped)));
    assert!(died.is_err());
}

fn has(writer: &pintail_streams::Writer, id: &str) -> bool {
    let absent = pintail_engine::lake::absent_names(writer.session(), writer.alias(), &[("main", "raw_events")]);
    absent.unwrap().is_empty()
        && rows(writer, &format!("SELECT 1 FROM lake.main.raw_events WHERE id = '{id}'")).len() == 1
}

/// Returns how the stream `stream` of the server at `url` is read.
pub fn nats_options(url: &str, stream: &str) -> NatsOptions {
    NatsOptions {
        url: SecretString::from(url),
        token: None,
        user: None,
        credentials: None,
        tls: None,
        stream: stream.to_owned(),
        consumer: "pintail".to_owned(),
        subject: None,
        max_tries: 10,
        ack_wait: Duration::from_secs(1),
    }
}

/// Returns how the topic `topic` of the broker at `address` is read.
pub fn kafka_options(address: &str, topic: &str) -> KafkaOptions {
    let (brokers, topics) = (vec![address.to_owned()], vec![topic.to_owned()]);
    KafkaOptions { brokers, topics, from_start: true, tls: None, sasl: None }
}
