//! Compaction: small files of one partition become one, and files that are mostly deleted are written again.
//!
//! Merging keeps the change feed and older versions as they are; rewriting does not: its snapshot shows updates of rows
//! that nobody changed, so the caller asks for it only where no consumer reads the table. The caller holds the lane and
//! the lease of the table. What to merge, and how much at once, is decided in `pintail_core::retention`.

use pintail_core::id::AttemptId;
use pintail_core::retention::TableFiles;
use pintail_core::sql::Literal;

use super::{LakeLocation, metadata};
use crate::error::EngineError;
use crate::session::Session;
use crate::transaction::{CommitWords, WriteTransaction};

/// What a compaction did to one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Files that were read and are no longer shown by the head.
    pub files_before: u64,
    /// Files that were written in their place.
    pub files_after: u64,
}

/// Returns the files of every table that has any, by schema and name. A file of less than `small_bytes` is small.
pub fn table_files(session: &Session, alias: &str, small_bytes: u64) -> Result<Vec<TableFiles>, EngineError> {
    let metadata = metadata(alias);
    // Files of one partition are merged when their values are equal; those of another layout have other keys.
    let sql = format!(
        "WITH live AS (
             SELECT f.table_id, f.data_file_id, f.partition_id, coalesce(f.file_size_bytes, 0) AS bytes,
                    coalesce(f.record_count, 0) AS records,
                    coalesce((SELECT sum(d.delete_count) FROM {metadata}.ducklake_delete_file d
                              WHERE d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL), 0) AS deleted
             FROM {metadata}.ducklake_data_file f WHERE f.end_snapshot IS NULL),
         keyed AS (
             SELECT l.*, (SELECT string_agg(v.partition_value, chr(31) ORDER BY v.partition_key_index)
                          FROM {metadata}.ducklake_file_partition_value v WHERE v.data_file_id = l.data_file_id) AS key
             FROM live l),
         grouped AS (
             SELECT table_id, count(*) AS files, sum(bytes) AS bytes, sum(records) AS records, sum(deleted) AS deleted,
                    count(*) FILTER (WHERE bytes < {small_bytes}) AS small,
                    coalesce(sum(bytes) FILTER (WHERE bytes < {small_bytes}), 0) AS small_bytes,
                    count(*) FILTER (WHERE 0 < deleted) AS with_deletes
             FROM keyed GROUP BY table_id, partition_id, key)
         SELECT s.schema_name, t.table_name, sum(g.files)::BIGINT, sum(g.bytes)::BIGINT, sum(g.records)::BIGINT,
                sum(g.deleted)::BIGINT, sum(CASE WHEN 1 < g.small THEN g.small ELSE 0 END)::BIGINT,
                sum(CASE WHEN 1 < g.small THEN g.small_bytes ELSE 0 END)::BIGINT,
                sum(CASE WHEN 1 < g.small THEN 1 ELSE 0 END)::BIGINT, sum(g.with_deletes)::BIGINT
         FROM grouped g
         JOIN {metadata}.ducklake_table t ON t.table_id = g.table_id AND t.end_snapshot IS NULL
         JOIN {metadata}.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
         GROUP BY ALL ORDER BY ALL"
    );
    session.rows("count the files of tables", &sql, |row| {
        let number = |at: usize| row.get::<_, i64>(at).map(|value| u64::try_from(value).unwrap_or(0));
        Ok(TableFiles {
            schema: row.get(0)?,
            table: row.get(1)?,
            files: number(2)?,
            bytes: number(3)?,
            records: number(4)?,
            deleted: number(5)?,
            mergeable: number(6)?,
            mergeable_bytes: number(7)?,
            merge_groups: number(8)?,
            with_deletes: number(9)?,
        })
    })
}

/// A table whose files are compacted.
pub struct CompactTable<'a> {
    /// The session, in which the lake is attached for writing.
    pub session: &'a Session,
    /// The lake.
    pub lake: &'a LakeLocation,
    /// The table's schema and name.
    pub name: (&'a str, &'a str),
    /// Called when all is done but COMMIT.
    pub before_commit: &'a dyn Fn(),
}

impl CompactTable<'_> {
    /// Merges files of less than `small_bytes` into at most `most` files, in one commit; `None` when there was nothing to
    /// merge.
    pub fn merge(&self, small_bytes: u64, most: u64, attempt: &AttemptId) -> Result<Option<Compacted>, EngineError> {
        let (schema, table) = self.name;
        let call = format!(
            "CALL ducklake_merge_adjacent_files({}, {}, schema => {}, max_file_size => {small_bytes}, \
             max_compacted_files => {most})",
            Literal::new(self.lake.write_alias()),
            Literal::new(table),
            Literal::new(schema)
        );
        let message = |done: &Compacted| {
            format!("merge {} files of {schema}.{table} into {}", done.files_before, done.files_after)
        };
        self.compact("merge small files", &call, attempt, message)
    }

    /// Writes files again of which at least the part `threshold` is deleted; `None` when there was none.
    pub fn rewrite(&self, threshold: f64, attempt: &AttemptId) -> Result<Option<Compacted>, EngineError> {
        let (schema, table) = self.name;
        let call = format!(
            "CALL ducklake_rewrite_data_files({}, {}, schema => {}, delete_threshold => {threshold})",
            Literal::new(self.lake.write_alias()),
            Literal::new(table),
            Literal::new(schema)
        );
        let message = |done: &Compacted| {
            format!("write {} files of {schema}.{table} again without their deleted rows", done.files_before)
        };
        self.compact("write files again without their deleted rows", &call, attempt, message)
    }

    fn compact(
        &self,
        purpose: &'static str,
        call: &str,
        attempt: &AttemptId,
        message: impl FnOnce(&Compacted) -> String,
    ) -> Result<Option<Compacted>, EngineError> {
        let transaction = WriteTransaction::begin(self.session, &self.lake.write_alias())?;
        let rows = self.session.rows(purpose, call, |row| Ok((row.get::<_, i64>(2)?, row.get::<_, i64>(3)?)))?;
        let sum = |pick: fn(&(i64, i64)) -> i64| u64::try_from(rows.iter().map(pick).sum::<i64>()).unwrap_or(0);
        let done = Compacted { files_before: sum(|row| row.0), files_after: sum(|row| row.1) };
        if done.files_before == 0 {
            // A transaction without changes makes no snapshot that could be proved.
            transaction.roll_back();
            return Ok(None);
        }
        let extra_info = serde_json::json!({"pintail": 1, "entries": [], "maintenance": attempt.as_str()}).to_string();
        let words = CommitWords { attempt, message: &message(&done), extra_info: &extra_info };
        transaction.commit(&words, self.before_commit)?;
        Ok(Some(done))
    }
}
