//! A seeded simulation of the write protocol: writers that lease, stage, check, write and remember, with a crash between
//! any two steps, a lake that behaves as DuckLake was measured to, zombies whose lease was taken, foreign writers, locked
//! catalogs, and steps that are attempted anew after an attempt whose outcome was never read.
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

    fn newest_of(&self, slice: &str) -> SnapshotId {
        let is_of = |entry: &StampEntry| entry.partition.as_ref().is_some_and(|key| key.as_str() == slice);
        let of_slice = self.commits.iter().filter(|commit| commit.stamps.iter().any(is_of));
        of_slice.map(|commit| commit.snapshot).max().unwrap_or(SnapshotId(0))
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
    /// The run's pin; never moves.
    pin: SnapshotId,
    /// What the stage is read from; a self-reader's moves.
    read: SnapshotId,
    base: SnapshotId,
    staged: u64,
    tries: u32,
    /// Which attempt of its step it is at.
    attempt: u32,
    /// How often it has landed; more than once repeats a write.
    landings: u32,
}

struct World {
    lake: Lake,
    leases: BTreeMap<String, usize>,
    writers: Vec<Writer>,
    dice: Dice,
    /// How many increments of self-readers have landed.
    increments: u64,
    /// Landings of a stage that was older than what it landed on.
    stale_landings: u64,
    /// Landings on a foreign change that the writer was not told of.
    unseen_foreign: u64,
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
                read: SnapshotId(0),
                base: SnapshotId(0),
                staged: 0,
                tries: 0,
                attempt: 0,
                landings: 0,
            })
            .collect();
        Self {
            lake: Lake::default(),
            leases: BTreeMap::new(),
            writers,
            dice,
            increments: 0,
            stale_landings: 0,
            unseen_foreign: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..2_000 {
            let chosen = usize::try_from(self.dice.roll(5)).unwrap();
            match self.dice.roll(25) {
                // A crash between any two steps; the presence lock frees what it held.
                0 => self.crash(chosen),
                // A lease is lost although its holder lives: a zombie goes on.
                1 => self.leases.retain(|_, holder| *holder != chosen),
                // Somebody else writes the table, once or twice in a world.
                2 if self.dice.roll(200) == 0 => self.write_foreign(),
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

    fn write_foreign(&mut self) {
        let changes = ChangeSet::parse(&format!("deleted_from_table:{TABLE}"));
        let snapshot = SnapshotId(self.lake.head().0 + 1);
        self.lake.commits.push(SeenCommit { snapshot, changes, stamps: vec![], author: Some("bob".to_owned()) });
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
        if writer.attempt == 0 {
            // The pin was taken when the run was planned, so it may be older than the base; the step keeps it.
            writer.pin = SnapshotId(writer.base.0 - i64::try_from(self.dice.roll(2)).unwrap().min(writer.base.0));
        }
        writer.read = writer.pin;
        if writer.reads_target {
            // A self-reader that starts anew reads the newest version, its own unknown one too.
            writer.read = if writer.attempt == 0 { writer.pin } else { writer.base };
            writer.base = writer.read;
        }
        writer.state = State::Leased;
    }

    fn stage(&mut self, chosen: usize) {
        let writer = &mut self.writers[chosen];
        let seen: u64 = self
            .lake
            .commits
            .iter()
            .filter(|commit| commit.snapshot <= writer.read)
            .flat_map(|commit| &commit.stamps)
            .map(|entry| entry.inserted)
            .max()
            .unwrap_or(0);
        writer.staged = seen + 1;
        writer.state = State::Staged;
    }

    fn write(&mut self, chosen: usize) {
        if self.dice.roll(8) == 0 {
            // The catalog is locked: nothing was learned, and nothing was sent.
            return self.again(chosen, ErrorClass::Transient);
        }
        let writer = &self.writers[chosen];
        let attempt = AttemptId(format!("a{}.{}", writer.name, writer.attempt));
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
        let is_foreign = |commit: &&SeenCommit| commit.stamps.is_empty() && writer.base < commit.snapshot;
        self.unseen_foreign += self.lake.commits.iter().filter(is_foreign).count() as u64;
        if !writer.reads_target {
            let newest = self.lake.newest_of(&writer.slice);
            self.stale_landings += u64::from(writer.pin < newest);
        }
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
            increment: None,
            strategy: "replace".to_owned(),
            deleted: 0,
            inserted: writer.staged,
            rows: None,
            schema_version: 1,
            script_hash: ScriptHash(String::new()),
            inputs: BTreeMap::new(),
            files: BTreeMap::new(),
            atomic: false,
            restored: None,
        };
        let changes = ChangeSet::parse(&format!("inserted_into_table:{TABLE}"));
        self.lake.commits.push(SeenCommit { snapshot, changes, stamps: vec![entry], author: None });
        writer.landings += 1;
        // Half of the time the answer to COMMIT is lost: the writer looks again, or its step is attempted anew.
        match self.dice.roll(4) {
            0 | 1 => self.finish(chosen),
            2 => self.again(chosen, ErrorClass::Transient),
            _ => self.attempt_anew(chosen),
        }
    }

    fn attempt_anew(&mut self, chosen: usize) {
        self.leases.retain(|_, holder| *holder != chosen);
        let writer = &mut self.writers[chosen];
        writer.attempt += 1;
        writer.state = State::Idle;
    }

    fn again(&mut self, chosen: usize, class: ErrorClass) {
        let head = self.lake.head();
        let writer = &mut self.writers[chosen];
        writer.tries += 1;
        let facts = Facts {
            class,
            reads_target: writer.reads_target,
            staged: true,
            tries: writer.tries.min(7),
            is_out_of_patience: false,
        };
        match next_after_failure(facts) {
            // Only a conflict tells what has changed, so only after one may the base move over it.
            Next::Rewrite if class == ErrorClass::Conflict => writer.base = head,
            Next::Rewrite => {}
            Next::Restage => {
                writer.read = head;
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
        assert_eq!(world.unseen_foreign, 0, "seed {seed}: a foreign change was not noticed");
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
        assert!(world.writers.iter().all(|writer| writer.landings <= 1), "seed {seed}: a step landed twice");
        let landed = world.writers.iter().filter(|writer| writer.landings == 1).count();
        assert_eq!(landed, committed, "seed {seed}: the writers and the lake disagree");
    }
}
