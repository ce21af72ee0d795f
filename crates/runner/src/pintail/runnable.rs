//! The scripts that can run, as the planner sees them: in topological order, with what each reads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pintail_core::annotation::{PartitionMap, Trigger};
use pintail_core::asset::Asset;
use pintail_core::graph::NodeId;
use pintail_core::partition::{TimeSpec, check_map};
use pintail_core::plan::{DynamicFacts, Facts, ScriptFacts};
use pintail_core::sql::window_columns::window_columns;

use super::{Observation, Pintail};
use crate::project::CompiledScript;

/// The scripts that can run, with their places.
pub(super) struct Runnable<'p> {
    pub facts: Vec<ScriptFacts>,
    pub place: HashMap<NodeId, usize>,
    pub scripts: Vec<&'p CompiledScript>,
}

impl Pintail {
    /// Returns what the planner is told.
    pub(super) fn facts<'a>(&self, seen: &'a Observation, runnable: &'a Runnable<'_>) -> Facts<'a> {
        Facts {
            scripts: &runnable.facts,
            slices: &seen.slices,
            origins: &seen.origins,
            changes: &seen.changes,
            files: &seen.files,
            heads: &seen.heads,
            now: (self.settings.now)(),
        }
    }

    pub(super) fn runnable(&self, seen: &Observation) -> Runnable<'_> {
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
            let direct = script.reads();
            let mut reads: BTreeSet<Asset> = BTreeSet::new();
            let mut maps = self.maps(script);
            for asset in direct {
                // A view has no data of its own: what counts is behind it, and the view's own definition.
                for behind in behind_views.get(asset).into_iter().flatten() {
                    if let Some(map) = maps.get(asset).copied() {
                        maps.entry(behind.clone()).or_insert(map);
                    }
                    reads.insert(behind.clone());
                }
                reads.insert(asset.clone());
            }
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
                dynamic: dynamic(script, seen),
                reads: reads.into_iter().collect(),
                maps,
                has_unknown_reads: !script.text.lineage.unknown_reads.is_empty(),
                upstream,
            });
            runnable.scripts.push(script);
        }
        runnable
    }

    /// Returns how the slices of what `script` reads belong to its own: as declared, and `all` where both are of time but
    /// of different columns, since then the time of one says nothing about the other.
    fn maps(&self, script: &CompiledScript) -> HashMap<Asset, PartitionMap> {
        let mut maps = HashMap::new();
        let Some(spec) = script.time_spec() else { return maps };
        let asked = window_columns(&script.text.blanked);
        let own: BTreeSet<String> = match asked.is_empty() {
            true => spec.by.iter().map(|column| column.to_lowercase()).collect(),
            false => asked,
        };
        for asset in script.reads() {
            let upstream = self.spec_of(asset);
            let by = upstream.and_then(|spec| spec.by.as_ref()).map(|column| column.to_lowercase());
            if by.is_some_and(|by| !own.is_empty() && !own.contains(&by)) {
                maps.insert(asset.clone(), PartitionMap::All);
            }
        }
        for trigger in &script.header.triggers {
            if let Trigger::Asset { asset, map: Some(map), .. } = &trigger.value
                && check_map(self.spec_of(asset), spec, *map).is_ok()
            {
                maps.insert(asset.clone(), *map);
            }
        }
        maps
    }

    /// Returns the time partitions of an asset of the project.
    fn spec_of(&self, asset: &Asset) -> Option<&TimeSpec> {
        self.project.script_at(self.project.graph.writer(asset)?)?.time_spec()
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
            if let (Some(target), Some(view)) = (&script.target, script.current_view()) {
                behind.insert(view, BTreeSet::from([target.clone()]));
            }
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
}

fn dynamic(script: &CompiledScript, seen: &Observation) -> Option<DynamicFacts> {
    if script.payload_path().is_some() {
        return Some(DynamicFacts::Payload);
    }
    script.increment_column()?;
    let waits_until = script.target.as_ref().and_then(|asset| seen.waits.get(asset).copied());
    Some(DynamicFacts::Column { waits_until })
}
