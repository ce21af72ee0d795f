//! Observing: the cursor, the head, and which snapshots between them changed the source.

use std::collections::BTreeMap;

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::sql::changes::Change;
use pintail_core::stream::{Facts, Kinds, SeenSnapshot, Touch, touch};
use pintail_engine::lake::{self, feed};
use pintail_engine::{EngineError, Session};

use super::source::Spec;
use crate::position::Position;

/// What was seen.
#[derive(Debug)]
pub struct Observation {
    /// The last snapshot that is consumed.
    pub cursor: SnapshotId,
    /// The table of the source's name now.
    pub found: Option<TableId>,
    /// The newest snapshot.
    pub head: SnapshotId,
    /// Up to here nothing was found before.
    pub seen: SnapshotId,
    /// The snapshots after that.
    pub snapshots: Vec<SeenSnapshot>,
    /// Those of them that deleted rows of the source.
    pub deleting: Vec<SnapshotId>,
    /// Whether one of them may have changed the source's columns.
    pub is_altered: bool,
}

/// Looks at the lake. `seen` is what this process has looked through before.
pub fn observe(
    (session, alias): (&Session, &str),
    spec: &Spec,
    kinds: Kinds,
    position: &Position,
    seen: SnapshotId,
) -> Result<Observation, EngineError> {
    let cursor = cursor_of(position)?;
    let seen = seen.max(cursor);
    // The snapshots before the table: one that is made in between is then there with its snapshot or not at all.
    let changed = feed::snapshots_since(session, alias, seen)?;
    let found = lake::live_tables(session, alias)?.into_iter().find(|table| {
        table.schema.eq_ignore_ascii_case(&spec.source.schema) && table.name.eq_ignore_ascii_case(&spec.source.table)
    });
    let found = found.map(|table| table.id);
    let touches =
        |snapshot: &feed::ChangedSnapshot| found.map_or(Touch::Nothing, |id| touch(&snapshot.changes, id, kinds));
    let has_work = changed.iter().any(|snapshot| touches(snapshot) == Touch::Rows);
    let sizes: BTreeMap<SnapshotId, (u64, u64)> = match found {
        Some(table) if has_work => {
            let added = feed::added_since(session, alias, table, seen)?;
            added.into_iter().map(|(snapshot, rows, bytes)| (snapshot, (rows, bytes))).collect()
        }
        _ => BTreeMap::new(),
    };
    let seen_snapshot = |snapshot: &feed::ChangedSnapshot| {
        let (rows, bytes) = sizes.get(&snapshot.id).copied().unwrap_or_default();
        SeenSnapshot { id: snapshot.id, at_micros: snapshot.at_micros, touch: touches(snapshot), rows, bytes }
    };
    let deletes = |snapshot: &&feed::ChangedSnapshot| {
        snapshot.changes.changes().iter().any(|change| match change {
            Change::Deleted(table) => Some(*table) == found,
            Change::Unknown { .. } => true,
            _ => false,
        })
    };
    let alters = |change: &Change| match change {
        Change::Altered(table) => Some(*table) == found,
        change => matches!(change, Change::Unknown { .. }),
    };
    let last = changed.last();
    let head = match last {
        Some(last) => last.id,
        None => lake::head(session, alias)?.min(seen),
    };
    Ok(Observation {
        cursor,
        found,
        head,
        seen,
        is_altered: changed.iter().any(|snapshot| snapshot.changes.changes().iter().any(alters)),
        deleting: changed.iter().filter(deletes).map(|snapshot| snapshot.id).collect(),
        snapshots: changed.iter().map(seen_snapshot).collect(),
    })
}

/// Returns the snapshot of a cursor's row.
pub fn cursor_of(position: &Position) -> Result<SnapshotId, EngineError> {
    position.at.parse().map(SnapshotId).map_err(|_| EngineError::Answer {
        purpose: "read the cursor",
        detail: format!("`{}` is no snapshot; somebody else has written the cursor", position.at),
    })
}

impl Observation {
    /// Returns the facts for the decision.
    pub fn facts<'a>(&'a self, spec: &Spec, source: TableId, vouched: SnapshotId) -> Facts<'a> {
        Facts {
            cursor: self.cursor,
            source,
            found: self.found,
            head: self.head,
            seen: self.seen,
            vouched,
            snapshots: &self.snapshots,
            limits: spec.span,
            policy: spec.gap,
        }
    }
}
