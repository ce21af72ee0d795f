//! Brokers beside HTTP: one that is away holds up nobody, and is told once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pintail_testkit::services::{free_address, private_nats};
use pintail_testkit::{Project, wait_until};

use super::{event, get, query, send, start, stop};

/// Publishes `payload` to the NATS server at `address`, and waits until JetStream has answered.
fn tell_nats(address: &str, subject: &str, payload: &str) {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let length = payload.len();
    let command =
        format!("CONNECT {{\"verbose\":false}}\r\nSUB told 1\r\nPUB {subject} told {length}\r\n{payload}\r\n");
    stream.write_all(command.as_bytes()).expect("the server reads");
    let mut said = String::new();
    while !said.contains("MSG told") {
        let mut buffer = [0; 4_096];
        let length = stream.read(&mut buffer).expect("the server answers");
        assert_ne!(length, 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert!(!said.contains("\"error\""), "{said}");
}

#[test]
fn a_broker_that_is_away_holds_up_neither_http_nor_the_end_and_is_told_once() {
    let address = free_address();
    let project = Project::new(&format!(
        "//- /pintail.toml\n[ingest]\nflush_age = \"0s\"\n[ingest.nats]\nurl = \"nats://{address}\"\nstream = \"EVENTS\"\n"
    ));
    let (running, http) = start(&project, "");
    running.wait_for_talk("the source is away");
    assert_eq!(send(&http, "1"), Some(202));
    let ready = get(&http, "/ready");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains(r#"{"source":"nats","state":"away"}"#), "{ready}");
    let metrics = get(&http, "/metrics");
    assert!(metrics.contains("\npintail_ingest_source_up{source=\"nats\"} 0\n"), "{metrics}");
    let server = private_nats(&project.root().join(".nats"), &address, &[]);
    tell_nats(&address, "$JS.API.STREAM.CREATE.EVENTS", r#"{"name":"EVENTS","subjects":["in.>"]}"#);
    tell_nats(&address, "in.a", &event("2"));
    running.wait_for_talk("the source is back");
    let metrics = get(&http, "/metrics");
    assert!(metrics.contains("\npintail_ingest_source_up{source=\"nats\"} 1\n"), "{metrics}");
    wait_until("its event has landed", || get(&http, "/metrics").contains("\npintail_sink_rows_total 2\n"));
    drop(server);
    wait_until("it is away again", || running.talk().matches("the source is away").count() == 2);
    let asked = Instant::now();
    let outcome = stop(running);
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert_eq!(outcome.stderr.matches("the source is away").count(), 2, "{outcome}");
    assert_eq!(outcome.stderr.matches("the source is back").count(), 1, "{outcome}");
    assert_eq!(query(&project, "SELECT id FROM raw_events").len(), 2);
}
