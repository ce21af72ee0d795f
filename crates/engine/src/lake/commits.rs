//! The lake's commits as its catalog keeps them: which snapshot changed what, and the stamps of ours.

use pintail_core::id::{AttemptId, SnapshotId};
use pintail_core::sql::Literal;
use pintail_core::sql::changes::ChangeSet;

use super::metadata;
use crate::error::EngineError;
use crate::session::Session;

/// One commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The snapshot that it made.
    pub snapshot: SnapshotId,
    /// When, in microseconds since 1970 UTC.
    pub at_micros: i64,
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

/// Returns the extra info of every commit that names `asset` in its stamp, oldest first.
pub fn stamps_naming(session: &Session, alias: &str, asset: &str) -> Result<Vec<String>, EngineError> {
    session.rows(
        "look for the table's stamps",
        &format!(
            "SELECT commit_extra_info FROM {}.ducklake_snapshot_changes
             WHERE contains(commit_extra_info, {})
             ORDER BY snapshot_id",
            metadata(alias),
            Literal::new(asset)
        ),
        |row| row.get(0),
    )
}
