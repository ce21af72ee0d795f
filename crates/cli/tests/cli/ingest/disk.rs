//! A full disk under the log: requests are refused with a word, and nothing that was answered is lost.

use std::collections::BTreeSet;
use std::process::Command;

use pintail_testkit::{Project, SMALL_FILES, SmallDisk, pintail};

use super::{address_of, event, exchange, query, send, stop};

/// An event that the log cannot hold many of.
fn large_event(id: &str) -> String {
    event(id).replace("\"n\":1", &format!("\"n\":\"{}\"", "x".repeat(100_000)))
}

fn send_large(address: &str, id: &str) -> (u16, String) {
    exchange(address, "application/cloudevents+json", &large_event(id)).expect("the server lives")
}

#[test]
fn a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing_that_was_answered() {
    let disk = SmallDisk::mount(2);
    // Where nothing can be mounted, files may not grow: the log's is the first to hit that.
    let log = disk.as_ref().map_or(String::new(), |disk| format!("log = \"{}/log.sqlite\"\n", disk.path().display()));
    let project = Project::new(&format!("//- /pintail.toml\n[ingest]\nflush_age = \"1h\"\n{log}"));
    let command = pintail(&project).words("ingest --listen 127.0.0.1:0");
    let running = if disk.is_some() { command.start() } else { command.behind(SMALL_FILES).start() };
    let address = address_of(&running);
    let mut answered = BTreeSet::new();
    let refused = loop {
        let id = format!("before {}", answered.len());
        match send_large(&address, &id) {
            (202, _) => answered.insert(id),
            (_, answer) => break answer,
        };
        assert!(answered.len() < 1_000, "the disk is never full");
    };
    assert!(!answered.is_empty());
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.to_ascii_lowercase().contains("\r\nretry-after: 5\r\n"),
        "{refused}"
    );
    let said = if disk.is_some() { "the disk that the log lies on is full" } else { "the log cannot be written" };
    assert!(refused.contains(&format!("{said}; nothing of this request was kept, send it again")), "{refused}");
    // Again and again, and then there is room.
    assert_eq!(send_large(&address, "still full").0, 503);
    match &disk {
        Some(disk) => disk.grow(50),
        None => lift_limit(running.id()),
    }
    for id in ["after 1", "after 2"] {
        assert_eq!(send(&address, id), Some(202), "{id}");
        answered.insert(id.to_owned());
    }
    stop(running);
    let rows = query(&project, "SELECT id FROM raw_events ORDER BY id");
    let landed: Vec<String> = rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect();
    assert_eq!(landed, answered.into_iter().collect::<Vec<_>>(), "what was answered is there once, and nothing else");
}

/// Lets the files of a process grow again.
fn lift_limit(process: u32) {
    let status = Command::new("prlimit").args([&format!("--pid={process}"), "--fsize=unlimited:"]).status();
    assert!(status.is_ok_and(|status| status.success()), "a process may lift its own soft limit");
}
