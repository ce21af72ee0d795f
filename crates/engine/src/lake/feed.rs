//! What a consumer asks of a lake: which snapshots came, how many rows they brought, and the relation of their rows.
//!
//! Invariant: head and snapshots come from one statement, so that no snapshot lies between what was listed and the head.

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::sql::changes::{Change, ChangeSet};
use pintail_core::sql::{Literal, Relation};

use super::metadata;
use crate::error::EngineError;
use crate::session::Session;

/// A snapshot with what it changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSnapshot {
    /// Its id.
    pub id: SnapshotId,
    /// When it was made, in microseconds since 1970 UTC.
    pub at_micros: i64,
    /// What it changed.
    pub changes: ChangeSet,
}

/// Returns the snapshots after `after` that are there, in order; the last one is the head.
pub fn snapshots_since(session: &Session, alias: &str, after: SnapshotId) -> Result<Vec<ChangedSnapshot>, EngineError> {
    session.rows(
        "read what has changed since",
        &format!(
            "SELECT s.snapshot_id, epoch_us(s.snapshot_time::TIMESTAMPTZ), c.changes_made
             FROM {metadata}.ducklake_snapshot s
             LEFT JOIN {metadata}.ducklake_snapshot_changes c USING (snapshot_id)
             WHERE {after} < s.snapshot_id
             ORDER BY s.snapshot_id",
            metadata = metadata(alias)
        ),
        |row| {
            Ok(ChangedSnapshot {
                id: SnapshotId(row.get(0)?),
                at_micros: row.get(1)?,
                changes: ChangeSet::parse(&row.get::<_, Option<String>>(2)?.unwrap_or_default()),
            })
        },
    )
}

/// Returns how many rows and bytes each snapshot after `after` added to `table`, about: files that were merged since
/// count for the first of their snapshots.
pub fn added_since(
    session: &Session,
    alias: &str,
    table: TableId,
    after: SnapshotId,
) -> Result<Vec<(SnapshotId, u64, u64)>, EngineError> {
    let positive = |value: i64| u64::try_from(value).unwrap_or(0);
    session.rows(
        "count what has come since",
        &format!(
            "SELECT begin_snapshot, CAST(sum(record_count) AS BIGINT), CAST(sum(file_size_bytes) AS BIGINT)
             FROM {}.ducklake_data_file
             WHERE table_id = {} AND {after} < begin_snapshot
             GROUP BY begin_snapshot",
            metadata(alias),
            table.0
        ),
        |row| Ok((SnapshotId(row.get(0)?), positive(row.get(1)?), positive(row.get(2)?))),
    )
}

/// Returns the relation of the rows that `snapshots` inserted, without those that an update wrote again: with the table's
/// columns and `snapshot_id`. Whether one of them deleted rows of the table too must be known, because only the slower
/// of two ways tells an update from an insert.
pub fn inserted_rows(alias: &str, schema: &str, table: &str, snapshots: &[SnapshotId], has_deletes: bool) -> String {
    let kind = if has_deletes { " AND change_type = 'insert'" } else { "" };
    let function = if has_deletes { "ducklake_table_changes" } else { "ducklake_table_insertions" };
    format!("{} WHERE {}{kind}", feed(function, alias, schema, table, snapshots), among(snapshots))
}

/// Returns the relation of all that `snapshots` did to the table: its columns, `snapshot_id` and `change_type`.
pub fn changed_rows(alias: &str, schema: &str, table: &str, snapshots: &[SnapshotId]) -> String {
    format!("{} WHERE {}", feed("ducklake_table_changes", alias, schema, table, snapshots), among(snapshots))
}

/// Returns the relation of the rows of the table at `at` that came after `after`: with the table's columns and
/// `snapshot_id`.
pub fn rows_after(alias: &str, schema: &str, table: &str, after: SnapshotId, at: SnapshotId) -> String {
    format!("{} AT (VERSION => {at}) WHERE {after} < snapshot_id", Relation::in_catalog(alias, schema, table))
}

/// Returns the first of `snapshots` that updated rows of the table, as its feed tells it now.
pub fn first_update(
    session: &Session,
    alias: &str,
    (schema, table): (&str, &str),
    snapshots: &[SnapshotId],
) -> Result<Option<SnapshotId>, EngineError> {
    let rows = changed_rows(alias, schema, table, snapshots);
    let sql = format!("SELECT min(snapshot_id) FROM {rows} AND change_type = 'update_postimage'");
    let first = session.one("look for updates in the change feed", &sql, |row| row.get::<_, Option<i64>>(0))?;
    Ok(first.map(SnapshotId))
}

/// Returns the snapshots after `after` that both deleted and inserted rows of `table`.
pub fn changing_since(
    session: &Session,
    alias: &str,
    table: TableId,
    after: SnapshotId,
) -> Result<Vec<SnapshotId>, EngineError> {
    let changes = |changed: &ChangedSnapshot, wanted: Change| changed.changes.changes().contains(&wanted);
    let is_changing = |changed: &ChangedSnapshot| {
        changes(changed, Change::Inserted(table)) && changes(changed, Change::Deleted(table))
    };
    let changed = snapshots_since(session, alias, after)?;
    Ok(changed.iter().filter(|changed| is_changing(changed)).map(|changed| changed.id).collect())
}

fn feed(function: &str, alias: &str, schema: &str, table: &str, snapshots: &[SnapshotId]) -> String {
    let first = snapshots.first().copied().unwrap_or(SnapshotId(0));
    let last = snapshots.last().copied().unwrap_or(SnapshotId(0));
    let (alias, schema, table) = (Literal::new(alias), Literal::new(schema), Literal::new(table));
    format!("{function}({alias}, {schema}, {table}, {first}, {last})")
}

fn among(snapshots: &[SnapshotId]) -> String {
    let ids: Vec<String> = snapshots.iter().map(ToString::to_string).collect();
    format!("snapshot_id IN ({})", ids.join(", "))
}
