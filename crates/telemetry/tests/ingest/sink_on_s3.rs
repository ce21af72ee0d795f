//! A store of objects that refuses, breaks off and delays: what waits lands once, and nothing is condemned for it.

use std::time::Duration;

use pintail_telemetry::sink::LakeState;
use pintail_testkit::services::{Fault, Flaky};
use pintail_testkit::wait_until;
use tokio::sync::watch;

use crate::harness::{On, Place, event, rows};

const COUNT: &str = "SELECT count(*), count(DISTINCT id) FROM lake.main.raw_events";

/// DuckDB tries an upload four times by itself, so that after so many faults the sink has tried again.
const AGAIN: u64 = 6;

/// Runs the sink of a log with a hundred events while the store has `fault`, until it has tried again; returns what is in the
/// lake once the fault is gone.
fn landed_after(fault: Fault) -> Vec<String> {
    let mut place = Place::new(On::PostgresAndS3);
    let direct = place.writer();
    let proxy = Flaky::before(&place.store_endpoint());
    place.reach_store_through(proxy.endpoint());
    let log = place.log("log");
    let sink = place.sink(&log);
    let status = sink.status();
    let (stop, stopped) = watch::channel(false);
    proxy.set(fault, 1);
    std::thread::scope(|scope| {
        // It goes with this closure, so that a test that fails ends.
        let stop = stop;
        let running = scope.spawn(|| sink.run(stopped));
        // More than a flush takes, so that one is due at once.
        for number in 0..100 {
            place.append(&log, &[event(&number.to_string(), "")]);
        }
        wait_until(&format!("{fault:?} is met again"), || running.is_finished() || AGAIN <= proxy.hits());
        assert_ne!(status.lake(), LakeState::Refuses, "{fault:?}: nobody needs to mend the lake");
        proxy.set(Fault::None, 1);
        wait_until("all has landed", || running.is_finished() || log.held() == 0);
        assert_eq!(status.lake(), LakeState::Well, "{fault:?}");
        stop.send_replace(true);
        running.join().unwrap().unwrap();
    });
    let letters = rows(&direct, "SELECT count(*) FROM lake._pintail.dead_letters");
    [rows(&direct, COUNT), letters].concat()
}

#[test]
fn a_store_that_refuses_is_waited_for() {
    assert_eq!(landed_after(Fault::Refuse), ["100|100", "0"]);
}

#[test]
fn a_store_that_takes_half_of_a_file_is_waited_for() {
    assert_eq!(landed_after(Fault::CutRequests(700)), ["100|100", "0"]);
}

#[test]
fn a_store_whose_answers_break_off_is_waited_for() {
    assert_eq!(landed_after(Fault::CutAnswers(40)), ["100|100", "0"]);
}

#[test]
fn a_store_that_is_slow_takes_everything_once() {
    let mut place = Place::new(On::PostgresAndS3);
    let direct = place.writer();
    let proxy = Flaky::before(&place.store_endpoint());
    place.reach_store_through(proxy.endpoint());
    let log = place.log("log");
    let mut sink = place.sink(&log);
    proxy.set(Fault::Slow(Duration::from_millis(300)), 1);
    place.append(&log, &[event("1", ""), event("2", "")]);
    assert_eq!(sink.flush().unwrap().unwrap().rows, 2);
    assert!(0 < proxy.hits());
    assert_eq!(rows(&direct, COUNT), ["2|2"]);
}
