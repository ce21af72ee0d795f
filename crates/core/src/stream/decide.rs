//! The decision of a pass: idle, a span to consume, a gap, or a cursor that cannot be.

use crate::id::{SnapshotId, TableId};

use super::{Gap, GapPolicy, Passage, Touch};

/// A snapshot that is there, as a consumer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenSnapshot {
    /// Its id; ids are given one after the other, so one that is missing between two is expired.
    pub id: SnapshotId,
    /// When it was made, in microseconds since 1970 UTC.
    pub at_micros: i64,
    /// What it did to the source.
    pub touch: Touch,
    /// How many rows it brought, about.
    pub rows: u64,
    /// How many bytes they have in their files, about.
    pub bytes: u64,
}

/// The most that is consumed before the cursor moves; one snapshot always is, however large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanLimits {
    /// Snapshots that changed the source.
    pub snapshots: usize,
    /// Rows, about.
    pub rows: u64,
    /// Bytes in files, about.
    pub bytes: u64,
}

impl Default for SpanLimits {
    fn default() -> Self {
        Self { snapshots: 1_000, rows: 1_000_000, bytes: 512 << 20 }
    }
}

/// What is known at the beginning of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The last snapshot that is consumed.
    pub cursor: SnapshotId,
    /// The table that the cursor is one in.
    pub source: TableId,
    /// The table that has the source's name now; `None` when there is none.
    pub found: Option<TableId>,
    /// The newest snapshot.
    pub head: SnapshotId,
    /// Up to here this process has looked before and found nothing to do; at least the cursor.
    pub seen: SnapshotId,
    /// Up to here an earlier pass has vouched that nothing after the cursor changed the source: what is expired of that
    /// is no gap. It says nothing about a snapshot that is there.
    pub vouched: SnapshotId,
    /// The snapshots in `(seen, head]` that are there, in order.
    pub snapshots: &'a [SeenSnapshot],
    /// The most to take.
    pub limits: SpanLimits,
    /// What to do about a gap.
    pub policy: GapPolicy,
}

/// What a pass does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing came. The source is known to be unchanged up to the head; nothing is committed.
    Idle,
    /// Rows came.
    Consume(Span),
    /// Rows may be lost, and the policy leaves it to a person.
    Stopped(Gap),
    /// Rows may be lost: what the table holds of them is read again.
    Rescan(Passage),
    /// Rows may be lost: the range is recorded and left out.
    Skip(Passage),
    /// The cursor is beyond the head: the lake is an older copy than the one that was consumed.
    Ahead,
    /// The table was made anew under the same name; its feed begins with it.
    Replaced {
        /// The table now.
        found: TableId,
    },
    /// There is no table of that name.
    Absent,
}

/// Snapshots to consume: all in `(after, upto]` that changed the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    cursor: SnapshotId,
    snapshots: Vec<SnapshotId>,
    /// Whether more is known to come after it.
    pub has_more: bool,
    /// When the oldest of its snapshots was made, in microseconds since 1970 UTC.
    pub oldest_micros: i64,
}

impl Span {
    /// Returns the cursor, after which the span begins.
    pub fn after(&self) -> SnapshotId {
        self.cursor
    }

    /// Returns the last snapshot of the span, to which the cursor moves.
    pub fn upto(&self) -> SnapshotId {
        *self.snapshots.last().expect("a span has a snapshot")
    }

    /// Returns the snapshots that changed the source, in order; no other one is read.
    pub fn snapshots(&self) -> &[SnapshotId] {
        &self.snapshots
    }
}

/// Decides what a pass does.
pub fn decide(facts: &Facts<'_>) -> Decision {
    if facts.head < facts.cursor {
        return Decision::Ahead;
    }
    match facts.found {
        None => return Decision::Absent,
        Some(found) if found != facts.source => return Decision::Replaced { found },
        Some(_) => {}
    }
    let gap = first_gap(facts);
    let readable = facts.snapshots.iter().take_while(|snapshot| gap.is_none_or(|gap| snapshot.id <= gap.after));
    let work: Vec<&SeenSnapshot> = readable.filter(|snapshot| snapshot.touch == Touch::Rows).collect();
    if let Some(span) = take(facts, &work) {
        // A gap behind it is the next thing to decide about.
        return Decision::Consume(Span { has_more: span.has_more || gap.is_some(), ..span });
    }
    let Some(gap) = gap else { return Decision::Idle };
    match facts.policy {
        GapPolicy::Stop => Decision::Stopped(gap),
        GapPolicy::Rescan => Decision::Rescan(Passage::rescan(facts.cursor, gap)),
        GapPolicy::Skip => Decision::Skip(Passage::skip(facts.cursor, gap)),
    }
}

/// Decides what a pass does of a consumer that has never consumed anything. Where snapshots are missing, what the table holds
/// is all there is to read: it is read behind the last of the gaps, whatever the policy.
pub fn decide_first(facts: &Facts<'_>) -> Decision {
    match decide(facts) {
        decision @ (Decision::Ahead | Decision::Absent | Decision::Replaced { .. }) => decision,
        decision => match gaps(facts).reduce(|first, last| Gap { upto: last.upto, ..first }) {
            Some(all) => Decision::Rescan(Passage::rescan(facts.cursor, all)),
            None => decision,
        },
    }
}

/// Returns the first run of snapshots that should be there and are not.
fn first_gap(facts: &Facts<'_>) -> Option<Gap> {
    gaps(facts).next()
}

/// Returns the runs of snapshots that should be there and are not, in order.
fn gaps(facts: &Facts<'_>) -> impl Iterator<Item = Gap> {
    let known = facts.seen.max(facts.vouched);
    let there = facts.snapshots.iter().map(|snapshot| snapshot.id).filter(move |id| known < *id);
    debug_assert!(there.clone().next_back().unwrap_or(known) >= facts.head, "the head never expires");
    let before = std::iter::once(known).chain(there.clone());
    before
        .zip(there)
        .filter(|(before, id)| before.0 + 1 < id.0)
        .map(|(before, id)| Gap { after: before, upto: SnapshotId(id.0 - 1) })
}

fn take(facts: &Facts<'_>, work: &[&SeenSnapshot]) -> Option<Span> {
    let oldest_micros = work.first()?.at_micros;
    let (mut rows, mut bytes) = (0_u64, 0_u64);
    let mut taken = Vec::new();
    for snapshot in work {
        rows = rows.saturating_add(snapshot.rows);
        bytes = bytes.saturating_add(snapshot.bytes);
        let is_full = facts.limits.snapshots <= taken.len() || facts.limits.rows < rows || facts.limits.bytes < bytes;
        if !taken.is_empty() && is_full {
            break;
        }
        taken.push(snapshot.id);
    }
    let has_more = taken.len() < work.len();
    Some(Span { cursor: facts.cursor, snapshots: taken, has_more, oldest_micros })
}

#[cfg(test)]
mod tests;
