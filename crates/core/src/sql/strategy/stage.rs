//! The stage: the user's query, evaluated exactly once, before anything is written.
//!
//! Invariant: the query stands on lines of its own, so that a trailing line comment cannot eat the closing bracket.

use std::borrow::Cow;

use indoc::formatdoc;

use crate::sql::{Fragment, Ident, Relation, Statement};

/// The name of every stage begins so.
pub const STAGE: &str = "_pt_stage";

/// Which of several staged rows with one key is kept: the first in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deduplicate<'a> {
    /// The columns that several rows may share.
    pub key: Cow<'a, [String]>,
    /// The ORDER BY list of `order_by=`.
    pub order_by: Fragment,
}

/// The statement that makes the stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedSelect {
    /// The statement.
    pub statement: Statement,
    /// Where the query starts in it, so that error positions can be mapped back.
    pub select_at: usize,
}

/// Returns the statement that stages `select`, a query as it is sent (parameters and names already rewritten), in the
/// temp table `stage`.
pub fn stage(stage: &Relation, select: &str, deduplicate: Option<&Deduplicate<'_>>) -> StagedSelect {
    let (before, after) = match deduplicate {
        None => (format!("CREATE OR REPLACE TEMP TABLE {stage} AS (\n"), "\n)".to_owned()),
        Some(deduplicate) => (
            formatdoc! {"
                CREATE OR REPLACE TEMP TABLE {stage} AS
                SELECT *
                FROM (
            "},
            keep_first(deduplicate),
        ),
    };
    let statement = Statement::new("stage the query", format!("{before}{select}{after}"));
    StagedSelect { statement, select_at: before.len() }
}

fn keep_first(deduplicate: &Deduplicate<'_>) -> String {
    let key: Vec<String> = deduplicate.key.iter().map(|column| Ident::new(column).to_string()).collect();
    let clauses = formatdoc! {"
        ) AS _pt_rows
        QUALIFY row_number() OVER (
          PARTITION BY {key}
          ORDER BY{order_by}) = 1",
        key = key.join(", "),
        order_by = deduplicate.order_by,
    };
    format!("\n{clauses}")
}
