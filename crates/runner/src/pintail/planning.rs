//! From what the user asked for to a plan.

use std::collections::{BTreeMap, BTreeSet};

use pintail_core::graph::NodeId;
use pintail_core::id::{LakeName, ScriptName};
use pintail_core::plan::{Hint, Partitions, Plan, Request, State, plan};
use pintail_core::sql::Statement;

use super::runnable::Runnable;
use super::selecting::{FactsOfScripts, Wanted};
use super::values::Values;
use super::{BackfillRange, Observation, Pintail, RunnerError};
use crate::executors::{StepJob, duckdb};

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// `--select`.
    pub select: Option<String>,
    /// `--exclude`.
    pub exclude: Option<String>,
    /// `--partition`.
    pub partition: Option<String>,
    /// `--payload`: JSON in which scripts find their partition.
    pub payload: Option<String>,
    /// `--force`.
    pub force: bool,
    /// `--full-refresh`.
    pub full_refresh: bool,
    /// `--atomic`: all steps in one transaction; `atomic` of the configuration asks for it too.
    pub atomic: bool,
    /// A backfill of one script.
    pub backfill: Option<BackfillRange>,
}

impl PlanRequest {
    /// Returns whether a script that goes by a value is told to lack one: not in a backfill, nor in a selection by state.
    pub(super) fn asks_for_values(&self) -> bool {
        self.backfill.is_none() && !super::asks_for_state(self.select.as_deref(), self.exclude.as_deref())
    }
}

/// The scripts that a request means.
#[derive(Default)]
struct Chosen {
    nodes: Vec<NodeId>,
    /// The states that they were selected by.
    states: BTreeSet<State>,
    /// Those that were chosen by something else than their state.
    named: Vec<NodeId>,
}

impl Pintail {
    /// Returns the plan for `request`, and what it was made from.
    pub fn plan(&self, request: &PlanRequest) -> Result<(Plan, Observation), RunnerError> {
        let wanted =
            Wanted::parse(request.select.as_deref(), request.exclude.as_deref()).map_err(RunnerError::Select)?;
        let seen = self.observe(&self.project.scripts)?;
        let runnable = self.runnable(&seen);
        let chosen = self.chosen(request, &wanted, &seen, &runnable)?;
        if request.full_refresh {
            self.refuse_to_lose_history(&chosen.nodes)?;
        }
        let selected: BTreeSet<usize> =
            chosen.nodes.iter().filter_map(|node| runnable.place.get(node).copied()).collect();
        let values = Values::of(request, &selected, &runnable)?;
        let partitions = match (&request.backfill, &request.partition) {
            (Some(range), _) => self.backfill_partitions(range, &runnable.scripts, &seen)?,
            (None, Some(text)) if !values.took_partition => Partitions::Named(text.clone()),
            _ if chosen.states.is_empty() => Partitions::LastClosed,
            _ => {
                let named = chosen.named.iter().filter_map(|node| runnable.place.get(node).copied()).collect();
                Partitions::InState { states: chosen.states, named }
            }
        };
        let is_atomic = request.atomic || self.project.project.config.run.atomic;
        let request = Request {
            selected,
            partitions,
            values: values.keys,
            force: request.force,
            full_refresh: request.full_refresh,
        };
        let facts = self.facts(&seen, &runnable);
        let mut plan = plan(&facts, &request)?;
        plan.hints.extend(values.hints);
        plan.hints.extend(seen.unreachable.iter().map(|message| Hint::Unreachable { message: message.clone() }));
        plan.hints.extend(self.left_out(&chosen.nodes));
        if is_atomic {
            self.require_atomic(&plan)?;
            plan.atomic = true;
        }
        Ok((plan, seen))
    }

    /// Returns the scripts that a request means.
    fn chosen(
        &self,
        request: &PlanRequest,
        wanted: &Wanted,
        seen: &Observation,
        runnable: &Runnable<'_>,
    ) -> Result<Chosen, RunnerError> {
        if let Some(range) = &request.backfill {
            return Ok(Chosen { nodes: self.backfill_nodes(range)?, ..Chosen::default() });
        }
        if !wanted.asks_for_state() {
            let nodes = wanted.evaluate(&self.project.universe()).map_err(RunnerError::Select)?;
            return Ok(Chosen { nodes, ..Chosen::default() });
        }
        let universe = self.project.universe_with(&self.facts_of_scripts(seen, runnable));
        let nodes = wanted.evaluate(&universe).map_err(RunnerError::Select)?;
        // What would be chosen if nothing were in any state was chosen by name.
        let nobody = self.project.universe_with(&FactsOfScripts::new());
        let named = wanted.evaluate(&nobody).map_err(RunnerError::Select)?;
        Ok(Chosen { nodes, states: wanted.states(), named })
    }

    /// A history cannot be computed anew from what the query gives now.
    fn refuse_to_lose_history(&self, nodes: &[NodeId]) -> Result<(), RunnerError> {
        let scripts = nodes.iter().filter_map(|node| self.project.script_at(*node));
        let names: Vec<String> = scripts
            .filter(|script| script.current_view().is_some() && script.cannot_run.is_none())
            .map(|script| script.name().to_string())
            .collect();
        let Some(first) = names.first() else { return Ok(()) };
        let (keep, them) = match names.len() {
            1 => (format!("`{first}` keeps"), "it"),
            several => (format!("`{first}` and {} more keep", several - 1), "them"),
        };
        Err(RunnerError::Usage {
            message: format!(
                "{keep} history, which a full refresh would lose; leave {them} out: `--exclude '{}'`, or drop the table \
                 by hand when its history is not wanted any more",
                names.join(" ")
            ),
        })
    }

    /// Refuses a plan whose steps cannot share one transaction: it writes one lake, by queries that Pintail stages.
    fn require_atomic(&self, plan: &Plan) -> Result<(), RunnerError> {
        let mut reasons: Vec<String> = Vec::new();
        let mut lakes: BTreeMap<&LakeName, &ScriptName> = BTreeMap::new();
        for step in &plan.steps {
            match step.asset.as_ref().map(|asset| (asset, asset.lake())) {
                Some((_, Some(lake))) => _ = lakes.entry(lake).or_insert(&step.name),
                Some((asset, None)) => reasons.push(format!("`{}` writes {asset}, which is no lake table", step.name)),
                None => reasons.push(format!("`{}` writes nothing that a transaction could hold", step.name)),
            }
            if self.project.script(&step.name).is_some_and(|script| script.increment_column().is_some()) {
                reasons.push(format!("`{}` goes by increments, whose bounds are read before each write", step.name));
            }
            if step.strategy == "manual" {
                reasons.push(format!("`{}` is `materialize manual`: it commits by itself", step.name));
            }
        }
        if 1 < lakes.len() {
            let each: Vec<String> = lakes.iter().map(|(lake, script)| format!("`{lake}` (`{script}`)")).collect();
            reasons.push(format!("a transaction writes one lake, and these are several: {}", each.join(", ")));
        }
        reasons.dedup();
        match reasons.as_slice() {
            [] => Ok(()),
            reasons => Err(RunnerError::Usage {
                message: format!(
                    "this run cannot be atomic, nothing was done:\n  {}\nleave those scripts out with `--exclude`, or run \
                     without `--atomic`",
                    reasons.join("\n  ")
                ),
            }),
        }
    }

    /// Says which selected scripts are not in the plan, and why; a macro library is nothing to run.
    fn left_out<'a>(&'a self, nodes: &'a [NodeId]) -> impl Iterator<Item = Hint> + 'a {
        let scripts = nodes.iter().filter_map(|node| self.project.script_at(*node));
        scripts.filter(|script| script.header.macros.is_none()).filter_map(|script| {
            let reason = script.cannot_run.clone()?;
            Some(Hint::LeftOut { script: script.name().clone(), reason })
        })
    }

    fn backfill_nodes(&self, range: &BackfillRange) -> Result<Vec<NodeId>, RunnerError> {
        // A backfill is of one script; `upstream` adds what it needs.
        let script = self.find_script(&range.script)?;
        let node = self.project.graph.find(script.name());
        Ok(match (node, range.upstream) {
            (Some(node), true) => {
                let upstream = self.project.graph.closure(&[node], pintail_core::graph::Direction::Upstream, None);
                let wanted: BTreeSet<NodeId> = upstream.into_iter().map(|(node, _)| node).collect();
                self.project.graph.order().iter().copied().filter(|node| wanted.contains(node)).collect()
            }
            (Some(node), false) => vec![node],
            (None, _) => Vec::new(),
        })
    }

    /// Returns the statements that each step of `plan` would send.
    pub fn explain(
        &self,
        plan: &Plan,
        seen: &Observation,
        only: Option<usize>,
    ) -> Result<Vec<(usize, Vec<Statement>)>, RunnerError> {
        let ctx = self.context(crate::new_id(), seen)?;
        let mut slot = self.take_slot();
        let mut explained = Vec::new();
        for (index, step) in plan.steps.iter().enumerate().filter(|(index, _)| only.is_none_or(|only| only == *index)) {
            let job = StepJob {
                index,
                id: pintail_core::id::StepId(String::new()),
                step: step.clone(),
                pins: plan.pins.clone(),
            };
            explained.push((index, duckdb::explain(&ctx, &mut slot, &job)?));
        }
        self.keep_slot(slot);
        Ok(explained)
    }
}
