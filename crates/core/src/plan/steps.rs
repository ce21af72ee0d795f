//! From a request to the ordered list of steps.

use std::collections::BTreeMap;
use std::fmt;

use super::{Facts, Partitions, Request, ScriptFacts, SliceStatus, slice_status};
use crate::asset::Asset;
use crate::id::{LakeName, ScriptHash, ScriptName, SnapshotId};
use crate::partition::{PartitionError, PartitionKey, TimeSpec, Window, translate_argument};

/// Why a step is in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The slice was never written.
    Missing,
    /// The newest attempt failed.
    Failed,
    /// The script's text is another one.
    ScriptChanged,
    /// What it reads has changed.
    InputChanged(Asset),
    /// A step before it writes what it reads.
    Upstream(ScriptName),
    /// What it reads is not known, so it cannot be up to date.
    UnknownReads,
    /// Its period was open when it was written, and is closed now.
    PeriodClosed,
    /// The user asked for it.
    Forced,
    /// The user asked for a full refresh.
    FullRefresh,
    /// The user named the partition.
    Requested,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Missing => f.write_str("never written"),
            Reason::Failed => f.write_str("failed last time"),
            Reason::ScriptChanged => f.write_str("the script changed"),
            Reason::InputChanged(asset) => write!(f, "{asset} changed"),
            Reason::Upstream(script) => write!(f, "after {script}"),
            Reason::UnknownReads => f.write_str("what it reads is not known"),
            Reason::PeriodClosed => f.write_str("its period was still open last time"),
            Reason::Forced => f.write_str("forced"),
            Reason::FullRefresh => f.write_str("full refresh"),
            Reason::Requested => f.write_str("requested"),
        }
    }
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
    /// Whether merge and append write anew.
    pub full_refresh: bool,
    /// The text that was planned.
    pub script_hash: ScriptHash,
    /// The steps that must end before it, as indices into the plan, all lower than its own.
    pub depends_on: Vec<usize>,
}

/// Something the user may want to do besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Earlier periods of a script were never written.
    Backfill {
        /// The script.
        script: ScriptName,
        /// How many partitions are missing.
        missing: u64,
        /// The first of them.
        from: PartitionKey,
        /// The last of them.
        to: PartitionKey,
    },
    /// A selected script is not in the plan.
    LeftOut {
        /// The script.
        script: ScriptName,
        /// Why.
        reason: String,
    },
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
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The named partition fits no selected script.
    #[error("the partition `{text}` fits no selected script")]
    PartitionFitsNothing {
        /// What was named.
        text: String,
    },
    /// The named partition is not one.
    #[error("`{script}`: {source}")]
    Partition {
        /// The script.
        script: ScriptName,
        /// Why.
        source: PartitionError,
    },
    /// The partition lies before `start=`.
    #[error("`{script}`: the partition {key} lies before its start {start}; move `start=` to write it")]
    BeforeStart {
        /// The script.
        script: ScriptName,
        /// The partition.
        key: PartitionKey,
        /// The declared start.
        start: chrono::NaiveDate,
    },
    /// The partition lies in the future.
    #[error("`{script}`: the partition {key} has not begun yet")]
    Future {
        /// The script.
        script: ScriptName,
        /// The partition.
        key: PartitionKey,
    },
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
    for position in &request.selected {
        let script = &facts.scripts[*position];
        for partition in partitions(facts, request, *position, script)? {
            named_fits |= partition.is_some();
            add_step(facts, request, *position, partition, &mut plan, &mut planned);
        }
        plan.hints.extend(backfill_hint(facts, request, script));
    }
    match &request.partitions {
        Partitions::Named(text) if !named_fits => Err(PlanError::PartitionFitsNothing { text: text.clone() }),
        _ => Ok(plan),
    }
}

type Slice = Option<(PartitionKey, Window)>;

fn partitions(
    facts: &Facts<'_>,
    request: &Request,
    position: usize,
    script: &ScriptFacts,
) -> Result<Vec<Slice>, PlanError> {
    let Some(spec) = &script.partition else { return Ok(vec![None]) };
    let wrong = |source| PlanError::Partition { script: script.name.clone(), source };
    let keys: Vec<PartitionKey> = match &request.partitions {
        Partitions::LastClosed => vec![spec.last_closed(facts.now)],
        Partitions::Named(text) => {
            begun(spec, named(script, spec, translate_argument(text, spec).map_err(wrong)?)?, facts.now)
        }
        Partitions::Of { script, keys } if *script == position => keys.clone(),
        Partitions::Of { script, keys } => {
            overlapping_keys(spec, facts.scripts[*script].partition.as_ref(), keys).map_err(wrong)?
        }
    };
    keys.into_iter()
        .map(|key| {
            let window = spec.window(&key).map_err(wrong)?;
            match window.start <= facts.now {
                true => Ok(Some((key, window))),
                false => Err(PlanError::Future { script: script.name.clone(), key }),
            }
        })
        .collect()
}

/// Returns the named partitions that the script has; a coarser name may reach back before its start.
fn named(
    script: &ScriptFacts,
    spec: &TimeSpec,
    keys: impl Iterator<Item = PartitionKey>,
) -> Result<Vec<PartitionKey>, PlanError> {
    let (before, after): (Vec<PartitionKey>, Vec<PartitionKey>) = keys.partition(|key| spec.is_before_start(key));
    match (spec.start, before.first()) {
        (Some(start), Some(key)) if after.is_empty() => {
            Err(PlanError::BeforeStart { script: script.name.clone(), key: key.clone(), start })
        }
        _ => Ok(after),
    }
}

/// Of a longer period that is still going on, such as this month for a daily script, the partitions that have begun; all of
/// them when none has, so that the first is told to be too early.
fn begun(spec: &TimeSpec, keys: Vec<PartitionKey>, now: chrono::DateTime<chrono::Utc>) -> Vec<PartitionKey> {
    let has_begun = |key: &&PartitionKey| spec.window(key).is_ok_and(|window| window.start <= now);
    let some: Vec<PartitionKey> = keys.iter().filter(has_begun).cloned().collect();
    if some.is_empty() { keys } else { some }
}

/// Returns the partitions of `spec` that share time with `keys` of `other`, in order, each once.
fn overlapping_keys(
    spec: &TimeSpec,
    other: Option<&TimeSpec>,
    keys: &[PartitionKey],
) -> Result<Vec<PartitionKey>, PartitionError> {
    let mut found: Vec<PartitionKey> = Vec::new();
    for key in keys {
        let Some(other) = other else { break };
        for overlapping in spec.overlapping(other.window(key)?) {
            if found.last() != Some(&overlapping) {
                found.push(overlapping);
            }
        }
    }
    Ok(found)
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
    let (partition, window) = slice.map_or((None, None), |(key, window)| (Some(key), Some(window)));
    let mut depends_on: Vec<usize> = script
        .upstream
        .iter()
        .filter_map(|upstream| planned.get(upstream))
        .flat_map(|upstream| upstream.overlapping(window.as_ref(), &plan.steps))
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
        .find(|step| step.asset.as_ref().is_some_and(|asset| script.reads.contains(asset)))
        .map(|step| Reason::Upstream(step.name.clone()))
}

/// Says that earlier periods are missing, when `start=` says that they are expected.
fn backfill_hint(facts: &Facts<'_>, request: &Request, script: &ScriptFacts) -> Option<Hint> {
    if request.partitions != Partitions::LastClosed {
        return None;
    }
    let (spec, asset) = (script.partition.as_ref()?, script.asset.as_ref()?);
    spec.start?;
    let last = spec.last_closed(facts.now);
    let is_missing = |key: &PartitionKey| {
        let known = facts.slices.get(&(asset.clone(), Some(key.clone())));
        *key != last && known.is_none_or(|slice| slice.version.is_none())
    };
    let mut missing = spec.expected(facts.now).filter(is_missing);
    let from = missing.next()?;
    let (count, to) = missing.fold((1, from.clone()), |(count, _), key| (count + 1, key));
    Some(Hint::Backfill { script: script.name.clone(), missing: count, from, to })
}
