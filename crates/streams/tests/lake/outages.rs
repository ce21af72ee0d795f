//! A Postgres server that goes away in the middle of a consumer's commit, at each point of it.

use std::sync::Barrier;

use pintail_core::sql::{Relation, Statement};
use pintail_engine::fault::Faults;
use pintail_streams::commit::{begin_at, make_table};
use pintail_streams::service::{Ended, Event, Mode, Stop, work};
use pintail_streams::{PositionTable, Writer, position};
use pintail_testkit::services::private_postgres;
use pintail_testkit::wait_until;

use crate::consumers::{COUNTS, begun, insert, spec};
use crate::decoding::Pairs;
use crate::harness::{Lake, foreign, options, rows};

#[test]
fn a_server_that_crashes_in_the_middle_of_a_commit_costs_no_row_and_doubles_none() {
    let mut server = private_postgres();
    let lake = Lake::on(server.database());
    let decoder = Pairs::default();
    drop(begun(&lake));
    for (index, point) in ["staged", "checked", "written", "stamped", "committed"].into_iter().enumerate() {
        insert(&lake.writer(), &[&format!("a/2026-01-01/{index}/x=1;bad")]);
        let folder = tempfile::tempdir().unwrap();
        let paused = std::sync::atomic::AtomicBool::new(false);
        let open = || {
            // Only the first instance is stopped; what is opened after the crash goes on.
            let is_first = !paused.swap(true, std::sync::atomic::Ordering::SeqCst);
            let faults = if is_first { format!("{point}=pause:{}", folder.path().display()) } else { String::new() };
            Writer::open(&lake.location, options(), Faults::parse(&faults).unwrap())
        };
        let mut failures = 0;
        std::thread::scope(|scope| {
            let working = scope.spawn(|| {
                let mut tell = |event: Event<'_>| failures += u32::from(matches!(event, Event::Failed { .. }));
                let spec = spec("decode");
                work(&open, &spec, &decoder, Mode::Once, &Stop::default(), &mut tell)
            });
            wait_until("the commit is under way", || folder.path().join(format!("{point}.reached")).exists());
            server.kill();
            server.resume().unwrap();
            std::fs::write(folder.path().join(format!("{point}.release")), "").unwrap();
            let ended = working.join().unwrap();
            assert!(matches!(ended, Ok(Ended::Done)), "{point}: {ended:?}");
        });
        let writer = lake.writer();
        let expected = index + 1;
        let counted = rows(&writer, "SELECT count(*), count(DISTINCT id) FROM lake.main.readings");
        assert_eq!(counted, [format!("{expected}|{expected}")], "{point}");
        assert_eq!(rows(&writer, COUNTS), [format!("a|{expected}")], "{point}");
        let letters = rows(&writer, "SELECT count(*) FROM lake._pintail.dead_letters");
        assert_eq!(letters, [expected.to_string()], "{point}");
    }
}

#[test]
fn a_stream_whose_first_commit_was_taken_back_begins_all_the_same_and_so_do_its_tables() {
    let mut server = private_postgres();
    let lake = Lake::on(server.database());
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1"]);
    let table = PositionTable::source("test");
    let lose = |making: &(dyn Fn(&Writer) + Sync)| {
        let (ready, go) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                let writer = lake.writer();
                ready.wait();
                go.wait();
                making(&writer);
            });
            ready.wait();
            lake.lose_the_answer_of_a_commit(|| {
                go.wait();
            });
            made.join().unwrap();
        });
    };
    lose(&|writer| assert_eq!(begin_at(writer, "test", &table, "7", "a test").unwrap().at, "7"));
    let filled = |writer: &Writer| {
        let name = Relation::in_catalog(writer.alias(), "main", "filled");
        let statements = ["CREATE TABLE {} AS SELECT 5 AS i", "INSERT INTO {} VALUES (6)"];
        statements.map(|sql| Statement::new("fill", sql.replace("{}", &name.to_string())))
    };
    lose(&|writer| make_table(writer, "main", "filled", &filled(writer)).unwrap());
    drop(writer);
    let writer = lake.writer();
    assert_eq!(rows(&writer, "SELECT i FROM lake.main.filled ORDER BY i"), ["5", "6"]);
    let again = begin_at(&writer, "test", &table, "9", "a test").unwrap();
    assert_eq!(again.at, "7", "it has begun already");
    let messages = "SELECT count(*) FROM lake.snapshots() WHERE starts_with(commit_message, 'taken back:')";
    assert_eq!(rows(&writer, messages), ["2"]);
    // A position that somebody has emptied is not begun anew: nobody knows where it was.
    foreign(&writer, "DELETE FROM lake._pintail.position_test");
    assert!(position::read(&writer, &table).is_err());
    server.stop();
}
