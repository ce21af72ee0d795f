//! Two owners of one consumer, and what a pass costs after many.

use std::sync::{Barrier, mpsc};
use std::time::Duration;

use pintail_core::id::SnapshotId;
use pintail_core::stream::{GapPolicy, WindowLimits};
use pintail_engine::guard::{Lease, LeaseKey};
use pintail_engine::lane::Purpose;
use pintail_streams::consumer::{Consumer, Existing, Pass, PassError, Range, Removed, Shard, Spec, known, remove};
use pintail_testkit::wait_until;

use crate::consumers::{COUNTS, begun, drain, insert, open, progress, spec};
use crate::decoding::Pairs;
use crate::harness::{Lake, On, foreign, on_both, rows};

on_both! {
    two_owners_at_once_write_each_row_once
    a_late_pass_costs_what_the_third_did
    who_is_removed_holds_nothing_and_who_is_at_work_is_not_removed
    what_expires_in_the_middle_of_a_span_is_a_gap
}

/// Passes until it is idle, lost its lease, or nothing is left to do.
fn race(consumer: &mut Consumer<'_>) {
    for _ in 0..40 {
        match consumer.pass() {
            Ok(Pass::Idle) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn who_is_removed_holds_nothing_and_who_is_at_work_is_not_removed(on: On) {
    let lake = Lake::new(on);
    let (writer, other) = (begun(&lake), lake.writer());
    let decoder = Pairs::default();
    insert(&writer, &["a/2026-01-01/1/x=1", "b/2026-01-01/2/x=2"]);
    let shard = |index| Spec { shard: Some(Shard { index, of: 2, by: "subject".to_owned() }), ..spec("decode") };
    let mut first = open(&writer, shard(0), &decoder);
    drain(&mut first);
    drain(&mut open(&writer, shard(1), &decoder));
    assert_eq!(Vec::from_iter(known(&other).unwrap()), ["decode.00", "decode.01"]);
    let holder = remove(&other, "decode.00").unwrap().unwrap_err();
    assert_eq!(holder.process, std::process::id());
    drop(first);
    for name in ["decode.00", "decode.01"] {
        assert_eq!(remove(&other, name).unwrap(), Ok(Removed { had_cursor: true, had_progress: true }));
        assert_eq!(remove(&other, name).unwrap(), Ok(Removed { had_cursor: false, had_progress: false }));
    }
    assert_eq!((known(&writer).unwrap().len(), progress(&writer)), (0, Vec::new()));
    // What it wrote is there, and one of its name begins anew and doubles nothing.
    assert_eq!(rows(&writer, COUNTS), ["a|1", "b|1"]);
    let landed = drain(&mut open(&writer, shard(0), &decoder));
    assert_eq!(landed.iter().map(|landed| landed.written[0].1).sum::<u64>(), 0);
    assert_eq!(rows(&writer, COUNTS), ["a|1", "b|1"]);
}

fn two_owners_at_once_write_each_row_once(on: On) {
    let lake = Lake::new(on);
    let (here, there) = (begun(&lake), lake.writer());
    let decoder = Pairs::default();
    let limits = WindowLimits { rows: 1, bytes: 1 };
    let spec = Spec { window: limits, ..spec("decode") };
    insert(&here, &["a/2026-01-01/0/x=1"]);
    let mut first = open(&here, spec.clone(), &decoder);
    drain(&mut first);
    for round in 0..3 {
        foreign(
            &here,
            &format!(
                "INSERT INTO lake.main.raw SELECT 'a', '2026-01-01', '{round}-' || i, if(i = 5, 'bad', 'x=1'), NULL FROM range(6_000) r(i)"
            ),
        );
    }
    drop(first);
    // Both own it: the lease of the first is taken for a dead one's, although it lives and goes on.
    let (together, tokens) = (Barrier::new(2), mpsc::channel());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let writer = lake.writer();
            let mut zombie = open(&writer, spec.clone(), &decoder);
            tokens.0.send((zombie.token(), writer.guard().clone())).unwrap();
            together.wait();
            race(&mut zombie);
        });
        let (token, guard) = tokens.1.recv().unwrap();
        let lease = Lease { key: LeaseKey { asset: "consumer decode".to_owned(), partition: None }, token };
        guard.ask(|guard| async move { guard.release(&lease).await }).unwrap();
        let mut heir = open(&there, spec.clone(), &decoder);
        assert!(token < heir.token());
        together.wait();
        race(&mut heir);
    });
    drop(there);
    drain(&mut open(&here, Spec { window: limits, ..crate::consumers::spec("decode") }, &decoder));
    let sum = 3 * 5_999 + 1;
    assert_eq!(rows(&here, "SELECT count(*), count(DISTINCT id) FROM lake.main.readings"), [format!("{sum}|{sum}")]);
    assert_eq!(rows(&here, COUNTS), [format!("a|{sum}")]);
    assert_eq!(rows(&here, "SELECT count(*) FROM lake._pintail.dead_letters"), ["3"]);
}

fn a_late_pass_costs_what_the_third_did(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    let mut consumer = open(&writer, spec("decode"), &decoder);
    let mut costs = Vec::new();
    for pass in 0..12 {
        insert(&writer, &[&format!("a/2026-01-0{}/{pass}/x=1", 1 + pass % 9)]);
        // Commits of others, as a busy lake has them.
        foreign(&writer, "CREATE OR REPLACE TABLE lake.main.other AS SELECT 1 AS x");
        writer.session().take_sent();
        assert_eq!(drain(&mut consumer).len(), 1);
        let statements = writer.session().take_sent().len();
        let alias = writer.alias();
        let live =
            format!("SELECT count(*) FROM ducklake_list_files('{alias}', 'cursor_decode', schema => '_pintail')");
        costs.push((statements, rows(&writer, &live)[0].clone()));
    }
    assert_eq!(costs[2], costs[11], "{costs:?}");
    assert_eq!(costs[11].1, "1", "the cursor is one file, however often it has moved");
}

fn what_expires_in_the_middle_of_a_span_is_a_gap(on: On) {
    let lake = Lake::new(on);
    drop(begun(&lake));
    let folder = tempfile::tempdir().unwrap();
    let decoder = Pairs { has_rollup: false, ..Pairs::default() };
    let limits = WindowLimits { rows: 1, bytes: 1 };
    let spec = Spec { window: limits, gap: GapPolicy::Stop, ..spec("decode") };
    let other = lake.writer();
    insert(&other, &["a/2026-01-01/0/x=1"]);
    drain(&mut open(&other, spec.clone(), &decoder));
    // Many files, so that the last of them is opened long after the first window.
    for round in 0..3 {
        foreign(
            &other,
            &format!(
                "INSERT INTO lake.main.raw SELECT 'a', '2026-01-01', '{round}-' || i, 'x=1', NULL FROM range(30_000) r(i)"
            ),
        );
    }
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let writer = lake.writer_with(&format!("staged*1=pause:{}", folder.path().display()));
            let mut consumer = open(&writer, spec.clone(), &decoder);
            let mut outcomes = Vec::new();
            for _ in 0..3 {
                let outcome = consumer.pass();
                let ends = outcome.is_err() || matches!(outcome, Ok(Pass::Idle));
                outcomes.push(outcome);
                if ends {
                    break;
                }
            }
            outcomes
        });
        wait_until("the first window is staged", || folder.path().join("staged.reached").exists());
        let alias = other.alias().to_owned();
        foreign(&other, "DELETE FROM lake.main.raw");
        let old = rows(&other, "SELECT snapshot_id FROM lake.snapshots() ORDER BY snapshot_id DESC OFFSET 1");
        foreign(&other, &format!("CALL ducklake_expire_snapshots('{alias}', versions => [{}])", old.join(", ")));
        foreign(&other, &format!("CALL ducklake_cleanup_old_files('{alias}', cleanup_all => true)"));
        std::fs::write(folder.path().join("staged.release"), "").unwrap();
        let outcomes = reading.join().unwrap();
        // Either the reader had everything open, or it lost it: then that is a gap, and the cursor has not moved.
        let last = outcomes.last().unwrap();
        let read = rows(&other, "SELECT count(*) FROM lake.main.readings")[0].clone();
        match last {
            Err(PassError::Gap { .. }) => assert_ne!(read, "90001", "{outcomes:?}"),
            Ok(Pass::Idle) => assert_eq!(read, "90001", "{outcomes:?}"),
            other => panic!("{other:?} after {outcomes:?}"),
        }
    });
}

#[test]
fn a_commit_waits_for_who_compacts_a_table_of_which_it_changes_rows_and_for_no_other() {
    let lake = Lake::new(On::Postgres);
    let (decoder, newer) = (Pairs::default(), Pairs { version: 99, ..Pairs::default() });
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/0/x=1"]);
    drain(&mut open(&writer, spec("decode"), &decoder));
    let lane = lake.of_another_process().lane();
    let compacting = |table| lane.enter_to(Purpose::Compact(("main", table)), Duration::ZERO, &|| false).unwrap();
    let hasty = lake.writer_with("patience=0");
    let is_kept_out = |error: PassError, table: &str| {
        let text = format!("{error:?}");
        assert!(text.contains(&format!("the rows or files of main.{table}")), "{text}");
    };

    // A pass folds into the rollup, and inserts into its base.
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    let held = compacting("counts");
    is_kept_out(open(&hasty, spec("decode"), &decoder).pass().unwrap_err(), "counts");
    drop(held);
    let held = compacting("readings");
    drain(&mut open(&hasty, spec("decode"), &decoder));
    assert_eq!(rows(&writer, COUNTS), ["a|2"]);
    // A replay deletes from the base, too.
    let replay = || {
        let upto = SnapshotId(crate::consumers::head(&writer));
        let range = Range::Snapshots { after: SnapshotId(0), upto };
        Consumer::beside(&hasty, spec("decode"), &newer).unwrap().reread(&range, Existing::ReplaceOlder)
    };
    is_kept_out(replay().unwrap_err(), "readings");
    drop(held);
    assert_eq!(replay().unwrap().replaced, 2);
    assert_eq!(rows(&writer, COUNTS), ["a|2"]);
}
