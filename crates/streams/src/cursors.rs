//! The cursors of a lake, whoever runs their consumers: what upkeep must know of them, also when the guard was lost.

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::sql::{Literal, Relation};
use pintail_engine::lake::{self, OWN_SCHEMA};
use pintail_engine::{EngineError, Session};

use crate::consumer::table_of;
use crate::position::CURSOR;

/// One cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The consumer, with its shard when it has several, such as `decode.03`.
    pub consumer: String,
    /// The last snapshot that it has consumed.
    pub at: SnapshotId,
    /// The table that it reads; `None` when its row does not say it as this version does.
    pub source: Option<TableId>,
    /// When it last moved, in microseconds since 1970 UTC.
    pub updated_micros: i64,
}

/// Returns every cursor of the lake attached as `alias`, by name. A row that cannot be read as one is left out.
pub fn cursors(session: &Session, alias: &str) -> Result<Vec<Cursor>, EngineError> {
    let tables = lake::live_tables(session, alias)?;
    let parts: Vec<String> = tables
        .iter()
        .filter(|table| table.schema == OWN_SCHEMA)
        .filter_map(|table| Some((&table.name, table.name.strip_prefix(CURSOR)?)))
        .map(|(table, consumer)| {
            format!(
                "SELECT {} AS consumer, TRY_CAST(position AS BIGINT) AS place, source, epoch_us(updated_at) AS updated FROM {}",
                Literal::new(consumer),
                Relation::in_catalog(alias, OWN_SCHEMA, table)
            )
        })
        .collect();
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("FROM ({}) WHERE place IS NOT NULL ORDER BY consumer", parts.join("\nUNION ALL\n"));
    session.rows("read the cursors", &sql, |row| {
        Ok(Cursor {
            consumer: row.get(0)?,
            at: SnapshotId(row.get(1)?),
            source: table_of(&row.get::<_, String>(2)?),
            updated_micros: row.get(3)?,
        })
    })
}
