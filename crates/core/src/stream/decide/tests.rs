//! What each picture of a lake comes to, letter by letter.

use expect_test::{Expect, expect};

use super::*;
use crate::stream::Part;

/// Snapshots as letters from the first id on: `w` brought rows, `.` did not, `x` is expired.
fn snapshots(first: i64, letters: &str) -> Vec<SeenSnapshot> {
    let seen = |(index, letter): (usize, char)| {
        let id = SnapshotId(first + i64::try_from(index).unwrap());
        let touch = if letter == 'w' { Touch::Rows } else { Touch::Nothing };
        (letter != 'x').then_some(SeenSnapshot { id, at_micros: id.0 * 10, touch, rows: 10, bytes: 100 })
    };
    letters.chars().enumerate().filter_map(seen).collect()
}

/// The letters begin after the cursor, which is 5.
fn facts<'a>(snapshots: &'a [SeenSnapshot]) -> Facts<'a> {
    Facts {
        cursor: SnapshotId(5),
        source: TableId(1),
        found: Some(TableId(1)),
        head: snapshots.last().map_or(SnapshotId(5), |snapshot| snapshot.id),
        seen: SnapshotId(5),
        vouched: SnapshotId(0),
        snapshots,
        limits: SpanLimits { snapshots: 3, rows: 1_000, bytes: 1_000 },
        policy: GapPolicy::Stop,
    }
}

fn text(decision: &Decision) -> String {
    match decision {
        Decision::Consume(span) => {
            let ids: Vec<String> = span.snapshots().iter().map(ToString::to_string).collect();
            let more = if span.has_more { " and more" } else { "" };
            format!("consume {}{more}", ids.join(" "))
        }
        Decision::Rescan(passage) => format!("rescan ({}, {}]", passage.after(), passage.upto()),
        Decision::Skip(passage) => format!("skip {} to {}", passage.gap, passage.upto()),
        Decision::Stopped(gap) => format!("stopped by {gap}"),
        Decision::Replaced { found } => format!("replaced by {}", found.0),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[test]
fn what_was_never_consumed_is_read_behind_the_last_gap() {
    let check =
        |letters: &str, expected: Expect| expected.assert_eq(&text(&decide_first(&facts(&snapshots(6, letters)))));
    check("....", expect!["idle"]);
    check("wwww.w", expect!["consume 6 7 8 and more"]);
    check("x.", expect!["rescan (5, 7]"]);
    check("wxxwxw.", expect!["rescan (5, 11]"]);
    let gone = snapshots(6, "wxw");
    expect!["replaced by 2"].assert_eq(&text(&decide_first(&Facts { found: Some(TableId(2)), ..facts(&gone) })));
}

#[test]
fn what_came_decides() {
    let check = |letters: &str, expected: Expect| expected.assert_eq(&text(&decide(&facts(&snapshots(6, letters)))));
    check("", expect!["idle"]);
    check("....", expect!["idle"]);
    check("w", expect!["consume 6"]);
    check(".w..w.", expect!["consume 7 10"]);
    check("wwww.w", expect!["consume 6 7 8 and more"]);
    // What is there before a gap is consumed first; a snapshot between two gaps too.
    check("x.", expect!["stopped by snapshot 6"]);
    check("w.xxw", expect!["consume 6 and more"]);
    check(".xxxw", expect!["stopped by snapshots 7 to 9"]);
}

#[test]
fn a_gap_is_passed_in_the_way_that_was_chosen_run_by_run() {
    let seen = snapshots(6, ".xx.xw");
    let by = |policy, cursor: i64| {
        let left: Vec<SeenSnapshot> = seen.iter().filter(|s| cursor < s.id.0).copied().collect();
        let (head, seen) = (SnapshotId(11), SnapshotId(cursor));
        let facts = Facts { cursor: seen, seen, head, policy, ..facts(&left) };
        text(&decide(&facts))
    };
    assert_eq!(by(GapPolicy::Rescan, 5), "rescan (5, 9]");
    assert_eq!(by(GapPolicy::Rescan, 9), "rescan (9, 11]");
    assert_eq!(by(GapPolicy::Skip, 5), "skip snapshots 7 to 8 to 8");
    assert_eq!(by(GapPolicy::Skip, 11), "idle");
}

#[test]
fn what_was_vouched_for_is_no_gap_and_what_is_there_is_read_all_the_same() {
    let vouched = |letters: &str, vouched: i64| {
        let seen = snapshots(6, letters);
        text(&decide(&Facts { vouched: SnapshotId(vouched), ..facts(&seen) }))
    };
    assert_eq!(vouched("xxx.w", 8), "consume 10");
    assert_eq!(vouched("xxx.w", 7), "stopped by snapshot 8");
    // A lake that was restored from a copy has given its ids again: what is there counts.
    assert_eq!(vouched("w...", 9), "consume 6");
    assert_eq!(vouched(".xw", 90), "consume 8");
}

#[test]
fn a_cursor_that_cannot_be_is_refused() {
    let none = snapshots(6, "w");
    assert_eq!(decide(&Facts { head: SnapshotId(4), snapshots: &[], ..facts(&none) }), Decision::Ahead);
    assert_eq!(decide(&Facts { found: None, ..facts(&none) }), Decision::Absent);
    assert_eq!(text(&decide(&Facts { found: Some(TableId(2)), ..facts(&none) })), "replaced by 2");
}

#[test]
fn a_span_is_bounded_by_rows_and_bytes_and_never_empty() {
    let seen = snapshots(6, "www");
    let limited = |rows, bytes| {
        let limits = SpanLimits { snapshots: 9, rows, bytes };
        text(&decide(&Facts { limits, ..facts(&seen) }))
    };
    assert_eq!(limited(1_000, 1_000), "consume 6 7 8");
    assert_eq!(limited(29, 1_000), "consume 6 7 and more");
    assert_eq!(limited(1_000, 199), "consume 6 and more");
    assert_eq!(limited(0, 0), "consume 6 and more");
}

#[test]
fn the_cursor_moves_with_the_last_part_only() {
    let seen = snapshots(6, ".w.w");
    let Decision::Consume(span) = decide(&facts(&seen)) else { panic!("rows came") };
    let parts = [span.permit(Part::Between, 3), span.permit(Part::Last, 3)];
    let moves: Vec<(i64, i64, i64)> = parts.iter().map(|p| (p.from().0, p.to().0, p.token())).collect();
    assert_eq!(moves, [(5, 5, 3), (5, 9, 3)]);
    assert_eq!(span.oldest_micros, 70);
}
