//! Upkeep, writers, readers, pins and a consumer in every order that a seed gives, with a crash of the maintainer between any
//! two steps.
//!
//! The model is the protocol: merge, freeze a decision, copy what would be lost, then per chunk, alone in the lane, look at
//! the holds once more and expire, then delete files that have waited long enough. A reader pins, passes the lane once and
//! looks whether its snapshot is there, lists its files, and opens them later. Each part of the protocol is then left out
//! once, and some seed must notice.

mod lake;

use lake::Lake;

use crate::id::SnapshotId;

/// How many seeds are tried; `PINTAIL_SIMULATION_SEEDS`, at build time, asks for more.
const SEEDS: u64 = 200;

fn seeds() -> u64 {
    let asked = option_env!("PINTAIL_SIMULATION_SEEDS").and_then(|text| text.parse().ok());
    asked.unwrap_or(SEEDS)
}

/// Which parts of the protocol are kept to.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Stamps are copied before anything expires.
    copies: bool,
    /// Holds are looked at once more before each chunk.
    looks_again: bool,
    /// Files are deleted only when they went before the oldest work in progress began.
    cleans_behind_readers: bool,
    /// A consumer tells what it has read, and not what there is to read.
    tells_after_commit: bool,
}

impl Protocol {
    const WHOLE: Self = Self { copies: true, looks_again: true, cleans_behind_readers: true, tells_after_commit: true };
}

pub struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn number(&mut self, below: i64) -> i64 {
        i64::try_from(self.next(u64::try_from(below).expect("it is positive"))).expect("it is below one")
    }

    /// Returns the place of one of `count`, if there is any.
    fn place(&mut self, count: usize) -> Option<usize> {
        (0 < count).then(|| usize::try_from(self.next(count as u64)).expect("it is below one"))
    }
}

/// Where the maintainer stands.
enum Maintainer {
    Idle,
    Merged,
    Frozen(Vec<SnapshotId>),
    Copied(Vec<SnapshotId>),
    Expired,
}

impl Maintainer {
    fn step(self, lake: &mut Lake, random: &mut Random, protocol: Protocol) -> Self {
        match self {
            Maintainer::Idle => {
                lake.merge();
                Maintainer::Merged
            }
            Maintainer::Merged => Maintainer::Frozen(lake.freeze(random.number(8))),
            Maintainer::Frozen(expire) => {
                if protocol.copies {
                    lake.copy(&expire);
                }
                Maintainer::Copied(expire)
            }
            Maintainer::Copied(mut expire) => {
                let chunk: Vec<SnapshotId> = expire.drain(..expire.len().min(3)).collect();
                lake.expire(&chunk, protocol);
                if expire.is_empty() { Maintainer::Expired } else { Maintainer::Copied(expire) }
            }
            Maintainer::Expired => {
                lake.clean(random.number(20), protocol);
                Maintainer::Idle
            }
        }
    }
}

fn play(seed: u64, protocol: Protocol) -> Lake {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut lake = Lake::new();
    let mut maintainer = Maintainer::Idle;
    for _ in 0..250 {
        lake.now += 1;
        match random.next(14) {
            0..=2 => lake.commit(random.next(4) == 0),
            3 => lake.pin_to_read(&mut random),
            4 => lake.look(&mut random),
            5 => lake.read(&mut random),
            6 => lake.pin(&mut random),
            7 => lake.consume(),
            8 => lake.tell(protocol),
            9..=12 => maintainer = maintainer.step(&mut lake, &mut random, protocol),
            // A crash: what was decided is forgotten, what was copied, expired and deleted stays.
            _ => maintainer = Maintainer::Idle,
        }
        lake.check();
    }
    lake
}

/// Asserts that some seed finds the protocol wrong in the way that `because` says.
fn assert_missed(protocol: Protocol, because: &str) {
    let is_missed = |seed| play(seed, protocol).wrongs().iter().any(|wrong| wrong.contains(because));
    assert!((1..=seeds()).any(is_missed), "nobody misses it: {protocol:?}");
}

#[test]
fn no_order_of_commits_readers_pins_and_crashes_loses_what_is_needed() {
    for seed in 1..=seeds() {
        let lake = play(seed, Protocol::WHOLE);
        assert_eq!(lake.wrongs(), [""; 0], "seed {seed}");
    }
}

#[test]
fn the_schedules_are_rough_enough_to_mean_something() {
    let lakes: Vec<Lake> = (1..=SEEDS).map(|seed| play(seed, Protocol::WHOLE)).collect();
    let sum = |of: fn(&Lake) -> usize| lakes.iter().map(of).sum::<usize>();
    let counts = [sum(|lake| lake.expired.len()), sum(|lake| lake.deleted.len()), sum(|lake| lake.merged)];
    let seeds = usize::try_from(SEEDS).expect("they are few");
    assert!(counts.iter().all(|count| 2 * seeds < *count), "{counts:?}");
}

#[test]
fn without_the_copy_stamps_are_lost() {
    assert_missed(Protocol { copies: false, ..Protocol::WHOLE }, "the stamp of snapshot");
}

#[test]
fn without_the_second_look_a_version_goes_under_a_reader_and_under_a_pin() {
    let protocol = Protocol { looks_again: false, ..Protocol::WHOLE };
    assert_missed(protocol, "is gone under a reader");
    assert_missed(protocol, "the pinned snapshot");
}

#[test]
fn a_grace_alone_takes_files_from_a_long_reader() {
    assert_missed(Protocol { cleans_behind_readers: false, ..Protocol::WHOLE }, "a file went under the reader");
}

#[test]
fn a_consumer_that_tells_what_it_has_not_read_loses_it() {
    assert_missed(Protocol { tells_after_commit: false, ..Protocol::WHOLE }, "went before the consumer");
}
