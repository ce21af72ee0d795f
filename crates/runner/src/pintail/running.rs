//! Running a plan: the run's record, its context, the dispatcher, and its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pintail_core::id::{LakeName, PresenceId, RunId, StepId};
use pintail_core::plan::Plan;
use pintail_engine::guard::Guard;
use pintail_store::{NewRun, NewStep, RunEnd, RunStatus};

use super::{Observation, Pintail, RunnerError};
use crate::executors::RunContext;
use crate::run::{RunEvent, RunSummary, dispatch};
use crate::with_sources;

impl Pintail {
    /// Does `plan` and tells what happens. A run that fails is a summary, not an error.
    pub fn run(
        &self,
        plan: &Plan,
        seen: &Observation,
        tell: &mut dyn FnMut(RunEvent),
    ) -> Result<RunSummary, RunnerError> {
        let started = Instant::now();
        let ctx = Arc::new(self.context(crate::new_id(), seen)?);
        let ids: Vec<StepId> = plan.steps.iter().map(|_| StepId(crate::new_id())).collect();
        self.begin(&ctx, plan, &ids)?;
        if let Some(deferral) = &self.project.deferral {
            // Who reads what a step of this run writes waits for it, and then finds it here.
            plan.steps.iter().filter_map(|step| step.asset.as_ref()).for_each(|asset| deferral.will_build(asset));
        }
        tell(RunEvent::Started { run: ctx.run.clone(), steps: plan.steps.clone() });
        let pins = match self.pin_inputs(&ctx, plan) {
            Ok(pins) => pins,
            Err(error) => {
                self.end_unbegun(&ctx, &error);
                return Err(error);
            }
        };
        let slots = usize::try_from(self.slots()).unwrap_or(1);
        let summary = dispatch(&ctx, plan, &ids, slots, Some(self.take_slot()), tell);
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
        }
        Ok(pins)
    }

    fn begin(&self, ctx: &RunContext, plan: &Plan, ids: &[StepId]) -> Result<(), RunnerError> {
        let owner = ctx.guards.values().next().map_or_else(String::new, |guard| guard.owner().to_string());
        let run = NewRun {
            id: ctx.run.clone(),
            command: self.settings.command.iter().map(|word| self.redactor.redact(word)).collect(),
            triggered_by: "manual".to_owned(),
            pins: plan.pins.clone(),
            owner: PresenceId(owner),
            started: (self.settings.now)(),
        };
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

    pub(super) fn context(&self, run: String, seen: &Observation) -> Result<RunContext, RunnerError> {
        let mut guards: BTreeMap<LakeName, Arc<Guard>> = BTreeMap::new();
        for location in self.lakes.values() {
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
            memory: Mutex::new(seen.memory.clone()),
            increments: Mutex::default(),
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
