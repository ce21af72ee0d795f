//! What upkeep, health and audit say.

use std::time::{Duration, Instant};

use expect_test::expect;
use pintail_testkit::{Project, pintail, wait_until};

const PROJECT: &str = r#"
//- /pintail.toml
[run]
keep_runs = 0
keep_days = 0
//- /pipelines/days.sql
-- partitioned daily start=2020-01-01
-- retention 100d
-- materialize ducklake://main/days
SELECT $partition AS day, i FROM range(3) t(i)
//- /pipelines/total.sql
-- materialize ducklake://main/total
SELECT 1 AS n
"#;

fn text(project: &Project, words: &str) -> String {
    let outcome = pintail(project).words(words).run().to_string();
    let age = regex::Regex::new(r"\d+(\.\d+)? (ms|s|min)( \d+ s)? old").expect("it is one");
    let bytes = regex::Regex::new(r"\d+(\.\d+)? (B|kB|MB)").expect("it is one");
    let text = age.replace_all(&outcome, "<age> old").into_owned();
    bytes.replace_all(&text, "<bytes>").into_owned()
}

#[test]
fn slices_whose_time_is_over_files_and_consumers_are_told() {
    let project = Project::new(PROJECT);
    pintail(&project).words("run --select total").run().expect_ok();
    pintail(&project).words("run --select days --partition 2020-01-01").run().expect_ok();
    expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/days: 1 slice (2020-01-01) would go: their time is over
        lake main: 0 snapshots would go, 4 stay (3 young)
    "#]]
    .assert_eq(&text(&project, "maintain --dry-run"));
    expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/days: 1 slice (2020-01-01) went with 3 rows: their time is over
        lake main: 4 snapshots went, 1 stay (0 young); <bytes> of files are free then
    "#]]
    .assert_eq(&text(&project, "maintain --keep 0s"));
    expect![[r#"
        exit code 0
        --- stdout
        lake main: 2 snapshots, 4 (<time> old) to 5 (<time> old)
        19 files, <bytes>; <bytes> more only for older snapshots; 1 file still to be deleted

        table                files   bytes  small, to merge  rows  deleted
        main.total               1   <bytes>                0     1        0
        _pintail, 18 tables     18  <bytes>                0    38        0

        nothing deserves attention
    "#]]
    .assert_eq(&text(&project, "lake health"));
    expect![[r#"
        exit code 0
        --- stdout
        lake main at snapshot 5: clean (files, rows, partitions, stamps, pins, consumers, positions, leases, decoded, letters, blobs)
    "#]]
    .assert_eq(&text(&project, "audit"));
}

#[test]
fn payloads_without_rows_and_rows_without_payloads_and_rows_of_wrong_buckets_are_findings() {
    let project = Project::new(
        r#"
//- /pintail.toml
[consumer.decode]
decoder = "cloudevents-default"
source = "ducklake://main/raw_events"
//- /pipelines/raw_events.sql
-- materialize manual ducklake://main/raw_events
CREATE TABLE raw_events (
  subject VARCHAR, "time" TIMESTAMPTZ, type VARCHAR, id VARCHAR, source VARCHAR, producer VARCHAR,
  data_content_type VARCHAR, data_version VARCHAR, extras VARCHAR, data VARCHAR, data_base64 BLOB,
  data_index_key VARCHAR, voids_id VARCHAR
);
INSERT INTO raw_events BY NAME
SELECT 'car' AS subject, now() AS "time", 'dimo.status' AS type, 'e' AS id, '{}' AS extras, '' AS data,
       'cloudevent/blobs/car/2026/01/01/1' AS data_index_key;
INSERT INTO raw_events BY NAME
SELECT 'car' AS subject, now() AS "time", 'dimo.status' AS type, 'odd' AS id, '{}' AS extras, 'no JSON' AS data;
//- /pipelines/wrong.sql
-- materialize manual ducklake://main/signals
UPDATE signals SET subject_bucket = 300;
"#,
    );
    let signal = r#"{"signals":[{"name":"speed","timestamp":"2026-06-01T00:00:00Z","value":7}]}"#;
    project.write(".pintail/blobs/cloudevent/blobs/car/2026/01/01/1", signal);
    pintail(&project).words("run --select raw_events").run().expect_ok();
    pintail(&project).words("consume run").run().expect_ok();
    pintail(&project).words("audit").run().expect_ok();
    project.write(".pintail/blobs/cloudevent/blobs/car/2026/01/01/2", signal);
    project.write(".pintail/blobs/cloudevent/blobs/car/9999/01/01/3", signal);
    std::fs::remove_file(project.place(".pintail/blobs/cloudevent/blobs/car/2026/01/01/1")).expect("it was written");
    let rename =
        "-- materialize manual ducklake://main/raw_events\nUPDATE raw_events SET id = 'another' WHERE id = 'odd'";
    project.write("pipelines/raw_events.sql", rename);
    pintail(&project).words("run --force").run().expect_ok();
    expect![[r#"
        exit code 1
        --- stdout
        lake main at snapshot 13: 5 findings (files, rows, partitions, stamps, pins, consumers, positions, leases, decoded, letters, blobs)
          decoded: signals_latest: 1 rows with other values than its base gives
          decoded: signals: 1 rows of another bucket than their subject's, which queries that name it do not find: somebody else has written them
          letters: consumer decode: 1 dead letters whose event is not in the source: it has gone from there, and cannot be decoded again
          blobs: main.raw_events: 1 payloads that rows name and that are not in the store: bring them back from a copy of it
          blobs: main.raw_events: 1 payloads of more than two days ago that no row names: their events wait in the log of `pintail ingest`, never came into the lake, or have gone from it
    "#]].assert_eq(&text(&project, "audit"));
}

fn free_address() -> String {
    let bound = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.expect("the system has a free port").to_string()
}

#[test]
fn upkeep_again_and_again_leads_alone_says_what_it_measures_and_ends_at_once_when_asked() {
    let project = Project::new(PROJECT);
    pintail(&project).words("run --select total").run().expect_ok();
    let folder = project.place("faults");
    std::fs::create_dir(&folder).unwrap();
    let fault = format!("kept=pause:{}", folder.display());
    let address = free_address();
    let line = format!("maintain --every 1h --keep 0s --metrics {address}");
    let leading = pintail(&project).words(&line).fault(&fault).start();
    leading.wait_for(&folder.join("kept.reached"));
    expect![[r#"
        exit code 0
        --- stdout
        lake main: another process is at it; nothing was done
    "#]]
    .assert_eq(&text(&project, "maintain"));
    // Who only looks need not wait.
    let dry = text(&project, "maintain --keep 0s --dry-run");
    assert!(dry.contains("lake main: 3 snapshots would go, 1 stay"), "{dry}");
    std::fs::write(folder.join("kept.release"), "").unwrap();
    let metrics = || crate::ingest::get(&address, "/metrics");
    wait_until("a round has ended", || metrics().contains("pintail_maintain_rounds_total{lake=\"main\"} 1"));
    for line in metrics().lines().filter(|line| line.starts_with("# TYPE")) {
        let help = line.replace("# TYPE", "# HELP");
        let name = help.rsplit_once(' ').unwrap().0;
        assert!(metrics().contains(name), "{line} is not explained");
    }
    let asked = Instant::now();
    leading.signal("INT");
    let ended = leading.finish().expect_ok();
    assert!(asked.elapsed() < Duration::from_secs(2), "{ended}");
}

#[test]
fn upkeep_that_waits_for_another_process_ends_at_once_when_asked() {
    let project = Project::new(PROJECT);
    pintail(&project).words("run --select total").run().expect_ok();
    let folder = project.place("faults");
    std::fs::create_dir(&folder).unwrap();
    let fault = format!("kept=pause:{}", folder.display());
    let waiting = pintail(&project).words("maintain --every 1h --keep 0s").fault(&fault).start();
    waiting.wait_for(&folder.join("kept.reached"));
    // As another process holds it that is writing.
    let lock = std::fs::File::create(project.place(".pintail/main.sqlite.lock")).unwrap();
    lock.lock().unwrap();
    std::fs::write(folder.join("kept.release"), "").unwrap();
    let asked = Instant::now();
    waiting.signal("TERM");
    let ended = waiting.finish().expect_ok();
    assert!(asked.elapsed() < Duration::from_secs(2), "{ended}");
    drop(lock);
    let next = text(&project, "maintain --keep 0s");
    assert!(next.contains("3 snapshots went, 1 stay"), "{next}");
}
