//! Commits that the catalog has stored and whose files are gone, and how they are taken back.
//!
//! When the answer to a COMMIT is lost, DuckLake takes it for failed and removes what it had written, although the catalog
//! may have stored the commit. Nobody else would notice before the table is read, and then the table could not be read at
//! all. So what such a commit says of files is taken back, by whoever sent it, before anything else is done: the lake is
//! as if it had failed, and the work can be done again.

use pintail_core::id::SnapshotId;
use pintail_core::sql::Literal;

use super::metadata;
use crate::error::EngineError;
use crate::session::Session;
use crate::transaction::roll_back;

/// The message of a commit that was taken back.
const TAKEN_BACK: &str = "taken back: the answer to its COMMIT was lost, and its files with it";

/// What became of a stored commit whose answer was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Its files are there: it has landed.
    Whole,
    /// Its files were gone, and it was taken back: nothing has landed.
    Undone,
    /// This file is gone, and others have built on the commit already, so it cannot be taken back.
    Broken(String),
}

/// Looks whether the files of the commit `snapshot` are there, and takes it back when they are not. Only whoever sent the
/// COMMIT may ask, and only after it got no answer: files of a commit that is being written are not there either.
pub fn settle_lost(session: &Session, alias: &str, snapshot: SnapshotId) -> Result<Settled, EngineError> {
    let Some(file) = lost_file(session, alias, snapshot)? else { return Ok(Settled::Whole) };
    if is_built_on(session, alias, snapshot)? {
        return Ok(Settled::Broken(file));
    }
    tracing::warn!(%snapshot, file, "the files of a commit whose answer was lost are gone; the commit is taken back");
    if let Err(error) = session.batch("take a commit without files back", &take_back(alias, snapshot)) {
        // Its own transaction: half of it must not stay open.
        roll_back(session);
        return Err(error);
    }
    Ok(Settled::Undone)
}

/// Returns whether `schema.table` was made by a commit that was taken back, and nobody has written it since: it is there
/// without the rows that it was made with. Tables that a commit makes stay, because sessions that know of them cannot be told.
pub fn was_made_in_vain(session: &Session, alias: &str, schema: &str, table: &str) -> Result<bool, EngineError> {
    let metadata = metadata(alias);
    let sql = format!(
        "SELECT count(*) > 0
         FROM {metadata}.ducklake_table t
         JOIN {metadata}.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
         JOIN {metadata}.ducklake_snapshot_changes c ON c.snapshot_id = t.begin_snapshot
         WHERE t.end_snapshot IS NULL AND lower(s.schema_name) = lower({}) AND lower(t.table_name) = lower({})
           AND c.commit_message = {}
           AND NOT EXISTS (SELECT 1 FROM {metadata}.ducklake_data_file f WHERE f.table_id = t.table_id)",
        Literal::new(schema),
        Literal::new(table),
        Literal::new(TAKEN_BACK)
    );
    session.one("ask whether the table was made in vain", &sql, |row| row.get(0))
}

/// Files that the commit added are forgotten, and those that it ended are shown again. Its stamp goes, because it says of
/// rows that they are there; the snapshot itself stays, as one without effect on rows.
fn take_back(alias: &str, snapshot: SnapshotId) -> String {
    let metadata = metadata(alias);
    let told = Literal::new(TAKEN_BACK);
    format!(
        "BEGIN;
         DELETE FROM {metadata}.ducklake_delete_file WHERE begin_snapshot = {snapshot};
         DELETE FROM {metadata}.ducklake_data_file WHERE begin_snapshot = {snapshot};
         UPDATE {metadata}.ducklake_delete_file SET end_snapshot = NULL WHERE end_snapshot = {snapshot};
         UPDATE {metadata}.ducklake_data_file SET end_snapshot = NULL WHERE end_snapshot = {snapshot};
         UPDATE {metadata}.ducklake_snapshot_changes SET commit_extra_info = NULL, commit_message = {told}
         WHERE snapshot_id = {snapshot};
         COMMIT"
    )
}

/// Returns whether a later commit has ended or deleted from files that the commit added.
fn is_built_on(session: &Session, alias: &str, snapshot: SnapshotId) -> Result<bool, EngineError> {
    let metadata = metadata(alias);
    let sql = format!(
        "SELECT EXISTS (
             SELECT 1 FROM {metadata}.ducklake_data_file WHERE begin_snapshot = {snapshot} AND end_snapshot IS NOT NULL
             UNION ALL
             SELECT 1 FROM {metadata}.ducklake_delete_file WHERE begin_snapshot = {snapshot} AND end_snapshot IS NOT NULL
             UNION ALL
             SELECT 1 FROM {metadata}.ducklake_delete_file d JOIN {metadata}.ducklake_data_file f USING (data_file_id)
             WHERE f.begin_snapshot = {snapshot} AND {snapshot} < d.begin_snapshot)"
    );
    session.one("look whether others have built on the commit", &sql, |row| row.get(0))
}

/// Returns a file that the commit `snapshot` added to a table of the lake attached as `alias` and that is not there.
fn lost_file(session: &Session, alias: &str, snapshot: SnapshotId) -> Result<Option<String>, EngineError> {
    for (schema, table) in written_tables(session, alias, snapshot)? {
        let lost = lost_file_of(session, alias, (&schema, &table), snapshot)?;
        if lost.is_some() {
            return Ok(lost);
        }
    }
    Ok(None)
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
