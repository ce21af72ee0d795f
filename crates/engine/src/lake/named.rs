//! What stands under a name of a lake, without its columns: enough to see whether the name is free.

use pintail_core::sql::Ident;

use crate::error::EngineError;
use crate::session::Session;

/// A table or view under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Whether it is a view.
    pub is_view: bool,
    /// The comment on it.
    pub comment: Option<String>,
}

/// Returns what the lake attached as `alias` has under `schema.name` at its head; names are compared without case.
pub fn named(session: &Session, alias: &str, schema: &str, name: &str) -> Result<Option<Named>, EngineError> {
    let found = session.rows_with(
        "see whether the name is taken",
        &format!(
            "SELECT named.is_view, tag.value
             FROM (
               SELECT table_id AS id, schema_id, table_name AS name, false AS is_view
               FROM {metadata}.ducklake_table WHERE end_snapshot IS NULL
               UNION ALL
               SELECT view_id, schema_id, view_name, true
               FROM {metadata}.ducklake_view WHERE end_snapshot IS NULL
             ) named
             JOIN {metadata}.ducklake_schema s ON s.schema_id = named.schema_id AND s.end_snapshot IS NULL
             LEFT JOIN {metadata}.ducklake_tag tag
               ON tag.object_id = named.id AND tag.key = 'comment' AND tag.end_snapshot IS NULL
             WHERE lower(s.schema_name) = lower($1) AND lower(named.name) = lower($2)",
            metadata = Ident::new(format!("__ducklake_metadata_{alias}"))
        ),
        &[schema, name],
        |row| Ok(Named { is_view: row.get(0)?, comment: row.get(1)? }),
    )?;
    Ok(found.into_iter().next())
}
