//! Which slices of one script a request means.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{DynamicFacts, Facts, Hint, Partitions, PlanError, Request, ScriptFacts, SliceIndex, State, slice_state};
use crate::annotation::PartitionMap;
use crate::partition::{PartitionError, PartitionKey, TimeSpec, Window, translate_argument};

/// How many slices of one script a selection by state takes into one plan; the rest is told.
pub const MOST_SLICES: usize = 500;

/// A slice; `None` for the whole of a script without partitions.
pub(super) type Slice = Option<(PartitionKey, Option<Window>)>;

/// The slices of one script.
#[derive(Default)]
pub(super) struct Chosen {
    pub slices: Vec<Slice>,
    pub hint: Option<Hint>,
}

/// What a choice is made from.
pub(super) struct Chooser<'a> {
    pub facts: &'a Facts<'a>,
    pub request: &'a Request,
    pub index: &'a SliceIndex<'a>,
}

impl Chooser<'_> {
    /// Returns the slices of the script at `position`; `written` gives the windows that a script's planned steps write.
    pub(super) fn choose(&self, position: usize, written: &dyn Fn(usize) -> Vec<Window>) -> Result<Chosen, PlanError> {
        let script = &self.facts.scripts[position];
        match (&script.partition, &script.dynamic) {
            (Some(spec), _) => self.choose_times(position, script, spec, written),
            (None, Some(DynamicFacts::Payload)) => Ok(self.choose_values(position, script)),
            (None, _) => Ok(Chosen { slices: vec![None], hint: None }),
        }
    }

    fn choose_values(&self, position: usize, script: &ScriptFacts) -> Chosen {
        if let Some(value) = self.request.values.get(&position) {
            return Chosen { slices: vec![Some((value.clone(), None))], hint: None };
        }
        let Partitions::InState { states, .. } = &self.request.partitions else { return Chosen::default() };
        let in_state = |key: &&PartitionKey| states.contains(&slice_state(self.facts, script, Some(key)).state);
        let mut keys: Vec<PartitionKey> = self.index.keys_of(script).filter(in_state).cloned().collect();
        keys.sort_unstable();
        let left = keys.len().saturating_sub(MOST_SLICES);
        keys.truncate(MOST_SLICES);
        Chosen {
            slices: keys.into_iter().map(|key| Some((key, None))).collect(),
            hint: more(script, left as u64, states),
        }
    }

    fn choose_times(
        &self,
        position: usize,
        script: &ScriptFacts,
        spec: &TimeSpec,
        written: &dyn Fn(usize) -> Vec<Window>,
    ) -> Result<Chosen, PlanError> {
        let now = self.facts.now;
        let wrong = |source| PlanError::Partition { script: script.name.clone(), source };
        let mut hint = None;
        let keys: Vec<PartitionKey> = match &self.request.partitions {
            Partitions::LastClosed => vec![spec.last_closed(now)],
            Partitions::Named(text) => {
                begun(spec, named(script, spec, translate_argument(text, spec).map_err(wrong)?)?, now)
            }
            Partitions::Of { script, keys } if *script == position => keys.clone(),
            Partitions::Of { script, keys } => {
                let other = self.facts.scripts[*script].partition.as_ref();
                overlapping_keys(spec, other, keys).map_err(wrong)?
            }
            Partitions::InState { states, named } => {
                let (keys, left) = self.in_states(script, spec, states, named.contains(&position), written);
                hint = more(script, left, states);
                keys
            }
        };
        let slices = keys.into_iter().map(|key| {
            let window = spec.window(&key).map_err(wrong)?;
            match window.start <= now {
                true => Ok(Some((key, Some(window)))),
                false => Err(PlanError::Future { script: script.name.clone(), key }),
            }
        });
        Ok(Chosen { slices: slices.collect::<Result<_, _>>()?, hint })
    }

    /// Returns the oldest partitions that are in one of `states` or read what the plan writes, in order, and how many
    /// are left out.
    fn in_states(
        &self,
        script: &ScriptFacts,
        spec: &TimeSpec,
        states: &BTreeSet<State>,
        is_named: bool,
        written: &dyn Fn(usize) -> Vec<Window>,
    ) -> (Vec<PartitionKey>, u64) {
        let now = self.facts.now;
        let mut windows: Vec<Window> = Vec::new();
        let ranges = self.index.ranges(self.facts, script);
        windows.extend(ranges.iter().filter(|range| states.contains(&range.state)).filter_map(|range| range.window));
        let readers = script.upstream.iter().filter(|upstream| {
            self.facts.scripts[**upstream].asset.as_ref().is_some_and(|asset| script.reads_asset(asset))
        });
        for upstream in readers {
            let map = self.facts.scripts[*upstream].asset.as_ref().and_then(|asset| script.maps.get(asset).copied());
            windows.extend(written(*upstream).into_iter().map(|window| match map {
                Some(PartitionMap::All) => spec.expected_window(now),
                Some(PartitionMap::Latest) => last_closed_window(spec, now),
                Some(map) => spec.reach_forward(window, map),
                None => window,
            }));
        }
        if is_named {
            windows.push(last_closed_window(spec, now));
        }
        distinct_keys(spec, windows, now)
    }
}

fn last_closed_window(spec: &TimeSpec, now: DateTime<Utc>) -> Window {
    spec.window(&spec.last_closed(now)).expect("the last closed partition is one of the calendar")
}

/// Returns the first partitions in `windows` that have begun, each once, and how many more there are.
fn distinct_keys(spec: &TimeSpec, mut windows: Vec<Window>, now: DateTime<Utc>) -> (Vec<PartitionKey>, u64) {
    windows.sort_unstable();
    let mut keys: Vec<PartitionKey> = Vec::new();
    let mut left = 0;
    let mut at = DateTime::<Utc>::MIN_UTC;
    for window in windows {
        let end = window.end.min(now + chrono::TimeDelta::nanoseconds(1));
        let mut rest = spec.overlapping(Window { start: window.start.max(at), end });
        while keys.len() < MOST_SLICES {
            let Some(key) = rest.next() else { break };
            at = at.max(spec.window(&key).map_or(end, |window| window.end));
            keys.push(key);
        }
        left += rest.remaining();
        at = at.max(end);
    }
    (keys, left)
}

fn more(script: &ScriptFacts, left: u64, states: &BTreeSet<State>) -> Option<Hint> {
    let states = states.iter().copied().collect();
    (0 < left).then(|| Hint::More { script: script.name.clone(), left, states })
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
fn begun(spec: &TimeSpec, keys: Vec<PartitionKey>, now: DateTime<Utc>) -> Vec<PartitionKey> {
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
