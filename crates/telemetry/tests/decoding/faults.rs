//! A consumer while the object store fails, cuts answers and uploads short, and is slow.

use std::time::Duration;

use pintail_streams::consumer::{Consumer, Pass};
use pintail_telemetry::decode::{DecoderOptions, decoder};
use pintail_testkit::services::Fault;

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
        let mut consumer = Consumer::open(&lake.writer, decode_in_small_windows(), &*decoder).unwrap().unwrap();
        failed += u32::from(consumer.pass().is_err());
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
