//! Compaction, and the consumers of a lake as upkeep sees them.

use std::time::Duration;

use pintail_core::id::{RunId, SnapshotId};
use pintail_core::partition::PartitionKey;
use pintail_engine::guard::{ConsumerProgress, Guard, LeaseAnswer, LeaseKey};
use pintail_engine::lake::compact::Compacted;
use pintail_runner::Pintail;
use pintail_runner::pintail::{CompactedTable, Compaction, MaintainRequest, Maintained, PlanRequest};

use crate::harness::{Folder, foreign, query, run, upkeep};

const KEEPS_NOTHING: &str = "//- pintail.toml
[run]
keep_runs = 0
keep_days = 0
//- pipelines/other.sql
-- materialize ducklake://main/other
SELECT 1 AS x
";

/// A table `d` of two partitions, to which another program has `times` added a file each, and one file of before.
fn appended(times: usize) -> (Folder, Pintail) {
    let folder = Folder::new(KEEPS_NOTHING);
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    foreign(&pintail, "CREATE TABLE d AS SELECT 'a' AS day, 7::BIGINT AS i");
    foreign(&pintail, "ALTER TABLE d SET PARTITIONED BY (day)");
    for _ in 0..times {
        foreign(&pintail, "INSERT INTO d SELECT day, i FROM range(3) t(i), (VALUES ('a'), ('b')) days(day)");
    }
    (folder, pintail)
}

fn compaction() -> MaintainRequest {
    // Nothing is old enough to go, so what is seen is the compaction alone.
    MaintainRequest { keep: Duration::from_secs(3_600), compaction: Some(Compaction::default()), ..upkeep() }
}

fn maintain(pintail: &Pintail, request: &MaintainRequest) -> Maintained {
    pintail.maintain(request).unwrap().remove(0)
}

fn of<'m>(done: &'m Maintained, table: &str) -> &'m CompactedTable {
    done.compacted.iter().find(|found| found.table == table).unwrap_or_else(|| panic!("{done:?}"))
}

fn files(pintail: &Pintail, table: &str) -> String {
    query(pintail, &format!("SELECT count(*) FROM ducklake_list_files('lake', '{table}')"), None).remove(0)
}

fn feed(pintail: &Pintail, from: i64, to: i64) -> Vec<String> {
    let sql =
        format!("SELECT snapshot_id, change_type, day, i FROM lake.table_changes('d', {from}, {to}) ORDER BY ALL");
    query(pintail, &sql, None)
}

fn head(pintail: &Pintail) -> i64 {
    query(pintail, "SELECT max(snapshot_id) FROM lake.snapshots()", None)[0].parse().unwrap()
}

#[test]
fn small_files_become_one_for_each_partition_and_feed_and_older_versions_stay() {
    let (folder, pintail) = appended(4);
    let (last, feed_before) = (head(&pintail), feed(&pintail, 3, head(&pintail)));
    let middle = SnapshotId(last - 2);
    let old = query(&pintail, "SELECT count(*), sum(i) FROM d", Some(middle));
    let dry = maintain(&pintail, &MaintainRequest { dry_run: true, ..compaction() });
    assert_eq!(of(&dry, "d").merged, Some(Compacted { files_before: 8, files_after: 2 }));
    assert_eq!(files(&pintail, "d"), "9", "a dry run does nothing");

    let done = maintain(&pintail, &compaction());
    assert_eq!(of(&done, "d").merged, Some(Compacted { files_before: 8, files_after: 2 }));
    let pintail = folder.open();
    assert_eq!(files(&pintail, "d"), "3", "one for each partition, and the one of the layout before");
    assert_eq!(feed(&pintail, 3, last), feed_before);
    assert_eq!(feed(&pintail, last + 1, head(&pintail)), Vec::<String>::new(), "merging is no change");
    assert_eq!(query(&pintail, "SELECT count(*), sum(i) FROM d", Some(middle)), old);
    assert_eq!(crate::harness::planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
    let again = head(&pintail);
    assert!(maintain(&pintail, &compaction()).compacted.is_empty());
    assert_eq!(head(&pintail), again, "nothing to merge is no commit");
}

#[test]
fn a_table_that_is_being_written_is_left_for_the_next_time() {
    let (_folder, pintail) = appended(2);
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    let key = LeaseKey { asset: "ducklake://main/d".to_owned(), partition: Some(PartitionKey("a".to_owned())) };
    let run = RunId("another".to_owned());
    let LeaseAnswer::Granted(lease) = pintail.block_on(guard.try_lease(&key, &run, 1)).unwrap() else { panic!() };
    let done = maintain(&pintail, &compaction());
    assert_eq!(of(&done, "d").left.as_deref(), Some("it is being written; the next upkeep comes to it"));
    assert_eq!(files(&pintail, "d"), "5");
    pintail.block_on(guard.release(&lease)).unwrap();
    let done = maintain(&pintail, &compaction());
    assert_eq!(of(&done, "d").merged, Some(Compacted { files_before: 4, files_after: 2 }));
}

fn report(pintail: &Pintail, guard: &Guard, consumer: &ConsumerProgress) {
    pintail.block_on(guard.report_progress(consumer)).unwrap();
}

fn now_micros() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

#[test]
fn deleted_rows_leave_their_files_unless_a_consumer_would_see_it() {
    let (folder, pintail) = appended(1);
    foreign(&pintail, "DELETE FROM d WHERE i < 2");
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    let consumer = ConsumerProgress::new("decode", SnapshotId(head(&pintail)), now_micros());
    report(&pintail, &guard, &consumer);
    let left = of(&maintain(&pintail, &compaction()), "d").left.clone().unwrap();
    assert!(
        left.starts_with("57 % of its rows are deleted and stay in its files: consumer decode may read it"),
        "{left}"
    );

    pintail.block_on(guard.forget_consumer("decode")).unwrap();
    // The same consumer, known by the cursor in the lake alone: of this table, and then of another.
    let id = crate::harness::facts(&pintail, "d").id;
    let cursor = |table: i64| {
        foreign(&pintail, "CREATE SCHEMA IF NOT EXISTS _pintail");
        foreign(
            &pintail,
            &format!(
                "CREATE OR REPLACE TABLE _pintail.cursor_decode AS SELECT '{}' AS position, 'ducklake://main/d#{table}' AS \
                 source, 0::BIGINT AS token, now() AS updated_at",
                head(&pintail)
            ),
        );
    };
    cursor(id.0);
    let left = of(&maintain(&pintail, &compaction()), "d").left.clone().unwrap();
    assert!(left.contains("consumer decode reads its change feed, which rewriting would fill"), "{left}");
    assert_eq!(maintain(&pintail, &compaction()).consumers[0].progress.consumer, "decode");
    cursor(crate::harness::facts(&pintail, "other").id.0);
    let before = query(&pintail, "FROM d ORDER BY ALL", None);
    let done = maintain(&pintail, &compaction());
    assert_eq!(of(&done, "d").rewritten, Some(Compacted { files_before: 2, files_after: 2 }));
    assert_eq!(query(&folder.open(), "FROM d ORDER BY ALL", None), before);
    assert!(maintain(&pintail, &compaction()).compacted.is_empty());
}

/// What is there, and what of it upkeep would take.
fn expired(pintail: &Pintail) -> Vec<i64> {
    maintain(pintail, &MaintainRequest { dry_run: true, ..upkeep() }).expired.iter().map(|id| id.0).collect()
}

#[test]
fn what_a_consumer_has_not_read_stays_and_one_that_is_silent_too_long_is_passed_and_remembered() {
    let (_folder, pintail) = appended(3);
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    let last = head(&pintail);
    assert_eq!(expired(&pintail), (0..last).collect::<Vec<_>>());
    let at = |name: &str, snapshot, updated| ConsumerProgress::new(name, SnapshotId(snapshot), updated);
    report(&pintail, &guard, &at("quick", last - 1, now_micros()));
    report(&pintail, &guard, &at("slow", 2, now_micros()));
    // The cursor's own snapshot stays, too: the feed needs both of its bounds.
    assert_eq!(expired(&pintail), [0, 1]);

    let long_ago = now_micros() - 2 * 3_600_000_000;
    let required = ConsumerProgress { required: true, ..at("slow", 2, long_ago) };
    report(&pintail, &guard, &required);
    assert_eq!(expired(&pintail), [0, 1], "a required one is waited for however long it is silent");
    report(&pintail, &guard, &at("slow", 2, long_ago));
    let done = maintain(&pintail, &upkeep());
    assert_eq!(done.expired.iter().map(|id| id.0).collect::<Vec<_>>(), (0..last - 1).collect::<Vec<_>>());
    let standing = |name: &str| {
        let found = done.consumers.iter().find(|standing| standing.progress.consumer == name).unwrap();
        (found.holds, found.binds)
    };
    assert_eq!((standing("quick"), standing("slow")), ((true, true), (false, false)));
    let passed = pintail.block_on(guard.passed_consumers()).unwrap();
    let told: Vec<(&str, i64)> = passed.iter().map(|row| (row.consumer.as_str(), row.snapshot_id)).collect();
    assert_eq!(told, [("slow", 2)]);
}

const KEPT_FOR_A_WHILE: &str = "//- pintail.toml
[run]
keep_runs = 0
keep_days = 0
//- pipelines/d.sql
-- partitioned daily start=2026-01-01
-- retention 10d
-- materialize ducklake://main/d
SELECT $partition AS day, i FROM range(2) t(i)
//- pipelines/total.sql
-- materialize ducklake://main/total
SELECT count(*) AS n FROM d
";

#[test]
fn slices_whose_time_is_over_go_and_nothing_is_missing_or_stale_by_it() {
    let folder = Folder::new(KEPT_FOR_A_WHILE);
    let january = || "2026-01-08T12:00:00Z".parse().unwrap();
    let pintail = folder.open_at(january);
    for day in ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-07"] {
        run(&pintail, &crate::harness::only_at("d", day)).assert_good();
    }
    run(&pintail, &crate::harness::only("total")).assert_good();
    assert!(maintain(&pintail, &compaction()).retired.is_empty(), "nothing is old enough");

    // 2 January ended ten days and twelve hours ago, 3 January nine and a half.
    let pintail = folder.open_at(|| "2026-01-13T12:00:00Z".parse().unwrap());
    let dry = maintain(&pintail, &MaintainRequest { dry_run: true, ..compaction() });
    assert_eq!((dry.retired[0].slices.len(), dry.retired[0].rows), (2, None));
    let done = maintain(&pintail, &compaction());
    let slices: Vec<String> = done.retired[0].slices.iter().map(ToString::to_string).collect();
    assert_eq!((slices, done.retired[0].rows), (vec!["2026-01-01".to_owned(), "2026-01-02".to_owned()], Some(4)));
    let days = query(&pintail, "SELECT DISTINCT day FROM d ORDER BY 1", None);
    assert_eq!(days, ["2026-01-03", "2026-01-07"]);
    assert_eq!(crate::harness::planned(&pintail, &crate::harness::only("total")), Vec::<String>::new());
    assert!(maintain(&pintail, &compaction()).retired.is_empty(), "once is enough");
    pintail.rebuild_state().unwrap();
    assert!(maintain(&pintail, &compaction()).retired.is_empty(), "the stamps say it, too");
    let (states, _) = pintail.status(Some("d"), None).unwrap();
    let text = |key: &Option<PartitionKey>| key.as_ref().map(ToString::to_string).unwrap_or_default();
    let ranges: Vec<String> = states[0]
        .ranges
        .iter()
        .map(|range| format!("{:?} {} {}", range.state, text(&range.first), text(&range.last)))
        .collect();
    assert_eq!(
        ranges,
        [
            "Fresh 2026-01-03 2026-01-03",
            "Missing 2026-01-04 2026-01-06",
            "Fresh 2026-01-07 2026-01-07",
            "Missing 2026-01-08 2026-01-12"
        ]
    );
    // Also when the commit itself has expired.
    let retired = head(&pintail);
    foreign(&pintail, "CREATE TABLE later AS SELECT 1 AS x");
    // By the real clock, by which the commits are old.
    let expired = maintain(&folder.open(), &upkeep()).expired;
    assert!(expired.contains(&SnapshotId(retired)), "{expired:?} and {retired}");
    assert_eq!(crate::harness::planned(&pintail, &crate::harness::only("total")), Vec::<String>::new());
}
