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
use crate::harness::{Lake, On, foreign, on_both, rows};

on_both! {
    a_row_that_the_fixed_decoder_does_not_make_is_gone_after_a_replay
    an_event_whose_payload_cannot_be_had_keeps_what_it_came_to
    events_that_share_an_id_are_replaced_together
    an_event_that_the_source_no_longer_holds_keeps_what_it_came_to
    a_row_that_two_events_come_to_is_of_the_newer_version_once_either_is_read
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
    // Nor does another event of that id tell what this one would come to.
    insert(&writer, &["b/2026-01-02/3/y=1"]);
    assert_eq!(replay(&writer, spec("decode"), &days(1, 3)).unwrap().replaced, 0);
    assert_eq!(rows(&writer, VERSIONS), ["a|1|x|2", "a|2|wrong|1", "b|3|wrong|1", "b|3|y|2"]);
}

fn events_that_share_an_id_are_replaced_together(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-09/1/y=2", "a/2026-01-09/2/z=3"]);
    drain(&mut open(&writer, spec("decode"), &WRONG));
    let landed = replay(&writer, spec("decode"), &days(1, 2)).unwrap();
    assert_eq!((landed.rows, landed.replaced, landed.written[0].1), (2, 4, 2));
    assert_eq!(rows(&writer, VERSIONS), ["a|1|x|2", "a|1|y|2", "a|2|wrong|1", "a|2|z|1"]);
}

fn an_event_that_the_source_no_longer_holds_keeps_what_it_came_to(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1", "a/2026-01-09/1/y=2"]);
    drain(&mut open(&writer, spec("decode"), &WRONG));
    foreign(&writer, "DELETE FROM lake.main.raw WHERE \"time\" < '2026-01-05'");
    let landed = replay(&writer, spec("decode"), &days(1, 10)).unwrap();
    assert_eq!((landed.rows, landed.replaced, landed.written[0].1), (1, 2, 1));
    assert_eq!(rows(&writer, VERSIONS), ["a|1|wrong|1", "a|1|x|1", "a|1|y|2"]);
    assert_eq!(rows(&writer, COUNTS), ["a|3"]);
}

fn a_row_that_two_events_come_to_is_of_the_newer_version_once_either_is_read(on: On) {
    let lake = Lake::new(on);
    let writer = begun(&lake);
    insert(&writer, &["a/2026-01-01/1/x=1@5"]);
    insert(&writer, &["a/2026-01-09/1/x=2@5"]);
    drain(&mut open(&writer, spec("decode"), &WRONG));
    let readings = "SELECT name, value, event_time::DATE, decoder_version FROM lake.main.readings ORDER BY ALL";
    let wrong = "wrong|0.0|2026-01-01|1";
    assert_eq!(rows(&writer, readings), [wrong, "wrong|0.0|2026-01-09|1", "x|1.0|2026-01-01|1"]);
    foreign(&writer, "DELETE FROM lake.main.raw WHERE \"time\" < '2026-01-05'");
    let landed = replay(&writer, spec("decode"), &days(1, 10)).unwrap();
    assert_eq!((landed.replaced, landed.written[0].1), (2, 1));
    assert_eq!(rows(&writer, readings), [wrong, "x|2.0|2026-01-09|2"]);
    assert_eq!(rows(&writer, COUNTS), ["a|2"]);
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
    let data = prop::sample::select(vec!["x=1", "x=1@7;y=2", "y=2@7;bad", "y=3@7", "bad", "unread"]);
    (prop::char::range('a', 'c'), 1..6_u32, 0..5_u32, data)
}

/// A reading as the table has it: subject, id, name and day, which are its identity, then the day of its event and the version.
type Reading = (String, String, String, u32, u32, u32);

fn readings(writer: &Writer) -> Vec<Reading> {
    let query =
        "SELECT subject, id, name, day(\"timestamp\"), day(event_time), decoder_version FROM lake.main.readings";
    let reading = |row: String| {
        let fields: Vec<&str> = row.split('|').collect();
        let [subject, id, name] = [0, 1, 2].map(|field: usize| fields[field].to_owned());
        let [day, event, version] = [3, 4, 5].map(|field: usize| fields[field].parse().unwrap());
        (subject, id, name, day, event, version)
    };
    rows(writer, query).into_iter().map(reading).collect()
}

/// What the right decoder makes of an event: the name and day of each reading.
fn made_of(&(_, day, _, data): &Event) -> Vec<(String, u32)> {
    let pairs = data.split(';').filter_map(|pair| pair.split_once('='));
    let reading = |(name, value): (&str, &str)| {
        let day = value.split_once('@').map_or(day, |(_, day)| day.parse().unwrap());
        (name.to_owned(), day)
    };
    pairs.map(reading).collect()
}

/// What the table holds after a replay of `[from, to)` over `before`, as identities and versions: all that the right decoder makes
/// of the events that share an id with one there, and of the others, and of those that cannot be read, what was there.
fn expected(events: &[Event], before: &[Reading], from: u32, to: u32) -> BTreeSet<(String, String, String, u32, u32)> {
    let in_range: BTreeSet<(char, u32)> =
        events.iter().filter(|event| from <= event.1 && event.1 < to).map(|event| (event.0, event.2)).collect();
    let read = || events.iter().filter(|event| in_range.contains(&(event.0, event.2)) && event.3 != "unread");
    let replaced: BTreeSet<(String, String, u32)> =
        read().map(|event| (event.0.to_string(), event.2.to_string(), event.1)).collect();
    let anew: BTreeSet<(String, String, String, u32)> = read()
        .flat_map(|event| {
            let named = |(name, day)| (event.0.to_string(), event.2.to_string(), name, day);
            made_of(event).into_iter().map(named)
        })
        .collect();
    let stays = before.iter().filter(|reading| {
        let (subject, id, name, day, event, _) = (*reading).clone();
        !replaced.contains(&(subject.clone(), id.clone(), event)) && !anew.contains(&(subject, id, name, day))
    });
    let stays = stays.cloned().map(|(subject, id, name, day, _, version)| (subject, id, name, day, version));
    let anew = anew.iter().cloned().map(|(subject, id, name, day)| (subject, id, name, day, RIGHT.version));
    stays.chain(anew).collect()
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
    let before = readings(&writer);
    let failing = lake.writer_with(fault);
    let died = catch_unwind(AssertUnwindSafe(|| replay(&failing, spec(), &days(from, to)))).is_err();
    is_as_its_base_says(&writer);
    replay(&writer, spec(), &days(from, to)).unwrap();
    let held = readings(&writer);
    let identities: BTreeSet<_> =
        held.iter().cloned().map(|(subject, id, name, day, _, version)| (subject, id, name, day, version)).collect();
    assert_eq!(held.len(), identities.len(), "a row is there twice");
    assert_eq!(identities, expected(events, &before, from, to));
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
