//! The states of all slices of a script, as ranges.
//!
//! Invariant: the cost is linear in what is remembered. A range of partitions that were never written is one range, found
//! between two that were, and nothing of it is expanded.

use std::collections::HashMap;

use super::stale::state_of;
use super::{DynamicFacts, Facts, Reason, ScriptFacts, SliceFacts, SliceState, State};
use crate::asset::Asset;
use crate::partition::{PartitionKey, TimeSpec, Window};

/// Neighbouring slices of one state, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceRange {
    /// The state.
    pub state: State,
    /// Why they are not fresh.
    pub reason: Option<Reason>,
    /// Whether a run writes them.
    pub is_due: bool,
    /// How many slices.
    pub count: u64,
    /// The first; `None` when the script has no partitions, or it is not known which.
    pub first: Option<PartitionKey>,
    /// The last.
    pub last: Option<PartitionKey>,
    /// The time from the first to the last.
    pub window: Option<Window>,
}

/// What is remembered, by asset.
#[derive(Debug)]
pub struct SliceIndex<'a> {
    by_asset: HashMap<&'a Asset, Vec<Remembered<'a>>>,
}

#[derive(Clone, Copy, Debug)]
struct Remembered<'a> {
    partition: Option<&'a PartitionKey>,
    slice: &'a SliceFacts,
}

impl<'a> SliceIndex<'a> {
    /// Returns the index of what `facts` remember.
    pub fn new(facts: &Facts<'a>) -> Self {
        let mut by_asset: HashMap<&Asset, Vec<Remembered<'_>>> = HashMap::new();
        for ((asset, partition), slice) in facts.slices {
            by_asset.entry(asset).or_default().push(Remembered { partition: partition.as_ref(), slice });
        }
        Self { by_asset }
    }

    /// Returns the partitions of `script` that are remembered, in no order.
    pub(super) fn keys_of(&self, script: &ScriptFacts) -> impl Iterator<Item = &'a PartitionKey> + '_ {
        let remembered = script.asset.as_ref().and_then(|asset| self.by_asset.get(asset));
        remembered.into_iter().flatten().filter_map(|found| found.partition)
    }

    /// Returns the slices of `script` with their states, in order, neighbours of one state as one range.
    pub fn ranges(&self, facts: &Facts<'_>, script: &ScriptFacts) -> Vec<SliceRange> {
        let remembered = script.asset.as_ref().and_then(|asset| self.by_asset.get(asset));
        let remembered = remembered.map_or(&[][..], Vec::as_slice);
        let is_foreign = script.asset.as_ref().and_then(|asset| facts.origins.get(asset));
        let is_whole = script.partition.is_none() && script.dynamic != Some(DynamicFacts::Payload);
        if is_whole || is_foreign == Some(&super::Origin::Foreign) {
            let whole = remembered.iter().find(|found| found.partition.is_none()).map(|found| found.slice);
            return vec![SliceRange::of(state_of(facts, script, whole, None, None), None, None, 1)];
        }
        match &script.partition {
            Some(spec) => time_ranges(facts, script, spec, remembered),
            None => value_ranges(facts, script, remembered),
        }
    }
}

impl SliceRange {
    fn of(state: SliceState, keys: Option<(PartitionKey, PartitionKey)>, window: Option<Window>, count: u64) -> Self {
        let (first, last) = keys.map_or((None, None), |(first, last)| (Some(first), Some(last)));
        Self { state: state.state, reason: state.reason, is_due: state.is_due, count, first, last, window }
    }

    fn joins(&self, next: &SliceRange) -> bool {
        let same = self.state == next.state && self.reason == next.reason && self.is_due == next.is_due;
        let adjoin = match (self.window, next.window) {
            (Some(before), Some(after)) => before.end == after.start,
            (before, after) => before.is_none() && after.is_none(),
        };
        same && adjoin
    }
}

/// Collects ranges, neighbours of one state joined.
#[derive(Default)]
struct Joined(Vec<SliceRange>);

impl Joined {
    fn push(&mut self, next: SliceRange) {
        match self.0.last_mut().filter(|last| last.joins(&next)) {
            Some(last) => {
                last.count += next.count;
                last.last = next.last;
                last.window = last.window.zip(next.window).map(|(a, b)| Window { start: a.start, end: b.end });
            }
            None => self.0.push(next),
        }
    }
}

fn time_ranges(
    facts: &Facts<'_>,
    script: &ScriptFacts,
    spec: &TimeSpec,
    remembered: &[Remembered<'_>],
) -> Vec<SliceRange> {
    // An identity of another kind is from before the script's partitions were changed; it is no slice of this one.
    let kept_since = spec.kept_since(facts.now);
    let mut slices: Vec<(Window, &PartitionKey, &SliceFacts)> = remembered
        .iter()
        .filter_map(|found| Some((spec.window(found.partition?).ok()?, found.partition?, found.slice)))
        // What retention takes is nobody's concern any more, whether upkeep has come to it or not.
        .filter(|(window, ..)| kept_since.is_none_or(|kept| kept < window.end))
        .collect();
    slices.sort_by_key(|(window, ..)| *window);
    let expected = spec.expected_window(facts.now);
    let mut joined = Joined::default();
    let mut at = expected.start;
    for (window, key, slice) in slices {
        push_missing(facts, script, spec, Window { start: at, end: window.start.min(expected.end) }, &mut joined);
        let state = state_of(facts, script, Some(slice), Some(key), Some(window));
        joined.push(SliceRange::of(state, Some((key.clone(), key.clone())), Some(window), 1));
        at = at.max(window.end);
    }
    push_missing(facts, script, spec, Window { start: at, end: expected.end }, &mut joined);
    joined.0
}

/// Adds the partitions of `gap`, of which nothing is remembered.
fn push_missing(facts: &Facts<'_>, script: &ScriptFacts, spec: &TimeSpec, gap: Window, joined: &mut Joined) {
    if gap.end <= gap.start {
        return;
    }
    let partitions = spec.overlapping(gap);
    let (count, Some(first)) = (partitions.remaining(), partitions.clone().next()) else { return };
    let last = spec.key_of(gap.end - chrono::TimeDelta::nanoseconds(1));
    let state = state_of(facts, script, None, Some(&first), None);
    joined.push(SliceRange::of(state, Some((first, last)), Some(gap), count));
}

fn value_ranges(facts: &Facts<'_>, script: &ScriptFacts, remembered: &[Remembered<'_>]) -> Vec<SliceRange> {
    let mut slices: Vec<(&PartitionKey, &SliceFacts)> =
        remembered.iter().filter_map(|found| Some((found.partition?, found.slice))).collect();
    slices.sort_by_key(|(key, _)| *key);
    let mut joined = Joined::default();
    for (key, slice) in slices {
        let state = state_of(facts, script, Some(slice), Some(key), None);
        joined.push(SliceRange::of(state, Some((key.clone(), key.clone())), None, 1));
    }
    joined.0
}
