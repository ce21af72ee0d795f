//! The write strategies: which statements put a staged result into a lake table.
//!
//! Reading order: what is written ([`Target`], [`Slice`], [`Projection`]), the table of strategies ([`cell`]), then one
//! file per part. Invariant: every function is pure text from typed names; the same list is shown by `plan --sql` and
//! sent. Deliberately not here: BEGIN, the stamp and COMMIT, which belong to whoever sends.

mod append;
mod create;
mod fence;
mod guard;
mod history;
mod if_changed;
mod merge;
mod projection;
mod replace;
mod slice;
mod stage;
mod table;
mod view;

pub use append::append;
pub use create::{CREATE_FILLED, Kept, Layout, PartitionBy, add_columns, create, create_filled, rebuild};
pub use fence::{FENCES, create_fences, fence, fence_number};
pub use guard::{GuardCounts, GuardFailure, GuardKind, GuardQueries, GuardRules, SAMPLE_ROWS, guards, judge};
pub use history::{
    BOOKKEEPING, HistoryCounts, HistoryFault, HistoryGuards, HistoryWrite, IS_CURRENT, REWRITE, bookkeeping_columns,
    broken_rows, compare_history, current_view, current_view_name, history, history_guards, judge_history,
};
pub use if_changed::{
    Compared, ComparedColumn, Comparison, IfChangedFacts, compare_merge, compare_replace, compares_first,
    merge_differing, replace_differing,
};
pub use merge::merge;
pub use projection::{Projected, Projection, kept_projection, projection};
pub use replace::replace;
pub use slice::{Slice, instant_literal};
pub use stage::{Deduplicate, STAGE, StagedSelect, stage};
pub use table::{Cell, Part, Unsupported, cell, write};
pub use view::view;

use super::Relation;

/// Where a write goes and where its rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The lake table under the write alias.
    pub write: Relation,
    /// The staged result.
    pub stage: Relation,
    /// The select list from the stage: the table's columns, in the types that the lake holds.
    pub projection: Projection,
}

#[cfg(test)]
mod tests;
