//! A consumer while the object store fails, cuts answers and uploads short, and is slow; while the catalog's server crashes;
//! and while snapshots expire behind it.

use std::time::Duration;

use pintail_streams::consumer::{Consumer, Pass};
use pintail_streams::service::{Ended, Event, Mode, Stop, work};
use pintail_telemetry::decode::{DecoderOptions, decoder};
use pintail_testkit::services::{Fault, private_postgres};

use pintail_testkit::wait_until;

use super::harness::*;

/// How many events are landed, in as many commits.
const EVENTS: u32 = 12;

#[test]
fn an_object_store_that_fails_cuts_and_delays_costs_no_event_and_doubles_none() {
    let (lake, flaky) = on_flaky_s3();
    let decoder = decoder("cloudevents-default", DecoderOptions::default()).unwrap();
    let faults = [
        (Fault::Refuse, 2),
        (Fault::CutAnswers(300), 2),
        (Fault::CutRequests(700), 2),
        (Fault::Slow(Duration::from_millis(5)), 1),
        (Fault::CutRequests(0), 1),
        (Fault::CutAnswers(40), 1),
    ];
    let mut failed = 0;
    for number in 0..EVENTS {
        flaky.set(Fault::None, 1);
        let car = format!("car-{}", number % 3);
        lake.land(&[Raw::speed(&car, &format!("e{number}"), "2026-01-02T00:00:00Z", f64::from(number))]);
        let (fault, every) = faults[number as usize % faults.len()];
        flaky.set(fault, every);
        // A fault may be met by a retry of the engine's own, or end the pass: the next one goes on where this one was.
        let passed = match Consumer::open(&lake.writer, decode_in_small_windows(), &*decoder) {
            Ok(consumer) => consumer.unwrap().pass().is_ok(),
            Err(_) => false,
        };
        failed += u32::from(!passed);
    }
    assert!(0 < failed && 0 < flaky.hits(), "{failed} passes failed, {} connections were hit", flaky.hits());
    flaky.set(Fault::None, 1);
    let mut consumer = Consumer::open(&lake.writer, decode_in_small_windows(), &*decoder).unwrap().unwrap();
    while consumer.pass().unwrap() != Pass::Idle {}
    let told = lake.rows("SELECT count(*), count(DISTINCT cloud_event_id), sum(value_number) FROM signals");
    let sum: u32 = (0..EVENTS).sum();
    assert_eq!(told, format!("{EVENTS} | {EVENTS} | {sum}.0\n"));
    lake.check(&*decoder, 1);
}

#[test]
fn a_postgres_that_crashes_during_commits_costs_no_event_and_doubles_none() {
    let mut server = private_postgres();
    let lake = in_database(server.database());
    let decoder = decoder("cloudevents-default", DecoderOptions::default()).unwrap();
    let rows: Vec<Raw> = (0..60)
        .map(|number| {
            Raw::speed(&format!("car-{}", number % 3), &format!("e{number}"), "2026-01-02T00:00:00Z", f64::from(number))
        })
        .collect();
    for some in rows.chunks(10) {
        lake.land(some);
    }
    let (stop, mode) = (Stop::default(), Mode::Follow { poll: Duration::ZERO, patience: Duration::from_secs(300) });
    let open = lake.opener();
    let windows = std::sync::atomic::AtomicU64::new(0);
    let ended = std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            let mut tell = |event: Event<'_>| match event {
                Event::Landed(landed) => {
                    windows.fetch_add(landed.windows, std::sync::atomic::Ordering::Relaxed);
                }
                Event::Idle => stop.stop(),
                _ => {}
            };
            work(&open, &decode_in_small_windows(), &*decoder, mode, &stop, &mut tell)
        });
        // Every few windows the server crashes, in whatever they are doing then.
        for round in 1..=3 {
            let is_there = || round * 4 <= windows.load(std::sync::atomic::Ordering::Relaxed) || follower.is_finished();
            wait_until("some windows have landed", is_there);
            server.kill();
            server.resume().unwrap();
        }
        follower.join().unwrap()
    });
    assert_eq!(ended.unwrap(), Ended::Stopped);
    let lake = lake.reopened();
    let told = lake.rows("SELECT count(*), count(DISTINCT cloud_event_id), sum(value_number) FROM signals");
    assert_eq!(told, "60 | 60 | 1770.0\n");
    lake.check(&*decoder, 1);
}
