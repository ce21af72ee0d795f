//! The lake's commits as its catalog keeps them: which snapshot changed what, and the stamps of ours.

use pintail_core::id::{AttemptId, SnapshotId, TableId};
use pintail_core::partition::PartitionKey;
use pintail_core::sql::changes::ChangeSet;
use pintail_core::sql::{Ident, Literal};

use super::metadata;
use crate::error::EngineError;
use crate::session::Session;

/// One commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The snapshot that it made.
    pub snapshot: SnapshotId,
    /// When, in microseconds since 1970 UTC; `None` where it was not asked.
    pub at_micros: Option<i64>,
    /// What it changed.
    pub changes: ChangeSet,
    /// Who says to have made it.
    pub author: Option<String>,
    /// Its message.
    pub message: Option<String>,
    /// The extra info: the stamp, when it is ours.
    pub extra_info: Option<String>,
}

/// Returns the commits of the lake attached as `alias` with a snapshot in (`after`, `upto`], in order.
pub fn commits_between(
    session: &Session,
    alias: &str,
    after: SnapshotId,
    upto: Option<SnapshotId>,
) -> Result<Vec<Commit>, EngineError> {
    let upper = upto.map_or_else(String::new, |upto| format!("AND c.snapshot_id <= {upto}"));
    session.rows(
        "read the commits since",
        &format!(
            "SELECT c.snapshot_id, epoch_us(s.snapshot_time::TIMESTAMPTZ), c.changes_made, c.author, c.commit_message,
                    c.commit_extra_info
             FROM {metadata}.ducklake_snapshot_changes c
             JOIN {metadata}.ducklake_snapshot s USING (snapshot_id)
             WHERE {after} < c.snapshot_id {upper}
             ORDER BY c.snapshot_id",
            metadata = metadata(alias)
        ),
        |row| {
            Ok(Commit {
                snapshot: SnapshotId(row.get(0)?),
                at_micros: row.get(1)?,
                changes: ChangeSet::parse(&row.get::<_, Option<String>>(2)?.unwrap_or_default()),
                author: row.get(3)?,
                message: row.get(4)?,
                extra_info: row.get(5)?,
            })
        },
    )
}

/// Returns the snapshot that `attempt` committed after `after`, or `None` when it committed nothing.
pub fn find_attempt(
    session: &Session,
    alias: &str,
    after: SnapshotId,
    attempt: &AttemptId,
) -> Result<Option<SnapshotId>, EngineError> {
    let found = session.rows(
        "look the commit up",
        &format!(
            "SELECT snapshot_id FROM {}.ducklake_snapshot_changes
             WHERE {after} < snapshot_id AND contains(commit_extra_info, {})",
            metadata(alias),
            Literal::new(attempt.as_str())
        ),
        |row| row.get(0).map(SnapshotId),
    )?;
    Ok(found.into_iter().next())
}

/// What a commit must be about to matter to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// The canonical asset.
    pub asset: String,
    /// The table's schema and name, as DuckLake writes them when a table is created.
    pub name: (String, String),
    /// Its table; `None` when it did not exist.
    pub table: Option<TableId>,
    /// Up to and including this snapshot only stamps of one slice matter.
    pub slice: Option<SliceConcern>,
}

/// The slice whose stamps matter where other changes no longer do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceConcern {
    /// The partition; `None` when every stamp of the asset matters.
    pub partition: Option<PartitionKey>,
    /// The last snapshot of the range.
    pub upto: SnapshotId,
}

impl Concern {
    /// Returns the condition on `ducklake_snapshot_changes` that leaves out what cannot matter.
    fn condition(&self) -> String {
        let asset = Literal::new(&self.asset);
        let name = Literal::new(format!("{}.{}", Ident::new(&self.name.0), Ident::new(&self.name.1)));
        let by_table = self
            .table
            .map_or_else(String::new, |table| format!(" OR regexp_matches(changes_made, ':{}(,|$)')", table.0));
        let anything = format!(
            "(author IS DISTINCT FROM 'pintail' OR contains(commit_extra_info, {asset})
                OR contains(lower(changes_made), lower({name})){by_table})"
        );
        let Some(slice) = &self.slice else { return anything };
        let partition = slice.partition.as_ref().map_or_else(String::new, |key| {
            let key = serde_json::Value::from(key.as_str());
            format!(
                " AND (contains(commit_extra_info, {}) OR NOT contains(commit_extra_info, '\"partition\":'))",
                Literal::new(format!("\"partition\":{key}"))
            )
        });
        format!(
            "CASE WHEN snapshot_id <= {}
                  THEN coalesce(contains(commit_extra_info, {asset}){partition}, false)
                  ELSE {anything} END",
            slice.upto
        )
    }
}

/// Returns the commits after `after` that may matter to `concern`, in order: all of other writers, and those of Pintail
/// that name the asset or its table. The others are left out by the catalog, so that a long run stays linear.
pub fn commits_concerning(
    session: &Session,
    alias: &str,
    after: SnapshotId,
    concern: &Concern,
) -> Result<Vec<Commit>, EngineError> {
    session.rows(
        "read the commits since",
        &format!(
            "SELECT snapshot_id, changes_made, author, commit_message, commit_extra_info
             FROM {metadata}.ducklake_snapshot_changes
             WHERE {after} < snapshot_id AND {condition}
             ORDER BY snapshot_id",
            metadata = metadata(alias),
            condition = concern.condition()
        ),
        |row| {
            Ok(Commit {
                snapshot: SnapshotId(row.get(0)?),
                at_micros: None,
                changes: ChangeSet::parse(&row.get::<_, Option<String>>(1)?.unwrap_or_default()),
                author: row.get(2)?,
                message: row.get(3)?,
                extra_info: row.get(4)?,
            })
        },
    )
}
