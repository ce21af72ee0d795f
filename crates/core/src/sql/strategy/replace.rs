//! Replace: the slice, or the whole table, becomes the stage.
//!
//! DELETE and INSERT, never CREATE OR REPLACE, so that the table keeps its id, its partition spec and its change feed.

use indoc::formatdoc;

use super::append::insert;
use super::{Slice, Target};
use crate::sql::Statement;

/// Returns the statements that replace `slice` of the target, or all of it, by the stage.
pub fn replace(target: &Target, slice: Option<&Slice>) -> Vec<Statement> {
    let delete = match slice {
        Some(slice) => Statement::new(
            "delete the slice",
            formatdoc! {"
                DELETE FROM {table}
                WHERE {slice}",
                table = target.write,
                slice = slice.predicate(None),
            },
        ),
        None => Statement::new("delete all rows", format!("DELETE FROM {}", target.write)),
    };
    vec![delete, insert(target)]
}
