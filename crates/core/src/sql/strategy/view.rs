//! View: the lake keeps the query, not its rows.

use indoc::formatdoc;

use super::Layout;
use crate::sql::{Literal, Relation, Statement};

/// Returns the statements that make `select` the view `view`. DuckLake has no comments on the columns of a view.
pub fn view(view: &Relation, select: &str, layout: &Layout) -> Vec<Statement> {
    let sql = formatdoc! {"
        CREATE OR REPLACE VIEW {view} AS
        {select}",
    };
    let comment = layout.comment.as_ref().map(|comment| {
        Statement::new("describe the view", format!("COMMENT ON VIEW {view} IS {}", Literal::new(comment)))
    });
    [Statement::new("create the view", sql)].into_iter().chain(comment).collect()
}
