//! Positions: how far a stream has come, one row in a table of its own in the lake.
//!
//! Invariant: a position moves in the commit of the rows that it stands for, by compare-and-swap, and every commit of its
//! stream updates the row. Two owners of one stream therefore conflict, whatever else they write. The table is the
//! stream's own because DuckLake's conflicts are table-wide.

use std::fmt;

use indoc::formatdoc;
use pintail_core::sql::{Literal, Relation, Statement};
use pintail_engine::lake::{self, OWN_SCHEMA};
use pintail_engine::{EngineError, Session};

use crate::writer::Writer;

/// What the names of consumers' tables begin with.
pub(crate) const CURSOR: &str = "cursor_";

/// What the names of the tables of what feeds the lake begin with.
pub(crate) const SOURCE: &str = "position_";

/// Which position: its table's name in Pintail's own schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PositionTable(String);

impl PositionTable {
    /// Returns the cursor of a consumer, or of one of its shards when `consumer` names it, such as `decode.03`.
    pub fn cursor(consumer: &str) -> Self {
        Self(format!("{CURSOR}{consumer}"))
    }

    /// Returns the position of what feeds the lake from outside, such as `http` or `kafka.orders`.
    pub fn source(source: &str) -> Self {
        Self(format!("{SOURCE}{source}"))
    }

    /// Returns the table's name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns the table in the lake attached as `alias`.
    pub fn relation(&self, alias: &str) -> Relation {
        Relation::in_catalog(alias, OWN_SCHEMA, &self.0)
    }
}

impl fmt::Display for PositionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{OWN_SCHEMA}.{}", self.0)
    }
}

/// What the row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// How far the stream has come, in its own words: a snapshot, offsets as JSON.
    pub at: String,
    /// What it reads, so that a position is not taken for one in something else.
    pub source: String,
    /// The fencing token of the last owner that wrote.
    pub token: i64,
    /// When the row was last written, in microseconds since 1970 UTC.
    pub updated_micros: i64,
    /// Whether it is elsewhere than where it began: until then nothing is known to be consumed, also when some of the first
    /// span has landed.
    pub has_moved: bool,
}

/// Returns the position, or `None` when the stream has never begun, or its beginning was taken back.
pub fn read(writer: &Writer, table: &PositionTable) -> Result<Option<Position>, EngineError> {
    read_in(writer.session(), writer.alias(), table)
}

/// Returns the position in the lake attached as `alias`.
pub fn read_in(session: &Session, alias: &str, table: &PositionTable) -> Result<Option<Position>, EngineError> {
    if is_absent_in(session, alias, table)? {
        return Ok(None);
    }
    let sql =
        format!("SELECT position, source, token, epoch_us(updated_at), moved FROM {} LIMIT 2", table.relation(alias));
    let mut rows = session.rows("read the position", &sql, |row| {
        Ok(Position {
            at: row.get(0)?,
            source: row.get(1)?,
            token: row.get(2)?,
            updated_micros: row.get(3)?,
            has_moved: row.get(4)?,
        })
    })?;
    match rows.len() {
        1 => Ok(rows.pop()),
        0 if lake::was_made_in_vain(session, alias, OWN_SCHEMA, table.name())? => Ok(None),
        found => Err(EngineError::Answer {
            purpose: "read the position",
            detail: format!("{table} holds {found} rows instead of one; somebody else has written it"),
        }),
    }
}

/// Returns whether the stream has never begun.
pub fn is_absent(writer: &Writer, table: &PositionTable) -> Result<bool, EngineError> {
    is_absent_in(writer.session(), writer.alias(), table)
}

fn is_absent_in(session: &Session, alias: &str, table: &PositionTable) -> Result<bool, EngineError> {
    let absent = lake::absent_names(session, alias, &[(OWN_SCHEMA, table.name())])?;
    Ok(!absent.is_empty())
}

/// Returns whether the table is there without its row, because the commit that made it was taken back.
pub(crate) fn is_left_over(session: &Session, alias: &str, table: &PositionTable) -> Result<bool, EngineError> {
    Ok(!is_absent_in(session, alias, table)? && lake::was_made_in_vain(session, alias, OWN_SCHEMA, table.name())?)
}

/// Returns the statement that makes the table with its row.
pub(crate) fn create(alias: &str, table: &PositionTable, at: &str, source: &str) -> Statement {
    make("CREATE TABLE", alias, table, at, source)
}

/// Returns the statement that makes the table with its row in the place of one that is left over.
pub(crate) fn create_again(alias: &str, table: &PositionTable, at: &str, source: &str) -> Statement {
    make("CREATE OR REPLACE TABLE", alias, table, at, source)
}

fn make(create: &str, alias: &str, table: &PositionTable, at: &str, source: &str) -> Statement {
    let sql = formatdoc! {"
        {create} {table} AS
        SELECT {at}::VARCHAR AS position, {source}::VARCHAR AS source, 0::BIGINT AS token, now() AS updated_at,
               false AS moved",
        table = table.relation(alias),
        at = Literal::new(at),
        source = Literal::new(source),
    };
    Statement::new("make the position's table with its row", sql)
}

/// A move of a position; from and to may be equal, for a commit that does not end what it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// Where it must be.
    pub from: &'a str,
    /// Where it goes.
    pub to: &'a str,
    /// What it must be a position in.
    pub source: &'a str,
    /// The owner's fencing token; an owner with an older one than the last that wrote is refused.
    pub token: i64,
}

/// Returns `condition` in a form that DuckLake does not use to rule out files: for that it reads what its catalog knows of the
/// columns of every file of the lake, and a position's table has one row.
fn looking_at_the_row(condition: &str) -> String {
    format!("CASE WHEN {condition} THEN true ELSE false END")
}

/// Returns the compare-and-swap of the row; it changes no row when somebody else has moved it.
pub(crate) fn swap(alias: &str, table: &PositionTable, change: &Move<'_>) -> Statement {
    let (from, source, token) = (Literal::new(change.from), Literal::new(change.source), change.token);
    let sql = formatdoc! {"
        UPDATE {table}
        SET position = {to}, token = {token}, updated_at = now(), moved = moved OR position <> {to}
        WHERE {is_there}",
        table = table.relation(alias),
        to = Literal::new(change.to),
        is_there = looking_at_the_row(&format!("position = {from} AND source = {source} AND token <= {token}")),
    };
    Statement::new("move the position", sql)
}

/// Returns the statement that sets a position that was `from` anew, also in another source.
pub(crate) fn set(alias: &str, table: &PositionTable, from: &str, change: &Move<'_>) -> Statement {
    let sql = formatdoc! {"
        UPDATE {table}
        SET position = {to}, source = {source}, token = {token}, updated_at = now(), moved = true
        WHERE {is_there}",
        table = table.relation(alias),
        to = Literal::new(change.to),
        source = Literal::new(change.source),
        is_there = looking_at_the_row(&format!("position = {}", Literal::new(from))),
        token = change.token,
    };
    Statement::new("set the position anew", sql)
}
