//! A window of a job: the partitions that are in memory and in one run.
//!
//! Invariant: every partition of a window has a state in the store when the window has ended, whatever its run said.

use std::collections::BTreeSet;

use pintail_core::id::{RunId, ScriptName};
use pintail_core::partition::{PartitionError, PartitionKey, TimeSpec};
use pintail_core::plan::backfill::{Mode, PartitionEnd, PartitionState, Tally, is_due, state_after};
use pintail_core::plan::{Plan, Step};
use pintail_store::{BackfillId, BackfillPartition};

use super::super::running::RunAs;
use super::super::{Observation, Pintail, PlanRequest, RunnerError};
use super::BackfillRange;
use super::job::{BackfillEvent, Owned};
use crate::executors::{StepOutcome, StepReport};
use crate::run::{RunEvent, StepState};

/// Partitions of one window. A window costs a look at the lake and a start of the slots, which so many share; and so many
/// fail before a job that cannot go well is left.
pub(super) const WINDOW: usize = 256;

/// The partitions of a job that are due, a window at a time.
pub(super) struct Windows<'j> {
    id: BackfillId,
    mode: Mode,
    spec: &'j TimeSpec,
    keys: Box<dyn Iterator<Item = PartitionKey> + 'j>,
    /// Of a retry: the last partition that was taken.
    after: Option<PartitionKey>,
}

impl<'j> Windows<'j> {
    pub(super) fn of(owned: &'j Owned, spec: &'j TimeSpec) -> Result<Self, PartitionError> {
        let keys = Box::new(owned.backfill.job.ranges.keys(spec)?);
        Ok(Self { id: owned.backfill.id, mode: owned.mode, spec, keys, after: None })
    }

    /// Returns the next partitions that are due, in order; none when the job has come to its end.
    pub(super) fn next(&mut self, pintail: &Pintail) -> Result<Vec<PartitionKey>, RunnerError> {
        match self.mode {
            Mode::Resume => self.next_open(pintail),
            Mode::Retry => self.next_failed(pintail),
        }
    }

    fn next_open(&mut self, pintail: &Pintail) -> Result<Vec<PartitionKey>, RunnerError> {
        loop {
            let keys: Vec<PartitionKey> = self.keys.by_ref().take(WINDOW).collect();
            if keys.is_empty() {
                return Ok(keys);
            }
            let states = pintail.runtime.block_on(pintail.store.backfill_states(self.id, &keys))?;
            let state_of = |key: &PartitionKey| states.get(key).copied().unwrap_or(PartitionState::Queued);
            let due: Vec<PartitionKey> = keys.into_iter().filter(|key| is_due(self.mode, state_of(key))).collect();
            if !due.is_empty() {
                return Ok(due);
            }
        }
    }

    /// A retry takes each failed partition once: what fails again lies behind `after`.
    fn next_failed(&mut self, pintail: &Pintail) -> Result<Vec<PartitionKey>, RunnerError> {
        let limit = u32::try_from(WINDOW).expect("a window is small");
        let store = &pintail.store;
        let failed = store.backfill_partitions_in(self.id, PartitionState::Failed, self.after.as_ref(), limit);
        let failed = pintail.runtime.block_on(failed)?;
        let mut keys: Vec<PartitionKey> = failed.into_iter().map(|part| part.partition).collect();
        self.after = keys.last().cloned().or(self.after.take());
        // The store sorts texts; where clocks change, that is not the order of time.
        keys.sort_by_key(|key| self.spec.window(key).map(|window| window.start).ok());
        Ok(keys)
    }
}

/// Keeps the store's states up to date while a window's run goes on.
struct Scribe<'p> {
    pintail: &'p Pintail,
    owned: &'p Owned,
    run: RunId,
    script: &'p ScriptName,
    plan: &'p Plan,
    /// The partitions of the run that have not ended.
    open: BTreeSet<PartitionKey>,
    tally: Tally,
    /// The first thing that could not be stored.
    lost: Option<RunnerError>,
}

impl Pintail {
    /// Does one window, and returns how its partitions ended.
    pub(super) fn do_window(
        &self,
        owned: &Owned,
        keys: &[PartitionKey],
        tell: &mut dyn FnMut(BackfillEvent),
    ) -> Result<Tally, RunnerError> {
        let (plan, seen) = self.plan_window(owned, keys)?;
        let script = &owned.backfill.job.script;
        let is_ours = |step: &&Step| step.name == *script;
        let planned: BTreeSet<PartitionKey> =
            plan.steps.iter().filter(is_ours).filter_map(|step| step.partition.clone()).collect();
        let run = RunId(crate::new_id());
        self.record_begin(owned, keys, &planned, &run)?;
        let up_to_date = (keys.len() - planned.len()) as u64;
        if 0 < up_to_date {
            tell(BackfillEvent::UpToDate { partitions: up_to_date });
        }
        let tally = Tally { done: up_to_date, ..Tally::default() };
        if plan.steps.is_empty() {
            return Ok(tally);
        }
        let mut scribe = Scribe { pintail: self, owned, run, script, plan: &plan, open: planned, tally, lost: None };
        scribe.work(&seen, tell)
    }

    fn plan_window(&self, owned: &Owned, keys: &[PartitionKey]) -> Result<(Plan, Observation), RunnerError> {
        let job = &owned.backfill.job;
        let range = BackfillRange {
            script: job.script.to_string(),
            upstream: job.options.upstream,
            keys: Some(keys.to_vec()),
            ..BackfillRange::default()
        };
        self.plan(&PlanRequest { force: job.options.force, backfill: Some(range), ..PlanRequest::default() })
    }

    /// Records before the run begins which partitions it does, and which were found up to date.
    fn record_begin(
        &self,
        owned: &Owned,
        keys: &[PartitionKey],
        planned: &BTreeSet<PartitionKey>,
        run: &RunId,
    ) -> Result<(), RunnerError> {
        let begun = |key: &PartitionKey| {
            let (state, run) = match planned.contains(key) {
                true => (PartitionState::Running, Some(run.clone())),
                false => (PartitionState::Done, None),
            };
            BackfillPartition { partition: key.clone(), state, run, error: None }
        };
        let begun: Vec<BackfillPartition> = keys.iter().map(begun).collect();
        let now = (self.settings.now)();
        Ok(self.runtime.block_on(self.store.record_backfill_partitions(owned.backfill.id, &begun, now))?)
    }
}

impl Scribe<'_> {
    fn work(&mut self, seen: &Observation, tell: &mut dyn FnMut(BackfillEvent)) -> Result<Tally, RunnerError> {
        let job = &self.owned.backfill;
        let how = RunAs {
            run: self.run.clone(),
            triggered_by: format!("backfill {}", job.id),
            slots: job.job.options.concurrency.map(u64::from),
        };
        let (pintail, plan) = (self.pintail, self.plan);
        let result = pintail.run_as(plan, seen, &how, &mut |event| {
            self.see(&event);
            tell(BackfillEvent::Run(event));
        });
        // What the run did not come to, or did not tell of, is not lost.
        let left = match &result {
            Ok(_) if !pintail.cancel.is_set() => (PartitionEnd::Bad, Some("its run ended without it".to_owned())),
            _ => (PartitionEnd::NotBegun, None),
        };
        for key in std::mem::take(&mut self.open) {
            self.record(key, left.0, left.1.clone());
        }
        result?;
        match self.lost.take() {
            Some(lost) => Err(lost),
            None => Ok(self.tally),
        }
    }

    fn see(&mut self, event: &RunEvent) {
        let RunEvent::StepFinished { index, state, report } = event else { return };
        let step = &self.plan.steps[*index];
        let Some(key) = step.partition.clone().filter(|_| step.name == *self.script) else { return };
        let (end, error) = end_of(*state, report.as_deref());
        self.open.remove(&key);
        self.record(key, end, error);
    }

    fn record(&mut self, partition: PartitionKey, end: PartitionEnd, error: Option<String>) {
        let state = state_after(self.owned.mode, end);
        match state {
            PartitionState::Done => self.tally.done += 1,
            PartitionState::Failed => self.tally.failed += 1,
            PartitionState::Queued | PartitionState::Running | PartitionState::Cancelled => self.tally.stopped += 1,
        }
        let record = BackfillPartition { partition, state, run: Some(self.run.clone()), error };
        let pintail = self.pintail;
        let now = (pintail.settings.now)();
        let id = self.owned.backfill.id;
        let stored = pintail.runtime.block_on(pintail.store.record_backfill_partitions(id, &[record], now));
        if let Err(error) = stored {
            self.lost.get_or_insert(error.into());
        }
    }
}

/// Returns how a step ended for its job, and why it failed.
fn end_of(state: StepState, report: Option<&StepReport>) -> (PartitionEnd, Option<String>) {
    let failure = report.and_then(|report| match &report.outcome {
        StepOutcome::Failed(failure) => Some(failure.message.clone()),
        _ => None,
    });
    match state {
        StepState::Materialized | StepState::Unchanged | StepState::Superseded => (PartitionEnd::Good, None),
        StepState::Cancelled if report.is_some() => (PartitionEnd::Stopped, None),
        StepState::Cancelled | StepState::Waiting | StepState::Running => (PartitionEnd::NotBegun, None),
        StepState::Skipped => (PartitionEnd::Bad, Some("a step before it failed".to_owned())),
        StepState::RolledBack => (PartitionEnd::Bad, Some("another step of its run failed".to_owned())),
        StepState::Failed => (PartitionEnd::Bad, failure.or(Some("its worker was lost".to_owned()))),
    }
}
