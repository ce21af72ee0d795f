//! Gaps: snapshots that a consumer needs and that are expired.

use std::fmt;

use crate::id::SnapshotId;

/// Snapshots in a row, none of which is there any more: `(after, upto]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last snapshot before them.
    pub after: SnapshotId,
    /// The last of them.
    pub upto: SnapshotId,
}

impl Gap {
    /// Returns the first snapshot after the gap; it is there.
    pub fn next(self) -> SnapshotId {
        SnapshotId(self.upto.0 + 1)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.after.0 + 1;
        if first == self.upto.0 {
            write!(f, "snapshot {first}")
        } else {
            write!(f, "snapshots {first} to {}", self.upto)
        }
    }
}

/// What a consumer does about a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapPolicy {
    /// Nothing: a person decides.
    #[default]
    Stop,
    /// It reads what the table holds of the lost range; rows that were deleted within it are not seen.
    Rescan,
    /// It goes on behind it, and records what it left out.
    Skip,
}

impl GapPolicy {
    /// Every policy, as a person writes it.
    pub const ALL: [(&'static str, GapPolicy); 3] =
        [("stop", GapPolicy::Stop), ("rescan", GapPolicy::Rescan), ("skip", GapPolicy::Skip)];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, policy)| *policy == self).expect("every policy is in the list").0
    }
}

/// The way over a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    pub(super) cursor: SnapshotId,
    pub(super) upto: SnapshotId,
    /// What is lost.
    pub gap: Gap,
}

impl Passage {
    /// Returns the way that leaves the gap out: to its end, so that the next snapshot is still read.
    pub(super) fn skip(cursor: SnapshotId, gap: Gap) -> Self {
        Self { cursor, upto: gap.upto, gap }
    }

    /// Returns the way that reads the table again: at the first version behind the gap, whose own rows are among it.
    pub(super) fn rescan(cursor: SnapshotId, gap: Gap) -> Self {
        Self { cursor, upto: gap.next(), gap }
    }

    /// Returns the cursor; rows that are older are not read again.
    pub fn after(&self) -> SnapshotId {
        self.cursor
    }

    /// Returns to where the cursor moves, and at which version a table is read again.
    pub fn upto(&self) -> SnapshotId {
        self.upto
    }
}
