//! What the planner asks of a lake besides its commits: which tables are live since when, and the times of the rows that
//! commits of others changed.
//!
//! Invariant: bounded. The change feed is read only when the catalog says that few enough rows changed, and grouped by the
//! engine, so that memory does not grow with them.

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::sql::{Ident, Literal};

use super::metadata;
use crate::error::EngineError;
use crate::session::Session;

/// A table or view as it is at the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTable {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: TableId,
    /// The snapshot since which a table of that id has that name.
    pub since: SnapshotId,
}

/// Returns every table and view of the lake attached as `alias`.
pub fn live_tables(session: &Session, alias: &str) -> Result<Vec<LiveTable>, EngineError> {
    session.rows(
        "list the live tables",
        &format!(
            "SELECT s.schema_name, x.name, x.id, x.since
             FROM (SELECT schema_id, table_name AS name, table_id AS id, begin_snapshot AS since
                   FROM {metadata}.ducklake_table WHERE end_snapshot IS NULL
                   UNION ALL
                   SELECT schema_id, view_name, view_id, begin_snapshot
                   FROM {metadata}.ducklake_view WHERE end_snapshot IS NULL) x
             JOIN {metadata}.ducklake_schema s ON s.schema_id = x.schema_id AND s.end_snapshot IS NULL",
            metadata = metadata(alias)
        ),
        |row| {
            Ok(LiveTable {
                schema: row.get(0)?,
                name: row.get(1)?,
                id: TableId(row.get(2)?),
                since: SnapshotId(row.get(3)?),
            })
        },
    )
}

/// The rows of a table that some commits changed.
#[derive(Clone, Debug)]
pub struct Feed<'a> {
    /// The lake's alias.
    pub alias: &'a str,
    /// The table.
    pub table: &'a LiveTable,
    /// The commits, in order; each of them changed rows of the table.
    pub commits: &'a [SnapshotId],
}

impl Feed<'_> {
    /// Returns the relation of the changes; the names are those at the last of the commits.
    pub fn relation(&self) -> Option<String> {
        let (first, last) = (self.commits.first()?, self.commits.last()?);
        Some(format!(
            "ducklake_table_changes({}, {}, {}, {first}, {last})",
            Literal::new(self.alias),
            Literal::new(&self.table.schema),
            Literal::new(&self.table.name)
        ))
    }

    /// Returns the condition that leaves out what other commits in between changed.
    pub fn condition(&self) -> String {
        let commits: Vec<String> = self.commits.iter().map(ToString::to_string).collect();
        format!("snapshot_id IN ({})", commits.join(", "))
    }

    /// Returns how many rows the change feed holds at most, as the catalog counts them.
    pub fn rows_at_most(&self, session: &Session) -> Result<u64, EngineError> {
        let (Some(first), Some(last)) = (self.commits.first(), self.commits.last()) else { return Ok(0) };
        let sql = format!(
            "SELECT CAST(coalesce((SELECT sum(record_count) FROM {metadata}.ducklake_data_file
                                   WHERE table_id = {id} AND begin_snapshot BETWEEN {first} AND {last}), 0)
                       + coalesce((SELECT sum(record_count) FROM {metadata}.ducklake_data_file
                                   WHERE table_id = {id} AND end_snapshot BETWEEN {first} AND {last}), 0)
                       + coalesce((SELECT sum(delete_count) FROM {metadata}.ducklake_delete_file
                                   WHERE table_id = {id} AND begin_snapshot BETWEEN {first} AND {last}), 0) AS BIGINT)",
            metadata = metadata(self.alias),
            id = self.table.id.0,
        );
        let rows = session.one("count the changed rows", &sql, |row| row.get::<_, i64>(0))?;
        Ok(u64::try_from(rows).unwrap_or(0))
    }

    /// Returns the hours (of a DATE the days) of `column` in which rows changed, each with the commit, as microseconds
    /// since 1970; `None` where the column is NULL. At most `limit` of them.
    pub fn changed_times(
        &self,
        session: &Session,
        column: &str,
        limit: usize,
    ) -> Result<Vec<(SnapshotId, Option<i64>)>, EngineError> {
        let Some(relation) = self.relation() else { return Ok(Vec::new()) };
        session.rows(
            "read the times of the changed rows",
            &format!(
                "SELECT snapshot_id, epoch_us(date_trunc('hour', CAST({column} AS TIMESTAMPTZ))) AS hour
                 FROM {relation}
                 WHERE {condition}
                 GROUP BY ALL
                 LIMIT {limit}",
                column = Ident::new(column),
                condition = self.condition(),
            ),
            |row| Ok((SnapshotId(row.get(0)?), row.get(1)?)),
        )
    }
}

/// Returns the texts of the newest commits that name `asset` in their stamps, newest first, also of expired ones whose
/// stamps were kept.
pub fn newest_stamps(session: &Session, alias: &str, asset: &str) -> Result<Vec<(SnapshotId, String)>, EngineError> {
    let named = Literal::new(format!("\"asset\":{}", serde_json::Value::from(asset)));
    let read = |session: &Session, from: &str, column: &str| {
        session.rows(
            "read the newest stamps",
            &format!(
                "SELECT snapshot_id, {column} FROM {from}
                 WHERE contains({column}, {named})
                 ORDER BY snapshot_id DESC
                 LIMIT 16"
            ),
            |row| Ok((SnapshotId(row.get(0)?), row.get(1)?)),
        )
    };
    let live = read(session, &format!("{}.ducklake_snapshot_changes", metadata(alias)), "commit_extra_info")?;
    if !live.is_empty() || super::table_facts(session, alias, super::OWN_SCHEMA, "stamp")?.is_none() {
        return Ok(live);
    }
    let kept = pintail_core::sql::Relation::in_catalog(alias, super::OWN_SCHEMA, "stamp");
    read(session, &kept.to_string(), "extra_info")
}
