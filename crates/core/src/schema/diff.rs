//! The ordered difference between a table and a query that is about to be written into it.
//!
//! Invariant: a difference is only what `INSERT … BY NAME` could not write faithfully or would leave NULL: the order of
//! columns and a narrower query type that fits losslessly are none. The query's types are those after
//! [`super::lake_schema`]; an identity column that the engine adds is in both schemas or in neither.

use std::collections::HashMap;
use std::fmt;

use super::cast::{CastClass, cast_class};
use super::data_type::DataType;
use super::{Column, Schema};
use crate::diagnostic::nearest;

/// What differs, each list in the order of the schema that it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SchemaDiff {
    /// Columns that only the query has.
    pub added: Vec<Added>,
    /// Columns that only the table has.
    pub removed: Vec<Removed>,
    /// Columns whose query type does not fit the table's.
    pub retyped: Vec<Retyped>,
    /// Pairs of a removed and an added column that are probably one: same position, same type.
    pub renames: Vec<Rename>,
    /// Whether the common columns stand in another order; no difference by itself.
    pub reordered: bool,
    /// The shape of the query, with the table's wider type where the query's fits it: what the table would become.
    pub shape: Vec<Column>,
}

/// A column that only the query has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The column.
    pub column: Column,
    /// Its place in the query, from 0.
    pub position: usize,
    /// The removed column with the nearest name, when one is near.
    pub near: Option<String>,
}

/// A column that only the table has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The column.
    pub column: Column,
    /// Its place in the table, from 0.
    pub position: usize,
}

/// A column with another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retyped {
    /// The name, as the table spells it.
    pub column: String,
    /// Its place in the query, from 0.
    pub position: usize,
    /// The table's type.
    pub from: String,
    /// The query's type.
    pub to: String,
    /// What the change does to the values that the table holds.
    pub change: TypeChange,
}

/// What a change of a column's type does to the values that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeChange {
    /// Every value is one of the new type.
    Widening,
    /// Every value converts there and back, but means another kind of thing.
    Lossless,
    /// Values lose digits, range or meaning.
    Lossy,
    /// No value converts.
    Incompatible,
}

/// A column that was probably renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The table's name.
    pub from: String,
    /// The query's name.
    pub to: String,
}

impl SchemaDiff {
    /// Returns whether the query can be written by name as it is.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.retyped.is_empty()
    }
}

/// Returns what differs between `table` and `query`; linear in the columns.
pub fn diff(table: &Schema, query: &Schema) -> SchemaDiff {
    let in_table = by_name(table);
    let in_query = by_name(query);
    let mut found = SchemaDiff::default();
    let mut last_table_position = None;

    for (position, column) in table.columns.iter().enumerate() {
        if !in_query.contains_key(&folded(&column.name)) {
            found.removed.push(Removed { column: column.clone(), position });
        }
    }
    for (position, column) in query.columns.iter().enumerate() {
        let Some(table_position) = in_table.get(&folded(&column.name)).copied() else {
            let near = nearest(&column.name, found.removed.iter().map(|removed| removed.column.name.as_str()));
            let near = near.map(str::to_owned);
            found.added.push(Added { column: column.clone(), position, near });
            found.shape.push(column.clone());
            continue;
        };
        let existing = &table.columns[table_position];
        found.reordered |= last_table_position.is_some_and(|last| table_position < last);
        last_table_position = Some(table_position);
        match retyped(existing, column, position) {
            Some(retyped) => {
                found.shape.push(Column { name: existing.name.clone(), data_type: column.data_type.clone() });
                found.retyped.push(retyped);
            }
            None => found.shape.push(existing.clone()),
        }
    }
    found.renames = likely_renames(&found);
    found
}

fn by_name(schema: &Schema) -> HashMap<String, usize> {
    schema.columns.iter().enumerate().map(|(position, column)| (folded(&column.name), position)).collect()
}

fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn retyped(existing: &Column, column: &Column, position: usize) -> Option<Retyped> {
    let (table_type, query_type) = (DataType::of(&existing.data_type), DataType::of(&column.data_type));
    if cast_class(&query_type, &table_type) <= CastClass::Widening {
        return None;
    }
    let change = match cast_class(&table_type, &query_type) {
        CastClass::Identical | CastClass::Widening => TypeChange::Widening,
        CastClass::Lossless => TypeChange::Lossless,
        CastClass::Lossy => TypeChange::Lossy,
        CastClass::Incompatible => TypeChange::Incompatible,
    };
    Some(Retyped {
        column: existing.name.clone(),
        position,
        from: existing.data_type.clone(),
        to: column.data_type.clone(),
        change,
    })
}

fn likely_renames(found: &SchemaDiff) -> Vec<Rename> {
    let removed: HashMap<usize, &Column> =
        found.removed.iter().map(|removed| (removed.position, &removed.column)).collect();
    let renamed = |added: &Added| {
        let old = removed.get(&added.position)?;
        let same_type = DataType::of(&old.data_type) == DataType::of(&added.column.data_type);
        same_type.then(|| Rename { from: old.name.clone(), to: added.column.name.clone() })
    };
    found.added.iter().filter_map(renamed).collect()
}

impl fmt::Display for TypeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TypeChange::Widening => "widening",
            TypeChange::Lossless => "lossless, another kind",
            TypeChange::Lossy => "lossy",
            TypeChange::Incompatible => "incompatible",
        })
    }
}

/// One line per difference: the query's columns in order, then those that are gone.
impl fmt::Display for SchemaDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<(usize, String)> = Vec::new();
        lines.extend(self.added.iter().map(|added| (added.position, self.added_line(added))));
        lines.extend(self.retyped.iter().map(|retyped| (retyped.position, retyped.line())));
        lines.sort_by_key(|(position, _)| *position);
        let gone = |removed: &Removed| format!("- {} {} (removed)", removed.column.name, removed.column.data_type);
        let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        lines.extend(self.removed.iter().map(gone));
        f.write_str(&lines.join("\n"))
    }
}

impl SchemaDiff {
    fn added_line(&self, added: &Added) -> String {
        let Column { name, data_type } = &added.column;
        let hint = match (self.renames.iter().find(|rename| rename.to == *name), &added.near) {
            (Some(rename), _) => format!("; probably `{}` renamed", rename.from),
            (None, Some(near)) => format!("; did you mean `{near}`?"),
            (None, None) => String::new(),
        };
        format!("+ {name} {data_type} (added{hint})")
    }
}

impl Retyped {
    fn line(&self) -> String {
        format!("~ {} {} -> {} ({})", self.column, self.from, self.to, self.change)
    }
}
