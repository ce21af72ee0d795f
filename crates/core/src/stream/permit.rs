//! The permission to commit: a value that only a decision gives.

use crate::id::SnapshotId;

use super::{Passage, Span};

/// Which part of what was decided a commit brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// More is to come: the cursor stays.
    Between,
    /// The last: the cursor moves.
    Last,
}

/// The move of a cursor that one commit may make, as the owner of a lease with `token`.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    from: SnapshotId,
    to: SnapshotId,
    token: i64,
}

impl Permit {
    /// Returns where the cursor must be.
    pub fn from(&self) -> SnapshotId {
        self.from
    }

    /// Returns where it goes.
    pub fn to(&self) -> SnapshotId {
        self.to
    }

    /// Returns the owner's fencing token.
    pub fn token(&self) -> i64 {
        self.token
    }
}

impl Span {
    /// Returns the permission for one part of the span.
    pub fn permit(&self, part: Part, token: i64) -> Permit {
        permit(self.after(), self.upto(), part, token)
    }
}

impl Passage {
    /// Returns the permission for one part of the way over a gap.
    pub fn permit(&self, part: Part, token: i64) -> Permit {
        permit(self.after(), self.upto(), part, token)
    }
}

fn permit(after: SnapshotId, upto: SnapshotId, part: Part, token: i64) -> Permit {
    let to = match part {
        Part::Between => after,
        Part::Last => upto,
    };
    Permit { from: after, to, token }
}
