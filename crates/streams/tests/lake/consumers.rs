//! Consumers on real lakes: every row once, whatever happens between two steps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pintail_core::id::SnapshotId;
use pintail_core::stream::{GapPolicy, WindowLimits};
use pintail_streams::consumer::{Consumer, Landed, Pass, PassError, Shard, Source, Spec, Start};
use pintail_streams::{Writer, position};

use crate::decoding::{Pairs, SOURCE};
use crate::harness::{Lake, On, foreign, on_both, rows};

on_both! {
    rows_are_decoded_once_with_rollup_letters_and_cursor_and_idle_commits_nothing
    a_row_on_which_the_decoder_panics_is_a_dead_letter_and_no_other
    equal_rows_on_both_sides_of_a_window_are_all_there
    a_redelivered_event_of_any_age_is_there_once
    a_crash_at_any_point_loses_nothing_and_doubles_nothing
    case_e36_maintenance_is_no_work_and_updates_are_no_inserts
    case_e32_a_gap_stops_is_read_again_or_is_skipped_on_record
    shards_share_the_rows_and_each_keeps_its_own_rollup
    a_second_process_waits_and_takes_over_when_the_first_is_gone
    a_zombie_owner_writes_nothing_after_its_heir
    a_consumer_that_begins_late_reads_what_the_table_holds
    a_beginning_is_not_stopped_by_holes_between_versions_that_are_held
    what_cannot_be_consumed_is_said
    a_source_that_changes_its_columns_between_two_passes_is_looked_at_again
    a_rollup_that_somebody_broke_is_made_anew
}

pub fn spec(name: &str) -> Spec {
    Spec::new(name, Source { schema: "main".to_owned(), table: "raw".to_owned() })
}

pub fn open<'a>(writer: &'a Writer, spec: Spec, decoder: &'a Pairs) -> Consumer<'a> {
    Consumer::open(writer, spec, decoder).unwrap().expect("nobody has it")
}

/// Passes until nothing is left, and returns what each of them came to.
pub fn drain(consumer: &mut Consumer<'_>) -> Vec<Landed> {
    let mut landed = Vec::new();
    for _ in 0..100 {
        match consumer.pass().unwrap() {
            Pass::Landed(one) => landed.push(one),
            Pass::Idle => return landed,
            Pass::Again | Pass::NoSource { .. } => {}
        }
    }
    panic!("there is no end: {landed:?}");
}

/// Inserts events `subject/time/id/data`, one commit.
pub fn insert(writer: &Writer, events: &[&str]) {
    let values: Vec<String> = events
        .iter()
        .map(|event| {
            let fields: Vec<String> = event.split('/').map(|field| format!("'{field}'")).collect();
            format!("({}, NULL)", fields.join(", "))
        })
        .collect();
    foreign(writer, &format!("INSERT INTO lake.main.raw VALUES {}", values.join(", ")));
}

pub fn begun(lake: &Lake) -> Writer {
    let writer = lake.writer();
    foreign(&writer, SOURCE);
    writer
}

pub const READINGS: &str = "SELECT subject, id, name, value FROM lake.main.readings ORDER BY ALL";
pub const COUNTS: &str = "SELECT subject, readings FROM lake.main.counts ORDER BY ALL";

pub fn cursor(writer: &Writer, name: &str) -> i64 {
    position::read(writer, &spec(name).cursor()).unwrap().unwrap().at.parse().unwrap()
}

pub fn head(writer: &Writer) -> i64 {
    rows(writer, "SELECT max(snapshot_id) FROM lake.snapshots()")[0].parse().unwrap()
}

pub fn progress(writer: &Writer) -> Vec<(String, i64)> {
    let known = writer.guard().ask(|guard| async move { guard.consumers().await }).unwrap();
    known.into_iter().map(|row| (row.consumer, row.snapshot.0)).collect()
}

fn rows_are_decoded_once_with_rollup_letters_and_cursor_and_idle_commits_nothing(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let mut consumer = open(&writer, spec("decode"), &decoder);
    insert(&writer, &["a/2026-01-01/1/x=1;y=2", "b/2026-01-01/2/x=3;bad"]);
    insert(&writer, &["a/2026-01-02/3/x=4"]);
    let source = head(&writer);
    let landed = drain(&mut consumer);
    assert_eq!(landed.len(), 1);
    assert_eq!((landed[0].rows, landed[0].duplicates, landed[0].letters, landed[0].windows), (3, 0, 1, 1));
    assert_eq!(landed[0].written, [("readings".to_owned(), 4)]);
    assert_eq!(rows(&writer, READINGS), ["a|1|x|1.0", "a|1|y|2.0", "a|3|x|4.0", "b|2|x|3.0"]);
    assert_eq!(rows(&writer, COUNTS), ["a|3", "b|1"]);
    let letters =
        "SELECT origin, position, part, reason, decode(raw), decoder, version, event_id, subject, event_time::VARCHAR,
                event_source FROM lake._pintail.dead_letters";
    let position = format!("snapshot {}", source - 1);
    let letter = format!("consumer decode|{position}|pairs[1]|expected name=number, not `bad`|bad|pairs|1");
    let letter = format!("{letter}|2|b|2026-01-01 00:00:00+00|NULL");
    assert_eq!(rows(&writer, letters), [letter]);
    assert_eq!(cursor(&writer, "decode"), source);
    let before = head(&writer);
    assert_eq!(progress(&writer), [("decode".to_owned(), before)]);
    for _ in 0..3 {
        assert_eq!(consumer.pass().unwrap(), Pass::Idle);
    }
    // Commits of others are no work, and let the floor rise.
    foreign(&writer, "CREATE TABLE lake.main.other AS SELECT 1 AS x");
    assert_eq!(consumer.pass().unwrap(), Pass::Idle);
    assert_eq!(head(&writer), before + 1);
    assert_eq!((cursor(&writer, "decode"), progress(&writer)[0].1), (source, before + 1));
}

fn a_row_on_which_the_decoder_panics_is_a_dead_letter_and_no_other(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    // One panics while it is decoded, and two while their payloads are fetched.
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-01/2/lost", "a/2026-01-01/3/panic", "a/2026-01-01/4/x=4"]);
    insert(&writer, &["b/2026-01-01/5/lost"]);
    let landed = drain(&mut open(&writer, spec("decode"), &decoder));
    assert_eq!(landed.iter().map(|landed| (landed.rows, landed.letters)).collect::<Vec<_>>(), [(5, 3)]);
    assert_eq!(rows(&writer, READINGS), ["a|1|x|1.0", "a|4|x|4.0"]);
    let letters = "SELECT event_id, reason, raw IS NOT NULL FROM lake._pintail.dead_letters ORDER BY ALL";
    assert_eq!(
        rows(&writer, letters),
        [
            "2|the decoder `pairs` failed on this row: no way to it|true",
            "3|the decoder `pairs` failed on this row: the data says so|true",
            "5|the decoder `pairs` failed on this row: no way to it|true",
        ]
    );
}

fn equal_rows_on_both_sides_of_a_window_are_all_there(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let limits = WindowLimits { rows: 1, bytes: 1 << 20 };
    let mut consumer = open(&writer, Spec { window: limits, ..spec("decode") }, &decoder);
    // Subject, time and id are equal on all of them; batches are of 2,048 rows, so that there are several windows.
    foreign(
        &writer,
        "INSERT INTO lake.main.raw SELECT 'a', '2026-01-01', '1', 'n' || i || '=1', NULL FROM range(10_000) r(i)",
    );
    let landed = drain(&mut consumer);
    assert!(3 < landed[0].windows, "{landed:?}");
    assert_eq!((landed[0].rows, landed[0].duplicates), (10_000, 0));
    assert_eq!(rows(&writer, COUNTS), ["a|10000"]);
    assert_eq!(rows(&writer, "SELECT count(*), count(DISTINCT name) FROM lake.main.readings"), ["10000|10000"]);
}

fn a_redelivered_event_of_any_age_is_there_once(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let mut consumer = open(&writer, spec("decode"), &decoder);
    insert(&writer, &["a/2025-01-01/1/x=1", "a/2026-01-01/2/x=1"]);
    drain(&mut consumer);
    // The old event again, twice, together with a new one.
    insert(&writer, &["a/2025-01-01/1/x=1", "a/2025-01-01/1/x=1", "a/2026-03-01/3/x=1"]);
    let landed = drain(&mut consumer);
    assert_eq!((landed[0].written[0].1, landed[0].duplicates), (1, 2));
    assert_eq!(rows(&writer, READINGS), ["a|1|x|1.0", "a|2|x|1.0", "a|3|x|1.0"]);
    assert_eq!(rows(&writer, COUNTS), ["a|3"]);
}

fn a_crash_at_any_point_loses_nothing_and_doubles_nothing(on: On) {
    let lake = Lake::new(on);
    drop(begun(&lake));
    let decoder = Pairs::default();
    let limits = WindowLimits { rows: 1, bytes: 1 };
    // The first or the second time: in the first window, which leaves the cursor, or in the last, which moves it.
    let points = [
        "leased",
        "staged*2",
        "checked",
        "written*2",
        "stamped",
        "stamped*2",
        "committed",
        "committed*2",
        "remembered",
    ];
    for (index, point) in points.into_iter().enumerate() {
        let writer = lake.writer_with(&format!("{point}=panic"));
        foreign(
            &writer,
            &format!(
                "INSERT INTO lake.main.raw
             SELECT 's', '2026-01-01', '{index}-' || i, if(i = 7, 'bad', 'x=1'), NULL FROM range(3_000) r(i)"
            ),
        );
        let spec = Spec { window: limits, ..spec("decode") };
        let crashed = catch_unwind(AssertUnwindSafe(|| drain(&mut open(&writer, spec, &decoder))));
        assert!(crashed.is_err(), "{point}");
        // What is there after each crash is there once, and the rollup agrees.
        if position::read(&writer, &self::spec("decode").cursor()).unwrap().is_some_and(|row| 0 < row.token) {
            let counted = "SELECT (SELECT count(*) - count(DISTINCT id) FROM lake.main.readings)
                                - (SELECT coalesce(sum(readings), 0) - (SELECT count(*) FROM lake.main.readings) FROM lake.main.counts)";
            assert_eq!(rows(&writer, counted), ["0"], "{point}");
        }
    }
    let writer = lake.writer();
    drain(&mut open(&writer, Spec { window: limits, ..spec("decode") }, &decoder));
    let sum = points.len() * 2_999;
    let counted = rows(&writer, "SELECT count(*), count(DISTINCT id) FROM lake.main.readings");
    assert_eq!(counted, [format!("{sum}|{sum}")]);
    assert_eq!(rows(&writer, COUNTS), [format!("s|{sum}")]);
    let letters = rows(&writer, "SELECT count(*), count(DISTINCT position) FROM lake._pintail.dead_letters");
    assert_eq!(letters, [format!("{0}|{0}", points.len())]);
}

fn case_e36_maintenance_is_no_work_and_updates_are_no_inserts(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let mut consumer = open(&writer, spec("decode"), &decoder);
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-01/2/x=1", "a/2026-01-01/3/x=1"]);
    insert(&writer, &["a/2026-01-01/4/x=1"]);
    drain(&mut consumer);
    // An update and an insert in one commit: only the insert is one.
    let both = "BEGIN; UPDATE lake.main.raw SET data = 'x=9' WHERE id = '2';
                INSERT INTO lake.main.raw VALUES ('a', '2026-01-01', '5', 'x=5', NULL); COMMIT";
    foreign(&writer, both);
    let landed = drain(&mut consumer);
    assert_eq!(landed[0].rows, 1, "{landed:?}");
    foreign(&writer, "DELETE FROM lake.main.raw WHERE id = '1'");
    let alias = writer.alias().to_owned();
    foreign(&writer, &format!("CALL ducklake_rewrite_data_files('{alias}', 'raw', delete_threshold => 0.0)"));
    foreign(&writer, &format!("CALL ducklake_merge_adjacent_files('{alias}')"));
    assert_eq!(consumer.pass().unwrap(), Pass::Idle);
    assert_eq!(rows(&writer, COUNTS), ["a|5"]);
}

/// Expires as a stranger does, who knows of no consumer.
pub fn expire_below(writer: &Writer, snapshot: i64) {
    let alias = writer.alias().to_owned();
    let ids = rows(writer, &format!("SELECT snapshot_id FROM lake.snapshots() WHERE snapshot_id < {snapshot}"));
    foreign(writer, &format!("CALL ducklake_expire_snapshots('{alias}', versions => [{}])", ids.join(", ")));
}

fn case_e32_a_gap_stops_is_read_again_or_is_skipped_on_record(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs { has_rollup: false, ..Pairs::default() };
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    for (name, gap) in [("stops", GapPolicy::Stop), ("rescans", GapPolicy::Rescan), ("skips", GapPolicy::Skip)] {
        let spec = Spec { gap, ..spec(name) };
        drain(&mut open(&writer, spec.clone(), &decoder));
    }
    insert(&writer, &["a/2026-01-01/2/x=2"]);
    insert(&writer, &["a/2026-01-01/3/x=3"]);
    insert(&writer, &["a/2026-01-01/4/x=4"]);
    let last = head(&writer);
    expire_below(&writer, last);
    foreign(&writer, "DELETE FROM lake.main.readings WHERE id <> '1'");
    let with = |name: &str, gap| open(&writer, Spec { gap, ..spec(name) }, &decoder);
    let before = cursor(&writer, "stops");
    match with("stops", GapPolicy::Stop).pass() {
        Err(PassError::Gap { gap, cursor, .. }) => assert_eq!((gap.upto.0, cursor.0), (last - 1, before)),
        other => panic!("{other:?}"),
    }
    assert_eq!(cursor(&writer, "stops"), before, "nothing was passed over");
    let landed = drain(&mut with("skips", GapPolicy::Skip));
    assert_eq!((landed.len(), landed[1].rows), (2, 1), "{landed:?}");
    assert_eq!(rows(&writer, READINGS), ["a|1|x|1.0", "a|4|x|4.0"]);
    let record = rows(&writer, "SELECT origin, position FROM lake._pintail.dead_letters");
    assert_eq!(record.len(), 1);
    assert!(
        record[0].starts_with("consumer skips|snapshots ") && record[0].ends_with(&(last - 1).to_string()),
        "{record:?}"
    );
    let landed = drain(&mut with("rescans", GapPolicy::Rescan));
    assert!(landed[0].gap.is_some() && landed[0].rows == 3, "{landed:?}");
    assert_eq!(rows(&writer, READINGS), ["a|1|x|1.0", "a|2|x|2.0", "a|3|x|3.0", "a|4|x|4.0"]);
}

fn shards_share_the_rows_and_each_keeps_its_own_rollup(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let events: Vec<String> = (0..20).map(|i| format!("s{i}/2026-01-01/{i}/x={i}")).collect();
    insert(&writer, &events.iter().map(String::as_str).collect::<Vec<_>>());
    let shard = |index| Some(Shard { index, of: 3, by: "subject".to_owned() });
    let mut read = 0;
    for index in 0..3 {
        let landed = drain(&mut open(&writer, Spec { shard: shard(index), ..spec("decode") }, &decoder));
        read += landed[0].rows;
    }
    assert_eq!(read, 20);
    let counted = "SELECT count(*), count(DISTINCT subject), sum(readings)::BIGINT FROM lake.main.counts";
    assert_eq!(rows(&writer, counted), ["20|20|20"]);
    let own = rows(&writer, "SELECT count(*) > 0 FROM lake.main.counts_s01");
    assert_eq!(own, ["true"]);
    let names: Vec<String> = progress(&writer).into_iter().map(|row| row.0).collect();
    assert_eq!(names, ["decode.00", "decode.01", "decode.02"]);
    // Another number of shards would read rows twice or never.
    let four = Spec { shard: Some(Shard { index: 0, of: 4, by: "subject".to_owned() }), ..spec("decode") };
    let refused = open(&writer, four, &decoder).pass();
    assert!(matches!(refused, Err(PassError::OtherSource { .. })), "{refused:?}");
}

fn a_second_process_waits_and_takes_over_when_the_first_is_gone(on: On) {
    let lake = Lake::new(on);
    let (here, there) = (begun(&lake), lake.writer());
    let decoder = Pairs::default();
    insert(&here, &["a/2026-01-01/1/x=1"]);
    let mut first = open(&here, spec("decode"), &decoder);
    drain(&mut first);
    let holder = Consumer::open(&there, spec("decode"), &decoder).unwrap().err().expect("the first one lives");
    assert_eq!(holder.process, std::process::id());
    drop(first);
    insert(&here, &["a/2026-01-01/2/x=1"]);
    drain(&mut open(&there, spec("decode"), &decoder));
    assert_eq!(rows(&there, COUNTS), ["a|2"]);
}

fn a_zombie_owner_writes_nothing_after_its_heir(on: On) {
    let lake = Lake::new(on);
    let (here, there) = (begun(&lake), lake.writer());
    let decoder = Pairs::default();
    insert(&here, &["a/2026-01-01/1/x=1"]);
    let mut zombie = open(&here, spec("decode"), &decoder);
    drain(&mut zombie);
    // Its lease is taken for a dead one's although it lives.
    let lease = pintail_engine::guard::Lease {
        key: pintail_engine::guard::LeaseKey { asset: "consumer decode".to_owned(), partition: None },
        token: zombie.token(),
    };
    here.guard().ask(|guard| async move { guard.release(&lease).await }).unwrap();
    let mut heir = open(&there, spec("decode"), &decoder);
    insert(&here, &["a/2026-01-01/2/x=1"]);
    drain(&mut heir);
    insert(&here, &["a/2026-01-01/3/x=1"]);
    let late = zombie.pass();
    assert!(matches!(late, Err(PassError::LeaseLost { .. })), "{late:?}");
    assert_eq!(rows(&there, COUNTS), ["a|2"]);
    drain(&mut heir);
    assert_eq!(rows(&there, COUNTS), ["a|3"]);
}

fn a_consumer_that_begins_late_reads_what_the_table_holds(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    insert(&writer, &["a/2026-01-01/2/x=1"]);
    insert(&writer, &["a/2026-01-01/3/x=1"]);
    let behind = SnapshotId(head(&writer) - 1);
    expire_below(&writer, head(&writer));
    let landed = drain(&mut open(&writer, spec("earliest"), &decoder));
    assert_eq!(landed.iter().map(|one| one.rows).sum::<u64>(), 3, "{landed:?}");
    let from = |name: &str, start| drain(&mut open(&writer, Spec { start, ..spec(name) }, &decoder));
    assert_eq!(from("head", Start::Head), []);
    assert_eq!(from("after", Start::After(behind))[0].rows, 1);
    assert_eq!(rows(&writer, COUNTS), ["a|3"]);
}

fn a_beginning_is_not_stopped_by_holes_between_versions_that_are_held(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let heads: Vec<i64> = (1..=5)
        .map(|id| {
            insert(&writer, &[&format!("a/2026-01-01/{id}/x=1")]);
            head(&writer)
        })
        .collect();
    // As maintenance leaves a lake of which the second and the fourth version are pinned.
    let alias = writer.alias().to_owned();
    let going = format!("{}, {}", heads[0], heads[2]);
    foreign(&writer, &format!("CALL ducklake_expire_snapshots('{alias}', versions => [{going}])"));
    let mut consumer = open(&writer, spec("decode"), &decoder);
    drain(&mut consumer);
    assert_eq!(rows(&writer, COUNTS), ["a|5"]);
    consumer.reset(Start::Earliest).unwrap();
    drain(&mut consumer);
    assert_eq!(rows(&writer, COUNTS), ["a|5"]);
    insert(&writer, &["a/2026-01-01/6/x=1"]);
    drain(&mut consumer);
    assert_eq!(rows(&writer, COUNTS), ["a|6"]);
}

fn what_cannot_be_consumed_is_said(on: On) {
    let lake = Lake::new(on);
    let writer = lake.writer();
    let decoder = Pairs::default();
    let mut early = open(&writer, spec("decode"), &decoder);
    assert_eq!(early.pass().unwrap(), Pass::NoSource { near: None });
    foreign(&writer, "CREATE TABLE lake.main.raws AS SELECT 1 AS x");
    assert_eq!(early.pass().unwrap(), Pass::NoSource { near: Some("raws".to_owned()) });
    foreign(&writer, "CREATE TABLE lake.main.raw AS SELECT 'a' AS subject, now() AS \"time\", '1' AS id, 'x' AS dta");
    let text = early.pass().unwrap_err().to_string();
    assert!(text.contains("ducklake://main/raw has no column `data`") && text.contains("there is `dta`"), "{text}");
    foreign(&writer, "DROP TABLE lake.main.raw");
    foreign(&writer, SOURCE);
    let text = early.pass().unwrap_err().to_string();
    assert!(text.contains("was made anew") && text.contains("consume reset decode --to earliest"), "{text}");
    let text = early.reset(Start::After(SnapshotId(1_000))).unwrap_err().to_string();
    assert!(text.contains("snapshot 1000 is not there yet: the newest is "), "{text}");
    early.reset(Start::Earliest).unwrap();
    // As in a lake that was taken back to an older copy.
    foreign(&writer, "UPDATE lake._pintail.cursor_decode SET position = '1000'");
    let text = early.pass().unwrap_err().to_string();
    assert!(text.contains("the cursor is at snapshot 1000") && text.contains("an older copy"), "{text}");
    let before = head(&writer);
    foreign(&writer, "CREATE TABLE lake.main.readings (subject VARCHAR, id INTEGER)");
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    let text = open(&writer, spec("other"), &decoder).pass().unwrap_err().to_string();
    assert!(
        text.contains("`readings` cannot take the decoded rows: column `id` is INTEGER instead of VARCHAR"),
        "{text}"
    );
    assert!(before < head(&writer));
}

fn a_rollup_that_somebody_broke_is_made_anew(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let mut consumer = open(&writer, spec("decode"), &decoder);
    insert(&writer, &["a/2026-01-01/1/x=1", "b/2026-01-01/1/x=1"]);
    drain(&mut consumer);
    foreign(&writer, "INSERT INTO lake.main.counts VALUES ('b', 7)");
    insert(&writer, &["a/2026-01-01/2/x=1"]);
    drain(&mut consumer);
    assert_eq!(rows(&writer, COUNTS), ["a|2", "b|1"]);
}

fn a_source_that_changes_its_columns_between_two_passes_is_looked_at_again(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let mut consumer = open(&writer, spec("decode"), &decoder);
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    drain(&mut consumer);
    foreign(&writer, "ALTER TABLE lake.main.raw RENAME COLUMN data TO date");
    insert(&writer, &["a/2026-01-01/2/x=1"]);
    let text = consumer.pass().unwrap_err().to_string();
    assert!(text.contains("has no column `data`") && text.contains("there is `date`"), "{text}");
    foreign(&writer, "ALTER TABLE lake.main.raw RENAME COLUMN date TO data");
    insert(&writer, &["a/2026-01-01/3/x=1"]);
    assert_eq!(drain(&mut consumer)[0].rows, 2);
    assert_eq!(rows(&writer, COUNTS), ["a|3"]);
}
