//! The world of one seed: a lake, a guard, a store, and writers that take turns in an order that the seed decides, with
//! crashes, lost leases, lost answers, failed statements and foreign writers between any two steps.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use super::lake::{Catalog, Committed, Lake, Row, Shape};
use super::writer::{ASSETS, Mode, Part, State, Strategy, Writer};
use crate::id::SnapshotId;

/// When a write touches its asset's fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Always, where DuckLake compares tables.
    Always,
    /// Only when it deletes nothing and leaves the table's shape.
    WhenOnlyInserting,
    /// Never.
    Never,
}

/// The parts of the protocol, so that each can be left out.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// When fences are touched.
    pub fence: Fence,
    /// Whether the commits since are read inside the transaction.
    pub checks: bool,
    /// Whether a run in one transaction reads them too.
    pub checks_atomic: bool,
    /// Whether a commit is proved by a look-up.
    pub looks_up: bool,
    /// Whether leases keep two from staging one slice.
    pub leases: bool,
    /// Whether the start of a process takes in what others left untold.
    pub heals: bool,
    /// Whether the base may move after a failure that says nothing about others.
    pub moves_base_blindly: bool,
    /// Whether foreign writers stay away from a table while it is made anew.
    pub spares_foreigners: bool,
}

impl Protocol {
    /// The protocol as it is.
    pub const WHOLE: Protocol = Protocol {
        fence: Fence::Always,
        checks: true,
        checks_atomic: true,
        looks_up: true,
        leases: true,
        heals: true,
        moves_base_blindly: false,
        spares_foreigners: true,
    };
}

/// A small deterministic generator (xorshift), so that a failing seed is a test.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.roll(len as u64)).expect("an index is small")
    }
}

/// What one commit meant: the write of a part, or a foreign row.
#[derive(Clone, Debug)]
pub struct Meant {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// How.
    pub strategy: Strategy,
    /// The asset.
    pub asset: usize,
    /// The slice.
    pub slice: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// The world.
pub struct World {
    protocol: Protocol,
    /// The lake.
    pub lake: Lake,
    /// What its commits meant, in order.
    pub meant: Vec<Meant>,
    leases: BTreeMap<(usize, String), usize>,
    /// Everyone who ever wrote.
    pub writers: Vec<Writer>,
    /// What the store remembers: asset, slice, attempt, snapshot.
    pub store: BTreeSet<(usize, String, String, SnapshotId)>,
    /// What went wrong, as soon as it is seen.
    pub wrongs: Vec<String>,
    dice: Dice,
    /// Who holds the catalog's file.
    file_lock: Option<usize>,
    is_calm: bool,
}

impl World {
    /// Returns the world of a seed.
    pub fn new(seed: u64, catalog: Catalog, protocol: Protocol) -> Self {
        let mut world = Self {
            protocol,
            lake: Lake::new(catalog, ASSETS.len()),
            meant: Vec::new(),
            leases: BTreeMap::new(),
            writers: Vec::new(),
            store: BTreeSet::new(),
            wrongs: Vec::new(),
            dice: Dice::new(seed),
            file_lock: None,
            is_calm: false,
        };
        // Few assets in each world, so that writers meet.
        let first = world.dice.index(ASSETS.len());
        let second = world.dice.index(ASSETS.len());
        for _ in 0..5 {
            world.start(&[first, second]);
        }
        world.storm(&[first, second]);
        world.is_calm = true;
        world.calm();
        world.heal();
        world
    }

    /// Lets the writers take turns while anything may happen, and starts new ones where others ended.
    fn storm(&mut self, assets: &[usize]) {
        for _ in 0..700 {
            let chosen = self.dice.index(self.writers.len());
            match self.dice.roll(60) {
                0 => self.crash(chosen),
                // A lease is taken although its holder lives: a zombie goes on.
                1 | 2 => self.leases.retain(|_, holder| *holder != chosen),
                3 if self.dice.one_in(8) => self.write_foreign(assets[0]),
                4 | 5 if self.writers.len() < 40 => {
                    if self.dice.one_in(2) {
                        self.heal();
                    }
                    self.start(assets);
                }
                _ => self.step(chosen),
            }
        }
    }

    /// Lets everyone who still lives come to an end, with no more trouble from outside.
    fn calm(&mut self) {
        for _ in 0..20_000 {
            let at_work: Vec<usize> = (0..self.writers.len()).filter(|name| self.writers[*name].is_at_work()).collect();
            if at_work.is_empty() {
                return;
            }
            let chosen = at_work[self.dice.index(at_work.len())];
            self.step(chosen);
        }
        self.wrongs.push("a writer never came to an end".to_owned());
    }

    /// What the start of a process does: the store learns what the stamps say.
    fn heal(&mut self) {
        if self.protocol.heals {
            self.store = self.stamped();
        }
    }

    /// Returns what the lake's stamps say.
    pub fn stamped(&self) -> BTreeSet<(usize, String, String, SnapshotId)> {
        let of = |commit: &crate::write::SeenCommit| {
            let snapshot = commit.snapshot;
            let entries = commit.stamps.clone().into_iter();
            entries.map(move |entry| {
                let slice = entry.partition.map_or_else(String::new, |key| key.to_string());
                (asset_number(&entry.asset), slice, entry.attempt.0, snapshot)
            })
        };
        self.lake.commits.iter().flat_map(of).collect()
    }

    /// Plans and starts a run on some slices of `assets`.
    fn start(&mut self, assets: &[usize]) {
        let name = self.writers.len();
        let mode = [Mode::Alone, Mode::Alone, Mode::Group, Mode::Atomic][self.dice.index(4)];
        let count = if mode == Mode::Alone { 1 } else { 2 };
        let mut parts: Vec<Part> = Vec::new();
        for _ in 0..count {
            let asset = assets[self.dice.index(assets.len())];
            // A reader of itself never shares a group.
            if mode == Mode::Group && ASSETS[asset].reads_target {
                continue;
            }
            let slice = if ASSETS[asset].is_sliced { format!("p{}", self.dice.roll(2)) } else { String::new() };
            if parts.iter().any(|part| (part.asset, &part.slice) == (asset, &slice)) {
                continue;
            }
            let shape = match self.dice.roll(10) {
                0 => Shape::Altered,
                1 => Shape::Renewed,
                _ => Shape::Kept,
            };
            parts.push(Part {
                step: format!("s{name}.{}", parts.len()),
                asset,
                slice,
                shape,
                attempt: 0,
                base: SnapshotId(0),
                read: SnapshotId(0),
                staged: Vec::new(),
                is_in_doubt: false,
                told: None,
            });
        }
        if parts.is_empty() {
            return;
        }
        if let [one, other] = parts.as_mut_slice()
            && one.asset == other.asset
        {
            // How two slices shape their table in one transaction is no matter of the protocol.
            (one.shape, other.shape) = (Shape::Kept, Shape::Kept);
        }
        let pin = self.lake.head();
        let state = State::Idle;
        let writer = Writer { name, mode, pin, state, parts, transaction: None, tries: 0, is_dead: false };
        self.writers.push(writer);
    }

    fn crash(&mut self, chosen: usize) {
        if self.writers[chosen].is_at_work() {
            self.writers[chosen].is_dead = true;
            self.leave(chosen);
            self.leases.retain(|_, holder| *holder != chosen);
        }
    }

    /// Drops the transaction and what it held.
    fn leave(&mut self, chosen: usize) {
        self.writers[chosen].transaction = None;
        if self.file_lock == Some(chosen) {
            self.file_lock = None;
        }
    }

    fn write_foreign(&mut self, asset: usize) {
        if self.lake.table(asset).is_none() || ASSETS[asset].reads_target {
            return;
        }
        // DuckLake lets a table that is made anew swallow an insert which came in between; ours meet at the fence, but a
        // foreign writer knows of none. This limit is known, and shown by a test of its own.
        if self.protocol.spares_foreigners && self.is_being_renewed(asset) {
            return;
        }
        let slice = if ASSETS[asset].is_sliced { "p0".to_owned() } else { String::new() };
        let rows = vec![Row { asset, slice: slice.clone(), key: 1_000, tag: 1_000 + self.dice.roll(1_000) }];
        let mut transaction = self.lake.begin();
        self.lake.write(&mut transaction, asset, Shape::Kept, |_| false, &rows);
        if let Committed::Stored(snapshot) = self.lake.commit(transaction, Vec::new(), Some("bob")) {
            self.meant.push(Meant { snapshot, strategy: Strategy::Append, asset, slice, rows });
        }
    }

    fn is_being_renewed(&self, asset: usize) -> bool {
        let renews = |part: &Part| part.asset == asset && part.shape == Shape::Renewed;
        self.writers.iter().any(|writer| writer.transaction.is_some() && writer.parts.iter().any(renews))
    }
}

fn asset_name(asset: usize) -> String {
    format!("ducklake://main/t{asset}")
}

fn asset_number(name: &str) -> usize {
    let number = name.rsplit('t').next().and_then(|number| number.parse().ok());
    number.expect("every stamp names an asset by its number")
}
