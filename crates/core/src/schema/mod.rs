//! Columns and types: the ordered schema of a table, its differences, and what a policy makes of them.
//!
//! Types are DuckDB's own type texts (`DECIMAL(10,2)`, `STRUCT(a INTEGER)`), as DESCRIBE prints them.

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
