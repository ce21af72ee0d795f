//! A seeded simulation of the job: processes that begin, resume and retry one job, take windows, write, record and end,
//! with a death between any two steps, and a look-up of the lake that settles what the dead left.
//!
//! Deliberately a model: the same decisions on a real lake and store are in the runner's tests.

use std::collections::BTreeMap;

use super::*;

const PARTITIONS: usize = 12;
const WINDOW: usize = 4;

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

/// What is durable: the job's row, the rows of partitions that left the queue, and the lake with its stamps.
struct World {
    state: JobState,
    owner: usize,
    rows: BTreeMap<usize, (PartitionState, usize)>,
    /// The runs that committed each partition, by the lake's stamps.
    lake: BTreeMap<usize, Vec<usize>>,
    /// Failures that the store recorded, by partition and run.
    failures: Vec<(usize, usize)>,
    next_run: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Claim,
    Settle,
    Take,
    Work { run: usize, window: Vec<usize>, at: usize, tally: Tally, is_written: bool },
    End(JobEnd),
    Gone,
}

struct Process {
    id: usize,
    mode: Mode,
    step: Step,
    /// Partitions that this process has tried; none twice.
    tried: Vec<usize>,
}

impl World {
    fn state_of(&self, partition: usize) -> PartitionState {
        self.rows.get(&partition).map_or(PartitionState::Queued, |(state, _)| *state)
    }

    fn count(&self, wanted: impl Fn(PartitionState) -> bool) -> u64 {
        (0..PARTITIONS).filter(|partition| wanted(self.state_of(*partition))).count() as u64
    }

    fn put(&mut self, partition: usize, state: PartitionState, run: usize) {
        match state {
            PartitionState::Queued => self.rows.remove(&partition),
            state => self.rows.insert(partition, (state, run)),
        };
    }

    fn evidence(&self, partition: usize, run: usize) -> Evidence {
        if self.lake.get(&partition).is_some_and(|runs| runs.contains(&run)) {
            Evidence::Committed
        } else if self.failures.contains(&(partition, run)) {
            Evidence::Failed
        } else {
            Evidence::Nothing
        }
    }
}

impl Process {
    /// Does one step, each of which is one transaction of the store or the lake.
    fn advance(&mut self, world: &mut World, living: &[usize], dice: &mut Dice) {
        let step = std::mem::replace(&mut self.step, Step::Gone);
        self.step = match step {
            Step::Claim => self.claim(world, living),
            Step::Settle => {
                for partition in 0..PARTITIONS {
                    if let Some((PartitionState::Running, run)) = world.rows.get(&partition).copied() {
                        world.put(partition, settle(world.evidence(partition, run)), run);
                    }
                }
                Step::Take
            }
            Step::Take => self.take(world),
            Step::Work { run, window, at, tally, is_written } => {
                self.work(world, dice, run, window, at, tally, is_written)
            }
            Step::End(end) => {
                let open = world.count(|state| !state.is_ended());
                let failed = world.count(|state| state == PartitionState::Failed);
                world.state = JobState::at_end(end, open, failed);
                Step::Gone
            }
            Step::Gone => Step::Gone,
        };
    }

    fn claim(&self, world: &mut World, living: &[usize]) -> Step {
        let open = world.count(|state| !state.is_ended());
        let failed = world.count(|state| state == PartitionState::Failed);
        match claim(world.state, living.contains(&world.owner), self.mode, open, failed) {
            Claim::Take => {
                (world.state, world.owner) = (JobState::Running, self.id);
                Step::Settle
            }
            Claim::Refuse(_) => Step::Gone,
        }
    }

    fn take(&mut self, world: &mut World) -> Step {
        // A retry takes each failed partition once; what fails again stays failed.
        let is_mine =
            |partition: &usize| is_due(self.mode, world.state_of(*partition)) && !self.tried.contains(partition);
        let window: Vec<usize> = (0..PARTITIONS).filter(is_mine).take(WINDOW).collect();
        if window.is_empty() {
            return Step::End(JobEnd::GoOn);
        }
        world.next_run += 1;
        let run = world.next_run;
        for partition in &window {
            assert_ne!(world.state_of(*partition), PartitionState::Done, "{partition} is done again");
            world.put(*partition, PartitionState::Running, run);
        }
        self.tried.extend(&window);
        Step::Work { run, window, at: 0, tally: Tally::default(), is_written: false }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one step, in one place")]
    fn work(
        &mut self,
        world: &mut World,
        dice: &mut Dice,
        run: usize,
        window: Vec<usize>,
        at: usize,
        mut tally: Tally,
        is_written: bool,
    ) -> Step {
        let Some(partition) = window.get(at).copied() else {
            return match after_window(tally, false) {
                JobEnd::GoOn => Step::Take,
                end => Step::End(end),
            };
        };
        assert_eq!(world.owner, self.id, "two processes are at the job");
        if is_written {
            // The commit is in the lake; now the store is told.
            world.put(partition, state_after(self.mode, PartitionEnd::Good), run);
            tally.done += 1;
            return Step::Work { run, window, at: at + 1, tally, is_written: false };
        }
        match dice.roll(12) {
            0 | 1 => {
                world.failures.push((partition, run));
                world.put(partition, state_after(self.mode, PartitionEnd::Bad), run);
                tally.failed += 1;
                Step::Work { run, window, at: at + 1, tally, is_written: false }
            }
            2 => {
                // The user stops: this one was under way, the rest of the window had not begun.
                for (place, partition) in window.iter().enumerate().skip(at) {
                    let end = if place == at { PartitionEnd::Stopped } else { PartitionEnd::NotBegun };
                    world.put(*partition, state_after(self.mode, end), run);
                }
                Step::End(after_window(tally, true))
            }
            _ => {
                world.lake.entry(partition).or_default().push(run);
                Step::Work { run, window, at, tally, is_written: true }
            }
        }
    }
}

fn simulate(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut world = World {
        state: JobState::Running,
        owner: 0,
        rows: BTreeMap::new(),
        lake: BTreeMap::new(),
        failures: Vec::new(),
        next_run: 0,
    };
    let mut processes = vec![Process { id: 0, mode: Mode::Resume, step: Step::Take, tried: Vec::new() }];
    for round in 0..4000 {
        let calm = 600 < round;
        // New ones come at any time; old ones die at any time, until it grows calm and everything must end.
        if dice.roll(8) == 0 {
            let mode = if dice.roll(3) == 0 { Mode::Retry } else { Mode::Resume };
            processes.push(Process { id: processes.len(), mode, step: Step::Claim, tried: Vec::new() });
        }
        let living: Vec<usize> =
            processes.iter().filter(|process| process.step != Step::Gone).map(|process| process.id).collect();
        if let Some(process) = pick(&living, &mut dice) {
            match !calm && dice.roll(10) == 0 {
                true => processes[process].step = Step::Gone,
                false => processes[process].advance(&mut world, &living, &mut dice),
            }
        }
        check(&world, seed);
        if calm && world.state == JobState::Done {
            break;
        }
    }
    assert_eq!(world.state, JobState::Done, "seed {seed}: {:?}", world.rows);
    assert_eq!(world.lake.len(), PARTITIONS, "seed {seed}");
}

fn pick(living: &[usize], dice: &mut Dice) -> Option<usize> {
    let at = usize::try_from(dice.roll(living.len().max(1) as u64)).unwrap();
    living.get(at).copied()
}

/// What holds after every step.
fn check(world: &World, seed: u64) {
    for (partition, runs) in &world.lake {
        // A partition that was committed is never written by the job again.
        assert_eq!(runs.len(), 1, "seed {seed}: partition {partition} was written by the runs {runs:?}");
    }
    for (partition, (state, _)) in &world.rows {
        let is_written = world.lake.contains_key(partition);
        assert!(*state != PartitionState::Done || is_written, "seed {seed}: {partition} is done and not written");
        assert!(*state != PartitionState::Failed || !is_written, "seed {seed}: {partition} failed and is written");
    }
}

#[test]
fn whatever_dies_when_every_partition_is_written_once() {
    for seed in 0..800 {
        simulate(seed);
    }
}
