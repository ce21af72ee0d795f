//! When each table of the lakes last changed, from their commits.

use std::collections::HashMap;

use crate::asset::Asset;
use crate::id::SnapshotId;

/// The last snapshot that changed each table in the range that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastChanges(HashMap<Asset, SnapshotId>);

impl LastChanges {
    /// Remembers that `asset` changed at `snapshot`.
    pub fn record(&mut self, asset: Asset, snapshot: SnapshotId) {
        let last = self.0.entry(asset).or_insert(snapshot);
        *last = (*last).max(snapshot);
    }

    /// Returns the snapshot at which `asset` changed after `pin`, if it did.
    pub fn changed_after(&self, asset: &Asset, pin: SnapshotId) -> Option<SnapshotId> {
        self.0.get(asset).copied().filter(|last| pin < *last)
    }
}
