//! SQL for Postgres: the types that a Postgres table gives to the engine's columns, the statements that write a slice,
//! and scripts that are written in Postgres SQL.
//!
//! Pure text and decisions, as everything here. Not here: the connection, the transaction and how rows travel, which
//! belong to whoever sends.

mod script;
mod types;
mod write;

#[cfg(test)]
mod tests;

pub use script::{Bound, BoundText, PostgresContext, PostgresScript, bind, parse_script};
pub use types::{PostgresType, Wire, duckdb_type, fitted, postgres_type};
pub use write::{
    PostgresColumn, PostgresTable, STAGE_IN_POSTGRES, StagedValue, add_columns, change_shape, comments, create_stage,
    create_table, delete, index, insert,
};
