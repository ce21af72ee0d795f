//! What a consumer does when the guard was lost, knows a cursor of before, or a first reading was cut short.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pintail_core::id::SnapshotId;
use pintail_core::stream::WindowLimits;
use pintail_engine::guard::ConsumerProgress;
use pintail_streams::consumer::{Pass, Spec, Start};

use crate::consumers::{COUNTS, begun, drain, expire_below, head, insert, open, progress, spec};
use crate::decoding::Pairs;
use crate::harness::{Lake, On, foreign, on_both, rows};

on_both! {
    a_first_reading_that_was_cut_short_is_begun_again_although_its_snapshots_are_gone
    what_the_guard_knows_of_a_cursor_before_does_not_vouch_for_a_new_one
    a_reset_tells_the_guard_before_the_cursor_goes_back
    a_guard_that_counts_its_tokens_anew_is_raised_above_the_cursor
}

fn a_first_reading_that_was_cut_short_is_begun_again_although_its_snapshots_are_gone(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    for part in 0..2 {
        foreign(
            &writer,
            &format!(
                "INSERT INTO lake.main.raw SELECT 's', '2026-01-01', '{part}-' || i, 'x=1', NULL FROM range(2_500) r(i)"
            ),
        );
    }
    expire_below(&writer, head(&writer));
    let spec = || Spec { window: WindowLimits { rows: 1, bytes: 1 }, ..spec("decode") };
    let failing = lake.writer_with("committed*1=panic");
    let crashed = catch_unwind(AssertUnwindSafe(|| drain(&mut open(&failing, spec(), &decoder))));
    assert!(crashed.is_err(), "the first window has landed, and no other");
    drop(failing);
    let writer = lake.writer();
    assert_ne!(rows(&writer, COUNTS), ["s|5000"]);
    drain(&mut open(&writer, spec(), &decoder));
    assert_eq!(rows(&writer, COUNTS), ["s|5000"]);
}

fn what_the_guard_knows_of_a_cursor_before_does_not_vouch_for_a_new_one(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    for event in ["a/2026-01-01/1/x=1", "a/2026-01-01/2/x=1", "a/2026-01-01/3/x=1"] {
        insert(&writer, &[event]);
    }
    // A lake that was made anew while the guard stayed: it says of what is gone that it was read.
    let before = ConsumerProgress::new("decode", SnapshotId(head(&writer)), 1);
    writer.guard().ask(|guard| async move { guard.report_progress(&before).await }).unwrap();
    expire_below(&writer, head(&writer));
    let mut consumer = open(&writer, spec("decode"), &decoder);
    drain(&mut consumer);
    assert_eq!(rows(&writer, COUNTS), ["a|3"]);
    // A lake that was taken back to an older copy while the guard stayed.
    let beyond = ConsumerProgress::new("decode", SnapshotId(2_000), 1);
    writer.guard().ask(|guard| async move { guard.report_progress(&beyond).await }).unwrap();
    drop(consumer);
    insert(&writer, &["a/2026-01-01/4/x=1"]);
    drain(&mut open(&writer, spec("decode"), &decoder));
    assert!(progress(&writer)[0].1 <= head(&writer), "{:?}", progress(&writer));
    assert_eq!(rows(&writer, COUNTS), ["a|4"]);
}

fn a_reset_tells_the_guard_before_the_cursor_goes_back(on: On) {
    let lake = Lake::new(on);
    let decoder = Pairs::default();
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    drain(&mut open(&writer, spec("decode"), &decoder));
    insert(&writer, &["a/2026-01-01/2/x=1"]);
    let known = progress(&writer)[0].1;
    let failing = lake.writer_with("stamped=panic");
    let crashed =
        catch_unwind(AssertUnwindSafe(|| open(&failing, spec("decode"), &decoder).reset(Start::Earliest).map(drop)));
    assert!(crashed.is_err());
    assert!(progress(&writer)[0].1 < known, "{:?} after {known}", progress(&writer));
}

fn a_guard_that_counts_its_tokens_anew_is_raised_above_the_cursor(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let decoder = Pairs::default();
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    drain(&mut open(&writer, spec("decode"), &decoder));
    foreign(&writer, "UPDATE lake._pintail.cursor_decode SET token = 700");
    insert(&writer, &["a/2026-01-01/2/x=1"]);
    let mut consumer = open(&writer, spec("decode"), &decoder);
    assert!(700 < consumer.token());
    assert!(matches!(consumer.pass().unwrap(), Pass::Landed(_)));
    assert_eq!(rows(&writer, COUNTS), ["a|2"]);
}
