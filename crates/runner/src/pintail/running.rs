//! Running a plan: the run's record, its context, the dispatcher, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pintail_core::id::{LakeName, PresenceId, RunId, ScriptName, SnapshotId, StepId};
use pintail_core::plan::Plan;
use pintail_engine::guard::Guard;
use pintail_store::{NewRun, NewStep, RunEnd, RunStatus, ScriptText};

use super::{Observation, Pintail, RunnerError};
use crate::executors::RunContext;
use crate::run::{RunEvent, RunSummary, dispatch};
use crate::with_sources;

/// What a run is a part of.
pub(super) struct RunAs {
    /// Its id.
    pub(super) run: RunId,
    /// What started it.
    pub(super) triggered_by: String,
    /// Steps at once; as configured when absent.
    pub(super) slots: Option<u64>,
}

impl RunAs {
    fn manual() -> Self {
        Self { run: RunId(crate::new_id()), triggered_by: "manual".to_owned(), slots: None }
    }
}

impl Pintail {
    /// Does `plan` and tells what happens. A run that fails is a summary, not an error.
    pub fn run(
        &self,
        plan: &Plan,
        seen: &Observation,
        tell: &mut dyn FnMut(RunEvent),
    ) -> Result<RunSummary, RunnerError> {
        self.run_as(plan, seen, &RunAs::manual(), tell)
    }

    /// Does `plan` as a part of something larger.
    pub(super) fn run_as(
        &self,
        plan: &Plan,
        seen: &Observation,
        how: &RunAs,
        tell: &mut dyn FnMut(RunEvent),
    ) -> Result<RunSummary, RunnerError> {
        let started = Instant::now();
        let slots = how.slots.unwrap_or(self.slots());
        for lake in self.lakes.values() {
            lake.require_connections(slots)?;
        }
        let mut ctx = self.context(how.run.0.clone(), seen)?;
        ctx.instance = self.instance_options(slots);
        let ctx = Arc::new(ctx);
        let ids: Vec<StepId> = plan.steps.iter().map(|_| StepId(crate::new_id())).collect();
        self.begin(&ctx, plan, &ids, &how.triggered_by)?;
        tell(RunEvent::Started { run: ctx.run.clone(), steps: plan.steps.clone() });
        let pins = match self.pin_inputs(&ctx, plan) {
            Ok(pins) => pins,
            Err(error) => {
                self.end_unbegun(&ctx, &error);
                return Err(error);
            }
        };
        // The observing slot has its share of memory by the configured number; with another number it goes.
        let warm = Some(self.take_slot()).filter(|_| slots == self.slots());
        let slots = usize::try_from(slots).unwrap_or(1);
        let summary = dispatch(&ctx, plan, &ids, slots, warm, tell);
        for (guard, pin) in pins {
            if let Err(error) = self.runtime.block_on(guard.unpin(pin)) {
                tracing::warn!(%error, "a pin of the run could not be removed");
            }
        }
        let end = RunEnd {
            status: summary.status,
            finished: (self.settings.now)(),
            error: (summary.status != RunStatus::Succeeded).then(|| end_text(&summary)),
        };
        let mut summary = summary;
        if let Err(error) = self.runtime.block_on(self.store.finish_run(&ctx.run, &end)) {
            // What was committed is committed; the next start closes the run from what the lake says.
            summary.unrecorded = Some(with_sources(&error));
        }
        if 0 < summary.materialized
            && let Err(error) = self.keep_past_runs()
        {
            // What young runs need is kept by its age; the next run and the next upkeep renew the holds.
            tracing::warn!(error = with_sources(&error), "what past runs need could not be held");
        }
        tell(RunEvent::Finished { summary: summary.clone(), elapsed: started.elapsed() });
        Ok(summary)
    }

    /// Closes a run that could not begin its steps.
    fn end_unbegun(&self, ctx: &RunContext, error: &RunnerError) {
        let end = RunEnd {
            status: RunStatus::Failed,
            finished: (self.settings.now)(),
            error: Some(self.redactor.redact(&with_sources(error))),
        };
        if let Err(error) = self.runtime.block_on(self.store.finish_run(&ctx.run, &end)) {
            tracing::warn!(%error, "a run that never began could not be closed");
        }
    }

    /// Holds the run's pins for its whole length: a later step may still attach them.
    fn pin_inputs(
        &self,
        ctx: &RunContext,
        plan: &Plan,
    ) -> Result<Vec<(Arc<Guard>, pintail_engine::guard::PinId)>, RunnerError> {
        let mut pins = Vec::new();
        for (lake, snapshot) in &plan.pins {
            let Some(guard) = ctx.guards.get(lake) else { continue };
            let now = (self.settings.now)().timestamp_micros();
            let pinned = self.runtime.block_on(guard.pin(*snapshot, &format!("run {}", ctx.run), now));
            pins.push((guard.clone(), pinned.map_err(pintail_engine::EngineError::from)?));
            self.require_pinned(lake, *snapshot)?;
        }
        Ok(pins)
    }

    /// Makes sure that a snapshot that was just pinned is there: since it was planned it may have expired. What the steps
    /// pin later is newer than this, and nothing newer than work in progress expires.
    fn require_pinned(&self, lake: &LakeName, snapshot: SnapshotId) -> Result<(), RunnerError> {
        let Some(location) = self.lakes.get(lake) else { return Ok(()) };
        if !location.exists()? {
            return Ok(());
        }
        let mut slot = self.take_slot();
        slot.attach_existing(location)?;
        let session = slot.session()?;
        let there = self.require_snapshot(location, &session, &location.write_alias(), snapshot);
        drop(session);
        self.keep_slot(slot);
        there
    }

    fn begin(&self, ctx: &RunContext, plan: &Plan, ids: &[StepId], triggered_by: &str) -> Result<(), RunnerError> {
        let owner = ctx.guards.values().next().map_or_else(String::new, |guard| guard.owner().to_string());
        let run = NewRun {
            id: ctx.run.clone(),
            command: self.settings.command.iter().map(|word| self.redactor.redact(word)).collect(),
            triggered_by: triggered_by.to_owned(),
            pins: plan.pins.clone(),
            owner: PresenceId(owner),
            started: (self.settings.now)(),
        };
        self.runtime.block_on(self.store.remember_scripts(&self.texts_of(plan)))?;
        self.runtime.block_on(self.store.begin_run(&run))?;
        let steps: Vec<NewStep> = plan
            .steps
            .iter()
            .zip(ids)
            .enumerate()
            .map(|(position, (step, id))| NewStep {
                id: id.clone(),
                position: u32::try_from(position).unwrap_or(u32::MAX),
                script: step.name.clone(),
                asset: step.asset.clone(),
                partition: step.partition.clone(),
                reason: step.reason.to_string(),
            })
            .collect();
        self.runtime.block_on(self.store.insert_steps(&ctx.run, &steps))?;
        Ok(())
    }

    /// Returns the texts of the scripts of `plan`, which a replay of it needs.
    fn texts_of(&self, plan: &Plan) -> Vec<ScriptText> {
        let names: BTreeSet<&ScriptName> = plan.steps.iter().map(|step| &step.name).collect();
        let scripts = names.into_iter().filter_map(|name| self.project.script(name));
        scripts
            .map(|script| ScriptText {
                hash: script.hash().clone(),
                path: script.file.source.path.clone(),
                text: script.file.source.text.clone(),
            })
            .collect()
    }

    pub(super) fn context(&self, run: String, seen: &Observation) -> Result<RunContext, RunnerError> {
        let mut guards: BTreeMap<LakeName, Arc<Guard>> = BTreeMap::new();
        // Who only asks may not be allowed to write, and holds nothing.
        let held = self.lakes.values().filter(|_| self.access == super::Access::Write);
        for location in held {
            guards.insert(location.name.clone(), self.guard(location)?);
        }
        let vars = self.project.project.config.vars.iter();
        Ok(RunContext {
            project: self.project.clone(),
            lakes: self.lakes.clone(),
            guards,
            store: self.store.clone(),
            runtime: self.runtime.handle().clone(),
            instance: self.instance_options(self.slots()),
            keepers: self.keepers.clone(),
            faults: self.settings.faults.clone(),
            run: RunId(run),
            vars: vars.map(|(name, value)| (name.clone(), value.text())).collect(),
            prints: Mutex::new(seen.files.clone()),
            memory: Mutex::new(seen.memory.clone()),
            increments: Mutex::default(),
            started: (self.settings.now)(),
            cancel: self.cancel.clone(),
            now: self.settings.now,
        })
    }
}

fn end_text(summary: &RunSummary) -> String {
    let mut parts = Vec::new();
    for (count, word) in [
        (summary.failed, "failed"),
        (summary.rolled_back, "rolled back"),
        (summary.skipped, "skipped"),
        (summary.cancelled, "stopped"),
    ] {
        if 0 < count {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(", ")
}
