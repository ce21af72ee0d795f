//! When each table of the lakes last changed, and when one was dropped, from their commits.

use std::collections::HashMap;

use crate::asset::Asset;
use crate::id::SnapshotId;

/// The last snapshots that changed and dropped each table in the range that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastChanges {
    changed: HashMap<Asset, SnapshotId>,
    dropped: HashMap<Asset, SnapshotId>,
}

impl LastChanges {
    /// Remembers that `asset` changed at `snapshot`.
    pub fn record(&mut self, asset: Asset, snapshot: SnapshotId) {
        let last = self.changed.entry(asset).or_insert(snapshot);
        *last = (*last).max(snapshot);
    }

    /// Remembers that `asset` was dropped at `snapshot` and nothing took its place in the same commit.
    pub fn record_drop(&mut self, asset: Asset, snapshot: SnapshotId) {
        let last = self.dropped.entry(asset).or_insert(snapshot);
        *last = (*last).max(snapshot);
    }

    /// Returns the snapshot at which `asset` changed after `pin`, if it did.
    pub fn changed_after(&self, asset: &Asset, pin: SnapshotId) -> Option<SnapshotId> {
        self.changed.get(asset).copied().filter(|last| pin < *last)
    }

    /// Returns whether `asset` was dropped after `version` was written, so that nothing of it is left.
    pub fn is_gone(&self, asset: &Asset, version: SnapshotId) -> bool {
        self.dropped.get(asset).is_some_and(|dropped| version < *dropped)
    }
}
