//! Rows that lie in files of another partition than their values say: a query that asks for their partition would not read
//! them.
//!
//! Only files that have partition values are looked at, each by the keys under which it was written. Buckets are not among
//! the keys that can be checked: DuckLake computes them, and says them nowhere but in the catalog. Neither is a table with a
//! column `filename`, which hides the name of the file.

use std::collections::BTreeMap;

use pintail_core::id::TableId;
use pintail_core::sql::{Ident, Relation};

use super::metadata;
use crate::classify::ErrorClass;
use crate::error::EngineError;
use crate::session::Session;

/// A table with rows that lie in another partition than theirs, or one that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// What was found.
    pub found: Found,
}

/// What was found in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// So many rows are in wrong files, of which this is one.
    Rows(i64, String),
    /// Why it cannot be read.
    Unreadable(String),
}

/// A table with files that were written under the partition keys of `id`.
struct Layout {
    schema: String,
    table: String,
    table_id: TableId,
    id: i64,
    keys: Vec<Key>,
}

struct Key {
    /// Its place among the values of a file.
    index: i64,
    /// What a row's value must be, in SQL.
    expression: String,
}

/// Scans the tables that are partitioned, and returns those with rows in the wrong files.
pub fn misplaced_rows(session: &Session, alias: &str) -> Result<Vec<Misplaced>, EngineError> {
    let mut found = Vec::new();
    for layout in layouts(session, alias)? {
        let sql = layout.wrong_rows(alias);
        let rows: Result<Vec<(String, i64)>, _> =
            session.rows("look for rows in wrong partitions", &sql, |row| Ok((row.get(0)?, row.get(1)?)));
        let what = match rows {
            Ok(rows) => match rows.first() {
                Some((file, _)) => Found::Rows(rows.iter().map(|(_, count)| count).sum(), file.clone()),
                None => continue,
            },
            // One table without a file must not keep the others from being looked at.
            Err(error) if error.class() == ErrorClass::User => Found::Unreadable(error.to_string()),
            Err(error) => return Err(error),
        };
        found.push(Misplaced { schema: layout.schema, table: layout.table, found: what });
    }
    Ok(found)
}

impl Layout {
    /// Returns the query of the files with wrong rows, by name, and how many they hold.
    fn wrong_rows(&self, alias: &str) -> String {
        let relation = Relation::in_catalog(alias, &self.schema, &self.table);
        let list = |part: &dyn Fn(&Key) -> String, between: &str| -> String {
            self.keys.iter().map(part).collect::<Vec<_>>().join(between)
        };
        format!(
            "WITH found AS (
                 SELECT parse_filename(filename) AS _pt_file, count(*) AS _pt_rows, {found}
                 FROM {relation} GROUP BY ALL),
             expected AS (
                 SELECT parse_filename(f.path) AS _pt_file, {expected}
                 FROM {metadata}.ducklake_data_file f
                 JOIN {metadata}.ducklake_file_partition_value v USING (data_file_id)
                 WHERE f.end_snapshot IS NULL AND f.table_id = {table} AND f.partition_id = {id}
                 GROUP BY f.data_file_id, f.path)
             SELECT _pt_file, sum(_pt_rows)::BIGINT FROM found JOIN expected USING (_pt_file)
             WHERE {differs} GROUP BY 1 ORDER BY 1",
            found = list(&|key| format!("({})::VARCHAR AS _pt_is_{}", key.expression, key.index), ", "),
            expected = list(
                &|key| {
                    let index = key.index;
                    format!("max(v.partition_value) FILTER (v.partition_key_index = {index}) AS _pt_should_{index}")
                },
                ", "
            ),
            differs = list(&|key| format!("_pt_is_{0} IS DISTINCT FROM _pt_should_{0}", key.index), " OR "),
            metadata = metadata(alias),
            table = self.table_id.0,
            id = self.id,
        )
    }
}

/// Returns the layouts of the files that the head shows, with the keys that can be checked.
fn layouts(session: &Session, alias: &str) -> Result<Vec<Layout>, EngineError> {
    let sql = format!(
        "SELECT s.schema_name, t.table_name, t.table_id, p.partition_id, p.partition_key_index, c.column_name, p.transform
         FROM {metadata}.ducklake_partition_column p
         JOIN {metadata}.ducklake_table t ON t.table_id = p.table_id AND t.end_snapshot IS NULL
         JOIN {metadata}.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
         JOIN {metadata}.ducklake_column c
           ON c.table_id = p.table_id AND c.column_id = p.column_id AND c.end_snapshot IS NULL
         WHERE p.partition_id IN (SELECT partition_id FROM {metadata}.ducklake_data_file WHERE end_snapshot IS NULL)
         ORDER BY ALL",
        metadata = metadata(alias)
    );
    let mut layouts: BTreeMap<(i64, i64), Layout> = BTreeMap::new();
    for row in session.rows("read how tables are partitioned", &sql, |row| {
        let names: (String, String) = (row.get(0)?, row.get(1)?);
        let numbers: (i64, i64, i64) = (row.get(2)?, row.get(3)?, row.get(4)?);
        Ok((names, numbers, row.get::<_, String>(5)?, row.get::<_, String>(6)?))
    })? {
        let ((schema, table), (table_id, id, index), column, transform) = row;
        let Some(expression) = expression(&column, &transform) else { continue };
        let new = || Layout { schema, table, table_id: TableId(table_id), id, keys: Vec::new() };
        layouts.entry((table_id, id)).or_insert_with(new).keys.push(Key { index, expression });
    }
    Ok(layouts.into_values().collect())
}

/// Returns what DuckLake writes down for a row; `None` for what cannot be computed here.
fn expression(column: &str, transform: &str) -> Option<String> {
    let column = Ident::new(column);
    match transform {
        "identity" => Some(column.to_string()),
        "year" | "month" | "day" | "hour" => Some(format!("{transform}({column})")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::expression;

    #[test]
    fn keys_that_cannot_be_computed_are_left_out() {
        assert_eq!(expression("the day", "identity").as_deref(), Some("\"the day\""));
        assert_eq!(expression("at", "year").as_deref(), Some("year(\"at\")"));
        assert_eq!(expression("s", "bucket(16)"), None);
    }
}
