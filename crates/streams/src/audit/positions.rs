//! What the lake says of each position, and what the commit that wrote it says: whoever audits the lake compares the two.

use pintail_core::id::SnapshotId;
use pintail_core::sql::{Literal, Relation};
use pintail_engine::lake::audit::{LastWriter, last_writers};
use pintail_engine::lake::{self, OWN_SCHEMA};
use pintail_engine::{EngineError, Session};
use serde_json::Value;

use crate::position::{CURSOR, SOURCE};

/// One position as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionRow {
    /// Its table in Pintail's own schema.
    pub table: String,
    /// The consumer, with its shard, when it is a cursor.
    pub consumer: Option<String>,
    /// How many rows the table holds; one is right.
    pub rows: i64,
    /// How far the stream has come; `None` without a row.
    pub at: Option<String>,
    /// The greatest token that wrote.
    pub token: i64,
    /// When it was last written, in microseconds since 1970 UTC.
    pub updated_micros: i64,
    /// What the commit that wrote it says.
    pub written: Written,
}

/// What the commit that wrote a position says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It moved the position there.
    To(SnapshotId, String),
    /// It is one of Pintail's that says nothing of positions, such as a step of a script.
    ByPintail,
    /// It is nobody's that Pintail knows.
    ByOthers(SnapshotId),
    /// It has expired.
    Gone,
}

/// Returns every position of the lake attached as `alias`, by table.
pub fn position_rows(session: &Session, alias: &str) -> Result<Vec<PositionRow>, EngineError> {
    let tables = lake::live_tables(session, alias)?;
    let is_position = |name: &str| name.starts_with(CURSOR) || name.starts_with(SOURCE);
    let tables: Vec<&str> = tables
        .iter()
        .filter(|table| table.schema == OWN_SCHEMA && is_position(&table.name))
        .map(|table| table.name.as_str())
        .collect();
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let writers = last_writers(session, alias, OWN_SCHEMA)?;
    session.rows("read the positions", &query(alias, &tables), |row| {
        let table: String = row.get(0)?;
        let writer = writers.iter().find(|writer| writer.table == table);
        Ok(PositionRow {
            consumer: table.strip_prefix(CURSOR).map(str::to_owned),
            rows: row.get(1)?,
            at: row.get(2)?,
            token: row.get(3)?,
            updated_micros: row.get(4)?,
            written: writer.map_or(Written::Gone, written),
            table,
        })
    })
}

fn query(alias: &str, tables: &[&str]) -> String {
    let row_of = |table: &&str| {
        format!(
            "SELECT {} AS name, count(*), max(position), coalesce(max(token), 0), coalesce(epoch_us(max(updated_at)), 0)
             FROM {}",
            Literal::new(*table),
            Relation::in_catalog(alias, OWN_SCHEMA, table)
        )
    };
    let rows = tables.iter().map(row_of).collect::<Vec<_>>().join("\nUNION ALL\n");
    format!("FROM ({rows}) ORDER BY name")
}

/// The row's file is as old as the commit that wrote the row: every move writes the row anew, and one file is not merged.
fn written(writer: &LastWriter) -> Written {
    let Some(extra_info) = &writer.extra_info else { return Written::Gone };
    let stamp: Value = extra_info.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match stamp.pointer("/stream/to").and_then(Value::as_str) {
        Some(to) => Written::To(writer.snapshot, to.to_owned()),
        None if stamp.get("pintail").is_some() => Written::ByPintail,
        None => Written::ByOthers(writer.snapshot),
    }
}

#[cfg(test)]
mod tests {
    use pintail_core::id::SnapshotId;

    use super::{LastWriter, Written, written};

    #[test]
    fn a_commit_says_of_itself_whose_it_is() {
        let of = |extra_info: Option<Option<&str>>| {
            written(&LastWriter {
                table: "cursor_decode".to_owned(),
                snapshot: SnapshotId(4),
                extra_info: extra_info.map(|text| text.map(str::to_owned)),
            })
        };
        let moved = of(Some(Some(r#"{"pintail": 1, "stream": {"to": "7"}}"#)));
        assert_eq!(moved, Written::To(SnapshotId(4), "7".to_owned()));
        assert_eq!(of(Some(Some(r#"{"pintail": 1, "entries": []}"#))), Written::ByPintail);
        let others = Written::ByOthers(SnapshotId(4));
        assert_eq!([of(Some(None)), of(Some(Some("hand-made")))], [others.clone(), others]);
        assert_eq!(of(None), Written::Gone);
    }
}
