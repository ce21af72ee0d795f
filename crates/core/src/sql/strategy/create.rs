//! The table itself: its first write, added columns, and a new table of another shape.
//!
//! Invariant: a table is made empty, then partitioned, then filled, because rows that come with CREATE TABLE … AS land
//! outside the partitions. A new table is a new generation: its id changes and its change feed starts anew.

use indoc::formatdoc;

use super::{Projection, Slice, Target};
use crate::partition::TimeUnit;
use crate::schema::Column;
use crate::sql::{Ident, Literal, Relation, Statement};

/// What a table has besides columns.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    /// How its files are partitioned.
    pub partition_by: PartitionBy,
    /// Its description.
    pub comment: Option<String>,
    /// Descriptions of columns: `(column, text)`.
    pub column_comments: Vec<(String, String)>,
}

/// How a table's files are partitioned.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum PartitionBy {
    /// Not at all.
    #[default]
    Nothing,
    /// By the values of the identity column.
    Identity(String),
    /// By the calendar parts of a column, down to the unit.
    Calendar {
        /// The column.
        column: String,
        /// The unit; a week is partitioned by day.
        unit: TimeUnit,
    },
}

/// The rows of other slices, carried from a table of the old shape into the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The slice that the stage replaces; every other row is kept, and all are without one.
    pub replaced: Option<Slice>,
    /// The select list over the old table, in the types of the new one.
    pub projection: Projection,
}

/// Returns the statements that make the target's table, empty, in the shape of its projection.
pub fn create(target: &Target, layout: &Layout) -> Vec<Statement> {
    empty_table("CREATE TABLE", "create the table", target, layout)
}

/// Returns the statements that make the target's table with the staged rows in it, for a table without partitions.
pub fn create_filled(target: &Target, layout: &Layout) -> Vec<Statement> {
    debug_assert!(layout.partition_by == PartitionBy::Nothing, "rows of CREATE TABLE AS land outside the partitions");
    let table = &target.write;
    let sql = formatdoc! {"
        CREATE TABLE {table} AS
        SELECT
        {projection}
        FROM {stage}",
        projection = target.projection,
        stage = target.stage,
    };
    let mut statements = vec![Statement::new(CREATE_FILLED, sql)];
    statements.extend(comments(table, layout));
    statements
}

/// What a statement is for that makes a table and inserts the staged rows at once.
pub const CREATE_FILLED: &str = "create the table with the staged rows";

/// Returns the statements that add `columns` to `table`; without defaults, since a default must be a literal.
pub fn add_columns(table: &Relation, columns: &[Column]) -> Vec<Statement> {
    let add = |column: &Column| {
        let sql = format!("ALTER TABLE {table} ADD COLUMN {} {}", Ident::new(&column.name), column.data_type);
        Statement::new("add a column", sql)
    };
    columns.iter().map(add).collect()
}

/// Returns the statements that put a new table of the projection's shape in the place of the old one, with the old rows
/// that are kept; the write of the stage comes after them.
///
/// The old rows go through a temp table first: once the table is replaced, its name means the new one in this
/// transaction, also with AT (VERSION => …).
pub fn rebuild(target: &Target, layout: &Layout, kept: Option<&Kept>) -> Vec<Statement> {
    let old_rows = Relation::temp("_pt_kept");
    let mut statements = Vec::new();
    if let Some(kept) = kept {
        let sql = formatdoc! {"
            CREATE OR REPLACE TEMP TABLE {old_rows} AS
            SELECT
            {projection}
            FROM {table}{others}",
            projection = kept.projection,
            table = target.write,
            others = kept.replaced.as_ref().map_or_else(String::new, |slice| {
                format!("\nWHERE ({}) IS NOT TRUE", slice.predicate(None))
            }),
        };
        statements.push(Statement::new("set the kept rows aside", sql));
    }
    statements.extend(empty_table(
        "CREATE OR REPLACE TABLE",
        "replace the table by one of the new shape",
        target,
        layout,
    ));
    if kept.is_some() {
        let sql = formatdoc! {"
            INSERT INTO {table} BY NAME
            SELECT *
            FROM {old_rows}",
            table = target.write,
        };
        statements.push(Statement::new("insert the kept rows", sql));
        statements.push(Statement::new("drop what was set aside", format!("DROP TABLE {old_rows}")));
    }
    statements
}

fn empty_table(create: &str, purpose: &'static str, target: &Target, layout: &Layout) -> Vec<Statement> {
    let table = &target.write;
    let sql = formatdoc! {"
        {create} {table} AS
        SELECT
        {projection}
        FROM {stage}
        LIMIT 0",
        projection = target.projection,
        stage = target.stage,
    };
    let mut statements = vec![Statement::new(purpose, sql)];
    if let Some(spec) = partition_spec(&layout.partition_by) {
        statements.push(Statement::new(
            "partition the table",
            formatdoc! {"
                ALTER TABLE {table}
                SET PARTITIONED BY ({spec})",
            },
        ));
    }
    statements.extend(comments(table, layout));
    statements
}

impl PartitionBy {
    /// Returns the partition keys in order, as the lake's catalog names them: a column and its transform.
    pub fn keys(&self) -> Vec<(String, &'static str)> {
        match self {
            PartitionBy::Nothing => Vec::new(),
            PartitionBy::Identity(column) => vec![(column.clone(), "identity")],
            PartitionBy::Calendar { column, unit } => {
                let parts: &[&'static str] = match unit {
                    TimeUnit::Month => &["year", "month"],
                    TimeUnit::Day | TimeUnit::Week => &["year", "month", "day"],
                    TimeUnit::Hour => &["year", "month", "day", "hour"],
                };
                parts.iter().map(|part| (column.clone(), *part)).collect()
            }
        }
    }
}

fn partition_spec(partition_by: &PartitionBy) -> Option<String> {
    let keys: Vec<String> = partition_by
        .keys()
        .iter()
        .map(|(column, transform)| match *transform {
            "identity" => Ident::new(column).to_string(),
            transform => format!("{transform}({})", Ident::new(column)),
        })
        .collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}

fn comments(table: &Relation, layout: &Layout) -> Vec<Statement> {
    let of_table = layout.comment.iter().map(|comment| {
        Statement::new("describe the table", format!("COMMENT ON TABLE {table} IS {}", Literal::new(comment)))
    });
    let of_columns = layout.column_comments.iter().map(|(column, comment)| {
        let sql = format!("COMMENT ON COLUMN {table}.{} IS {}", Ident::new(column), Literal::new(comment));
        Statement::new("describe a column", sql)
    });
    of_table.chain(of_columns).collect()
}
