//! The dispatcher: gives ready steps to free slots, in the order of the plan, until none is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::thread;
use std::time::{Duration, Instant};

use pintail_core::diagnostic::Code;
use pintail_core::id::{LakeName, SnapshotId, StepId};
use pintail_core::plan::{Plan, Step};
use pintail_core::write::ErrorClass;
use pintail_store::{StepEnd, StepStatus};
use tokio::sync::mpsc;

use super::{RunEvent, RunSummary, StepState};
use crate::executors::duckdb::execute;
use crate::executors::{RunContext, Slot, StepFailure, StepJob, StepOutcome, StepReport};

/// What a slot tells the dispatcher.
enum Message {
    Phase { index: usize, phase: &'static str },
    Done { slot: usize, report: Box<StepReport> },
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
    ready: std::collections::BTreeSet<usize>,
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
        }
    }

    /// Returns the next step to do, at the run's pins or later ones of what it depends on.
    fn take_job(&mut self) -> Option<StepJob> {
        let index = self.ready.pop_first()?;
        self.states[index] = StepState::Running;
        let step: &Step = &self.plan.steps[index];
        let mut pins: BTreeMap<LakeName, SnapshotId> = self.plan.pins.clone();
        for before in &step.depends_on {
            if let Some((lake, snapshot)) = &self.landed[*before] {
                let pin = pins.entry(lake.clone()).or_insert(*snapshot);
                *pin = (*pin).max(*snapshot);
            }
        }
        Some(StepJob { index, id: self.ids[index].clone(), step: step.clone(), pins })
    }

    /// Remembers how a step ended and returns the steps that can no longer begin.
    fn finish(&mut self, index: usize, state: StepState) -> Vec<usize> {
        self.states[index] = state;
        let mut lost = Vec::new();
        let is_good = matches!(state, StepState::Materialized | StepState::Superseded);
        for after in self.after[index].clone() {
            self.open_before[after] -= 1;
            if !is_good && self.states[after] == StepState::Waiting {
                self.ready.remove(&after);
                lost.push(after);
                lost.extend(self.finish(after, StepState::Skipped));
            } else if self.open_before[after] == 0 && self.states[after] == StepState::Waiting {
                self.ready.insert(after);
            }
        }
        lost
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
        let inboxes: Vec<blocking::Sender<StepJob>> = (0..slots)
            .map(|number| {
                let slot = warm.take().unwrap_or_else(|| Slot::new(number, ctx.instance.clone(), ctx.keepers.clone()));
                start_slot(scope, ctx, slot, sender.clone())
            })
            .collect();
        let mut free: Vec<usize> = (0..slots).rev().collect();
        let mut deadlines: Vec<Option<Instant>> = vec![None; slots];
        let mut running = 0;
        loop {
            if ctx.cancel.is_set() {
                for index in board.cancel_waiting() {
                    end_unbegun(ctx, &board, index, StepState::Cancelled, tell);
                }
            }
            while let Some(slot) = free.last().copied() {
                let Some(job) = board.take_job() else { break };
                free.pop();
                running += 1;
                ctx.cancel.begin(slot);
                deadlines[slot] = timeout_of(ctx, &job.step).map(|limit| Instant::now() + limit);
                tell(RunEvent::StepStarted { index: job.index });
                // A slot that is gone has panicked; its message would be lost, so the step ends here.
                if let Err(lost) = inboxes[slot].send(job) {
                    running -= 1;
                    end_lost(ctx, &mut board, lost.0.index, tell);
                }
            }
            if running == 0 {
                break;
            }
            let message = next_message(ctx, &mut receiver, &deadlines);
            match message {
                None => interrupt(ctx, &mut deadlines),
                Some(Message::Phase { index, phase }) => tell(RunEvent::StepPhase { index, phase }),
                Some(Message::Done { slot, report }) => {
                    running -= 1;
                    free.push(slot);
                    deadlines[slot] = None;
                    settle(ctx, &mut board, report, tell);
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
) -> blocking::Sender<StepJob> {
    let (inbox, jobs) = blocking::channel::<StepJob>();
    let ctx = ctx.clone();
    scope.spawn(move || {
        let number = slot.number;
        for job in jobs {
            let index = job.index;
            let phases = sender.clone();
            let report_phase = move |phase: &'static str| {
                // The dispatcher is gone only when the process ends.
                let _ = phases.send(Message::Phase { index, phase });
            };
            let work = std::panic::AssertUnwindSafe(|| execute(&ctx, &mut slot, &job, &report_phase));
            let report = std::panic::catch_unwind(work).unwrap_or_else(|panic| {
                slot.discard();
                panicked(index, &panic)
            });
            if sender.send(Message::Done { slot: number, report: Box::new(report) }).is_err() {
                break;
            }
        }
    });
    inbox
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

fn timeout_of(ctx: &RunContext, step: &Step) -> Option<Duration> {
    ctx.project.script(&step.name)?.header.timeout.as_ref().map(|timeout| timeout.value)
}

/// Waits for a slot, for the next deadline, or for a moment in which the user may have stopped the run.
fn next_message(
    ctx: &RunContext,
    receiver: &mut mpsc::UnboundedReceiver<Message>,
    deadlines: &[Option<Instant>],
) -> Option<Message> {
    let heartbeat = Instant::now() + Duration::from_millis(200);
    let until = deadlines.iter().flatten().copied().chain([heartbeat]).min().unwrap_or(heartbeat);
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
        StepOutcome::Superseded { snapshot, .. } => {
            let lake = board.plan.steps[index].asset.as_ref().map(pintail_core::asset::Asset::place);
            board.landed[index] = lake.map(|lake| (lake, *snapshot));
            StepState::Superseded
        }
        StepOutcome::Failed(failure) if failure.class == ErrorClass::Cancelled => StepState::Cancelled,
        StepOutcome::Failed(_) => StepState::Failed,
    };
    let lost = board.finish(index, state);
    tell(RunEvent::StepFinished { index, state, report: Some(report) });
    for index in lost {
        end_unbegun(ctx, board, index, StepState::Skipped, tell);
    }
}

fn end_lost(ctx: &RunContext, board: &mut Board<'_>, index: usize, tell: &mut dyn FnMut(RunEvent)) {
    let lost = board.finish(index, StepState::Failed);
    tell(RunEvent::StepFinished { index, state: StepState::Failed, report: None });
    for index in lost {
        end_unbegun(ctx, board, index, StepState::Skipped, tell);
    }
}

/// Records a step that never began.
fn end_unbegun(ctx: &RunContext, board: &Board<'_>, index: usize, state: StepState, tell: &mut dyn FnMut(RunEvent)) {
    let status = if state == StepState::Skipped { StepStatus::Skipped } else { StepStatus::Cancelled };
    let end = StepEnd { status, finished: (ctx.now)(), rows: None, snapshot: None, timings: Vec::new(), error: None };
    if let Err(error) = ctx.runtime.block_on(ctx.store.finish_step(&board.ids[index], &end)) {
        // The run's own end closes what was left open.
        tracing::warn!(%error, "a step's end could not be stored");
    }
    tell(RunEvent::StepFinished { index, state, report: None });
}
