//! The one way into the lake: a position and rows that land together or not at all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pintail_core::sql::Statement;
use pintail_engine::EngineError;
use pintail_streams::commit::{begin_at, commit};
use pintail_streams::dead_letter::{self, DeadLetter, EventName};
use pintail_streams::{Commit, Move, Outcome, PositionTable, Writer, position};

use crate::harness::{Lake, On, foreign, on_both, rows};

const SOURCE: &str = "a test";

on_both! {
    rows_and_position_land_together_and_a_second_owner_finds_it_moved
    a_refused_statement_takes_the_position_back
    an_owner_with_an_older_token_is_refused_after_a_newer_one_has_written
    a_crash_at_any_point_is_seen_by_the_position
    two_that_begin_one_stream_find_one_row
    a_letter_that_is_written_again_is_there_once
    a_move_does_not_ask_for_the_statistics_of_files
}

fn table() -> PositionTable {
    PositionTable::source("test")
}

/// Inserts one row with the move from one place to another.
fn land<'a>(writer: &Writer, from: &'a str, to: &'a str, token: i64) -> Outcome<u64> {
    let table = table();
    let asked = Commit { by: "test", position: &table, change: Move { from, to, source: SOURCE, token }, changes: &[] };
    let insert = Statement::new("insert", format!("INSERT INTO {}.main.t VALUES ('{to}')", writer.alias()));
    commit(writer, &asked, |transaction| transaction.run(&insert), |rows| format!("test: {rows} rows"))
}

fn begun(lake: &Lake) -> Writer {
    let writer = lake.writer();
    foreign(&writer, "CREATE TABLE lake.main.t (v VARCHAR)");
    let position = begin_at(&writer, "test", &table(), "0", SOURCE).unwrap();
    assert_eq!((position.at.as_str(), position.token), ("0", 0));
    writer
}

/// The question for them reads those of every file of the lake, however many there are.
fn a_move_does_not_ask_for_the_statistics_of_files(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let run = |sql: &str| writer.session().batch("test", sql).unwrap();
    run("CALL enable_logging('QueryLog')");
    assert!(matches!(land(&writer, "0", "1", 1), Outcome::Committed { .. }));
    run("CALL disable_logging()");
    let logged = |what: &str| {
        let count = format!("SELECT count(*) FROM duckdb_logs WHERE type = 'QueryLog' AND {what}");
        rows(&writer, &count)[0].parse::<u64>().unwrap()
    };
    assert_eq!(logged("contains(message, 'SET position')"), 1);
    assert_eq!(logged("contains(message, '_stats AS MATERIALIZED')"), 0);
}

fn rows_and_position_land_together_and_a_second_owner_finds_it_moved(on: On) {
    let lake = Lake::new(on);
    let (here, there) = (begun(&lake), lake.writer());
    let Outcome::Committed { snapshot, value } = land(&here, "0", "5", 1) else { panic!("nobody is in the way") };
    assert_eq!(value, 1);
    match land(&there, "0", "7", 1) {
        Outcome::Moved { found } => assert_eq!(found.unwrap().at, "5"),
        other => panic!("{other:?}"),
    }
    assert_eq!(rows(&there, "SELECT v FROM lake.main.t"), ["5"]);
    let history = "SELECT commit_message, commit_extra_info::JSON ->> '$.stream.to' FROM lake.snapshots()";
    assert_eq!(rows(&here, &format!("{history} WHERE snapshot_id = {snapshot}")), ["test: 1 rows|5"]);
    assert!(matches!(land(&there, "5", "7", 1), Outcome::Committed { .. }));
}

fn a_refused_statement_takes_the_position_back(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    let table = table();
    let asked = Commit {
        by: "test",
        position: &table,
        change: Move { from: "0", to: "1", source: SOURCE, token: 0 },
        changes: &[],
    };
    let bad = Statement::new("fail", "SELECT error('no such thing')");
    let refused = commit(&writer, &asked, |transaction| transaction.run(&bad), |_| String::new());
    assert!(matches!(refused, Outcome::Refused(EngineError::Statement(_))), "{refused:?}");
    assert_eq!(position::read(&writer, &table).unwrap().unwrap().at, "0");
    // The session goes on as if nothing had been.
    assert!(matches!(land(&writer, "0", "1", 0), Outcome::Committed { .. }));
}

fn an_owner_with_an_older_token_is_refused_after_a_newer_one_has_written(on: On) {
    let lake = Lake::new(on);
    let (zombie, heir) = (begun(&lake), lake.writer());
    // The heir has not moved the position: it wrote a part of what leads there.
    assert!(matches!(land(&heir, "0", "0", 2), Outcome::Committed { .. }));
    let late = land(&zombie, "0", "3", 1);
    assert!(matches!(&late, Outcome::Moved { found: Some(found) } if found.token == 2), "{late:?}");
    assert_eq!(rows(&heir, "SELECT v FROM lake.main.t"), ["0"]);
}

fn a_crash_at_any_point_is_seen_by_the_position(on: On) {
    let lake = Lake::new(on);
    drop(begun(&lake));
    for (point, lands) in [("checked", false), ("written", false), ("stamped", false), ("committed", true)] {
        let writer = lake.writer_with(&format!("{point}=panic"));
        let before = position::read(&writer, &table()).unwrap().unwrap().at;
        let crashed = catch_unwind(AssertUnwindSafe(|| land(&writer, &before, point, 0)));
        assert!(crashed.is_err(), "{point}");
        drop(writer);
        let writer = lake.writer();
        let after = position::read(&writer, &table()).unwrap().unwrap().at;
        assert_eq!(after == point, lands, "{point}");
        let found = rows(&writer, &format!("SELECT count(*) FROM lake.main.t WHERE v = '{point}'"));
        assert_eq!(found, [u8::from(lands).to_string()], "{point}");
    }
}

fn two_that_begin_one_stream_find_one_row(on: On) {
    let lake = Lake::new(on);
    drop(lake.writer());
    let begin = |start: &str| begin_at(&lake.writer(), "test", &table(), start, SOURCE).unwrap().at;
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| begin("1"));
        (begin("2"), other.join().unwrap())
    });
    assert_eq!(first, second);
    assert_eq!(position::read(&lake.writer(), &table()).unwrap().unwrap().at, first);
}

fn a_letter_that_is_written_again_is_there_once(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    dead_letter::prepare(&writer).unwrap();
    dead_letter::prepare(&writer).unwrap();
    let letter = |position: &str, raw: &[u8]| DeadLetter {
        origin: "test".to_owned(),
        position: position.to_owned(),
        part: None,
        reason: "it's odd".to_owned(),
        raw: raw.to_vec(),
        decoder: Some(("odd".to_owned(), 3)),
        event: EventName::default(),
    };
    let write = |letters: &[DeadLetter], from: &str, to: &str| {
        let staged = dead_letter::stage(writer.session(), letters).unwrap();
        let table = table();
        let asked =
            Commit { by: "test", position: &table, change: Move { from, to, source: SOURCE, token: 0 }, changes: &[] };
        let work = |transaction: &pintail_engine::WriteTransaction<'_>| {
            dead_letter::write(transaction, writer.alias(), &staged)
        };
        match commit(&writer, &asked, work, |_| String::new()) {
            Outcome::Committed { value, .. } => value,
            other => panic!("{other:?}"),
        }
    };
    let (first, second, third) = (letter("1", b"\0\xff'"), letter("1", b"b"), letter("2", b"b"));
    assert_eq!(write(&[first.clone(), second.clone(), first.clone()], "0", "0"), 2);
    assert_eq!(write(&[first, second, third], "0", "1"), 1);
    assert_eq!(write(&[], "1", "2"), 0);
    let found =
        "SELECT position, reason, raw, decoder, version, replayed_at FROM lake._pintail.dead_letters ORDER BY ALL";
    assert_eq!(
        rows(&writer, found),
        ["1|it's odd|00ff27|odd|3|NULL", "1|it's odd|62|odd|3|NULL", "2|it's odd|62|odd|3|NULL"]
    );
}
