//! The states of all slices: what `status` shows, from the same place as the plan.

use pintail_core::asset::Asset;
use pintail_core::id::ScriptName;
use pintail_core::plan::{SliceIndex, SliceRange};

use super::selecting::Wanted;
use super::{Observation, Pintail, RunnerError};

/// The slices of one script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStatus {
    /// The script.
    pub script: ScriptName,
    /// What it writes.
    pub asset: Option<Asset>,
    /// Whether it has partitions.
    pub is_partitioned: bool,
    /// Its slices in order, neighbours of one state as one range.
    pub ranges: Vec<SliceRange>,
    /// Why it does not run, if so.
    pub left_out: Option<String>,
}

impl Pintail {
    /// Returns the states of the slices of the selected scripts, in topological order.
    pub fn status(
        &self,
        selected: Option<&str>,
        excluded: Option<&str>,
    ) -> Result<(Vec<ScriptStatus>, Observation), RunnerError> {
        let wanted = Wanted::parse(selected, excluded).map_err(RunnerError::Select)?;
        let seen = self.observe(&self.project.scripts)?;
        let runnable = self.runnable(&seen);
        let universe = self.project.universe_with(&self.facts_of_scripts(&seen, &runnable));
        let nodes = wanted.evaluate(&universe).map_err(RunnerError::Select)?;
        let facts = self.facts(&seen, &runnable);
        let index = SliceIndex::new(&facts);
        let mut statuses = Vec::new();
        for node in nodes {
            let Some(script) = self.project.script_at(node).filter(|script| script.header.macros.is_none()) else {
                continue;
            };
            let ranges = match runnable.place.get(&node) {
                Some(place) => index.ranges(&facts, &runnable.facts[*place]),
                None => Vec::new(),
            };
            statuses.push(ScriptStatus {
                script: script.name().clone(),
                asset: script.target.clone(),
                is_partitioned: script.header.partitioned.is_some(),
                ranges,
                left_out: script.cannot_run.clone(),
            });
        }
        drop(universe);
        drop(index);
        Ok((statuses, seen))
    }
}
