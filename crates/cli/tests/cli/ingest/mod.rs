//! `pintail ingest` as a person and their senders meet it: started, fed, stopped, and killed at any time.

mod brokers;
mod disk;
mod tls;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use expect_test::expect;
use pintail_testkit::services::database;
use pintail_testkit::{Outcome, Pintail, Project, Running, pintail, wait_until};

const PROJECT: &str = r#"
//- /pintail.toml
[ingest]
flush_age = "0s"
blob_threshold = "1KB"
"#;

/// Returns `pintail` with the password of the project's catalog, where it has one.
fn command(project: &Project) -> Pintail {
    let password = if project.exists(".password") { project.read(".password") } else { String::new() };
    pintail(project).env("PG_PASSWORD", password)
}

/// Starts the server on a free port and returns it with its address.
fn start(project: &Project, fault: &str) -> (Running, String) {
    let running = command(project).words("ingest --listen 127.0.0.1:0").fault(fault).start();
    let address = address_of(&running);
    (running, address)
}

/// Waits until a server listens, and returns where.
fn address_of(running: &Running) -> String {
    running.wait_for_talk("events go to");
    let talk = running.talk();
    let address = talk.split_once("://").and_then(|(_, rest)| rest.split(',').next());
    address.unwrap_or_else(|| panic!("{talk}")).to_owned()
}

/// Sends a request and returns its status; `None` when the server is gone.
fn post(address: &str, content_type: &str, body: &str) -> Option<u16> {
    exchange(address, content_type, body).map(|(status, _)| status)
}

/// Sends a request and returns its status, and the head and body of the answer.
fn exchange(address: &str, content_type: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!(
        "POST / HTTP/1.1\r\nHost: pintail\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer))
}

pub fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: pintail\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer
}

fn event(id: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/test","type":"t","subject":"s","data":{{"n":1}}}}"#)
}

fn send(address: &str, id: &str) -> Option<u16> {
    post(address, "application/cloudevents+json", &event(id))
}

/// Stops the server as a person does.
fn stop(running: Running) -> Outcome {
    running.signal("TERM");
    running.finish().expect_ok()
}

fn query(project: &Project, sql: &str) -> Vec<serde_json::Value> {
    let printed = command(project).args(["query", "--json", "--limit", "1000000", sql]).run().expect_ok().raw_stdout;
    let answer: serde_json::Value = serde_json::from_str(&printed).expect("the answer is JSON");
    answer["rows"].as_array().or(answer.as_array()).unwrap_or_else(|| panic!("{printed}")).clone()
}

#[test]
fn what_was_answered_is_in_the_lake_after_the_end() {
    let project = Project::new(PROJECT);
    let (running, address) = start(&project, "");
    assert_eq!(send(&address, "1"), Some(202));
    let batch = format!("[{}, {{\"id\": 7}}]", event("2"));
    assert_eq!(post(&address, "application/cloudevents-batch+json", &batch), Some(202));
    let large = event("3").replace("\"n\":1", &format!("\"n\":\"{}\"", "x".repeat(2_000)));
    assert_eq!(post(&address, "application/cloudevents+json", &large), Some(202));
    assert_eq!(post(&address, "application/json", "{}"), Some(415));
    let metrics = get(&address, "/metrics");
    assert!(metrics.contains("\npintail_ingest_events_total 3\n"), "{metrics}");
    assert!(metrics.contains("\npintail_ingest_refused_total{reason=\"mode\"} 1\n"), "{metrics}");
    for name in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
        assert!(metrics.contains(&format!("# HELP {name} ")), "{name} is described: {metrics}");
    }
    let outcome = stop(running);
    assert!(outcome.stderr.contains("stopping: what was answered lands in the lake first"), "{outcome}");
    let rows = query(&project, "SELECT id, data, data_index_key IS NOT NULL AS out FROM raw_events ORDER BY id");
    expect![[r#"[{"id":"1","data":"{\"n\":1}","out":false},{"id":"2","data":"{\"n\":1}","out":false},{"id":"3","data":null,"out":true}]"#]]
        .assert_eq(&serde_json::Value::from(rows).to_string());
    let key = query(&project, "SELECT data_index_key AS key FROM raw_events WHERE id = '3'");
    let blob = project.read(&format!(".pintail/blobs/{}", key[0]["key"].as_str().unwrap()));
    assert!(blob.starts_with("{\"n\":\"xxx"), "{blob}");
}

#[test]
fn a_large_payload_that_is_sealed_in_the_blob_store_is_decoded_as_any_other() {
    let project = Project::new(
        r#"
//- /pintail.toml
[ingest]
flush_age = "0s"
blob_threshold = "1KB"
blob_key = "first"
[ingest.blob_keys]
first = "${BLOB_KEY}"
[consumer.decode]
source = "ducklake://main/raw_events"
decoder = "cloudevents-default"
signal_types = ["t"]
"#,
    );
    let key = "KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=";
    let running = pintail(&project).words("ingest --listen 127.0.0.1:0").env("BLOB_KEY", key).start();
    running.wait_for_talk("events go to");
    let talk = running.talk();
    let address =
        talk.split_once("http://").and_then(|(_, rest)| rest.split(',').next()).unwrap_or_else(|| panic!("{talk}"));
    let signals: Vec<String> = (0..40)
        .map(|second| format!(r#"{{"name":"speed","timestamp":"2026-01-02T03:04:{second:02}Z","value":{second}}}"#))
        .collect();
    let body = event("1").replace("{\"n\":1}", &format!("{{\"signals\":[{}]}}", signals.join(",")));
    assert_eq!(post(address, "application/cloudevents+json", &body), Some(202));
    stop(running);
    pintail(&project).words("consume run").env("BLOB_KEY", key).run().expect_ok();
    let sql = "SELECT count(*) AS n, max(value_number) AS top FROM signals";
    let answer = pintail(&project).args(["query", "--json", sql]).env("BLOB_KEY", key).run().expect_ok();
    assert!(answer.raw_stdout.contains("\"n\":40") || answer.raw_stdout.contains("\"n\": 40"), "{answer}");
    // The key is nowhere.
    assert!(!talk.contains(key) && !answer.to_string().contains(key));
}

#[test]
fn a_server_that_is_killed_at_any_time_neither_loses_nor_repeats() {
    kill_again_and_again(&Project::new(PROJECT), 10);
}

#[test]
fn a_server_with_a_catalog_on_postgres_is_killed_without_loss_too() {
    let database = database();
    let catalog = format!(
        "[lake.main]\ncatalog = \"postgres:{}\"\npassword = \"${{PG_PASSWORD}}\"\n",
        database.connection_without_password()
    );
    let project = Project::new(&format!("//- /pintail.toml\n{catalog}[ingest]\nflush_age = \"0s\"\n"));
    project.write(".password", &database.password());
    kill_again_and_again(&project, 4);
}

/// Kills the server at each point of a commit and `rounds` times at any moment, under load, and compares what is in the lake
/// with what was answered.
fn kill_again_and_again(project: &Project, rounds: u64) {
    let answered = Mutex::new(BTreeSet::new());
    let next = AtomicU64::new(0);
    let faults = ["checked", "written", "stamped", "committed", "remembered"];
    let rounds = faults.iter().map(|point| Some(format!("{point}*2=kill"))).chain((0..rounds).map(|_| None));
    for (round, fault) in (1_u64..).zip(rounds) {
        let (running, address) = start(project, fault.as_deref().unwrap_or_default());
        let before = answered.lock().expect("no sender panics while it holds it").len();
        // Another moment in every round.
        let enough = before + usize::try_from(5 + round * 7 % 40).expect("it is below 45");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let id = next.fetch_add(1, Ordering::Relaxed).to_string();
                        match send(&address, &id) {
                            Some(202) => drop(answered.lock().expect("no sender panics while it holds it").insert(id)),
                            Some(other) => panic!("{other}"),
                            None => return,
                        }
                    }
                });
            }
            if fault.is_none() {
                wait_until("enough was answered", || {
                    enough <= answered.lock().expect("no sender panics while it holds it").len()
                });
                running.signal("KILL");
            }
        });
        assert_eq!(running.finish().code, None, "round {round}");
    }
    let (running, _) = start(project, "");
    stop(running);
    let ids = query(project, "SELECT id FROM raw_events");
    let ids: Vec<String> = ids.iter().map(|row| row["id"].as_str().unwrap_or_default().to_owned()).collect();
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    let answered = answered.into_inner().expect("no sender panics while it holds it");
    assert_eq!(ids.len(), distinct.len(), "nothing is repeated");
    let lost: Vec<&String> = answered.difference(&distinct).collect();
    assert!(lost.is_empty(), "{} of {} were answered and are lost: {lost:?}", lost.len(), answered.len());
}

#[test]
fn a_second_server_on_the_same_log_is_refused() {
    let project = Project::new(PROJECT);
    let (running, _) = start(&project, "");
    let second = pintail(&project).words("ingest --listen 127.0.0.1:0").run().expect_code(4);
    expect![[r#"
        error: another process uses the log <project>/.pintail/ingest/log.sqlite
        hint: two would write each other's events twice; stop it, or give this one a log of its own
    "#]]
    .assert_eq(&second.stderr);
    stop(running);
}

#[test]
fn an_address_that_others_reach_needs_a_guard() {
    let project = Project::new("//- /pintail.toml\n[ingest]\nlisten = \"0.0.0.0:0\"\n");
    let refused = pintail(&project).words("ingest").run().expect_code(3);
    assert!(refused.stderr.contains("P575"), "{refused}");
}

#[test]
fn files_are_imported_once_and_what_is_no_event_is_a_dead_letter_that_can_be_replayed() {
    let project = Project::new("//- /pintail.toml\n");
    project.write("in/a.ndjson", &format!("{}\nnot an event\n", event("1")));
    let imported = pintail(&project).words("ingest --from in").run().expect_ok();
    expect![[r#"
        exit code 0
        --- stdout
        1 event of 1 file landed in main.raw_events
        --- stderr
        1 event in the lake
        warning: kept as dead letters, because they are no events: 1 record
        hint: `pintail deadletter list` shows them
    "#]]
    .assert_eq(&imported.to_string());
    let again = pintail(&project).words("ingest --from in").run().expect_ok();
    expect![[r#"
        0 events of 0 files landed in main.raw_events; 1 file had landed before
    "#]]
    .assert_eq(&again.stdout);
    let letters = pintail(&project).words("deadletter list --json").run().expect_ok().raw_stdout;
    let letters: serde_json::Value = serde_json::from_str(&letters).expect("the answer is JSON");
    let letter = &letters["letters"][0];
    assert_eq!((letter["origin"].as_str(), letter["raw"].as_str()), (Some("file"), Some("not an event")));
    let id = letter["id"].as_str().expect("a letter has an id");
    let replayed = pintail(&project).args(["deadletter", "replay", id]).run().expect_code(1);
    assert!(replayed.stderr.contains("did not land: line 1, column 2: this is not JSON"), "{replayed}");
    project.write("fixed.json", &event("2"));
    let replayed = pintail(&project).args(["deadletter", "replay", id, "--with", "fixed.json"]).run().expect_ok();
    assert_eq!(replayed.stdout, "1 letter landed in main.raw_events\n");
    let shown = pintail(&project).args(["deadletter", "show", &id[..6]]).run().expect_ok();
    assert!(shown.stdout.contains("why       line 1, column 2: this is not JSON"), "{shown}");
    assert_eq!(query(&project, "SELECT id FROM raw_events ORDER BY id").len(), 2);
    let none = pintail(&project).words("deadletter list").run().expect_ok();
    assert_eq!(none.stdout, "there are no dead letters\n");
}

#[test]
fn mistakes_of_imports_and_letters_say_what_to_do() {
    let project = Project::new("//- /pintail.toml\n");
    let check = |line: &str, expected: &str| {
        let outcome = pintail(&project).words(line).run().expect_code(2);
        assert!(outcome.stderr.contains(expected), "{outcome}");
    };
    project.write("a.txt", "");
    check("ingest --from none.ndjson", "could not read <project>/none.ndjson");
    check("ingest --from a.txt", "is none of .ndjson, .jsonl, .csv and .parquet");
    check("deadletter show 00", "no dead letter has an id that begins with `00`");
    check("deadletter replay", "required arguments were not provided");
    check("deadletter replay 00", "no dead letter is meant by that");
    check("deadletter list --origin htpp", "did you mean `http`?");
    check("deadletter replay --origin consumer", "there are http, nats, kafka, file, replay");
    check("consume run --follow --metrics 9464", "did you mean `127.0.0.1:9464`?");
    check("ingest --listen localhost", "such as `127.0.0.1:9464`");
}

#[test]
fn dead_letters_fit_into_a_terminal_and_json_has_all_of_them() {
    let project = Project::new("//- /pintail.toml\n");
    let long = "x".repeat(300);
    project.write("in/a-rather-long-name-of-a-file.ndjson", &format!("{{\"specversion\":\"1.0\",\"{long}\":1}}\nno\n"));
    pintail(&project).words("ingest --from in").run().expect_ok();
    let shown = pintail(&project).words("deadletter list").env("COLUMNS", "80").run().expect_ok();
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(lines[2].contains("…"), "{shown}");
    assert!(shown.stderr.contains("`pintail deadletter show <id>` shows the whole of one"), "{shown}");
    let all = pintail(&project).words("deadletter list --json").run().expect_ok().raw_stdout;
    assert!(all.contains(&long), "{all}");
}

#[test]
fn a_file_that_has_changed_is_told_and_the_others_land() {
    let project = Project::new("//- /pintail.toml\n");
    project.write("in/a.ndjson", &format!("{}\n", event("1")));
    pintail(&project).words("ingest --from in").run().expect_ok();
    project.write("in/a.ndjson", &format!("{}\n{}\n", event("1"), event("2")));
    project.write("in/b.ndjson", &format!("{}\n", event("3")));
    let outcome = pintail(&project).words("ingest --from in").run().expect_code(1);
    expect![[r#"
        exit code 1
        --- stdout
        1 event of 1 file landed in main.raw_events
        --- stderr
        1 event in the lake
        error: <project>/in/a.ndjson has changed since it was imported (1 record); nothing of it was imported now
        hint: import what is new as a file of its own
    "#]]
    .assert_eq(&outcome.to_string());
    assert_eq!(query(&project, "SELECT id FROM raw_events").len(), 2);
}

#[test]
fn files_of_tls_that_are_not_there_are_told_by_check_and_stop_nothing_else() {
    let project = Project::new("//- /pintail.toml\n[ingest]\ncertificate = \"server.pem\"\nkey = \"server.key\"\n");
    for command in ["check", "ingest"] {
        let told = pintail(&project).words(command).run().expect_code(3);
        assert!(told.stderr.contains("P576") && told.stderr.contains("pintail.toml:2:15"), "{told}");
    }
    pintail(&project).words("query").arg("SELECT 1").run().expect_ok();
}

#[test]
fn secrets_of_ingest_are_needed_only_by_who_takes_events_in_and_its_keys_by_who_reads_payloads() {
    let project = Project::new(
        "//- /pintail.toml
[ingest]
tokens = [\"${PINTAIL_TEST_TOKEN}\"]
blob_keys = { k1 = \"${PINTAIL_TEST_KEY}\" }
[consumer.decode]
source = \"ducklake://main/raw_events\"
decoder = \"cloudevents-default\"
//- /pipelines/one.sql
-- materialize ducklake://main/one
SELECT 1 AS i
",
    );
    for command in ["check", "ingest"] {
        let told = pintail(&project).words(command).run().expect_code(3);
        assert!(told.stderr.contains("P005") && told.stderr.contains("PINTAIL_TEST_TOKEN"), "{told}");
    }
    for command in ["consume run decode", "consume replay decode --from 2026-01-01 --to 2026-01-02", "audit"] {
        let told = pintail(&project).words(command).run().expect_code(3);
        assert!(told.stderr.contains("PINTAIL_TEST_KEY") && !told.stderr.contains("PINTAIL_TEST_TOKEN"), "{told}");
    }
    for command in ["run", "consume list", "lake health"] {
        pintail(&project).words(command).run().expect_ok();
    }
}
