//! Older versions: which snapshots there are, and what a table was at one of them.

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::retention::Snapshot;
use pintail_core::sql::{Literal, Relation};

use super::{LakeLocation, TableFacts, head, metadata, partition_spec, schema_of};
use crate::error::EngineError;
use crate::session::Session;

/// Returns the snapshots of the lake attached as `alias`, oldest first.
pub fn snapshots(session: &Session, alias: &str) -> Result<Vec<Snapshot>, EngineError> {
    session.rows(
        "list the snapshots",
        &format!(
            "SELECT snapshot_id, epoch_us(snapshot_time::TIMESTAMPTZ) FROM {}.ducklake_snapshot ORDER BY snapshot_id",
            metadata(alias)
        ),
        |row| Ok(Snapshot { id: SnapshotId(row.get(0)?), at_micros: row.get(1)? }),
    )
}

/// Returns the snapshot `id` when it is there.
pub fn snapshot(session: &Session, alias: &str, id: SnapshotId) -> Result<Option<Snapshot>, EngineError> {
    let found = session.rows(
        "look for the snapshot",
        &format!(
            "SELECT epoch_us(snapshot_time::TIMESTAMPTZ) FROM {}.ducklake_snapshot WHERE snapshot_id = {id}",
            metadata(alias)
        ),
        |row| row.get(0),
    )?;
    Ok(found.into_iter().next().map(|at_micros| Snapshot { id, at_micros }))
}

/// Returns whether the snapshot `at`, on which the caller's hold is written already, is there; then it stays.
///
/// Expiry looks at the holds and expires without leaving the lane, so whoever passes the lane after writing a hold either
/// was seen, or sees that the snapshot is gone. The head never goes.
pub fn stays(lake: &LakeLocation, session: &Session, alias: &str, at: SnapshotId) -> Result<bool, EngineError> {
    if head(session, alias)? != at {
        drop(lake.lane().enter()?);
    }
    Ok(snapshot(session, alias, at)?.is_some())
}

/// Returns the last snapshot that was made at or before `at_micros`, of those that are there.
pub fn snapshot_at(session: &Session, alias: &str, at_micros: i64) -> Result<Option<SnapshotId>, EngineError> {
    let sql = format!(
        "SELECT max(snapshot_id) FROM {}.ducklake_snapshot WHERE epoch_us(snapshot_time::TIMESTAMPTZ) <= {at_micros}",
        metadata(alias)
    );
    session.one("find the snapshot of the moment", &sql, |row| Ok(row.get::<_, Option<i64>>(0)?.map(SnapshotId)))
}

/// Returns what `schema.table` was at `at`, or `None` when there was no such table or view. Its partition spec is the
/// newest one: DuckLake keeps the older ones for their files only.
pub fn table_at(
    session: &Session,
    alias: &str,
    schema: &str,
    table: &str,
    at: SnapshotId,
) -> Result<Option<TableFacts>, EngineError> {
    let live =
        |of: &str| format!("{of}.begin_snapshot <= {at} AND ({of}.end_snapshot IS NULL OR {at} < {of}.end_snapshot)");
    let found = session.rows(
        "look the table up at the snapshot",
        &format!(
            "SELECT t.table_id, false FROM {metadata}.ducklake_table t JOIN {metadata}.ducklake_schema s USING (schema_id)
             WHERE {table_live} AND {schema_live} AND lower(s.schema_name) = lower({schema})
               AND lower(t.table_name) = lower({table})
             UNION ALL
             SELECT v.view_id, true FROM {metadata}.ducklake_view v JOIN {metadata}.ducklake_schema s USING (schema_id)
             WHERE {view_live} AND {schema_live} AND lower(s.schema_name) = lower({schema})
               AND lower(v.view_name) = lower({table})",
            metadata = metadata(alias),
            table_live = live("t"),
            view_live = live("v"),
            schema_live = live("s"),
            schema = Literal::new(schema),
            table = Literal::new(table),
        ),
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)),
    )?;
    let Some((id, is_view)) = found.into_iter().next() else { return Ok(None) };
    let columns = session.describe(&format!("SELECT * FROM {}", at_version(alias, schema, table, at)))?;
    let partition = if is_view { Vec::new() } else { partition_spec(session, alias, id)? };
    Ok(Some(TableFacts { id: TableId(id), is_view, schema: schema_of(columns), partition }))
}

/// Returns `alias.schema.table` as of `at`, to stand after FROM.
pub fn at_version(alias: &str, schema: &str, table: &str, at: SnapshotId) -> String {
    format!("{} AT (VERSION => {at})", Relation::in_catalog(alias, schema, table))
}

/// Keeps DuckDB from folding filters by the statistics of a column that was widened since: with them, reading an older
/// version fails or, at worst, ends the whole instance. The setting is the instance's, so [`fold_again`] must follow in
/// an instance that has other work.
pub fn read_old_versions(session: &Session) -> Result<(), EngineError> {
    session.batch("read older versions safely", "SET disabled_optimizers = 'statistics_propagation'")
}

/// Undoes [`read_old_versions`].
pub fn fold_again(session: &Session) -> Result<(), EngineError> {
    session.batch("use statistics again", "RESET disabled_optimizers")
}

/// Returns the tables that were there at the snapshot `at`, by schema and name.
pub fn tables_at(session: &Session, alias: &str, at: SnapshotId) -> Result<Vec<(String, String)>, EngineError> {
    let is_there = |what: &str| {
        format!("{what}.begin_snapshot <= {at} AND ({what}.end_snapshot IS NULL OR {at} < {what}.end_snapshot)")
    };
    let sql = format!(
        "SELECT s.schema_name, t.table_name
         FROM {metadata}.ducklake_table t JOIN {metadata}.ducklake_schema s USING (schema_id)
         WHERE {} AND {} ORDER BY ALL",
        is_there("t"),
        is_there("s"),
        metadata = metadata(alias)
    );
    session.rows("list the tables of a version", &sql, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns how many rows the catalog says that `schema.table` had at the snapshot `at`, reading no file; `None` where it
/// does not say it: a merged file that also holds later rows, or rows that others keep in the catalog itself.
pub fn rows_known_at(
    session: &Session,
    alias: &str,
    (schema, table): (&str, &str),
    at: SnapshotId,
) -> Result<Option<i64>, EngineError> {
    let shown = format!("begin_snapshot <= {at} AND (end_snapshot IS NULL OR {at} < end_snapshot)");
    let sql = format!(
        "WITH wanted AS (
             SELECT t.table_id FROM {metadata}.ducklake_table t JOIN {metadata}.ducklake_schema s USING (schema_id)
             WHERE s.schema_name = {schema} AND t.table_name = {table}
               AND t.begin_snapshot <= {at} AND (t.end_snapshot IS NULL OR {at} < t.end_snapshot)
               AND s.begin_snapshot <= {at} AND (s.end_snapshot IS NULL OR {at} < s.end_snapshot)),
         files AS (
             SELECT data_file_id, record_count, partial_max
             FROM {metadata}.ducklake_data_file WHERE table_id IN (FROM wanted) AND {shown}),
         deletions AS (
             SELECT delete_count, partial_max
             FROM {metadata}.ducklake_delete_file
             WHERE data_file_id IN (SELECT data_file_id FROM files) AND {shown})
         SELECT CASE WHEN NOT EXISTS (FROM files WHERE {at} < partial_max)
                      AND NOT EXISTS (FROM deletions WHERE {at} < partial_max)
                      AND NOT EXISTS (FROM {metadata}.ducklake_inlined_data_tables WHERE table_id IN (FROM wanted))
                THEN (SELECT coalesce(sum(record_count), 0) FROM files)
                   - (SELECT coalesce(sum(delete_count), 0) FROM deletions) END::BIGINT",
        metadata = metadata(alias),
        schema = Literal::new(schema),
        table = Literal::new(table)
    );
    session.one("count the rows that the catalog knows", &sql, |row| row.get(0))
}
