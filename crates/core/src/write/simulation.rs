//! A seeded simulation of the write protocol: writers that lease, stage, check, write and remember, with a crash between
//! any two steps, a lake that behaves as DuckLake was measured to, and zombies whose lease was taken.
//!
//! Deliberately a model: the same decisions on a real lake are in the cli crate's tests.

use std::collections::BTreeMap;

use super::{Check, CheckFacts, ErrorClass, Facts, Next, SeenCommit, check, next_after_failure};
use crate::id::{AttemptId, RunId, ScriptHash, SnapshotId, StepId, TableId};
use crate::partition::PartitionKey;
use crate::sql::changes::ChangeSet;
use crate::sql::stamp::StampEntry;

const TABLE: i64 = 7;
const ASSET: &str = "ducklake://main/t";

/// A small deterministic generator (xorshift), so that a failing seed is a test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// The lake: one table with one counter per slice; a commit is one entry of the log.
#[derive(Default)]
struct Lake {
    commits: Vec<SeenCommit>,
    slices: BTreeMap<String, Vec<u64>>,
}

impl Lake {
    fn head(&self) -> SnapshotId {
        SnapshotId(i64::try_from(self.commits.len()).unwrap())
    }

    fn since(&self, base: SnapshotId) -> Vec<SeenCommit> {
        self.commits.iter().filter(|commit| base < commit.snapshot).cloned().collect()
    }

    fn largest(&self) -> u64 {
        self.slices.values().flatten().copied().max().unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Leased,
    Staged,
    Finished,
    Dead,
}

/// One process that wants to write one slice once.
struct Writer {
    name: usize,
    slice: String,
    reads_target: bool,
    state: State,
    pin: SnapshotId,
    base: SnapshotId,
    staged: u64,
    tries: u32,
    landed: bool,
}

struct World {
    lake: Lake,
    leases: BTreeMap<String, usize>,
    writers: Vec<Writer>,
    dice: Dice,
    /// How many increments of self-readers have landed.
    increments: u64,
    stale_landings: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let reads_target = dice.roll(2) == 0;
        let writers = (0..5)
            .map(|name| Writer {
                name,
                // Self-readers write the whole asset; the others one of two slices.
                slice: if reads_target { String::new() } else { format!("p{}", dice.roll(2)) },
                reads_target,
                state: State::Idle,
                pin: SnapshotId(0),
                base: SnapshotId(0),
                staged: 0,
                tries: 0,
                landed: false,
            })
            .collect();
        Self { lake: Lake::default(), leases: BTreeMap::new(), writers, dice, increments: 0, stale_landings: 0 }
    }

    fn run(&mut self) {
        for _ in 0..2_000 {
            let chosen = usize::try_from(self.dice.roll(5)).unwrap();
            match self.dice.roll(25) {
                // A crash between any two steps; the presence lock frees what it held.
                0 => self.crash(chosen),
                // A lease is lost although its holder lives: a zombie goes on.
                1 => self.leases.retain(|_, holder| *holder != chosen),
                _ => self.step(chosen),
            }
        }
    }

    fn crash(&mut self, chosen: usize) {
        if self.writers[chosen].state != State::Finished {
            self.writers[chosen].state = State::Dead;
        }
        self.leases.retain(|_, holder| *holder != chosen);
    }

    fn step(&mut self, chosen: usize) {
        match self.writers[chosen].state {
            State::Idle => self.lease(chosen),
            State::Leased => self.stage(chosen),
            State::Staged => self.write(chosen),
            State::Finished | State::Dead => {}
        }
    }

    fn lease(&mut self, chosen: usize) {
        let writer = &mut self.writers[chosen];
        if self.leases.contains_key(&writer.slice) {
            return;
        }
        self.leases.insert(writer.slice.clone(), chosen);
        writer.base = self.lake.head();
        // The pin was taken when the run was planned, so it may be older than the base.
        writer.pin = SnapshotId(writer.base.0 - i64::try_from(self.dice.roll(2)).unwrap().min(writer.base.0));
        if writer.reads_target {
            writer.base = writer.pin;
        }
        writer.state = State::Leased;
    }

    fn stage(&mut self, chosen: usize) {
        let writer = &mut self.writers[chosen];
        let seen: u64 = self
            .lake
            .commits
            .iter()
            .filter(|commit| commit.snapshot <= writer.pin)
            .flat_map(|commit| &commit.stamps)
            .map(|entry| entry.inserted)
            .max()
            .unwrap_or(0);
        writer.staged = seen + 1;
        writer.state = State::Staged;
    }

    fn write(&mut self, chosen: usize) {
        let attempt = AttemptId(format!("a{}", self.writers[chosen].name));
        let writer = &self.writers[chosen];
        let partition = (!writer.slice.is_empty()).then(|| PartitionKey(writer.slice.clone()));
        let step = StepId(format!("s{}", writer.name));
        let facts = CheckFacts {
            attempt: &attempt,
            step: &step,
            asset: ASSET,
            partition: partition.as_ref(),
            table_id: Some(TableId(TABLE)),
            schema: "main",
            table: "t",
            reads_target: writer.reads_target,
            base: writer.base,
        };
        let since = writer.pin.min(writer.base);
        match check(&facts, &self.lake.since(since)) {
            Check::Clear => self.land(chosen, attempt, partition),
            Check::Done { .. } | Check::Superseded { .. } => self.finish(chosen),
            conflict @ Check::Conflict { .. } => self.again(chosen, conflict.class().unwrap()),
        }
    }

    fn land(&mut self, chosen: usize, attempt: AttemptId, partition: Option<PartitionKey>) {
        let snapshot = SnapshotId(self.lake.head().0 + 1);
        let writer = &mut self.writers[chosen];
        let largest = self.lake.largest();
        if writer.reads_target {
            // A lost update would repeat a number that is there already.
            if writer.staged <= largest {
                self.stale_landings += 1;
            }
            self.increments += 1;
        }
        self.lake.slices.insert(writer.slice.clone(), vec![writer.staged]);
        let entry = StampEntry {
            attempt,
            run: RunId(format!("r{}", writer.name)),
            step: StepId(format!("s{}", writer.name)),
            asset: ASSET.to_owned(),
            script: "t".to_owned(),
            table_id: Some(TableId(TABLE)),
            generation: 0,
            partition,
            window: None,
            strategy: "replace".to_owned(),
            deleted: 0,
            inserted: writer.staged,
            rows: None,
            schema_version: 1,
            script_hash: ScriptHash(String::new()),
            inputs: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        let changes = ChangeSet::parse(&format!("inserted_into_table:{TABLE}"));
        self.lake.commits.push(SeenCommit { snapshot, changes, stamps: vec![entry], author: None });
        writer.landed = true;
        // Half of the time the answer to COMMIT is lost, and the writer looks again.
        if self.dice.roll(2) == 0 {
            self.finish(chosen);
        }
    }

    fn again(&mut self, chosen: usize, class: ErrorClass) {
        let head = self.lake.head();
        let writer = &mut self.writers[chosen];
        writer.tries += 1;
        let facts = Facts { class, reads_target: writer.reads_target, staged: true, tries: writer.tries.min(7) };
        match next_after_failure(facts) {
            Next::Rewrite => writer.base = head,
            Next::Restage => {
                writer.pin = head;
                writer.base = head;
                writer.state = State::Leased;
            }
            Next::Stop => self.finish(chosen),
        }
    }

    fn finish(&mut self, chosen: usize) {
        self.writers[chosen].state = State::Finished;
        self.leases.retain(|_, holder| *holder != chosen);
    }
}

#[test]
fn no_write_is_lost_repeated_or_stale_whatever_crashes() {
    for seed in 1..=500 {
        let mut world = World::new(seed);
        world.run();
        assert_eq!(world.stale_landings, 0, "seed {seed}: a stale stage landed");
        let mut attempts: Vec<&AttemptId> =
            world.lake.commits.iter().flat_map(|commit| &commit.stamps).map(|entry| &entry.attempt).collect();
        let committed = attempts.len();
        attempts.sort();
        attempts.dedup();
        assert_eq!(attempts.len(), committed, "seed {seed}: an attempt committed twice");
        if 0 < world.increments {
            assert_eq!(world.lake.largest(), world.increments, "seed {seed}: an increment was lost");
        }
        for writer in &world.writers {
            assert!(
                matches!(writer.state, State::Finished | State::Dead),
                "seed {seed}: writer {} never came to an end",
                writer.name
            );
        }
        let landed = world.writers.iter().filter(|writer| writer.landed).count();
        assert_eq!(landed, committed, "seed {seed}: the writers and the lake disagree");
    }
}
