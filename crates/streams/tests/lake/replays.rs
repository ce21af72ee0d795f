//! Replays: what a wrong decoder wrote is replaced by what the right one makes, and by nothing where it makes nothing.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use chrono::{DateTime, Utc};
use pintail_core::stream::WindowLimits;
use pintail_streams::Writer;
use pintail_streams::consumer::{Consumer, Existing, Landed, PassError, Range, Shard, Spec};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::consumers::{COUNTS, READINGS, begun, cursor, drain, insert, open, spec};
use crate::decoding::Pairs;
use crate::harness::{Lake, On, on_both, rows};

on_both! {
    a_row_that_the_fixed_decoder_does_not_make_is_gone_after_a_replay
    an_event_whose_payload_cannot_be_had_keeps_what_it_came_to
    an_event_with_a_row_outside_of_the_range_is_replaced_as_a_whole
    a_replay_of_every_shard_replaces_the_rows_of_each
    a_replay_that_is_killed_and_repeated_is_the_decoding_of_the_newer_version
}

const WRONG: Pairs = Pairs { version: 1, has_rollup: true, is_wrong: true };
const RIGHT: Pairs = Pairs { version: 2, has_rollup: true, is_wrong: false };
const VERSIONS: &str = "SELECT subject, id, name, decoder_version FROM lake.main.readings ORDER BY ALL";

/// The days `from` to `to` of January, without the last.
fn days(from: u32, to: u32) -> Range {
    let day = |day: u32| format!("2026-01-{day:02}T00:00:00Z").parse::<DateTime<Utc>>().unwrap();
    Range::Time { column: "time".to_owned(), from: day(from), to: day(to) }
}

fn replay(writer: &Writer, spec: Spec, range: &Range) -> Result<Landed, PassError> {
    Consumer::beside(writer, spec, &RIGHT).unwrap().reread(range, Existing::ReplaceOlder)
}

fn a_row_that_the_fixed_decoder_does_not_make_is_gone_after_a_replay(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-02/2/x=2", "b/2026-01-02/3/bad", "c/2026-01-03/4/x=4"]);
    insert(&writer, &["d/2026-01-05/5/bad"]);
    drain(&mut open(&writer, spec("decode"), &WRONG));
    assert_eq!(rows(&writer, COUNTS), ["a|4", "b|1", "c|2", "d|1"]);
    let at = cursor(&writer, "decode");

    let landed = replay(&writer, spec("decode"), &days(1, 3)).unwrap();
    assert_eq!((landed.rows, landed.replaced, landed.written[0].1), (3, 5, 2));
    assert_eq!(rows(&writer, VERSIONS), ["a|1|x|2", "a|2|x|2", "c|4|wrong|1", "c|4|x|1", "d|5|wrong|1"]);
    // Nothing is left of `b`, in the rollup too.
    assert_eq!(rows(&writer, COUNTS), ["a|2", "c|2", "d|1"]);
    assert_eq!(cursor(&writer, "decode"), at);
    let again = replay(&writer, spec("decode"), &days(1, 3)).unwrap();
    assert_eq!((again.replaced, again.duplicates, again.written[0].1), (0, 2, 0));
    // A window that comes to no row at all takes out what was there all the same.
    assert_eq!(replay(&writer, spec("decode"), &days(5, 6)).unwrap().replaced, 1);
    assert_eq!(rows(&writer, COUNTS), ["a|2", "c|2"]);
}

fn an_event_whose_payload_cannot_be_had_keeps_what_it_came_to(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-01/2/unread", "b/2026-01-01/3/unread"]);
    drain(&mut open(&writer, spec("decode"), &WRONG));
    let landed = replay(&writer, spec("decode"), &days(1, 2)).unwrap();
    assert_eq!((landed.replaced, landed.letters), (2, 0));
    assert_eq!(rows(&writer, VERSIONS), ["a|1|x|2", "a|2|wrong|1", "b|3|wrong|1"]);
    assert_eq!(rows(&writer, COUNTS), ["a|2", "b|1"]);
}

fn an_event_with_a_row_outside_of_the_range_is_replaced_as_a_whole(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-09/1/y=2", "a/2026-01-09/2/z=3"]);
    drain(&mut open(&writer, spec("decode"), &WRONG));
    let landed = replay(&writer, spec("decode"), &days(1, 2)).unwrap();
    assert_eq!((landed.rows, landed.replaced, landed.written[0].1), (2, 4, 2));
    assert_eq!(rows(&writer, VERSIONS), ["a|1|x|2", "a|1|y|2", "a|2|wrong|1", "a|2|z|1"]);
}

fn a_replay_of_every_shard_replaces_the_rows_of_each(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1", "b/2026-01-01/1/x=2", "c/2026-01-01/1/x=3", "d/2026-01-01/1/bad"]);
    let shard = |index| Spec { shard: Some(Shard { index, of: 2, by: "subject".to_owned() }), ..spec("decode") };
    (0..2).for_each(|index| drop(drain(&mut open(&writer, shard(index), &WRONG))));
    assert_eq!(rows(&writer, COUNTS), ["a|2", "b|2", "c|2", "d|1"]);
    let replaced = |index| replay(&writer, shard(index), &days(1, 2)).unwrap().replaced;
    assert_eq!((0..2).map(replaced).sum::<u64>(), 7);
    assert_eq!(rows(&writer, COUNTS), ["a|1", "b|1", "c|1"]);
}

/// An event: its subject, its day, its id, and its data.
type Event = (char, u32, u32, &'static str);

fn event() -> impl Strategy<Value = Event> {
    let data = prop::sample::select(vec!["x=1", "x=1;y=2", "y=2;bad", "bad", "unread"]);
    (prop::char::range('a', 'c'), 1..6_u32, 0..5_u32, data)
}

/// What a decoder makes of an event: the name and value of each reading.
fn made_of(event: &Event, decoder: &Pairs) -> Vec<(&'static str, &'static str)> {
    let pairs = event.3.split(';').filter_map(|pair| pair.split_once('='));
    let wrong = decoder.is_wrong.then_some(("wrong", "0"));
    pairs.chain(wrong).collect()
}

/// What the table holds after a replay of `[from, to)`: of each event that has a row there and can be read what the right
/// decoder makes, and of the others what the wrong one has made.
fn expected(events: &[Event], from: u32, to: u32) -> BTreeSet<String> {
    let decoder = |event: &Event| {
        let rows: Vec<&Event> = events.iter().filter(|other| (other.0, other.2) == (event.0, event.2)).collect();
        let is_in_range = rows.iter().any(|row| from <= row.1 && row.1 < to);
        let can_be_read = rows.iter().any(|row| row.3 != "unread");
        if is_in_range && can_be_read { &RIGHT } else { &WRONG }
    };
    let rows = events.iter().flat_map(|event| {
        let decoder = decoder(event);
        let (subject, day, id, _) = event;
        let row = move |(name, value): (&str, &str)| {
            format!("{subject}|{id}|{name}|2026-01-0{day}|{value}.0|{}", decoder.version)
        };
        made_of(event, decoder).into_iter().map(row)
    });
    rows.collect()
}

fn a_replay_that_is_killed_and_repeated_is_the_decoding_of_the_newer_version(on: On) {
    let point = prop::sample::select(vec!["staged", "checked", "written", "stamped", "committed"]);
    let cases = (prop::collection::vec(event(), 4..12), 1..4_u32, 1..3_u32, point, 1..3_u32);
    let config = ProptestConfig { cases: 3, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let crashes = Cell::new(0);
    let ran = runner.run(&cases, |(events, from, length, point, nth)| {
        let is_killed = kill_and_repeat(on, &events, (from, from + length), &format!("{point}*{nth}=panic"));
        crashes.set(crashes.get() + u32::from(is_killed));
        Ok(())
    });
    ran.unwrap();
    assert!(0 < crashes.get(), "no case was killed");
}

/// Decodes `events` wrongly, lets a replay of `[from, to)` die at `fault`, makes it again, and looks at what there is; returns
/// whether it died.
fn kill_and_repeat(on: On, events: &[Event], (from, to): (u32, u32), fault: &str) -> bool {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    for some in events.chunks(3) {
        let some: Vec<String> =
            some.iter().map(|(subject, day, id, data)| format!("{subject}/2026-01-0{day}/{id}/{data}")).collect();
        insert(&writer, &some.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // A window has the rows of a file.
    let spec = || Spec { window: WindowLimits { rows: 1, bytes: 1 }, ..spec("decode") };
    drain(&mut open(&writer, spec(), &WRONG));
    let failing = lake.writer_with(fault);
    let died = catch_unwind(AssertUnwindSafe(|| replay(&failing, spec(), &days(from, to)))).is_err();
    is_as_its_base_says(&writer);
    replay(&writer, spec(), &days(from, to)).unwrap();
    let readings = "SELECT subject, id, name, strftime(\"timestamp\", '%Y-%m-%d'), value, decoder_version
                    FROM lake.main.readings";
    let held = rows(&writer, readings);
    assert_eq!(held.len(), held.iter().collect::<BTreeSet<_>>().len(), "a row is there twice");
    assert_eq!(held.into_iter().collect::<BTreeSet<_>>(), expected(events, from, to));
    is_as_its_base_says(&writer);
    died
}

/// Asserts that the rollup is what a recomputation of its base gives.
fn is_as_its_base_says(writer: &Writer) {
    let mut counts = BTreeMap::<String, u64>::new();
    for row in rows(writer, READINGS) {
        *counts.entry(row.split('|').next().unwrap().to_owned()).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(subject, count)| format!("{subject}|{count}")).collect();
    assert_eq!(rows(writer, COUNTS), counts);
}
