//! From what the user asked for to a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pintail_core::asset::Asset;
use pintail_core::graph::NodeId;
use pintail_core::id::{LakeName, ScriptName};
use pintail_core::plan::{Facts, Hint, Partitions, Plan, Request, ScriptFacts, plan};
use pintail_core::select::{ScriptKind, ScriptLabels, SelectFailure, Universe, parse, select};
use pintail_core::sql::Statement;

use super::{BackfillRange, Observation, Pintail, RunnerError};
use crate::executors::{StepJob, duckdb};
use crate::project::{CompiledProject, CompiledScript};

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// `--select`.
    pub select: Option<String>,
    /// `--exclude`.
    pub exclude: Option<String>,
    /// `--partition`.
    pub partition: Option<String>,
    /// `--force`.
    pub force: bool,
    /// `--full-refresh`.
    pub full_refresh: bool,
    /// `--atomic`: all steps in one transaction; `atomic` of the configuration asks for it too.
    pub atomic: bool,
    /// A backfill of one script.
    pub backfill: Option<BackfillRange>,
}

impl CompiledProject {
    /// Returns the scripts that `select` without `exclude` means, in topological order.
    pub fn select(&self, selected: Option<&str>, excluded: Option<&str>) -> Result<Vec<NodeId>, SelectFailure> {
        let labels = self.scripts.iter().map(|script| ScriptLabels {
            name: script.name().clone(),
            tags: script.header.tags.iter().map(|tag| tag.value.clone()).collect(),
            owner: script.header.owner.as_ref().map(|owner| owner.value.clone()),
            kind: script.header.materialize.as_ref().map(|line| ScriptKind::from(&line.value.strategy)),
            language: script.language(),
        });
        let universe = Universe::new(&self.graph, labels);
        let wanted = selected.map(parse).transpose();
        let unwanted = excluded.map(parse).transpose();
        match (wanted, unwanted) {
            (Ok(wanted), Ok(unwanted)) => select(&universe, wanted.as_ref(), unwanted.as_ref()),
            (wanted, unwanted) => Err(SelectFailure {
                select: wanted.err().unwrap_or_default(),
                exclude: unwanted.err().unwrap_or_default(),
            }),
        }
    }
}

/// The scripts that can run, in topological order, with their places.
pub(super) struct Runnable<'p> {
    pub(super) facts: Vec<ScriptFacts>,
    place: HashMap<NodeId, usize>,
    pub(super) scripts: Vec<&'p CompiledScript>,
}

impl Pintail {
    /// Returns the plan for `request`, and what it was made from.
    pub fn plan(&self, request: &PlanRequest) -> Result<(Plan, Observation), RunnerError> {
        let nodes = self.selected_nodes(request)?;
        let seen = self.observe(&self.project.scripts)?;
        let runnable = self.runnable();
        let selected: BTreeSet<usize> = nodes.iter().filter_map(|node| runnable.place.get(node).copied()).collect();
        let partitions = match (&request.backfill, &request.partition) {
            (Some(range), _) => self.backfill_partitions(range, &runnable.scripts, &seen)?,
            (None, Some(text)) => Partitions::Named(text.clone()),
            (None, None) => Partitions::LastClosed,
        };
        let is_atomic = request.atomic || self.project.project.config.run.atomic;
        let request = Request { selected, partitions, force: request.force, full_refresh: request.full_refresh };
        let facts = Facts {
            scripts: &runnable.facts,
            slices: &seen.slices,
            changes: &seen.changes,
            files: &seen.files,
            heads: &seen.heads,
            now: (self.settings.now)(),
        };
        let mut plan = plan(&facts, &request)?;
        plan.hints.extend(self.left_out(&nodes));
        if is_atomic {
            self.require_atomic(&plan)?;
            plan.atomic = true;
        }
        Ok((plan, seen))
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

    fn selected_nodes(&self, request: &PlanRequest) -> Result<Vec<NodeId>, RunnerError> {
        let nodes =
            self.project.select(request.select.as_deref(), request.exclude.as_deref()).map_err(RunnerError::Select)?;
        let Some(range) = &request.backfill else { return Ok(nodes) };
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

    pub(super) fn runnable(&self) -> Runnable<'_> {
        let graph = &self.project.graph;
        let behind_views = self.behind_views();
        let mut runnable = Runnable { facts: Vec::new(), place: HashMap::new(), scripts: Vec::new() };
        for node in graph.order() {
            let Some(script) = self.project.script_at(*node).filter(|script| script.cannot_run.is_none()) else {
                continue;
            };
            let mut upstream: Vec<usize> =
                graph.incoming(*node).filter_map(|edge| runnable.place.get(&edge.upstream).copied()).collect();
            upstream.extend(self.test_upstream(script, &runnable.place));
            let reads: BTreeSet<Asset> = script
                .reads()
                .into_iter()
                .flat_map(|asset| match behind_views.get(asset) {
                    // A view has no data of its own: what counts is behind it, and the view's own definition.
                    Some(behind) => behind.iter().chain([asset]).cloned().collect::<Vec<_>>(),
                    None => vec![asset.clone()],
                })
                .collect();
            // What is behind a view comes first too, whether or not the view itself has to be made.
            let writers = reads.iter().filter_map(|asset| graph.writer(asset)).filter(|writer| writer != node);
            upstream.extend(writers.filter_map(|writer| runnable.place.get(&writer).copied()));
            upstream.sort_unstable();
            upstream.dedup();
            runnable.place.insert(*node, runnable.facts.len());
            runnable.facts.push(ScriptFacts {
                name: script.name().clone(),
                hash: script.hash().clone(),
                asset: script.target.clone(),
                strategy: script.strategy_word(),
                is_view: script.strategy_word() == "view",
                partition: script.time_spec().cloned(),
                reads: reads.into_iter().collect(),
                has_unknown_reads: !script.text.lineage.unknown_reads.is_empty(),
                upstream,
            });
            runnable.scripts.push(script);
        }
        runnable
    }

    /// A script whose tests read another's target comes after it, when the order allows.
    fn test_upstream<'a>(
        &'a self,
        script: &'a CompiledScript,
        place: &'a HashMap<NodeId, usize>,
    ) -> impl Iterator<Item = usize> + 'a {
        script
            .test_reads
            .iter()
            .filter_map(|asset| self.project.graph.writer(asset))
            .filter_map(|node| place.get(&node).copied())
    }

    /// Returns for each view of the project the assets behind it: views, and what is behind those in turn.
    fn behind_views(&self) -> BTreeMap<Asset, BTreeSet<Asset>> {
        let mut behind: BTreeMap<Asset, BTreeSet<Asset>> = BTreeMap::new();
        for node in self.project.graph.order() {
            let Some(script) = self.project.script_at(*node) else { continue };
            let (Some(target), "view") = (&script.target, script.strategy_word()) else { continue };
            let reads = script
                .reads()
                .into_iter()
                .flat_map(|asset| behind.get(asset).into_iter().flatten().chain([asset]).cloned().collect::<Vec<_>>())
                .collect();
            behind.insert(target.clone(), reads);
        }
        behind
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
