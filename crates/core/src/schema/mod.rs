//! Columns and types: the ordered schema of a table, its differences, and what a policy makes of them.
//!
//! Types are DuckDB's own type texts (`DECIMAL(10,2)`, `STRUCT(a INTEGER)`), as DESCRIBE prints them, and compare by
//! meaning (`INT` is `INTEGER`). Columns are matched by name without case, never by position.
//!
//! Not here: the statements that change a table (`write`), and whether a staged value really fits (the engine's guards).

mod cast;
mod contract;
mod data_type;
mod decide;
mod diff;
mod lake;
mod parse;

#[cfg(test)]
mod tests;

pub use cast::{CastClass, cast_class};
pub use contract::{ContractDiff, ContractDifference, contract_diff};
pub use data_type::{DataType, Field, Scalar, types_equal};
pub use decide::{SchemaDecision, decide};
pub use diff::{Added, Removed, Rename, Retyped, SchemaDiff, TypeChange, diff};
pub use lake::{LakeCast, LakeType, RefusedColumn, lake_schema, lake_type};
pub use parse::TypeError;

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, as the table spells it; compared without case.
    pub name: String,
    /// The type, as DESCRIBE prints it.
    pub data_type: String,
}

/// The ordered columns of a table or query.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Schema {
    /// The columns in order.
    pub columns: Vec<Column>,
}

impl Schema {
    /// Returns the schema of `(name, type)` pairs.
    pub fn of(columns: &[(&str, &str)]) -> Self {
        let column = |(name, data_type): &(&str, &str)| Column { name: (*name).into(), data_type: (*data_type).into() };
        Self { columns: columns.iter().map(column).collect() }
    }

    /// Returns the column named `name`, case ignored.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}
