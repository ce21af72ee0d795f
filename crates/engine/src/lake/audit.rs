//! What a lake's catalog says, held against what its files say: files that are gone, tables that count otherwise, rows in the
//! files of other partitions.
//!
//! It only reads, and what it finds may be a commit that came meanwhile: the caller asks again before it says so. Nothing is
//! mended here.

mod partitions;

use std::collections::BTreeSet;

use pintail_core::id::SnapshotId;
use pintail_core::sql::{Literal, Relation};

use super::{LakeLocation, metadata};
use crate::error::EngineError;
use crate::session::Session;

pub use partitions::{Found, Misplaced, misplaced_rows};

/// A file that some snapshot shows and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingFile {
    /// The schema of its table.
    pub schema: String,
    /// Its table.
    pub table: String,
    /// Where it should be.
    pub file: String,
    /// Whether the newest snapshot shows it: then the table cannot be read.
    pub is_live: bool,
}

/// A table whose files hold another number of rows than the catalog says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miscounted {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The rows that the catalog says are there.
    pub catalog: i64,
    /// The rows that a scan finds; `None` when it fails.
    pub scanned: Option<i64>,
    /// Why it fails.
    pub failure: Option<String>,
}

/// Returns the files, of data and of deletions, that any snapshot shows and that are not there, by table.
pub fn missing_files(session: &Session, alias: &str, lake: &LakeLocation) -> Result<Vec<MissingFile>, EngineError> {
    let known = session.rows("list the files that the catalog knows", &known_files(alias, &lake.data), |row| {
        let (schema, table) = (row.get(0)?, row.get(1)?);
        Ok(MissingFile { schema, table, file: row.get(2)?, is_live: row.get(3)? })
    })?;
    let all = format!("{}/**", escape_glob(lake.data.trim_end_matches('/')));
    let listed = format!("SELECT file FROM glob({})", Literal::new(all));
    let there: BTreeSet<String> =
        session.rows("list the files of the lake", &listed, |row| row.get(0))?.into_iter().collect();
    let mut missing = Vec::new();
    for file in known.into_iter().filter(|file| !there.contains(&file.file)) {
        // Files elsewhere, and those whose names a server spells in another way, are asked for one by one.
        let sql = format!("SELECT count(*) FROM glob({})", Literal::new(escape_glob(&file.file)));
        if session.one::<i64>("look for a file", &sql, |row| row.get(0))? == 0 {
            missing.push(file);
        }
    }
    Ok(missing)
}

/// Returns `path` as a glob that means nothing but itself.
pub fn escape_glob(path: &str) -> String {
    path.chars().fold(String::new(), |mut text, c| {
        match c {
            '*' | '?' | '[' => text.extend(['[', c, ']']),
            other => text.push(other),
        }
        text
    })
}

/// The data lie where the lake is attached with them: what the catalog says is where they lay when it was made.
fn known_files(alias: &str, data: &str) -> String {
    let metadata = metadata(alias);
    // A table that was renamed has several rows of one id; its folder stays that of the first.
    let shown_deletions = format!(
        "f.end_snapshot IS NULL AND EXISTS (SELECT 1 FROM {metadata}.ducklake_data_file d
             WHERE d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL)"
    );
    // A file of deletions does not end when its data file does.
    let part = |table: &str, is_shown: &str| {
        format!(
            "SELECT s.schema_name, t.table_name, {is_shown} AND t.end_snapshot IS NULL AS is_live,
                 CASE WHEN f.path_is_relative::BOOLEAN THEN
                     CASE WHEN t.path_is_relative::BOOLEAN THEN
                         CASE WHEN s.path_is_relative::BOOLEAN THEN {data} || s.path ELSE s.path END || t.path
                     ELSE t.path END || f.path
                 ELSE f.path END AS file
             FROM {metadata}.{table} f
             JOIN (SELECT *, row_number() OVER (PARTITION BY table_id ORDER BY begin_snapshot DESC) AS place
                   FROM {metadata}.ducklake_table) t ON t.table_id = f.table_id AND t.place = 1
             JOIN (SELECT *, row_number() OVER (PARTITION BY schema_id ORDER BY begin_snapshot DESC) AS place
                   FROM {metadata}.ducklake_schema) s ON s.schema_id = t.schema_id AND s.place = 1",
            data = Literal::new(data)
        )
    };
    format!(
        "SELECT schema_name, table_name, file, bool_or(is_live) FROM ({} UNION ALL {}) GROUP BY ALL ORDER BY ALL",
        part("ducklake_data_file", "f.end_snapshot IS NULL"),
        part("ducklake_delete_file", &shown_deletions)
    )
}

/// Scans every table of the head and returns those that count otherwise than the catalog, or cannot be read.
pub fn miscounted(session: &Session, alias: &str) -> Result<Vec<Miscounted>, EngineError> {
    let metadata = metadata(alias);
    let sql = format!(
        "SELECT s.schema_name, t.table_name,
             (SELECT coalesce(sum(f.record_count), 0) FROM {metadata}.ducklake_data_file f
              WHERE f.table_id = t.table_id AND f.end_snapshot IS NULL)::BIGINT
           - (SELECT coalesce(sum(d.delete_count), 0) FROM {metadata}.ducklake_delete_file d
              JOIN {metadata}.ducklake_data_file f USING (data_file_id)
              WHERE d.table_id = t.table_id AND d.end_snapshot IS NULL AND f.end_snapshot IS NULL)::BIGINT
         FROM {metadata}.ducklake_table t JOIN {metadata}.ducklake_schema s USING (schema_id)
         WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL ORDER BY ALL"
    );
    let tables: Vec<(String, String, i64)> = session
        .rows("count the rows that the catalog knows", &sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut wrong = Vec::new();
    for (schema, table, catalog) in tables {
        let relation = Relation::in_catalog(alias, &schema, &table);
        // A count alone is answered from the catalog; a sum reads each file.
        let scan = format!("SELECT coalesce(sum(1), 0)::BIGINT FROM {relation}");
        let scanned = session.one::<i64>("count the rows of a table", &scan, |row| row.get(0));
        let (scanned, failure) = match scanned {
            Ok(scanned) => (Some(scanned), None),
            Err(error) => (None, Some(error.to_string())),
        };
        if scanned != Some(catalog) {
            wrong.push(Miscounted { schema, table, catalog, scanned, failure });
        }
    }
    Ok(wrong)
}

/// Who wrote the newest file of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastWriter {
    /// The table.
    pub table: String,
    /// The commit.
    pub snapshot: SnapshotId,
    /// What it says of itself; the outer `None` when it has expired, the inner when it says nothing.
    pub extra_info: Option<Option<String>>,
}

/// Returns who wrote the newest file of each table of `schema` that has one.
pub fn last_writers(session: &Session, alias: &str, schema: &str) -> Result<Vec<LastWriter>, EngineError> {
    let sql = format!(
        "SELECT newest.table_name, newest.snapshot, c.snapshot_id IS NOT NULL, c.commit_extra_info
         FROM (SELECT t.table_name, max(f.begin_snapshot) AS snapshot
               FROM {metadata}.ducklake_data_file f
               JOIN {metadata}.ducklake_table t ON t.table_id = f.table_id AND t.end_snapshot IS NULL
               JOIN {metadata}.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
               WHERE f.end_snapshot IS NULL AND s.schema_name = {schema} GROUP BY t.table_name) AS newest
         LEFT JOIN {metadata}.ducklake_snapshot_changes c ON c.snapshot_id = newest.snapshot
         ORDER BY ALL",
        metadata = metadata(alias),
        schema = Literal::new(schema)
    );
    session.rows("read who wrote the tables", &sql, |row| {
        let (is_there, extra_info): (bool, Option<String>) = (row.get(2)?, row.get(3)?);
        Ok(LastWriter {
            table: row.get(0)?,
            snapshot: SnapshotId(row.get(1)?),
            extra_info: is_there.then_some(extra_info),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::escape_glob;

    #[test]
    fn a_path_with_signs_of_a_glob_means_itself() {
        assert_eq!(escape_glob("/d/a=[1]*?/x"), "/d/a=[[]1][*][?]/x");
    }
}
