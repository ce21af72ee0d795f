//! The table of strategies: strategy × partitioned × exists, and what cannot be.
//!
//! One place decides what a write consists of; [`write`] turns the parts into statements.

use super::{Layout, PartitionBy, Slice, Target, append, create, create_filled, merge, replace};
use crate::annotation::WriteStrategy;
use crate::sql::Statement;

/// One part of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Make the table, with its partitions and descriptions.
    CreateTable,
    /// Delete every row.
    DeleteAll,
    /// Delete the rows of the slice.
    DeleteSlice,
    /// Delete the rows with staged keys.
    DeleteKeys,
    /// Delete the rows with staged keys inside the slice.
    DeleteKeysInSlice,
    /// Delete the versions whose end moves and insert them again.
    EndVersions,
    /// Insert the stage.
    Insert,
    /// Make the view.
    CreateView,
    /// Send the script's own statements.
    RunScript,
}

/// A pair that has no write, and what to do instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unsupported {
    /// What cannot be, lower case, no full stop.
    pub message: &'static str,
    /// What to write instead.
    pub help: &'static str,
}

/// The parts of a write, in order.
pub type Cell = Result<&'static [Part], Unsupported>;

/// Returns what a write by `strategy` consists of.
pub fn cell(strategy: &WriteStrategy, is_partitioned: bool, exists: bool) -> Cell {
    use Part::{
        CreateTable, CreateView, DeleteAll, DeleteKeys, DeleteKeysInSlice, DeleteSlice, EndVersions, Insert, RunScript,
    };
    match (strategy, is_partitioned, exists) {
        (WriteStrategy::Replace | WriteStrategy::Merge { .. } | WriteStrategy::Append, _, false) => {
            Ok(&[CreateTable, Insert])
        }
        (WriteStrategy::Replace, false, true) => Ok(&[DeleteAll, Insert]),
        (WriteStrategy::Replace, true, true) => Ok(&[DeleteSlice, Insert]),
        (WriteStrategy::Merge { .. }, false, true) => Ok(&[DeleteKeys, Insert]),
        (WriteStrategy::Merge { .. }, true, true) => Ok(&[DeleteKeysInSlice, Insert]),
        (WriteStrategy::Append, _, true) => Ok(&[Insert]),
        (WriteStrategy::View, false, _) => Ok(&[CreateView]),
        (WriteStrategy::Manual, _, _) => Ok(&[RunScript]),
        (WriteStrategy::View, true, _) => Err(Unsupported {
            message: "a view has no slices",
            help: "remove `partitioned`, or materialize a table: `materialize <uri>`",
        }),
        (WriteStrategy::History { .. }, true, _) => Err(Unsupported {
            message: "a history table has no slices",
            help: "remove `partitioned`: a history table keeps every version of a row by its own time columns",
        }),
        (WriteStrategy::History { .. }, false, false) => Ok(&[CreateTable, Insert, CreateView]),
        (WriteStrategy::History { .. }, false, true) => Ok(&[EndVersions, Insert]),
    }
}

/// Returns the statements of a write of staged rows into `target`. `slice` is there exactly when the script is
/// partitioned; history, views and manual scripts have their own functions and give no statement here.
pub fn write(
    strategy: &WriteStrategy,
    target: &Target,
    slice: Option<&Slice>,
    layout: &Layout,
    exists: bool,
) -> Result<Vec<Statement>, Unsupported> {
    let parts = cell(strategy, slice.is_some(), exists)?;
    let mut statements = Vec::new();
    if parts.contains(&Part::CreateTable) && !matches!(strategy, WriteStrategy::History { .. }) {
        match layout.partition_by {
            PartitionBy::Nothing => statements.extend(create_filled(target, layout)),
            _ => {
                statements.extend(create(target, layout));
                statements.extend(append(target));
            }
        }
        return Ok(statements);
    }
    match strategy {
        WriteStrategy::Replace => statements.extend(replace(target, slice)),
        WriteStrategy::Merge { key, .. } => statements.extend(merge(target, key, slice)),
        WriteStrategy::Append => statements.extend(append(target)),
        WriteStrategy::View | WriteStrategy::Manual | WriteStrategy::History { .. } => {}
    }
    Ok(statements)
}
