//! When each table of the lakes last changed, which slices of it, and when it was dropped, from their commits.
//!
//! Invariant: a change is never missed. What a commit changed is all of the table unless its stamp, or the change feed,
//! says which slices; then it counts for those alone.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};

use crate::asset::Asset;
use crate::id::SnapshotId;
use crate::partition::{PartitionKey, Window};

/// What a commit changed of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything, or it is not known what.
    Whole,
    /// The rows of these times.
    Windows(Vec<Window>),
    /// The rows of a partition that has no time.
    Key(PartitionKey),
}

/// Who made a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// Pintail, whose stamp names the table.
    Us,
    /// Anybody else.
    Others,
}

/// The part of a table that a slice reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Everything.
    Whole,
    /// The rows of a time.
    Window(Window),
    /// The rows of a partition without time; windows of the table count all the same.
    Key(&'a PartitionKey),
}

/// The last snapshots that changed and dropped each table in the range that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastChanges {
    tables: HashMap<Asset, TableChanges>,
    dropped: HashMap<Asset, SnapshotId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TableChanges {
    ours: Touched,
    others: Touched,
}

/// The last change of everything, and of each slice that is known to have changed alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Touched {
    newest: Option<SnapshotId>,
    whole: Option<SnapshotId>,
    windows: BTreeMap<(DateTime<Utc>, DateTime<Utc>), SnapshotId>,
    /// The longest of the windows: how far before a time one may begin that reaches into it.
    longest: TimeDelta,
    keys: HashMap<PartitionKey, SnapshotId>,
}

impl LastChanges {
    /// Remembers that somebody else changed `asset` at `snapshot`, nobody knows where.
    pub fn record(&mut self, asset: Asset, snapshot: SnapshotId) {
        self.record_change(asset, Author::Others, &Extent::Whole, snapshot);
    }

    /// Remembers that `author` changed `extent` of `asset` at `snapshot`.
    pub fn record_change(&mut self, asset: Asset, author: Author, extent: &Extent, snapshot: SnapshotId) {
        let table = self.tables.entry(asset).or_default();
        match author {
            Author::Us => table.ours.record(extent, snapshot),
            Author::Others => table.others.record(extent, snapshot),
        }
    }

    /// Remembers that `asset` was dropped at `snapshot` and nothing took its place in the same commit.
    pub fn record_drop(&mut self, asset: Asset, snapshot: SnapshotId) {
        let last = self.dropped.entry(asset).or_insert(snapshot);
        *last = (*last).max(snapshot);
    }

    /// Returns the last snapshot at which anything of `asset` changed after `pin`, if it did.
    pub fn changed_after(&self, asset: &Asset, pin: SnapshotId) -> Option<SnapshotId> {
        self.changed_part(asset, Part::Whole, pin)
    }

    /// Returns the last snapshot at which `part` of `asset` changed after `pin`, if it did.
    pub fn changed_part(&self, asset: &Asset, part: Part<'_>, pin: SnapshotId) -> Option<SnapshotId> {
        let table = self.tables.get(asset)?;
        table.ours.last(part).max(table.others.last(part)).filter(|last| pin < *last)
    }

    /// Returns the last snapshot at which somebody else changed `part` of `asset` after `pin`, if so.
    pub fn changed_by_others(&self, asset: &Asset, part: Part<'_>, pin: SnapshotId) -> Option<SnapshotId> {
        self.tables.get(asset)?.others.last(part).filter(|last| pin < *last)
    }

    /// Returns whether `asset` was dropped after `version` was written, so that nothing of it is left.
    pub fn is_gone(&self, asset: &Asset, version: SnapshotId) -> bool {
        self.dropped.get(asset).is_some_and(|dropped| version < *dropped)
    }
}

impl Touched {
    fn record(&mut self, extent: &Extent, snapshot: SnapshotId) {
        let newest = |last: &mut SnapshotId| *last = (*last).max(snapshot);
        self.newest = self.newest.max(Some(snapshot));
        match extent {
            Extent::Whole => self.whole = self.whole.max(Some(snapshot)),
            Extent::Windows(windows) => {
                for window in windows {
                    self.longest = self.longest.max(window.end - window.start);
                    self.windows.entry((window.start, window.end)).and_modify(newest).or_insert(snapshot);
                }
            }
            Extent::Key(key) => {
                self.keys.entry(key.clone()).and_modify(newest).or_insert(snapshot);
            }
        }
    }

    fn last(&self, part: Part<'_>) -> Option<SnapshotId> {
        match part {
            Part::Whole => self.newest,
            Part::Window(window) => self.whole.max(self.last_of_keys()).max(self.last_in(window)),
            Part::Key(key) => {
                let in_time = self.windows.values().max().copied();
                self.whole.max(in_time).max(self.keys.get(key).copied())
            }
        }
    }

    /// A partition without time may lie in any window.
    fn last_of_keys(&self) -> Option<SnapshotId> {
        self.keys.values().max().copied()
    }

    fn last_in(&self, window: Window) -> Option<SnapshotId> {
        let from = window.start.checked_sub_signed(self.longest).unwrap_or(DateTime::<Utc>::MIN_UTC);
        let near = self.windows.range((from, DateTime::<Utc>::MIN_UTC)..(window.end, DateTime::<Utc>::MIN_UTC));
        near.filter(|((_, end), _)| window.start < *end).map(|(_, snapshot)| *snapshot).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asset() -> Asset {
        Asset::lake_table("main", "main", "t")
    }

    fn day(text: &str) -> Window {
        let start: DateTime<Utc> = format!("{text}T00:00:00Z").parse().unwrap();
        Window { start, end: start + TimeDelta::days(1) }
    }

    #[test]
    fn a_changed_slice_leaves_its_neighbours_alone() {
        let mut changes = LastChanges::default();
        let extent = Extent::Windows(vec![day("2026-01-02")]);
        changes.record_change(asset(), Author::Us, &extent, SnapshotId(7));
        let in_day = |text: &str| changes.changed_part(&asset(), Part::Window(day(text)), SnapshotId(3));
        assert_eq!(in_day("2026-01-01"), None);
        assert_eq!(in_day("2026-01-02"), Some(SnapshotId(7)));
        assert_eq!(in_day("2026-01-03"), None);
        assert_eq!(changes.changed_after(&asset(), SnapshotId(3)), Some(SnapshotId(7)));
        assert_eq!(changes.changed_after(&asset(), SnapshotId(7)), None);
    }

    #[test]
    fn a_longer_window_that_began_earlier_reaches_in() {
        let mut changes = LastChanges::default();
        let month = Window { start: day("2026-01-01").start, end: day("2026-02-01").start };
        changes.record_change(asset(), Author::Us, &Extent::Windows(vec![month]), SnapshotId(5));
        let extent = Extent::Windows(vec![day("2026-01-20")]);
        changes.record_change(asset(), Author::Us, &extent, SnapshotId(6));
        let last = |text: &str| changes.changed_part(&asset(), Part::Window(day(text)), SnapshotId(0));
        assert_eq!(
            [last("2026-01-20"), last("2026-01-31"), last("2026-02-01")],
            [Some(SnapshotId(6)), Some(SnapshotId(5)), None]
        );
    }

    #[test]
    fn what_nobody_can_tell_counts_everywhere() {
        let mut changes = LastChanges::default();
        changes.record(asset(), SnapshotId(4));
        assert!(changes.changed_part(&asset(), Part::Window(day("2026-01-01")), SnapshotId(3)).is_some());
        assert!(changes.changed_part(&asset(), Part::Key(&PartitionKey("DE".into())), SnapshotId(3)).is_some());
    }

    #[test]
    fn partitions_without_time_are_told_apart_by_their_value() {
        let mut changes = LastChanges::default();
        let (de, fr) = (PartitionKey("DE".into()), PartitionKey("FR".into()));
        changes.record_change(asset(), Author::Us, &Extent::Key(de.clone()), SnapshotId(4));
        assert!(changes.changed_part(&asset(), Part::Key(&de), SnapshotId(3)).is_some());
        assert!(changes.changed_part(&asset(), Part::Key(&fr), SnapshotId(3)).is_none());
        assert!(changes.changed_part(&asset(), Part::Window(day("2026-01-01")), SnapshotId(3)).is_some());
        assert!(changes.changed_by_others(&asset(), Part::Whole, SnapshotId(0)).is_none());
    }
}
