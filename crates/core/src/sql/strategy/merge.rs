//! Merge: rows with a staged key are deleted, then the stage is inserted.
//!
//! Keys compare with IS NOT DISTINCT FROM, so that a NULL key finds its row. The rows are found with EXISTS: on a lake
//! table of 1 M rows and a stage of 10,000 it takes as long as DELETE … USING (24 to 50 ms), and it counts a row once
//! where USING counts it once per staged row with its key. MERGE INTO is not used: it accepts duplicate source keys.

use indoc::formatdoc;

use super::append::insert;
use super::{Slice, Target};
use crate::sql::{Ident, Statement};

/// Returns the statements that merge the stage into the target by `key`, only inside `slice` when there is one.
pub fn merge(target: &Target, key: &[String], slice: Option<&Slice>) -> Vec<Statement> {
    debug_assert!(!key.is_empty(), "a merge has a key");
    let same_key: Vec<String> = key
        .iter()
        .map(Ident::new)
        .map(|column| format!("_pt_new.{column} IS NOT DISTINCT FROM _pt_old.{column}"))
        .collect();
    let in_slice = slice.map(|slice| format!("\n  AND {}", slice.predicate(Some("_pt_old")))).unwrap_or_default();
    let delete = formatdoc! {"
        DELETE FROM {table} AS _pt_old
        WHERE EXISTS (
          SELECT 1
          FROM {stage} AS _pt_new
          WHERE {same_key}
        ){in_slice}",
        table = target.write,
        stage = target.stage,
        same_key = same_key.join("\n    AND "),
    };
    vec![Statement::new("delete the rows with staged keys", delete), insert(target)]
}
