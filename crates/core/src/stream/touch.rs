//! What a snapshot means for a consumer of one table.

use crate::id::TableId;
use crate::sql::changes::{Change, ChangeSet};

/// Which changes a consumer asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kinds {
    /// Rows that came.
    #[default]
    Inserts,
    /// Rows that came, went or changed.
    All,
}

/// What a snapshot did to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Nothing that the consumer asks for; rewriting files is among it, because no row came or went by that.
    Nothing,
    /// Rows that the consumer has to see.
    Rows,
}

/// Returns what a snapshot with `changes` did to `source`, for a consumer of `kinds`.
///
/// A kind of change that this version does not know counts as rows: reading what is not there costs little.
pub fn touch(changes: &ChangeSet, source: TableId, kinds: Kinds) -> Touch {
    let brings_rows = changes.changes().iter().any(|change| match change {
        Change::Inserted(table) => *table == source,
        Change::Deleted(table) => *table == source && kinds == Kinds::All,
        Change::Unknown { .. } => true,
        _ => false,
    });
    if brings_rows { Touch::Rows } else { Touch::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, kinds: Kinds) -> Touch {
        touch(&ChangeSet::parse(text), TableId(3), kinds)
    }

    #[test]
    fn only_rows_of_the_source_are_work_and_rewritten_files_never_are() {
        for nothing in [
            "",
            "inserted_into_table:4",
            "rewrite_delete:3",
            "merge_adjacent:3",
            "flushed_inlined:3",
            "altered_table:3",
            "created_table:\"main\".\"t\"",
        ] {
            assert_eq!(of(nothing, Kinds::All), Touch::Nothing, "{nothing}");
        }
        for rows in
            ["inserted_into_table:3", "inlined_insert:3", "inserted_into_table:4,inserted_into_table:3", "new:9"]
        {
            assert_eq!(of(rows, Kinds::Inserts), Touch::Rows, "{rows}");
        }
        assert_eq!(of("deleted_from_table:3", Kinds::Inserts), Touch::Nothing);
        assert_eq!(of("deleted_from_table:3", Kinds::All), Touch::Rows);
        assert_eq!(of("inserted_into_table:3,rewrite_delete:3", Kinds::Inserts), Touch::Rows);
    }
}
