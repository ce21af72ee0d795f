//! Whether one slice must be written, and why.

use super::{Facts, Reason, ScriptFacts, SliceFacts, SliceVersion};
use crate::partition::PartitionKey;

/// The state of one slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceStatus {
    /// Nothing to do.
    Fresh,
    /// To be written, for this reason.
    Due(Reason),
}

/// Returns the state of the slice `partition` of `script`.
pub fn slice_status(facts: &Facts<'_>, script: &ScriptFacts, partition: Option<&PartitionKey>) -> SliceStatus {
    let known = script.asset.as_ref().and_then(|asset| facts.slices.get(&(asset.clone(), partition.cloned())));
    let empty = SliceFacts::default();
    let slice = known.unwrap_or(&empty);
    let Some(version) = &slice.version else {
        return SliceStatus::Due(if slice.has_failed { Reason::Failed } else { Reason::Missing });
    };
    let due = || -> Option<Reason> {
        if version.script_hash != script.hash {
            return Some(Reason::ScriptChanged);
        }
        if script.is_view {
            return None;
        }
        if slice.has_failed {
            return Some(Reason::Failed);
        }
        if script.has_unknown_reads {
            return Some(Reason::UnknownReads);
        }
        changed_input(facts, script, version).or_else(|| partial(facts, script, version, partition))
    };
    due().map_or(SliceStatus::Fresh, SliceStatus::Due)
}

fn changed_input(facts: &Facts<'_>, script: &ScriptFacts, version: &SliceVersion) -> Option<Reason> {
    script.reads.iter().find_map(|asset| {
        let place = asset.place();
        let has_new_version = match (asset.has_numbered_versions(), script.asset.as_ref() == Some(asset)) {
            (false, _) => false,
            (true, true) => {
                // Its own writes are no news to a script that reads its target; a foreign one is.
                let seen = version.inputs.get(&place).copied().unwrap_or(version.snapshot).max(version.snapshot);
                facts.changes.changed_after(asset, seen).is_some()
            }
            (true, false) => match version.inputs.get(&place) {
                Some(pin) => facts.changes.changed_after(asset, *pin).is_some(),
                None => true,
            },
        };
        let key = asset.to_string();
        let has_changed = has_new_version || facts.files.get(&key) != version.files.get(&key);
        has_changed.then(|| Reason::InputChanged(asset.clone()))
    })
}

/// A period that was open when its slice was written is written once more after it closed.
fn partial(
    facts: &Facts<'_>,
    script: &ScriptFacts,
    version: &SliceVersion,
    partition: Option<&PartitionKey>,
) -> Option<Reason> {
    let window = script.partition.as_ref()?.window(partition?).ok()?;
    let was_open = version.finished < window.end;
    (was_open && window.end <= facts.now).then_some(Reason::PeriodClosed)
}
