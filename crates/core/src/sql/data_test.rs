//! Data tests: each is a query that returns the rows which break it, and one that counts the NULLs it ignored.
//!
//! NULL semantics, said in every result: `unique`, `accepted_values`, `relationships` and `expression` ignore a NULL
//! (for an expression: a NULL result) and count it; a `NULL` among accepted values allows NULL; parents are found by
//! anti-join, so a NULL parent hides nothing. Failing rows are not limited here: who sends the query decides how many
//! it reads. Deliberately not here: test scripts and a package's tests, which bring their own query.

use indoc::formatdoc;

use super::strategy::{IS_CURRENT, Projection, Slice};
use super::{Fragment, FragmentError, Ident, Literal, Relation};
use crate::annotation::{TestCheck, TestDecl, TestScope, TestSeverity, WriteStrategy};
use crate::asset::Asset;

/// A test ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestQuery {
    /// What it checks, such as `unique a, b`.
    pub name: String,
    /// Whether a failure blocks.
    pub severity: TestSeverity,
    /// Returns the offending rows.
    pub failures_sql: String,
    /// Returns one row with the number of NULLs that the test ignored.
    pub ignored_sql: Option<String>,
    /// Whether it means the same on the stage, where it is about ten times cheaper.
    pub on_stage: bool,
}

/// The rows that tests look at, as they stand after FROM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows(String);

impl Rows {
    /// Returns the whole of `relation`.
    pub fn table(relation: &Relation) -> Self {
        Self(relation.to_string())
    }

    /// Returns the rows of `slice` in `relation`.
    pub fn slice(relation: &Relation, slice: &Slice) -> Self {
        let query = formatdoc! {"
            (
              SELECT *
              FROM {relation}
              WHERE {predicate}
            )",
            predicate = slice.predicate(None),
        };
        Self(query)
    }

    /// Returns the current rows of the history in `relation`.
    pub fn current(relation: &Relation) -> Self {
        let is_current = Ident::new(IS_CURRENT);
        Self(format!("(\n  SELECT *\n  FROM {relation}\n  WHERE {is_current}\n)"))
    }

    /// Returns the rows that would be written: the projection of the stage.
    pub fn staged(stage: &Relation, projection: &Projection) -> Self {
        Self(format!("(\nSELECT\n{projection}\nFROM {stage}\n)"))
    }
}

/// What a test is built over.
pub struct TestSubject<'a> {
    /// The asset that is tested.
    pub asset: &'a Asset,
    /// How it is written.
    pub strategy: &'a WriteStrategy,
    /// Whether it has slices.
    pub is_partitioned: bool,
    /// The rows of the slice, the current rows of a history, or the table when there are no slices: in the stage or in the new state.
    pub slice_rows: &'a Rows,
    /// Every row of the new state.
    pub table_rows: &'a Rows,
    /// The projected stage, for tests that run on it.
    pub staged_rows: &'a Rows,
    /// Where another asset is read; the tested asset's own new state when it is asked for that.
    pub resolve: &'a dyn Fn(&Asset) -> Option<Relation>,
}

/// Why a test has no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestBuildError {
    /// The `where=` or the expression is not closed in itself.
    #[error("the condition `{text}` cannot stand in a test")]
    Condition {
        /// The condition.
        text: String,
        /// What is wrong with it.
        source: FragmentError,
    },
    /// The parent is not readable here.
    #[error("the parent {0} cannot be read here")]
    UnknownParent(Asset),
    /// A test script brings its own query.
    #[error("the test `{0}` is a script, not a generic test")]
    IsScript(String),
}

/// Returns the scope of a test: what it says, else the slice when the table has slices, else the table. The current rows
/// of a history count as its slice.
pub fn scope_of(test: &TestDecl, has_slices: bool) -> TestScope {
    match (test.scope, has_slices) {
        (_, false) => TestScope::Table,
        (Some(scope), true) => scope,
        (None, true) => TestScope::Slice,
    }
}

/// Returns whether a test means the same on the stage as on the new state.
///
/// That is so when the stage *is* the new state of the scope: a replace of the slice for a slice's test, a replace of
/// the table for a table's test. After a merge or an append the scope also holds older rows. A relationship to the
/// asset itself reads its new state as the parent, and a script names tables itself, so neither runs on the stage.
pub fn runs_on_stage(strategy: &WriteStrategy, is_partitioned: bool, scope: TestScope, reads_itself: bool) -> bool {
    let stage_is_scope = match scope {
        TestScope::Slice => true,
        TestScope::Table => !is_partitioned,
    };
    matches!(strategy, WriteStrategy::Replace) && stage_is_scope && !reads_itself
}

/// Returns the query of a generic test.
pub fn test_query(test: &TestDecl, subject: &TestSubject<'_>) -> Result<TestQuery, TestBuildError> {
    let has_slices = subject.is_partitioned || matches!(subject.strategy, WriteStrategy::History { .. });
    let scope = scope_of(test, has_slices);
    let reads_itself = match &test.check {
        TestCheck::Relationships { parent, .. } => parent == subject.asset,
        TestCheck::Named { .. } => true,
        _ => false,
    };
    let on_stage = runs_on_stage(subject.strategy, subject.is_partitioned, scope, reads_itself);
    let rows = match (on_stage, scope) {
        (true, _) => subject.staged_rows,
        (false, TestScope::Slice) => subject.slice_rows,
        (false, TestScope::Table) => subject.table_rows,
    };
    let filter = test.filter.as_deref().map(condition).transpose()?;
    let source = Source { rows, filter };
    let (failures_sql, ignored_sql) = match &test.check {
        TestCheck::Unique(columns) => unique(&source, columns),
        TestCheck::NotNull(column) => (source.failing(&is_null(column)), None),
        TestCheck::AcceptedValues { column, values } => accepted_values(&source, column, values),
        TestCheck::Relationships { column, parent, parent_column } => {
            let relation = (subject.resolve)(parent).ok_or_else(|| TestBuildError::UnknownParent(parent.clone()))?;
            relationships(&source, column, &relation, parent_column)
        }
        TestCheck::Expression(text) => expression(&source, &condition(text)?),
        TestCheck::RowCount { min, max } => (row_count(&source, *min, *max), None),
        TestCheck::Named { name, .. } => return Err(TestBuildError::IsScript(name.clone())),
    };
    Ok(TestQuery { name: name_of(test), severity: test.severity, failures_sql, ignored_sql, on_stage })
}

/// The rows under test and the filter on them.
struct Source<'a> {
    rows: &'a Rows,
    filter: Option<Fragment>,
}

impl Source<'_> {
    /// Returns the FROM and WHERE clauses with `conditions` besides the filter.
    fn clauses(&self, conditions: &[String]) -> String {
        let filter = self.filter.iter().map(|filter| format!("({filter})"));
        let all: Vec<String> = conditions.iter().cloned().chain(filter).collect();
        let from = format!("FROM {} AS _pt_rows", self.rows.0);
        match all.is_empty() {
            true => from,
            false => format!("{from}\nWHERE {}", all.join("\n  AND ")),
        }
    }

    fn failing(&self, condition: &str) -> String {
        format!("SELECT *\n{}", self.clauses(&[condition.to_owned()]))
    }

    fn counting(&self, condition: &str) -> Option<String> {
        Some(format!("SELECT count(*) AS ignored\n{}", self.clauses(&[condition.to_owned()])))
    }
}

fn condition(text: &str) -> Result<Fragment, TestBuildError> {
    Fragment::new(text).map_err(|source| TestBuildError::Condition { text: text.to_owned(), source })
}

fn is_null(column: &str) -> String {
    format!("{} IS NULL", Ident::new(column))
}

fn is_not_null(column: &str) -> String {
    format!("{} IS NOT NULL", Ident::new(column))
}

/// Rows with a NULL in the columns are ignored; every other value must stand once.
fn unique(source: &Source<'_>, columns: &[String]) -> (String, Option<String>) {
    let names: Vec<String> = columns.iter().map(|column| Ident::new(column).to_string()).collect();
    let names = names.join(", ");
    let not_null: Vec<String> = columns.iter().map(|column| is_not_null(column)).collect();
    let any_null: Vec<String> = columns.iter().map(|column| is_null(column)).collect();
    let failures = formatdoc! {"
        SELECT {names}, count(*) AS _pt_count
        {clauses}
        GROUP BY {names}
        HAVING count(*) > 1",
        clauses = source.clauses(&not_null),
    };
    (failures, source.counting(&format!("({})", any_null.join(" OR "))))
}

/// The values are text literals, which the engine reads as the column's type, so that `1.50` is `1.5` for a number.
fn accepted_values(source: &Source<'_>, column: &str, values: &[String]) -> (String, Option<String>) {
    let is_null_word = |value: &&String| value.eq_ignore_ascii_case("null");
    let literals: Vec<String> =
        values.iter().filter(|value| !is_null_word(value)).map(|value| Literal::new(value).to_string()).collect();
    let allows_null = values.iter().any(|value| is_null_word(&value));
    let condition = match literals.is_empty() {
        true => is_not_null(column),
        false => format!("{} NOT IN ({})", Ident::new(column), literals.join(", ")),
    };
    let ignored = if allows_null { None } else { source.counting(&is_null(column)) };
    (source.failing(&condition), ignored)
}

fn relationships(
    source: &Source<'_>,
    column: &str,
    parent: &Relation,
    parent_column: &str,
) -> (String, Option<String>) {
    let (column_name, parent_column) = (Ident::new(column), Ident::new(parent_column));
    let has_no_parent = formatdoc! {"
        NOT EXISTS (
            SELECT 1
            FROM {parent} AS _pt_parent
            WHERE _pt_parent.{parent_column} = _pt_rows.{column_name}
          )"};
    let failures = format!("SELECT *\n{}", source.clauses(&[is_not_null(column), has_no_parent]));
    (failures, source.counting(&is_null(column)))
}

/// The condition must not be false; where it is NULL the row is ignored.
fn expression(source: &Source<'_>, condition: &Fragment) -> (String, Option<String>) {
    (source.failing(&format!("NOT ({condition})")), source.counting(&format!("({condition}) IS NULL")))
}

fn row_count(source: &Source<'_>, min: Option<u64>, max: Option<u64>) -> String {
    let below = min.map(|min| format!("count(*) < {min}"));
    let above = max.map(|max| format!("count(*) > {max}"));
    let outside: Vec<String> = below.into_iter().chain(above).collect();
    let outside = if outside.is_empty() { "false".to_owned() } else { outside.join(" OR ") };
    formatdoc! {"
        SELECT count(*) AS row_count
        {clauses}
        HAVING {outside}",
        clauses = source.clauses(&[]),
    }
}

/// Returns the test's name as results show it.
pub fn name_of(test: &TestDecl) -> String {
    match &test.check {
        TestCheck::Unique(columns) => format!("unique {}", columns.join(", ")),
        TestCheck::NotNull(column) => format!("not_null {column}"),
        TestCheck::AcceptedValues { column, .. } => format!("accepted_values {column}"),
        TestCheck::Relationships { column, parent, parent_column } => {
            format!("relationships {column} -> {parent}.{parent_column}")
        }
        TestCheck::Expression(text) => format!("expression \"{text}\""),
        TestCheck::RowCount { min, max } => {
            let bound = |bound: &Option<u64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
            format!("row_count {}..{}", bound(min), bound(max))
        }
        TestCheck::Named { name, arguments } if arguments.is_empty() => name.clone(),
        TestCheck::Named { name, arguments } => format!("{name} {}", arguments.join(" ")),
    }
}

#[cfg(test)]
mod tests;
