//! What `on_schema_change` makes of a difference.
//!
//! Invariant: nothing is cast lossily and no column is dropped unless the policy says so in so many words.

use super::Column;
use super::diff::SchemaDiff;
use crate::annotation::SchemaPolicy;

/// What the write does about a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaDecision {
    /// Nothing: the query is written by name.
    Write,
    /// These columns are added to the table inside the write's transaction; existing rows hold NULL in them.
    AddColumns(Vec<Column>),
    /// A new table (generation + 1) of these columns takes the place of the old one.
    Rebuild {
        /// The columns of the new table, in the query's order.
        columns: Vec<Column>,
        /// What changes, for the record of the run.
        diff: SchemaDiff,
    },
    /// Only columns that the table has are written.
    WriteOnlyKnown {
        /// Columns of the query that are not written; the run counts and names them.
        dropped: Vec<Column>,
        /// Columns of the table that the query lacks and that become NULL; likewise.
        missing: Vec<Column>,
    },
    /// The write fails and shows the difference.
    Refuse {
        /// What differs.
        diff: SchemaDiff,
    },
}

/// Returns what `policy` makes of `diff`.
pub fn decide(diff: SchemaDiff, policy: SchemaPolicy) -> SchemaDecision {
    if diff.is_empty() {
        return SchemaDecision::Write;
    }
    let additive = diff.removed.is_empty() && diff.retyped.is_empty();
    match policy {
        SchemaPolicy::AppendNewColumns | SchemaPolicy::SyncAllColumns if additive => {
            SchemaDecision::AddColumns(diff.added.into_iter().map(|added| added.column).collect())
        }
        SchemaPolicy::SyncAllColumns => SchemaDecision::Rebuild { columns: diff.shape.clone(), diff },
        // A column of another type is known, but its values would not arrive as they are.
        SchemaPolicy::Ignore if diff.retyped.is_empty() => SchemaDecision::WriteOnlyKnown {
            dropped: diff.added.into_iter().map(|added| added.column).collect(),
            missing: diff.removed.into_iter().map(|removed| removed.column).collect(),
        },
        SchemaPolicy::Fail | SchemaPolicy::AppendNewColumns | SchemaPolicy::Ignore => SchemaDecision::Refuse { diff },
    }
}
