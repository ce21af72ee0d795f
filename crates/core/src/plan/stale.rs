//! The state of one slice, whether it must be written, and why. `plan`, `status` and the selection all ask here.

use std::fmt;

use super::{DynamicFacts, Facts, Origin, Part, Reason, ScriptFacts, SliceFacts, SliceVersion};
use crate::annotation::PartitionMap;
use crate::asset::Asset;
use crate::id::SnapshotId;
use crate::partition::{PartitionKey, Window};

/// What can be said of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Expected, and never written.
    Missing,
    /// The newest attempt failed; an older version may be live.
    Failed,
    /// The script or an input is newer than what was written.
    Stale,
    /// Written while its period was open.
    Partial,
    /// It is there, and Pintail did not write it.
    Unknown,
    /// None of these.
    Fresh,
}

impl State {
    /// Every state with its word, in the order in which people look for trouble.
    pub const ALL: [(State, &'static str); 6] = [
        (State::Failed, "failed"),
        (State::Unknown, "unknown"),
        (State::Missing, "missing"),
        (State::Stale, "stale"),
        (State::Partial, "partial"),
        (State::Fresh, "fresh"),
    ];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        let found = State::ALL.iter().find(|(state, _)| *state == self);
        found.map_or("fresh", |(_, word)| word)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The state of one slice with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceState {
    /// The state.
    pub state: State,
    /// Why it is not fresh.
    pub reason: Option<Reason>,
    /// Whether a run writes it.
    pub is_due: bool,
}

impl SliceState {
    const FRESH: SliceState = SliceState { state: State::Fresh, reason: None, is_due: false };

    fn due(state: State, reason: Reason) -> Self {
        Self { state, reason: Some(reason), is_due: true }
    }
}

/// Whether one slice is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceStatus {
    /// Nothing to do.
    Fresh,
    /// To be written, for this reason.
    Due(Reason),
}

/// Returns whether the slice `partition` of `script` is to be written.
pub fn slice_status(facts: &Facts<'_>, script: &ScriptFacts, partition: Option<&PartitionKey>) -> SliceStatus {
    match slice_state(facts, script, partition) {
        SliceState { is_due: true, reason: Some(reason), .. } => SliceStatus::Due(reason),
        _ => SliceStatus::Fresh,
    }
}

/// Returns the state of the slice `partition` of `script`.
pub fn slice_state(facts: &Facts<'_>, script: &ScriptFacts, partition: Option<&PartitionKey>) -> SliceState {
    let known = script.asset.as_ref().and_then(|asset| facts.slices.get(&(asset.clone(), partition.cloned())));
    let window = partition.and_then(|key| script.partition.as_ref()?.window(key).ok());
    state_of(facts, script, known, partition, window)
}

/// Returns the state of a slice of which `known` is remembered.
pub(super) fn state_of(
    facts: &Facts<'_>,
    script: &ScriptFacts,
    known: Option<&SliceFacts>,
    partition: Option<&PartitionKey>,
    window: Option<Window>,
) -> SliceState {
    let origin = script.asset.as_ref().and_then(|asset| facts.origins.get(asset));
    if origin == Some(&Origin::Foreign) {
        return SliceState::due(State::Unknown, Reason::UnknownOrigin);
    }
    let has_failed = known.is_some_and(|slice| slice.has_failed);
    let Some(version) = known.and_then(|slice| slice.version.as_ref()) else {
        return match origin {
            _ if has_failed => SliceState::due(State::Failed, Reason::Failed),
            Some(Origin::Adopted) => SliceState::due(State::Unknown, Reason::TakenOver),
            _ => SliceState::due(State::Missing, Reason::Missing),
        };
    };
    if has_failed {
        return SliceState::due(State::Failed, Reason::Failed);
    }
    if let Some(reason) = stale(facts, script, version, partition, window) {
        return SliceState::due(State::Stale, reason);
    }
    partial(facts, version, window).unwrap_or(SliceState::FRESH)
}

fn stale(
    facts: &Facts<'_>,
    script: &ScriptFacts,
    version: &SliceVersion,
    partition: Option<&PartitionKey>,
    window: Option<Window>,
) -> Option<Reason> {
    if version.script_hash != script.hash {
        return Some(Reason::ScriptChanged);
    }
    if script.is_view {
        return None;
    }
    if script.has_unknown_reads {
        return Some(Reason::UnknownReads);
    }
    if let Some(DynamicFacts::Column { waits_until: Some(until) }) = &script.dynamic
        && *until <= facts.now
    {
        return Some(Reason::TimeHasCome);
    }
    let reader = Reader { facts, script, version, partition, window };
    script.reads.iter().find(|asset| reader.has_changed(asset)).map(|asset| Reason::InputChanged(asset.clone()))
}

/// A slice that looks at what it has read.
struct Reader<'a> {
    facts: &'a Facts<'a>,
    script: &'a ScriptFacts,
    version: &'a SliceVersion,
    partition: Option<&'a PartitionKey>,
    window: Option<Window>,
}

impl Reader<'_> {
    fn has_changed(&self, asset: &Asset) -> bool {
        let (facts, version) = (self.facts, self.version);
        let key = asset.to_string();
        if facts.files.get(&key) != version.files.get(&key) {
            return true;
        }
        if !asset.has_numbered_versions() {
            return false;
        }
        let place = asset.place();
        if self.script.asset.as_ref() == Some(asset) {
            // Its own writes are no news to a script that reads its target; a foreign one is.
            let seen = version.inputs.get(&place).copied().unwrap_or(version.snapshot).max(version.snapshot);
            return self
                .part_of(asset)
                .is_some_and(|part| facts.changes.changed_by_others(asset, part, seen).is_some());
        }
        match version.inputs.get(&place) {
            Some(pin) => self.table_changed(asset, *pin),
            None => true,
        }
    }

    fn table_changed(&self, asset: &Asset, pin: SnapshotId) -> bool {
        self.part_of(asset).is_some_and(|part| self.facts.changes.changed_part(asset, part, pin).is_some())
    }

    /// Returns the part of `asset` that the slice reads; `None` when no change of it reaches this slice any more.
    fn part_of(&self, asset: &Asset) -> Option<Part<'_>> {
        let map = self.script.maps.get(asset);
        let (Some(spec), Some(window)) = (&self.script.partition, self.window) else {
            return Some(match self.partition {
                Some(key) => Part::Key(key),
                None => Part::Whole,
            });
        };
        match map {
            Some(PartitionMap::All) => Some(Part::Whole),
            // Only the newest slice follows the upstream; older ones keep what they were made from.
            Some(PartitionMap::Latest) => {
                let newest = spec.window(&spec.last_closed(self.facts.now)).ok()?;
                (newest.start <= window.start).then_some(Part::Whole)
            }
            Some(map) => Some(Part::Window(spec.reach_back(window, *map))),
            None => Some(Part::Window(window)),
        }
    }
}

/// A period that was open when its slice was written is written once more after it closed.
fn partial(facts: &Facts<'_>, version: &SliceVersion, window: Option<Window>) -> Option<SliceState> {
    let window = window.filter(|window| version.finished < window.end)?;
    Some(match window.end <= facts.now {
        true => SliceState::due(State::Partial, Reason::PeriodClosed),
        false => SliceState { state: State::Partial, reason: Some(Reason::PeriodOpen), is_due: false },
    })
}
