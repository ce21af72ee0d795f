//! Maintenance, runs and pins in every order that a seed gives, with a crash of the maintainer between any two steps.
//!
//! The model is the protocol: freeze a decision, copy what would be lost, then per chunk, alone in the lane, look at the
//! holds once more and expire. A reader pins, then passes the lane once, then looks whether its snapshot is there.

use std::collections::BTreeSet;

use super::*;
use crate::id::SnapshotId;

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// The pin is written.
    Pinned,
    /// It passed the lane and found its snapshot.
    Sure,
}

#[derive(Default)]
struct Lake {
    snapshots: BTreeSet<i64>,
    head: i64,
    copied: BTreeSet<i64>,
    expired: BTreeSet<i64>,
    pins: BTreeSet<i64>,
    readers: Vec<(i64, Reader)>,
}

/// Where the maintainer stands.
enum Maintainer {
    Idle,
    Frozen(Vec<SnapshotId>),
    Copied(Vec<SnapshotId>),
}

impl Lake {
    fn commit(&mut self) {
        self.head += 1;
        self.snapshots.insert(self.head);
    }

    fn holds(&self) -> Vec<Hold> {
        let hold = |snapshot: i64, is_in_flight| Hold {
            snapshot: SnapshotId(snapshot),
            owner: String::new(),
            reason: String::new(),
            is_in_flight,
        };
        let pins = self.pins.iter().map(|pin| hold(*pin, false));
        pins.chain(self.readers.iter().map(|(snapshot, _)| hold(*snapshot, true))).collect()
    }

    fn freeze(&self, keep: i64) -> Vec<SnapshotId> {
        let snapshots: Vec<Snapshot> =
            self.snapshots.iter().map(|id| Snapshot { id: SnapshotId(*id), at_micros: *id }).collect();
        let holds = self.holds();
        decide(&RetentionFacts { snapshots: &snapshots, holds: &holds, keep_from_micros: self.head - keep }).expire
    }

    /// One chunk, as one step: the lane is held from the look at the holds to the expiry.
    fn expire(&mut self, chunk: &[SnapshotId]) {
        for id in still_free(chunk, &self.holds()) {
            assert!(self.copied.contains(&id.0), "snapshot {id} went before its stamp was copied");
            assert!(self.readers.iter().all(|(snapshot, _)| id.0 < *snapshot), "snapshot {id} is above work");
            self.snapshots.remove(&id.0);
            self.expired.insert(id.0);
        }
    }

    fn read(&mut self, random: &mut Random) {
        let ids: Vec<i64> = (0..=self.head).collect();
        let wanted = ids[usize::try_from(random.next(ids.len() as u64)).unwrap()];
        self.readers.push((wanted, Reader::Pinned));
    }

    /// A reader passes the lane and looks: what is gone is told, and it goes.
    fn look(&mut self, random: &mut Random) {
        let Some(place) = pick(self.readers.len(), random) else { return };
        let (snapshot, _) = self.readers[place];
        match self.snapshots.contains(&snapshot) {
            true => self.readers[place].1 = Reader::Sure,
            false => drop(self.readers.remove(place)),
        }
    }

    fn check(&self, seed: u64) {
        assert!(self.snapshots.contains(&self.head), "seed {seed}: the head is gone");
        for (snapshot, state) in &self.readers {
            assert!(
                *state != Reader::Sure || self.snapshots.contains(snapshot),
                "seed {seed}: {snapshot} under a reader"
            );
        }
        for pin in &self.pins {
            assert!(self.snapshots.contains(pin), "seed {seed}: the pinned snapshot {pin} is gone");
        }
        let all: BTreeSet<i64> = self.snapshots.union(&self.expired).copied().collect();
        assert_eq!(all.len() as i64, self.head + 1, "seed {seed}: a snapshot went without a trace");
    }
}

fn pick(count: usize, random: &mut Random) -> Option<usize> {
    (0 < count).then(|| usize::try_from(random.next(count as u64)).unwrap())
}

fn play(seed: u64) -> usize {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut lake = Lake { snapshots: BTreeSet::from([0]), ..Lake::default() };
    let mut maintainer = Maintainer::Idle;
    for _ in 0..400 {
        match random.next(10) {
            0..=2 => lake.commit(),
            3 => lake.read(&mut random),
            4 => lake.look(&mut random),
            5 => {
                if let Some(place) = pick(lake.readers.len(), &mut random) {
                    lake.readers.remove(place);
                }
            }
            6 => {
                // A pin is given for what is there, the same way: written, then looked for in the lane.
                let ids: Vec<i64> = lake.snapshots.iter().copied().collect();
                lake.pins.insert(ids[pick(ids.len(), &mut random).unwrap()]);
                if 4 < lake.pins.len() {
                    lake.pins.pop_first();
                }
            }
            7..=8 => {
                maintainer = match maintainer {
                    Maintainer::Idle => Maintainer::Frozen(lake.freeze(i64::try_from(random.next(8)).unwrap())),
                    Maintainer::Frozen(expire) => {
                        lake.copied.extend(expire.iter().map(|id| id.0));
                        Maintainer::Copied(expire)
                    }
                    Maintainer::Copied(mut expire) => {
                        let chunk: Vec<SnapshotId> = expire.drain(..expire.len().min(3)).collect();
                        lake.expire(&chunk);
                        if expire.is_empty() { Maintainer::Idle } else { Maintainer::Copied(expire) }
                    }
                };
            }
            // A crash: what was decided is forgotten, what was copied and expired stays.
            _ => maintainer = Maintainer::Idle,
        }
        lake.check(seed);
    }
    lake.expired.len()
}

#[test]
fn no_order_of_commits_readers_pins_and_crashes_loses_what_is_needed() {
    let expired: usize = (1..=300).map(play).sum();
    assert!(1_000 < expired, "the simulation expired next to nothing: {expired}");
}
