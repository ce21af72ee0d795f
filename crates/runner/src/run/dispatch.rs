//! The dispatcher: gives ready steps to free slots, in the order of the plan, until none is left.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::thread;
use std::time::{Duration, Instant};

use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::{LakeName, SnapshotId, StepId};
use pintail_core::plan::{Plan, Step, is_spared};
use pintail_core::write::ErrorClass;
use pintail_store::{StepEnd, StepStatus};
use tokio::sync::mpsc;

use super::{RunEvent, RunSummary, StepState};
use crate::executors::duckdb::{Batch, execute_atomic, execute_group, may_share};
use crate::executors::{RunContext, Slot, StepFailure, StepJob, StepOutcome, StepReport};

/// After how long slots with nothing to do take part in a batch that another one has begun: small steps are done by
/// then, in one commit.
const SHARE_AFTER: Duration = Duration::from_millis(50);

/// What a slot is given to do.
enum Work {
    /// Steps that may share commits; other slots may be given the same.
    Steps(Arc<Batch>),
    /// All steps of a run, in one transaction.
    Atomic(Vec<StepJob>),
}

impl Work {
    fn jobs(&self) -> &[StepJob] {
        match self {
            Work::Steps(batch) => batch.jobs(),
            Work::Atomic(jobs) => jobs,
        }
    }
}

/// What a slot tells the dispatcher.
enum Message {
    Phase { index: usize, phase: &'static str },
    Done { report: Box<StepReport> },
    Free { slot: usize },
}

/// The state of the steps.
struct Board<'p> {
    plan: &'p Plan,
    ids: &'p [StepId],
    states: Vec<StepState>,
    /// How many steps before it have not ended.
    open_before: Vec<usize>,
    after: Vec<Vec<usize>>,
    /// The snapshot that each step committed, by lake.
    landed: Vec<Option<(LakeName, SnapshotId)>>,
    /// Ready steps in the order of the plan.
    ready: BTreeSet<usize>,
    /// Whether the steps of an atomic run are with a slot.
    is_given: bool,
    /// The steps that were told to have begun.
    told: BTreeSet<usize>,
}

impl<'p> Board<'p> {
    fn new(plan: &'p Plan, ids: &'p [StepId]) -> Self {
        let mut after = vec![Vec::new(); plan.steps.len()];
        for (index, step) in plan.steps.iter().enumerate() {
            for before in &step.depends_on {
                after[*before].push(index);
            }
        }
        let open_before: Vec<usize> = plan.steps.iter().map(|step| step.depends_on.len()).collect();
        let ready = (0..plan.steps.len()).filter(|index| open_before[*index] == 0).collect();
        Self {
            plan,
            ids,
            states: vec![StepState::Waiting; plan.steps.len()],
            open_before,
            after,
            landed: vec![None; plan.steps.len()],
            ready,
            is_given: false,
            told: BTreeSet::new(),
        }
    }

    /// Returns the next step to do, and with it all that may share its commit: those that write the same lake at the same
    /// pins. Slices of one table share it once the table is there: who makes it must be alone.
    fn take_jobs(&mut self, ctx: &RunContext) -> Vec<StepJob> {
        let Some(first) = self.ready.pop_first() else { return Vec::new() };
        let mut jobs = vec![self.start(first)];
        if !self.may_share(ctx, first) {
            return jobs;
        }
        let mut assets: BTreeSet<&Asset> = self.plan.steps[first].asset.iter().collect();
        for index in self.ready.clone() {
            let asset = self.plan.steps[index].asset.as_ref();
            let is_alike = asset.and_then(Asset::lake) == self.plan.steps[first].asset.as_ref().and_then(Asset::lake)
                && self.pins_of(index) == jobs[0].pins
                && self.may_share(ctx, index);
            let is_there = |asset: &Asset| ctx.memory_of(asset).has_version;
            if is_alike && asset.is_some_and(|asset| assets.insert(asset) || is_there(asset)) {
                self.ready.remove(&index);
                jobs.push(self.start(index));
            }
        }
        jobs
    }

    /// Returns the next work: what [`Board::take_jobs`] gives, or everything at once for an atomic run, whose steps begin
    /// one after the other.
    fn take_work(&mut self, ctx: &RunContext) -> Option<Work> {
        if self.plan.atomic {
            let is_given = std::mem::replace(&mut self.is_given, true);
            let all = (0..self.states.len()).map(|index| self.job(index)).collect();
            return (!is_given && !self.states.is_empty() && !self.ready.is_empty()).then_some(Work::Atomic(all));
        }
        let jobs = self.take_jobs(ctx);
        (!jobs.is_empty()).then(|| Work::Steps(Arc::new(Batch::new(jobs))))
    }

    fn may_share(&self, ctx: &RunContext, index: usize) -> bool {
        let step = &self.plan.steps[index];
        let pins = self.pins_of(index);
        // A lake that is missing is the failure of who reads it, and of nobody else.
        let is_there =
            |lake: &LakeName| pins.contains_key(lake) || step.asset.as_ref().and_then(Asset::lake) == Some(lake);
        let script = ctx.project.script(&step.name);
        script.is_some_and(|script| may_share(script) && script.lakes_needed(&ctx.project).iter().all(is_there))
    }

    fn start(&mut self, index: usize) -> StepJob {
        self.states[index] = StepState::Running;
        self.job(index)
    }

    fn job(&self, index: usize) -> StepJob {
        let step = self.plan.steps[index].clone();
        StepJob { index, id: self.ids[index].clone(), step, pins: self.pins_of(index) }
    }

    /// Returns the run's pins, or later ones of what the step depends on.
    fn pins_of(&self, index: usize) -> BTreeMap<LakeName, SnapshotId> {
        let step: &Step = &self.plan.steps[index];
        let mut pins: BTreeMap<LakeName, SnapshotId> = self.plan.pins.clone();
        for before in &step.depends_on {
            if let Some((lake, snapshot)) = &self.landed[*before] {
                let pin = pins.entry(lake.clone()).or_insert(*snapshot);
                *pin = (*pin).max(*snapshot);
            }
        }
        pins
    }

    /// Remembers how a step ended and returns the steps that end without having begun: those that can no longer begin, and
    /// those that need not.
    fn finish(&mut self, index: usize, state: StepState) -> Vec<usize> {
        self.states[index] = state;
        let mut lost = Vec::new();
        let is_good = matches!(state, StepState::Materialized | StepState::Unchanged | StepState::Superseded);
        for after in self.after[index].clone() {
            self.open_before[after] -= 1;
            if !is_good && self.states[after] == StepState::Waiting {
                self.ready.remove(&after);
                lost.push(after);
                lost.extend(self.finish(after, StepState::Skipped));
            } else if self.open_before[after] == 0 && self.states[after] == StepState::Waiting {
                let is_unchanged = |before: usize| self.states[before] == StepState::Unchanged;
                if is_spared(&self.plan.steps[after], is_unchanged) {
                    lost.push(after);
                    lost.extend(self.finish(after, StepState::Unchanged));
                } else {
                    self.ready.insert(after);
                }
            }
        }
        lost
    }

    /// Takes notice that a step is under way; returns whether it was not before.
    fn begins(&mut self, index: usize) -> bool {
        if self.states[index] == StepState::Waiting {
            self.states[index] = StepState::Running;
        }
        self.told.insert(index)
    }

    /// Ends the steps that an atomic run has not come to.
    fn end_rest_of_atomic(&mut self) -> Vec<usize> {
        if !self.plan.atomic {
            return Vec::new();
        }
        self.ready.clear();
        let waiting = |index: &usize| self.states[*index] == StepState::Waiting;
        let rest: Vec<usize> = (0..self.states.len()).filter(waiting).collect();
        for index in &rest {
            self.states[*index] = StepState::Skipped;
        }
        rest
    }

    /// Ends every step that has not begun, because the user stopped.
    fn cancel_waiting(&mut self) -> Vec<usize> {
        self.ready.clear();
        let waiting: Vec<usize> =
            (0..self.states.len()).filter(|index| self.states[*index] == StepState::Waiting).collect();
        for index in &waiting {
            self.states[*index] = StepState::Cancelled;
        }
        waiting
    }
}

/// The batches that slots with nothing to do may take part in.
#[derive(Default)]
struct Shared(Vec<(Instant, Arc<Batch>)>);

impl Shared {
    /// Lets others take part in `batch` after a while.
    fn offer(&mut self, batch: &Arc<Batch>) {
        self.0.retain(|(_, other)| other.has_more() && !Arc::ptr_eq(other, batch));
        if 1 < batch.jobs().len() {
            self.0.push((Instant::now() + SHARE_AFTER, batch.clone()));
        }
    }

    /// Returns a batch of which something is left after that while, or at once when nobody is working on any.
    fn next(&mut self, is_idle: bool) -> Option<Work> {
        self.0.retain(|(_, batch)| batch.has_more());
        let (_, batch) = self.0.iter().find(|(at, _)| is_idle || *at <= Instant::now())?;
        Some(Work::Steps(batch.clone()))
    }

    /// Returns when the next batch may be shared.
    fn wake_at(&self) -> Option<Instant> {
        self.0.iter().filter(|(_, batch)| batch.has_more()).map(|(at, _)| *at).min()
    }
}

/// Does the steps of `plan` and returns how they ended; `first` is a warm slot, numbered 0, that is used up.
pub fn dispatch(
    ctx: &Arc<RunContext>,
    plan: &Plan,
    ids: &[StepId],
    slots: usize,
    first: Option<Slot>,
    tell: &mut dyn FnMut(RunEvent),
) -> RunSummary {
    let mut board = Board::new(plan, ids);
    let (sender, mut receiver) = mpsc::unbounded_channel::<Message>();
    let slots = slots.min(plan.steps.len()).max(1);
    thread::scope(|scope| {
        let mut warm = first;
        let inboxes: Vec<blocking::Sender<Work>> = (0..slots)
            .map(|number| {
                let slot = warm.take().unwrap_or_else(|| Slot::new(number, ctx.instance.clone(), ctx.keepers.clone()));
                start_slot(scope, ctx, slot, sender.clone())
            })
            .collect();
        let mut free: Vec<usize> = (0..slots).rev().collect();
        let mut deadlines: Vec<Option<Instant>> = vec![None; slots];
        let mut running = 0;
        let mut shared = Shared::default();
        loop {
            if ctx.cancel.is_set() {
                for index in board.cancel_waiting() {
                    end_unbegun(ctx, &board, index, StepState::Cancelled, tell);
                }
            }
            while let Some(slot) = free.last().copied() {
                let Some(work) = board.take_work(ctx).or_else(|| shared.next(running == 0)) else { break };
                free.pop();
                running += 1;
                ctx.cancel.begin(slot);
                deadlines[slot] = match work.jobs() {
                    // Steps with a time limit share nothing.
                    [job] => deadline_of(ctx, &job.step),
                    _ => None,
                };
                if let Work::Steps(batch) = &work {
                    shared.offer(batch);
                }
                // A slot that is gone has panicked; its message would be lost, so the steps end here.
                if let Err(lost) = inboxes[slot].send(work) {
                    running -= 1;
                    for job in lost.0.jobs() {
                        end_lost(ctx, &mut board, job.index, tell);
                    }
                }
            }
            if running == 0 {
                break;
            }
            let wake = shared.wake_at().filter(|_| !free.is_empty());
            let message = next_message(ctx, &mut receiver, deadlines.iter().flatten().copied().chain(wake));
            match message {
                None => interrupt(ctx, &mut deadlines),
                Some(Message::Phase { index, phase }) => {
                    if board.begins(index) {
                        if plan.atomic {
                            // Each step has its own time, and all of them have one slot.
                            deadlines.fill(deadline_of(ctx, &plan.steps[index]));
                        }
                        tell(RunEvent::StepStarted { index });
                    }
                    tell(RunEvent::StepPhase { index, phase });
                }
                Some(Message::Done { report }) => settle(ctx, &mut board, report, tell),
                Some(Message::Free { slot }) => {
                    running -= 1;
                    free.push(slot);
                    deadlines[slot] = None;
                    for index in board.end_rest_of_atomic() {
                        end_unbegun(ctx, &board, index, StepState::Skipped, tell);
                    }
                }
            }
        }
        // The slots end when their inboxes are dropped.
    });
    RunSummary::of(ctx.run.clone(), &board.states, plan.up_to_date)
}

fn start_slot<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    ctx: &Arc<RunContext>,
    mut slot: Slot,
    sender: mpsc::UnboundedSender<Message>,
) -> blocking::Sender<Work> {
    let (inbox, work) = blocking::channel::<Work>();
    let ctx = ctx.clone();
    scope.spawn(move || {
        let number = slot.number;
        for given in work {
            work_off(&ctx, &mut slot, &given, &sender);
            if sender.send(Message::Free { slot: number }).is_err() {
                break;
            }
        }
    });
    inbox
}

/// Does the steps and reports each; what a panic left without a report is reported as such.
fn work_off(ctx: &RunContext, slot: &mut Slot, given: &Work, sender: &mpsc::UnboundedSender<Message>) {
    // The dispatcher is gone only when the process ends, so a lost message loses nothing.
    let report_phase = |index: usize, phase: &'static str| {
        let _ = sender.send(Message::Phase { index, phase });
    };
    let open: RefCell<BTreeSet<usize>> = RefCell::default();
    let work = std::panic::AssertUnwindSafe(|| {
        let mut done = |report: StepReport| {
            open.borrow_mut().remove(&report.index);
            let _ = sender.send(Message::Done { report: Box::new(report) });
        };
        match given {
            Work::Steps(batch) => {
                let claim = || batch.claim().inspect(|job| _ = open.borrow_mut().insert(job.index));
                execute_group(ctx, slot, batch, &claim, &report_phase, &mut done);
            }
            Work::Atomic(jobs) => {
                open.borrow_mut().extend(jobs.iter().map(|job| job.index));
                execute_atomic(ctx, slot, jobs, &report_phase, &mut done);
            }
        }
    });
    if let Err(panic) = std::panic::catch_unwind(work) {
        slot.discard();
        for index in open.take() {
            let _ = sender.send(Message::Done { report: Box::new(panicked(index, &panic)) });
        }
    }
}

/// A panic is a fault of Pintail; it is contained in its step and told as such.
fn panicked(index: usize, panic: &Box<dyn std::any::Any + Send>) -> StepReport {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let failure = StepFailure {
        class: ErrorClass::Bug,
        ..StepFailure::user(Code::ENGINE_ERROR, "run the step", format!("Pintail panicked: {text}"))
            .with_help("this is a fault of Pintail: please report it with the output of `pintail doctor`")
    };
    StepReport {
        index,
        outcome: StepOutcome::Failed(Box::new(failure)),
        tests: Vec::new(),
        notes: Vec::new(),
        phases: Vec::new(),
        elapsed: Duration::ZERO,
    }
}

fn deadline_of(ctx: &RunContext, step: &Step) -> Option<Instant> {
    let limit = ctx.project.script(&step.name)?.header.timeout.as_ref().map(|timeout| timeout.value)?;
    Some(Instant::now() + limit)
}

/// Waits for a slot, for the next deadline, or for a moment in which the user may have stopped the run.
fn next_message(
    ctx: &RunContext,
    receiver: &mut mpsc::UnboundedReceiver<Message>,
    wakes: impl Iterator<Item = Instant>,
) -> Option<Message> {
    let heartbeat = Instant::now() + Duration::from_millis(200);
    let until = wakes.chain([heartbeat]).min().unwrap_or(heartbeat);
    ctx.runtime.block_on(async { tokio::time::timeout_at(until.into(), receiver.recv()).await.ok().flatten() })
}

/// Interrupts what must stop. An interrupt between two statements is lost, so it is repeated until the step has ended.
fn interrupt(ctx: &RunContext, deadlines: &mut [Option<Instant>]) {
    if ctx.cancel.is_set() {
        ctx.cancel.cancel();
    }
    for (slot, deadline) in deadlines.iter_mut().enumerate() {
        if deadline.is_some_and(|at| at <= Instant::now()) {
            ctx.cancel.interrupt(slot);
            *deadline = Some(Instant::now() + Duration::from_millis(50));
        }
    }
}

fn settle(ctx: &RunContext, board: &mut Board<'_>, report: Box<StepReport>, tell: &mut dyn FnMut(RunEvent)) {
    let index = report.index;
    let state = match &report.outcome {
        StepOutcome::Materialized { snapshot, .. } => {
            let lake = board.plan.steps[index].asset.as_ref().map(pintail_core::asset::Asset::place);
            board.landed[index] = lake.zip(*snapshot);
            StepState::Materialized
        }
        StepOutcome::Unchanged { .. } => StepState::Unchanged,
        StepOutcome::Superseded { snapshot, .. } => {
            let lake = board.plan.steps[index].asset.as_ref().map(pintail_core::asset::Asset::place);
            board.landed[index] = lake.map(|lake| (lake, *snapshot));
            StepState::Superseded
        }
        StepOutcome::RolledBack { .. } => StepState::RolledBack,
        StepOutcome::Failed(failure) if failure.class == ErrorClass::Cancelled => StepState::Cancelled,
        StepOutcome::Failed(_) => StepState::Failed,
    };
    let lost = board.finish(index, state);
    tell(RunEvent::StepFinished { index, state, report: Some(report) });
    for index in lost {
        end_unbegun(ctx, board, index, board.states[index], tell);
    }
}

fn end_lost(ctx: &RunContext, board: &mut Board<'_>, index: usize, tell: &mut dyn FnMut(RunEvent)) {
    let lost = board.finish(index, StepState::Failed);
    tell(RunEvent::StepFinished { index, state: StepState::Failed, report: None });
    for index in lost {
        end_unbegun(ctx, board, index, board.states[index], tell);
    }
}

/// Records a step that never began.
fn end_unbegun(ctx: &RunContext, board: &Board<'_>, index: usize, state: StepState, tell: &mut dyn FnMut(RunEvent)) {
    let status = match state {
        StepState::Skipped => StepStatus::Skipped,
        StepState::Unchanged => StepStatus::Unchanged,
        _ => StepStatus::Cancelled,
    };
    let end = StepEnd { status, finished: (ctx.now)(), rows: None, snapshot: None, timings: Vec::new(), error: None };
    if let Err(error) = ctx.runtime.block_on(ctx.store.finish_step(&board.ids[index], &end)) {
        // The run's own end closes what was left open.
        tracing::warn!(%error, "a step's end could not be stored");
    }
    tell(RunEvent::StepFinished { index, state, report: None });
}
