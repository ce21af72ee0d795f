//! Files that a stored commit names and that are gone; and fences whose file is among them.
//!
//! When the answer to a COMMIT is lost, DuckLake takes it for failed and removes what it had written, although the catalog
//! may have stored the commit. Nobody else would notice before the table is read.

use pintail_core::id::SnapshotId;
use pintail_core::sql::{Literal, Relation};

use super::{OWN_SCHEMA, metadata};
use crate::error::EngineError;
use crate::session::Session;

/// Returns a file that the commit `snapshot` added to a table of the lake attached as `alias` and that is not there. A fence
/// that has lost its file is made anew, because every later write of its assets would fail on it.
pub fn lost_file(session: &Session, alias: &str, snapshot: SnapshotId) -> Result<Option<String>, EngineError> {
    let mut lost = None;
    for (schema, table) in written_tables(session, alias, snapshot)? {
        let Some(file) = lost_file_of(session, alias, (&schema, &table), snapshot)? else { continue };
        if schema == OWN_SCHEMA && table.starts_with("fence_") {
            let fence = Relation::in_catalog(alias, &schema, &table);
            let sql = format!("CREATE OR REPLACE TABLE {fence} AS SELECT 0::BIGINT AS touched");
            session.batch("make a fence anew whose file was lost", &sql)?;
        } else {
            lost = lost.or(Some(file));
        }
    }
    Ok(lost)
}

fn lost_file_of(
    session: &Session,
    alias: &str,
    (schema, table): (&str, &str),
    snapshot: SnapshotId,
) -> Result<Option<String>, EngineError> {
    for file in files_of(session, alias, schema, table, snapshot)? {
        let sql = format!("SELECT count(*) FROM glob({})", Literal::new(file.as_str()));
        if session.one::<i64>("look for a file of the commit", &sql, |row| row.get(0))? == 0 {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn written_tables(session: &Session, alias: &str, snapshot: SnapshotId) -> Result<Vec<(String, String)>, EngineError> {
    let metadata = metadata(alias);
    let sql = format!(
        "SELECT DISTINCT s.schema_name, t.table_name
         FROM (SELECT table_id FROM {metadata}.ducklake_data_file WHERE begin_snapshot = {snapshot}
               UNION SELECT table_id FROM {metadata}.ducklake_delete_file WHERE begin_snapshot = {snapshot}) AS written
         JOIN {metadata}.ducklake_table t ON t.table_id = written.table_id AND t.begin_snapshot <= {snapshot}
              AND (t.end_snapshot IS NULL OR {snapshot} < t.end_snapshot)
         JOIN {metadata}.ducklake_schema s ON s.schema_id = t.schema_id AND s.begin_snapshot <= {snapshot}
              AND (s.end_snapshot IS NULL OR {snapshot} < s.end_snapshot)"
    );
    session.rows("read what the commit wrote", &sql, |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns the files of a table, of data and of deletions, that were new in `snapshot`.
fn files_of(
    session: &Session,
    alias: &str,
    schema: &str,
    table: &str,
    snapshot: SnapshotId,
) -> Result<Vec<String>, EngineError> {
    let list = |at: i64| {
        format!(
            "SELECT unnest([data_file, delete_file]) AS file
             FROM ducklake_list_files({}, {}, schema => {}, snapshot_version => {at})",
            Literal::new(alias),
            Literal::new(table),
            Literal::new(schema)
        )
    };
    let sql = format!("SELECT file FROM ({}) WHERE file IS NOT NULL", list(snapshot.0));
    let names = format!(
        "SELECT path FROM {metadata}.ducklake_data_file WHERE begin_snapshot = {snapshot}
         UNION ALL SELECT path FROM {metadata}.ducklake_delete_file WHERE begin_snapshot = {snapshot}",
        metadata = metadata(alias)
    );
    let new: Vec<String> = session.rows("read the files of the commit", &names, |row| row.get(0))?;
    let mut files: Vec<String> = session.rows("list the files of a table", &sql, |row| row.get(0))?;
    files.retain(|file| new.iter().any(|name| file.ends_with(name.as_str())));
    Ok(files)
}
