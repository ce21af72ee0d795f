//! A Postgres server that goes away in the middle of a consumer's commit, at each point of it.

use pintail_engine::fault::Faults;
use pintail_streams::Writer;
use pintail_streams::service::{Ended, Event, Mode, Stop, work};
use pintail_testkit::services::private_postgres;
use pintail_testkit::wait_until;

use crate::consumers::{COUNTS, begun, insert, spec};
use crate::decoding::Pairs;
use crate::harness::{Lake, options, rows};

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
