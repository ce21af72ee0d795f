//! The model: a lake with its snapshots, the cursor's row, the targets, and the guard.

use std::collections::BTreeSet;

use super::owner::Owner;
use crate::id::{SnapshotId, TableId};
use crate::stream::{Facts, GapPolicy, SeenSnapshot, SpanLimits, Touch};

/// Which parts of the protocol are kept.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    pub swaps: bool,
    pub fences: bool,
    pub touches: bool,
    pub moves_early: bool,
    pub filters_rewrites: bool,
    pub reports_late: bool,
    pub reports_forward: bool,
    pub vouches: bool,
    pub strangers_expire: bool,
}

impl Protocol {
    pub const WHOLE: Protocol = Protocol {
        swaps: true,
        fences: true,
        touches: true,
        moves_early: false,
        filters_rewrites: true,
        reports_late: true,
        reports_forward: true,
        vouches: true,
        strangers_expire: false,
    };
}

/// A small deterministic generator (xorshift), so that a failing seed is a test.
pub struct Dice(u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What a snapshot brought to the feed of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Brought {
    Events(Vec<u64>),
    /// Files with deletions were rewritten: the feed shows rows of older snapshots.
    Rewrite(Vec<u64>),
    Nothing,
}

/// The row of the cursor.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub at: i64,
    pub token: i64,
    /// The snapshot that last wrote it.
    pub written: i64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub crashes: usize,
    pub conflicts: usize,
    pub moved: usize,
    pub commits: usize,
    pub expired: usize,
    pub idle: usize,
}

/// A row of the feed: the snapshot that brought it, and the event.
pub type FeedRow = (i64, u64);

pub struct World {
    pub protocol: Protocol,
    pub dice: Dice,
    pub policy: GapPolicy,
    /// By id, from 0.
    pub snapshots: Vec<Brought>,
    pub gone: BTreeSet<i64>,
    pub row: Row,
    pub target: Vec<u64>,
    pub dead: Vec<FeedRow>,
    pub skipped: Vec<(i64, i64)>,
    pub lease: Option<(usize, i64)>,
    pub tokens: i64,
    pub progress: i64,
    pub found: Vec<String>,
    pub counts: Counts,
    events: u64,
    has_stranger: bool,
    /// Whether answers arrive and nobody crashes any more.
    pub is_calm: bool,
}

/// Every seventh event cannot be decoded.
pub fn is_poison(event: u64) -> bool {
    event % 7 == 3
}

impl World {
    pub fn run(seed: u64, protocol: Protocol) -> Self {
        let policy = if seed.is_multiple_of(2) { GapPolicy::Rescan } else { GapPolicy::Skip };
        let mut world = World {
            protocol,
            dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            policy,
            snapshots: vec![Brought::Nothing],
            gone: BTreeSet::new(),
            row: Row { at: 0, token: 0, written: 0 },
            target: Vec::new(),
            dead: Vec::new(),
            skipped: Vec::new(),
            lease: None,
            tokens: 0,
            progress: 0,
            found: Vec::new(),
            counts: Counts::default(),
            events: 0,
            has_stranger: false,
            is_calm: false,
        };
        let mut owners = [Owner::new(0), Owner::new(1)];
        for _ in 0..160 {
            match world.dice.roll(10) {
                0 => world.ingest(),
                1 => world.something_else(),
                2 => world.expire(),
                3 => {
                    // Its lease is taken for a dead one's, although it lives.
                    if world.dice.roll(3) == 0 {
                        world.lease = None;
                    }
                }
                4 if world.dice.roll(2) == 0 => {
                    let which = world.dice.roll(2) as usize;
                    owners[which] = Owner::new(which);
                    if world.lease.is_some_and(|(owner, _)| owner == which) {
                        world.lease = None;
                    }
                    world.counts.crashes += 1;
                }
                _ => {
                    let which = world.dice.roll(2) as usize;
                    owners[which].step(&mut world);
                }
            }
        }
        world.settle();
        world
    }

    /// One that is left alone comes to the end.
    fn settle(&mut self) {
        self.lease = None;
        self.is_calm = true;
        let mut last = Owner::new(2);
        for _ in 0..400 {
            last.step(self);
        }
    }

    pub fn head(&self) -> i64 {
        self.snapshots.len() as i64 - 1
    }

    fn ingest(&mut self) {
        let mut events = Vec::new();
        for _ in 0..=self.dice.roll(4) {
            let is_redelivery = 0 < self.events && self.dice.roll(4) == 0;
            events.push(if is_redelivery { self.dice.roll(self.events) } else { self.events });
            self.events += u64::from(!is_redelivery);
        }
        self.snapshots.push(Brought::Events(events));
    }

    fn something_else(&mut self) {
        let brought = match self.dice.roll(3) {
            0 => Brought::Rewrite(self.rows_upto(self.head()).iter().map(|(_, event)| *event).collect()),
            _ => Brought::Nothing,
        };
        self.snapshots.push(brought);
    }

    fn expire(&mut self) {
        let is_stranger = self.protocol.strangers_expire && self.dice.roll(4) == 0;
        let upto = if is_stranger { self.head() } else { self.progress.min(self.head()) };
        let before = self.gone.len();
        for id in 0..upto {
            // A pin is a hole.
            if self.dice.roll(8) != 0 {
                self.gone.insert(id);
            }
        }
        self.has_stranger |= is_stranger;
        self.counts.expired += self.gone.len() - before;
    }

    /// The rows of the table at `at`, with the snapshots that brought them.
    pub fn rows_upto(&self, at: i64) -> Vec<FeedRow> {
        let rows = (0..=at).zip(&self.snapshots).filter_map(|(id, brought)| match brought {
            Brought::Events(events) => Some(events.iter().map(move |event| (id, *event))),
            _ => None,
        });
        rows.flatten().collect()
    }

    /// What is there in `(after, head]`, as a consumer sees it.
    pub fn seen_since(&self, after: i64) -> Vec<SeenSnapshot> {
        let there = (after + 1..=self.head()).filter(|id| !self.gone.contains(id));
        let seen = |id: i64| {
            let touch = match &self.snapshots[id as usize] {
                Brought::Events(_) => Touch::Rows,
                Brought::Rewrite(_) if !self.protocol.filters_rewrites => Touch::Rows,
                _ => Touch::Nothing,
            };
            SeenSnapshot { id: SnapshotId(id), at_micros: id, touch, rows: 2, bytes: 2 }
        };
        there.map(seen).collect()
    }

    pub fn facts<'a>(&self, cursor: i64, seen: i64, snapshots: &'a [SeenSnapshot]) -> Facts<'a> {
        Facts {
            cursor: SnapshotId(cursor),
            source: TableId(1),
            found: Some(TableId(1)),
            head: SnapshotId(self.head()),
            seen: SnapshotId(seen),
            vouched: SnapshotId(if self.protocol.vouches { self.progress } else { 0 }),
            snapshots,
            limits: SpanLimits { snapshots: 3, rows: 100, bytes: 100 },
            policy: self.policy,
        }
    }

    pub fn note_gap(&mut self) {
        if !self.has_stranger {
            self.found.push("a gap without a stranger".to_owned());
        }
    }

    /// Returns everything that is wrong in a world that has come to rest.
    pub fn wrongs(&self) -> Vec<String> {
        let mut wrongs = self.found.clone();
        let is_skipped = |id: i64| self.skipped.iter().any(|(after, upto)| *after < id && id <= *upto);
        let rows = self.rows_upto(self.head());
        let due: BTreeSet<FeedRow> = rows.iter().filter(|(id, _)| !is_skipped(*id)).copied().collect();
        let events: BTreeSet<u64> = due.iter().map(|(_, event)| *event).filter(|event| !is_poison(*event)).collect();
        let there: BTreeSet<u64> = self.target.iter().copied().collect();
        if there.len() != self.target.len() {
            wrongs.push(format!("events are doubled: {:?}", self.target));
        }
        let lost: Vec<&u64> = events.difference(&there).collect();
        if !lost.is_empty() {
            wrongs.push(format!("events are lost: {lost:?}"));
        }
        let letters: BTreeSet<FeedRow> = due.iter().filter(|(_, event)| is_poison(*event)).copied().collect();
        let written: BTreeSet<FeedRow> = self.dead.iter().copied().collect();
        if !letters.is_subset(&written)
            || written.len() != self.dead.len()
            || !written.is_subset(&rows.into_iter().collect())
        {
            wrongs.push(format!("dead letters are {:?}, not {letters:?}", self.dead));
        }
        wrongs
    }
}
