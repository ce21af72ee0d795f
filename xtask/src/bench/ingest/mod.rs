//! Ingest: durable events over HTTP beside a bare append with the same grouping of fsyncs, and the way into the lake beside
//! a plain INSERT … SELECT.

mod append;
mod client;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::Bench;
use super::lake::Project;
use client::Connection;

/// Connections at once.
const CONNECTIONS: [usize; 3] = [1, 16, 128];

/// How long each side is measured.
const SPAN: Duration = Duration::from_secs(5);

/// Events of the way into the lake.
const ROWS: usize = 200_000;

/// Sends events of 1 KB over 1, 16 and 128 connections, and renders how many were answered a second.
pub fn http(bench: &Bench<'_>) -> anyhow::Result<String> {
    let project = Project::new(bench, "ingest-http")?;
    let server = Server::start(&project)?;
    let mut text = String::new();
    for connections in CONNECTIONS {
        let ours = client::answered_a_second(&server.address, connections, SPAN)?;
        let plain = append::appended_a_second(&bench.folder.join("ingest-append"), connections, SPAN)?;
        let ratio = ours / plain;
        writeln!(
            text,
            "ingest-http: {connections} connections: ours {ours:.0} events/s, bare append with the same grouping {plain:.0} \
             events/s, ratio {ratio:.2}"
        )?;
    }
    Ok(text)
}

/// Lands a file of events, and renders how long it took beside a plain INSERT … SELECT of the same rows.
pub fn sink(bench: &Bench<'_>) -> anyhow::Result<String> {
    let project = Project::new(bench, "ingest-sink")?;
    let file = project.write("events.ndjson", &events())?;
    let ours = project.time(&["ingest", "--from", &file.display().to_string()])?;
    let plain = project.time_plain_in("plain", &plain())?;
    let (ours, plain) = (ours.as_secs_f64(), plain.as_secs_f64());
    Ok(format!(
        "ingest-sink: {ROWS} events: ours {ours:.2} s from NDJSON (with parsing, validation and proof), plain {plain:.2} s, \
         ratio {:.2}\n",
        ours / plain
    ))
}

/// Returns one event of about 1 KB.
fn event(number: usize) -> String {
    let padding = "x".repeat(840);
    format!(
        r#"{{"specversion":"1.0","id":"{number}","source":"/bench","type":"status","subject":"car-{}","time":"2026-01-02T03:04:05Z","data":{{"padding":"{padding}"}}}}"#,
        number % 1_000
    )
}

fn events() -> String {
    (0..ROWS).map(|number| event(number) + "\n").collect()
}

/// The same rows, by hand, into a table of the same layout.
fn plain() -> String {
    format!(
        "CREATE TABLE lake.main.raw_events (subject VARCHAR, \"time\" TIMESTAMPTZ, type VARCHAR, id VARCHAR, source VARCHAR, \
         producer VARCHAR, data_content_type VARCHAR, data_version VARCHAR, extras VARCHAR, data VARCHAR, data_base64 BLOB, \
         data_index_key VARCHAR, voids_id VARCHAR);\n\
         ALTER TABLE lake.main.raw_events SET PARTITIONED BY (type, year(\"time\"), month(\"time\"), day(\"time\"));\n\
         ALTER TABLE lake.main.raw_events SET SORTED BY (subject, \"time\");\n\
         INSERT INTO lake.main.raw_events\n\
         SELECT 'car-' || i % 1000, TIMESTAMPTZ '2026-01-02 03:04:05+00', 'status', i::VARCHAR, '/bench', NULL, NULL, NULL, \
         '{{}}', '{{\"padding\":\"' || repeat('x', 840) || '\"}}', NULL, NULL, NULL\n\
         FROM range({ROWS}) r(i);\n"
    )
}

/// A running `pintail ingest`.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(project: &Project) -> anyhow::Result<Self> {
        let mut command = project.pintail(&["ingest", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start pintail ingest")?;
        let output = child.stdout.take().context("stdout is a pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let told: serde_json::Value = serde_json::from_str(&line).context("ingest did not start")?;
        let url = told["listening"].as_str().context("ingest says where it listens")?;
        let address = url.trim_start_matches("http://").to_owned();
        wait_until_served(&address)?;
        Ok(Self { child, address })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What it holds is of no value.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until_served(address: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        match Connection::open(address).and_then(|mut connection| connection.send(&event(0))) {
            Ok(202) => return Ok(()),
            other if Duration::from_secs(30) < started.elapsed() => {
                other.map(drop)?;
                anyhow::bail!("ingest does not answer");
            }
            _ => std::thread::park_timeout(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::event;

    #[test]
    fn an_event_has_about_a_kilobyte() {
        let length = event(123).len();
        assert!((950..1_050).contains(&length), "{length}");
    }
}
