//! Append: the stage is added. That it happens once per run input is decided before, by the plan.

use indoc::formatdoc;

use super::Target;
use crate::sql::Statement;

/// Returns the statement that adds the stage to the target.
pub fn append(target: &Target) -> Vec<Statement> {
    vec![insert(target)]
}

/// Returns the INSERT of every strategy: always by name, so that columns cannot change places.
pub(super) fn insert(target: &Target) -> Statement {
    let sql = formatdoc! {"
        INSERT INTO {table} BY NAME
        SELECT
        {projection}
        FROM {stage}",
        table = target.write,
        projection = target.projection,
        stage = target.stage,
    };
    Statement::new("insert the staged rows", sql)
}
