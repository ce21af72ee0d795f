//! Ingest, a consumer, a script with a stream, and upkeep at once, each killed at any time: every event that was answered is
//! decoded once, and the audit finds nothing.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use pintail_testkit::services::{Database, database, object_prefix};
use pintail_testkit::{Pintail, Project, Running, pintail, wait_until};

/// So often something is killed.
const ROUNDS: usize = 15;

const PROJECT: &str = r#"
//- /pintail.toml
[run]
keep_runs = 0
keep_days = 0

[ingest]
flush_age = "0s"

[maintain]
keep = "2s"
stale = "1s"
grace = "1s"

[consumer.decode]
source = "ducklake://main/raw_events"
decoder = "cloudevents-default"
signal_types = ["t"]
required = true
window_rows = 7
//- /pipelines/seen.sql
-- stream ducklake://main/raw_events start=earliest
-- materialize ducklake://main/seen append
SELECT id FROM changes
"#;

/// What runs beside the senders; each is started again after it was killed.
const SERVICES: [&str; 3] = ["ingest --listen 127.0.0.1:0", "consume run --follow --poll 1s", "maintain --every 1s"];

/// A project and what its commands need of the environment.
struct Place {
    project: Project,
    secrets: Vec<(&'static str, String)>,
    _database: Option<Database>,
}

impl Place {
    fn local() -> Self {
        Self { project: Project::new(PROJECT), secrets: Vec::new(), _database: None }
    }

    /// A catalog on Postgres, data and large payloads on S3.
    fn shared() -> Self {
        let (database, objects) = (database(), object_prefix());
        let lake = format!(
            r#"
[lake.main]
catalog = "postgres:{}"
password = "${{PG_PASSWORD}}"
data = "{url}/lake"

[object_store.all]
url = "{url}"
endpoint = "{}"
url_style = "path"
use_ssl = false
region = "us-east-1"
key = "${{S3_KEY}}"
secret = "${{S3_SECRET}}"
"#,
            database.connection_without_password(),
            objects.endpoint,
            url = objects.url,
        );
        let secrets =
            vec![("PG_PASSWORD", database.password()), ("S3_KEY", objects.key), ("S3_SECRET", objects.secret)];
        let project = Project::new(&PROJECT.replacen("[run]", &format!("{lake}\n[run]"), 1));
        Self { project, secrets, _database: Some(database) }
    }

    fn pintail(&self) -> Pintail {
        self.secrets.iter().fold(pintail(&self.project), |command, (name, value)| command.env(name, value))
    }
}

struct System<'p> {
    place: &'p Place,
    running: Vec<Running>,
    address: String,
}

impl System<'_> {
    fn start(place: &Place) -> System<'_> {
        let mut system = System { place, running: Vec::new(), address: String::new() };
        for index in 0..SERVICES.len() {
            let running = system.service(index);
            system.running.push(running);
        }
        system
    }

    fn service(&mut self, index: usize) -> Running {
        let running = self.place.pintail().words(SERVICES[index]).start();
        if index == 0 {
            running.wait_for_talk("events go to");
            let talk = running.talk();
            let address = talk.split_once("http://").and_then(|(_, rest)| rest.split(',').next());
            self.address = address.unwrap_or_else(|| panic!("{talk}")).to_owned();
        }
        running
    }

    /// Kills one of them as a crash does, and starts it again.
    fn kill(&mut self, index: usize) {
        self.running[index].signal("KILL");
        let next = self.service(index);
        let killed = std::mem::replace(&mut self.running[index], next).finish();
        assert_eq!(killed.code, None, "{} ended by itself: {killed}", SERVICES[index]);
    }

    /// Stops the server as a person does, so that what it answered lands, and the others once more as a crash does.
    fn stop(self) {
        for (index, running) in self.running.into_iter().enumerate() {
            running.signal(if index == 0 { "TERM" } else { "KILL" });
            let outcome = running.finish();
            assert_eq!(outcome.code, (index == 0).then_some(0), "{}: {outcome}", SERVICES[index]);
        }
    }
}

/// Sends one event with one value, and returns whether it was answered.
fn send(address: &str, id: u64) -> bool {
    let second = id % 60;
    let body = format!(
        r#"{{"specversion":"1.0","id":"{id}","source":"/test","type":"t","subject":"car-{}","time":"2026-01-02T03:04:05Z",
            "data":{{"signals":[{{"name":"speed","timestamp":"2026-01-02T03:04:{second:02}Z","value":{id}}}]}}}}"#,
        id % 5
    );
    let ask = || -> Option<bool> {
        let mut stream = TcpStream::connect(address).ok()?;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: pintail\r\nConnection: close\r\nContent-Type: application/cloudevents+json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.split(' ').nth(1)? == "202")
    };
    ask().unwrap_or(false)
}

fn query(place: &Place, sql: &str) -> Vec<serde_json::Value> {
    let printed = place.pintail().args(["query", "--json", "--limit", "1000000", sql]).run().expect_ok().raw_stdout;
    let answer: serde_json::Value = serde_json::from_str(&printed).expect("the answer is JSON");
    answer["rows"].as_array().or(answer.as_array()).unwrap_or_else(|| panic!("{printed}")).clone()
}

fn ids(place: &Place, sql: &str) -> Vec<u64> {
    let id = |row: &serde_json::Value| row["id"].as_str()?.parse().ok();
    query(place, sql).iter().map(|row| id(row).expect("an id is a number")).collect()
}

#[test]
fn every_answered_event_is_decoded_once_whatever_is_killed_and_the_audit_is_clean() {
    survives(&Place::local());
}

#[test]
fn every_answered_event_is_decoded_once_on_postgres_and_s3_too() {
    survives(&Place::shared());
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panicked")
}

fn survives(place: &Place) {
    let answered = Mutex::new(BTreeSet::new());
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let system = Mutex::new(System::start(place));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let address = held(&system).address.clone();
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    // An event that got no answer may have landed; it is sent again, as senders do.
                    while !is_over.load(Ordering::Relaxed) {
                        if send(&address, id) {
                            held(&answered).insert(id);
                            break;
                        }
                        let now = held(&system).address.clone();
                        if now != address && send(&now, id) {
                            held(&answered).insert(id);
                            break;
                        }
                    }
                }
            });
        }
        for round in 0..ROUNDS {
            let enough = held(&answered).len() + 3 + round * 11 % 25;
            wait_until("more was answered", || enough <= held(&answered).len());
            held(&system).kill(round % SERVICES.len());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    system.into_inner().expect("nobody panicked").stop();
    place.pintail().words("consume run").run().expect_ok();

    let answered = answered.into_inner().expect("nobody panicked");
    for sql in ["SELECT cloud_event_id AS id FROM signals", "SELECT DISTINCT id FROM seen"] {
        let found = ids(place, sql);
        let distinct: BTreeSet<u64> = found.iter().copied().collect();
        assert_eq!(found.len(), distinct.len(), "{sql}: nothing is there twice");
        let lost: Vec<&u64> = answered.difference(&distinct).collect();
        assert!(lost.is_empty(), "{sql}: {} of {} answered events are lost: {lost:?}", lost.len(), answered.len());
    }
    let raw = query(place, "SELECT (SELECT count(*) FROM raw_events) AS raw, (SELECT count(*) FROM seen) AS seen");
    assert_eq!(raw[0]["raw"], raw[0]["seen"], "the script has seen each row of the source once");
    let audit = place.pintail().words("audit").run().expect_ok();
    assert!(audit.raw_stdout.contains(": clean ("), "{audit}");
}
