//! A seeded simulation of the consumer protocol: two owners of one shard, a crash between any two steps, zombies whose lease
//! was taken, lost answers to COMMIT, redelivered events, poison, maintenance, expiry that keeps to the floor, and
//! expiry by strangers that does not.
//!
//! Invariant after every schedule: each event is there once, each poisoned row is one dead letter, what was left out is
//! recorded, the cursor never went back, and no owner wrote after a newer one had. Each part of the protocol is then left
//! out once, and some seed must notice.
//!
//! Deliberately a model: the same decisions on a real lake are in the tests of the crate `streams`.

mod owner;
mod world;

use world::{Protocol, World};

/// How many seeds are tried; `PINTAIL_SIMULATION_SEEDS`, at build time, asks for more.
const SEEDS: u64 = 1_000;

fn seeds() -> u64 {
    let asked = option_env!("PINTAIL_SIMULATION_SEEDS").and_then(|text| text.parse().ok());
    asked.unwrap_or(SEEDS)
}

fn first_wrong(protocol: Protocol) -> Option<(u64, Vec<String>)> {
    let wrong = |seed: u64| Some((seed, World::run(seed, protocol).wrongs())).filter(|(_, found)| !found.is_empty());
    (1..=seeds()).find_map(wrong)
}

/// Asserts that some seed finds the protocol wrong in the way that `because` says.
fn assert_missed(protocol: Protocol, because: &str) {
    let found = (1..=seeds()).flat_map(|seed| World::run(seed, protocol).wrongs());
    assert!(found.into_iter().any(|wrong| wrong.contains(because)), "nobody misses it: {protocol:?}");
}

#[test]
fn every_event_is_there_once_whatever_crashes() {
    assert_eq!(first_wrong(Protocol::WHOLE), None);
}

#[test]
fn every_event_is_there_once_or_recorded_as_skipped_whatever_strangers_expire() {
    assert_eq!(first_wrong(Protocol { strangers_expire: true, ..Protocol::WHOLE }), None);
}

#[test]
fn the_schedules_are_rough_enough_to_mean_something() {
    let worlds: Vec<World> = (1..=SEEDS).map(|seed| World::run(seed, Protocol::WHOLE)).collect();
    let sum = |of: fn(&World) -> usize| worlds.iter().map(of).sum::<usize>();
    let seeds = usize::try_from(SEEDS).expect("they are few");
    let counts =
        [sum(|w| w.counts.crashes), sum(|w| w.counts.conflicts), sum(|w| w.counts.moved), sum(|w| w.counts.commits)];
    assert!(counts.iter().all(|count| seeds / 2 < *count), "{counts:?}");
    assert!(sum(|w| w.counts.expired) > seeds && sum(|w| w.counts.idle) > seeds);
}

#[test]
fn without_the_swap_a_late_owner_takes_the_cursor_back() {
    assert_missed(Protocol { swaps: false, ..Protocol::WHOLE }, "the cursor went back");
}

#[test]
fn without_the_token_an_older_owner_writes_after_a_newer_one() {
    assert_missed(Protocol { fences: false, ..Protocol::WHOLE }, "an older owner wrote");
}

#[test]
fn without_an_update_of_the_row_in_every_commit_two_owners_double_events() {
    assert_missed(Protocol { touches: false, ..Protocol::WHOLE }, "events are doubled");
}

#[test]
fn a_cursor_that_moves_with_the_first_window_loses_events() {
    assert_missed(Protocol { moves_early: true, ..Protocol::WHOLE }, "events are lost");
}

#[test]
fn rewritten_files_that_pass_for_rows_make_letters_twice() {
    assert_missed(Protocol { filters_rewrites: false, ..Protocol::WHOLE }, "dead letters");
}

#[test]
fn progress_that_is_told_before_the_commit_lets_expiry_take_what_is_needed() {
    assert_missed(Protocol { reports_late: false, ..Protocol::WHOLE }, "events are lost");
}

#[test]
fn a_late_report_that_takes_progress_back_makes_a_gap_of_what_nobody_needs() {
    assert_missed(Protocol { reports_forward: false, ..Protocol::WHOLE }, "a gap without a stranger");
}

#[test]
fn an_idle_consumer_that_nobody_vouches_for_sees_a_gap_where_there_is_none() {
    assert_missed(Protocol { vouches: false, ..Protocol::WHOLE }, "a gap without a stranger");
}
