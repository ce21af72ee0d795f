//! Reading again: backfills, replays, and cursors set by hand.

use chrono::{DateTime, Utc};
use pintail_core::id::SnapshotId;
use pintail_streams::Writer;
use pintail_streams::consumer::{Consumer, Existing, PassError, Range, Start};

use crate::consumers::{COUNTS, READINGS, begun, cursor, drain, head, insert, open, progress, spec};
use crate::decoding::Pairs;
use crate::harness::{Lake, On, foreign, on_both, rows};

on_both! {
    a_backfill_fills_in_what_is_missing_beside_the_owner_and_leaves_the_cursor
    a_replay_replaces_what_an_older_version_wrote_and_keeps_the_rollup_right
    a_cursor_that_is_reset_reads_again_and_doubles_nothing
}

const V1: Pairs = Pairs { version: 1, has_rollup: true, is_wrong: false };

fn january() -> Range {
    let day = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    Range::Time { column: "time".to_owned(), from: day("2026-01-01T00:00:00Z"), to: day("2026-02-01T00:00:00Z") }
}

/// Three events of January and one of February.
fn filled(lake: &Lake) -> Writer {
    let writer = begun(lake);
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-31 23:59:59/2/x=2;bad"]);
    insert(&writer, &["b/2026-01-02/3/x=3", "b/2026-02-01/4/x=4"]);
    writer
}

fn a_backfill_fills_in_what_is_missing_beside_the_owner_and_leaves_the_cursor(on: On) {
    let lake = Lake::new(on);
    let writer = filled(&lake);
    let never = Consumer::beside(&writer, spec("decode"), &V1).unwrap().reread(&january(), Existing::Keep);
    assert!(matches!(never, Err(PassError::NeverRun { .. })), "{never:?}");
    let mut owner = open(&writer, spec("decode"), &V1);
    drain(&mut owner);
    let at = cursor(&writer, "decode");
    let Range::Time { from, to, .. } = january() else { panic!() };
    let slip = Range::Time { column: "tiem".to_owned(), from, to };
    let told = Consumer::beside(&writer, spec("decode"), &V1).unwrap().reread(&slip, Existing::Keep).unwrap_err();
    assert_eq!(
        told.to_string(),
        "ducklake://main/raw has no column `tiem`, which `time_column` names; there is `time`"
    );
    foreign(&writer, "DELETE FROM lake.main.readings WHERE id <> '1'");
    foreign(&writer, "DELETE FROM lake.main.counts WHERE subject = 'b'");
    foreign(&writer, "UPDATE lake.main.counts SET readings = 1");
    let other = lake.writer();
    let landed = Consumer::beside(&other, spec("decode"), &V1).unwrap().reread(&january(), Existing::Keep).unwrap();
    assert_eq!((landed.rows, landed.written[0].1, landed.duplicates, landed.letters), (3, 2, 1, 0));
    assert_eq!(rows(&writer, READINGS), ["a|1|x|1.0", "a|2|x|2.0", "b|3|x|3.0"]);
    assert_eq!(rows(&writer, COUNTS), ["a|2", "b|1"]);
    assert_eq!(cursor(&writer, "decode"), at);
    // The owner goes on as before.
    insert(&writer, &["a/2026-01-05/5/x=5"]);
    assert_eq!(drain(&mut owner)[0].written[0].1, 1);
}

fn a_replay_replaces_what_an_older_version_wrote_and_keeps_the_rollup_right(on: On) {
    let lake = Lake::new(on);
    let writer = filled(&lake);
    drain(&mut open(&writer, spec("decode"), &V1));
    let second = Pairs { version: 2, ..V1 };
    let upto = SnapshotId(head(&writer));
    let first_commit = rows(&writer, "SELECT min(snapshot_id) FROM lake.main.raw")[0].parse().unwrap();
    let mut beside = Consumer::beside(&writer, spec("decode"), &second).unwrap();
    let range = Range::Snapshots { after: SnapshotId(first_commit), upto };
    let landed = beside.reread(&range, Existing::ReplaceOlder).unwrap();
    assert_eq!((landed.rows, landed.replaced, landed.written[0].1, landed.duplicates), (2, 2, 2, 0));
    let versions = "SELECT id, decoder_version FROM lake.main.readings ORDER BY ALL";
    assert_eq!(rows(&writer, versions), ["1|1", "2|1", "3|2", "4|2"]);
    assert_eq!(rows(&writer, COUNTS), ["a|2", "b|2"]);
    // Once more changes nothing, and neither does an older version.
    assert_eq!(beside.reread(&range, Existing::ReplaceOlder).unwrap().replaced, 0);
    let mut older = Consumer::beside(&writer, spec("decode"), &V1).unwrap();
    assert_eq!(older.reread(&january(), Existing::ReplaceOlder).unwrap().replaced, 0);
    assert_eq!(rows(&writer, versions), ["1|1", "2|1", "3|2", "4|2"]);
}

fn a_cursor_that_is_reset_reads_again_and_doubles_nothing(on: On) {
    let lake = Lake::new(on);
    let writer = filled(&lake);
    let mut owner = open(&writer, spec("decode"), &V1);
    drain(&mut owner);
    let at = SnapshotId(cursor(&writer, "decode"));
    let (was, is) = owner.reset(Start::Earliest).unwrap();
    assert!(was == Some(at) && is < at);
    assert_eq!(progress(&writer), [("decode".to_owned(), is.0)], "what is needed again is held again");
    let landed = drain(&mut owner);
    assert_eq!((landed[0].rows, landed[0].written[0].1), (4, 0));
    assert_eq!(cursor(&writer, "decode"), at.0);
    // A table that was made anew is taken by a reset.
    foreign(&writer, "DROP TABLE lake.main.raw");
    foreign(&writer, crate::decoding::SOURCE);
    insert(&writer, &["c/2026-03-01/9/x=9"]);
    assert!(matches!(owner.pass(), Err(PassError::Replaced { .. })));
    owner.reset(Start::Earliest).unwrap();
    assert_eq!(drain(&mut owner)[0].written[0].1, 1);
    assert_eq!(rows(&writer, COUNTS), ["a|2", "b|2", "c|1"]);
}
