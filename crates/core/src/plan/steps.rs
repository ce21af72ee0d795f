//! From a request to the ordered list of steps.

use std::collections::BTreeMap;

use super::choose::{Chooser, Slice};
use super::{
    DeferredRead, Facts, Hint, Partitions, PlanError, Reason, Request, ScriptFacts, SliceIndex, SliceStatus, State,
    slice_status,
};
use crate::annotation::PartitionMap;
use crate::asset::Asset;
use crate::id::{LakeName, ScriptHash, ScriptName, SnapshotId};
use crate::partition::{PartitionKey, Window};

/// What a step writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// What the script's query gives.
    #[default]
    Script,
    /// What the target held at an older snapshot.
    Restore {
        /// The snapshot.
        snapshot: SnapshotId,
    },
}

/// One script for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The script's position among the facts.
    pub script: usize,
    /// Its name.
    pub name: ScriptName,
    /// What it writes.
    pub asset: Option<Asset>,
    /// The strategy's word.
    pub strategy: &'static str,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// The partition's window.
    pub window: Option<Window>,
    /// Why it runs.
    pub reason: Reason,
    /// What it writes.
    pub content: Content,
    /// Whether merge and append write anew.
    pub full_refresh: bool,
    /// The text that was planned.
    pub script_hash: ScriptHash,
    /// The steps that must end before it, as indices into the plan, all lower than its own.
    pub depends_on: Vec<usize>,
}

/// What will be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps in the order in which they may start.
    pub steps: Vec<Step>,
    /// How many selected slices are up to date.
    pub up_to_date: usize,
    /// Whether all steps share one transaction.
    pub atomic: bool,
    /// The snapshots at which the run reads.
    pub pins: BTreeMap<LakeName, SnapshotId>,
    /// What else there would be to do.
    pub hints: Vec<Hint>,
    /// The reads that go to another profile.
    pub deferred: Vec<DeferredRead>,
}

/// The steps of one script in the plan, for the look-up of what overlaps.
#[derive(Default)]
struct Planned {
    steps: Vec<usize>,
    /// The steps with a window, by its start; the windows of one script do not overlap.
    by_start: BTreeMap<chrono::DateTime<chrono::Utc>, usize>,
}

impl Planned {
    fn overlapping(&self, window: Option<&Window>, steps: &[Step]) -> Vec<usize> {
        let Some(window) = window.filter(|_| self.by_start.len() == self.steps.len()) else {
            return self.steps.clone();
        };
        // The one that began before the window may reach into it.
        let before = self.by_start.range(..window.start).next_back();
        before
            .into_iter()
            .chain(self.by_start.range(window.start..window.end))
            .map(|(_, step)| *step)
            .filter(|step| steps[*step].window.is_some_and(|other| window.start < other.end))
            .collect()
    }
}

/// Returns the plan for `request`.
pub fn plan(facts: &Facts<'_>, request: &Request) -> Result<Plan, PlanError> {
    let mut plan = Plan { pins: facts.heads.clone(), ..Plan::default() };
    let mut planned: BTreeMap<usize, Planned> = BTreeMap::new();
    let mut named_fits = false;
    let index = SliceIndex::new(facts);
    for position in &request.selected {
        let script = &facts.scripts[*position];
        let written = |upstream: usize| written_windows(&plan, planned.get(&upstream));
        let chosen = Chooser { facts, request, index: &index }.choose(*position, &written)?;
        plan.hints.extend(chosen.hint);
        for slice in chosen.slices {
            named_fits |= slice.is_some();
            add_step(facts, request, *position, slice, &mut plan, &mut planned);
        }
        plan.hints.extend(backfill_hint(facts, request, &index, script));
    }
    plan.hints.extend(super::unwritten::unwritten_upstream(facts, &plan.steps));
    match &request.partitions {
        Partitions::Named(text) if !named_fits => Err(PlanError::PartitionFitsNothing { text: text.clone() }),
        _ => Ok(plan),
    }
}

/// Returns the windows that the planned steps of one script write.
fn written_windows(plan: &Plan, planned: Option<&Planned>) -> Vec<Window> {
    planned.into_iter().flat_map(|planned| &planned.steps).filter_map(|step| plan.steps[*step].window).collect()
}

fn add_step(
    facts: &Facts<'_>,
    request: &Request,
    position: usize,
    slice: Slice,
    plan: &mut Plan,
    planned: &mut BTreeMap<usize, Planned>,
) {
    let script = &facts.scripts[position];
    let (partition, window) = slice.map_or((None, None), |(key, window)| (Some(key), window));
    let mut depends_on: Vec<usize> = script
        .upstream
        .iter()
        .filter_map(|upstream| {
            let needed = needed_window(script, &facts.scripts[*upstream], window);
            Some(planned.get(upstream)?.overlapping(needed.as_ref(), &plan.steps))
        })
        .flatten()
        .collect();
    depends_on.sort_unstable();
    depends_on.dedup();
    let Some(reason) = reason(facts, request, position, partition.as_ref(), &depends_on, plan) else {
        plan.up_to_date += 1;
        return;
    };
    let index = plan.steps.len();
    let own = planned.entry(position).or_default();
    own.steps.push(index);
    if let Some(window) = window {
        own.by_start.insert(window.start, index);
    }
    plan.steps.push(Step {
        script: position,
        name: script.name.clone(),
        asset: script.asset.clone(),
        strategy: script.strategy,
        partition,
        window,
        reason,
        content: Content::Script,
        full_refresh: request.full_refresh,
        script_hash: script.hash.clone(),
        depends_on,
    });
}

fn reason(
    facts: &Facts<'_>,
    request: &Request,
    position: usize,
    partition: Option<&PartitionKey>,
    depends_on: &[usize],
    plan: &Plan,
) -> Option<Reason> {
    let script = &facts.scripts[position];
    if request.full_refresh {
        return Some(Reason::FullRefresh);
    }
    let status = slice_status(facts, script, partition);
    match status {
        SliceStatus::Due(reason) => return Some(reason),
        SliceStatus::Fresh if request.force => return Some(Reason::Forced),
        SliceStatus::Fresh => {}
    }
    if script.is_view {
        return None;
    }
    depends_on
        .iter()
        .map(|step| &plan.steps[*step])
        .find(|step| step.asset.as_ref().is_some_and(|asset| script.reads_asset(asset)))
        .map(|step| Reason::Upstream(step.name.clone()))
}

/// Returns the time of `upstream` that a slice of `script` reads; `None` when that is everything.
fn needed_window(script: &ScriptFacts, upstream: &ScriptFacts, window: Option<Window>) -> Option<Window> {
    let (spec, window) = (script.partition.as_ref()?, window?);
    match upstream.asset.as_ref().and_then(|asset| script.maps.get(asset)) {
        Some(PartitionMap::All | PartitionMap::Latest) => None,
        Some(map) => Some(spec.reach_back(window, *map)),
        None => Some(window),
    }
}

/// Says that earlier periods are missing, when `start=` says that they are expected.
fn backfill_hint(facts: &Facts<'_>, request: &Request, index: &SliceIndex<'_>, script: &ScriptFacts) -> Option<Hint> {
    if request.partitions != Partitions::LastClosed {
        return None;
    }
    let spec = script.partition.as_ref().filter(|spec| spec.start.is_some())?;
    let last = spec.last_closed(facts.now);
    let ranges = index.ranges(facts, script);
    let mut missing = 0;
    let (mut from, mut to) = (None, None);
    for range in ranges.iter().filter(|range| range.state == State::Missing) {
        // The last closed one is in the plan itself.
        let (count, end) = match &range.last {
            Some(key) if *key == last => (range.count - 1, spec.previous(key).ok()),
            other => (range.count, other.clone()),
        };
        if 0 < count {
            missing += count;
            from = from.or_else(|| range.first.clone());
            to = end;
        }
    }
    Some(Hint::Backfill { script: script.name.clone(), missing, from: from?, to: to? })
}
