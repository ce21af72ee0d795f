//! The statements that put a staged result into a Postgres table, inside one transaction.
//!
//! The stage is a temporary table of the same session. Keys compare with `=`: a staged key is never NULL (a guard saw to
//! that), and unlike IS NOT DISTINCT FROM it can use an index or a hash.

use indoc::formatdoc;

use crate::annotation::WriteStrategy;
use crate::schema::SchemaDiff;
use crate::sql::strategy::Slice;
use crate::sql::{Ident, Literal, Relation, Statement};

/// The stage's name inside a Postgres transaction.
pub const STAGE_IN_POSTGRES: &str = "_pt_stage";

/// One column of a Postgres table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresColumn {
    /// The name, as the table spells it.
    pub name: String,
    /// The type, as `format_type` prints it.
    pub data_type: String,
}

/// A Postgres table as its catalog describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostgresTable {
    /// The columns in order.
    pub columns: Vec<PostgresColumn>,
    /// Whether it is something else than a plain or partitioned table, such as a view.
    pub is_no_table: bool,
}

impl PostgresTable {
    /// Returns the column named `name`, case ignored.
    pub fn column(&self, name: &str) -> Option<&PostgresColumn> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// What goes into one column of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StagedValue {
    /// The staged column of that name.
    Column(String),
    /// One text for every row: the partition's identity.
    Text(String),
}

/// Returns the statement that makes the empty stage.
pub fn create_stage(columns: &[PostgresColumn]) -> Statement {
    let sql = format!(
        "CREATE TEMPORARY TABLE {} (\n{}\n) ON COMMIT DROP",
        Ident::new(STAGE_IN_POSTGRES),
        definitions(columns)
    );
    Statement::new("make the stage in the transaction", sql)
}

/// Returns the statements that make the target; the schema is made when it is missing.
pub fn create_table(target: &Relation, columns: &[PostgresColumn], schema_exists: bool) -> Vec<Statement> {
    let schema = target.schema.iter().filter(|_| !schema_exists);
    let mut statements: Vec<Statement> = schema
        .map(|schema| Statement::new("create the schema", format!("CREATE SCHEMA IF NOT EXISTS {schema}")))
        .collect();
    let sql = format!("CREATE TABLE {target} (\n{}\n)", definitions(columns));
    statements.push(Statement::new("create the table", sql));
    statements
}

/// Returns the statement that makes what a write looks for findable: the key of a merge, the column of the slices.
pub fn index(target: &Relation, strategy: &WriteStrategy, slice: Option<&Slice>) -> Option<Statement> {
    let mut columns: Vec<String> = slice.iter().map(|slice| Ident::new(slice.column()).to_string()).collect();
    if let WriteStrategy::Merge { key, .. } = strategy {
        columns.extend(key.iter().map(|column| Ident::new(column).to_string()));
    }
    columns.dedup();
    let sql = format!("CREATE INDEX ON {target} ({})", columns.join(", "));
    (!columns.is_empty()).then(|| Statement::new("index what later writes look for", sql))
}

/// Returns the statements that describe the table and its columns for people.
pub fn comments(target: &Relation, table: Option<&str>, columns: &[(String, String)]) -> Vec<Statement> {
    let table = table.map(|text| format!("COMMENT ON TABLE {target} IS {}", Literal::new(text)));
    let columns = columns
        .iter()
        .map(|(column, text)| format!("COMMENT ON COLUMN {target}.{} IS {}", Ident::new(column), Literal::new(text)));
    table.into_iter().chain(columns).map(|sql| Statement::new("describe the table", sql)).collect()
}

/// Returns the statement that adds columns; rows that are there hold NULL in them.
pub fn add_columns(target: &Relation, columns: &[PostgresColumn]) -> Statement {
    let added: Vec<String> = columns.iter().map(|column| format!("  ADD COLUMN {}", definition(column))).collect();
    Statement::new("add the new columns", format!("ALTER TABLE {target}\n{}", added.join(",\n")))
}

/// Returns the statement that gives the table the shape that `diff` leads to; `home` is the Postgres type of a column.
pub fn change_shape(target: &Relation, diff: &SchemaDiff, home: impl Fn(&str) -> String) -> Statement {
    let dropped = diff.removed.iter().map(|removed| format!("  DROP COLUMN {}", Ident::new(&removed.column.name)));
    let added = diff
        .added
        .iter()
        .map(|added| format!("  ADD COLUMN {} {}", Ident::new(&added.column.name), home(&added.column.name)));
    let retyped = diff.retyped.iter().map(|retyped| {
        let (column, to) = (Ident::new(&retyped.column), home(&retyped.column));
        format!("  ALTER COLUMN {column} TYPE {to} USING CAST({column} AS {to})")
    });
    let parts: Vec<String> = dropped.chain(added).chain(retyped).collect();
    Statement::new("give the table its new shape", format!("ALTER TABLE {target}\n{}", parts.join(",\n")))
}

/// Returns the statement that makes room for the staged rows, when the strategy deletes anything.
pub fn delete(target: &Relation, strategy: &WriteStrategy, slice: Option<&Slice>) -> Option<Statement> {
    match (strategy, slice) {
        (WriteStrategy::Replace, None) => Some(Statement::new("delete the old rows", format!("DELETE FROM {target}"))),
        (WriteStrategy::Replace, Some(slice)) => {
            let sql = format!("DELETE FROM {target}\nWHERE {}", slice.predicate(None));
            Some(Statement::new("delete the slice", sql))
        }
        (WriteStrategy::Merge { key, .. }, slice) => Some(delete_keys(target, key, slice)),
        _ => None,
    }
}

fn delete_keys(target: &Relation, key: &[String], slice: Option<&Slice>) -> Statement {
    let same_key: Vec<String> =
        key.iter().map(|column| format!("_pt_new.{column} = _pt_old.{column}", column = Ident::new(column))).collect();
    let in_slice = slice.map(|slice| format!("\n  AND {}", slice.predicate(Some("_pt_old")))).unwrap_or_default();
    let sql = formatdoc! {"
        DELETE FROM {target} AS _pt_old
        WHERE EXISTS (
          SELECT 1
          FROM {stage} AS _pt_new
          WHERE {same_key}
        ){in_slice}",
        stage = Ident::new(STAGE_IN_POSTGRES),
        same_key = same_key.join("\n    AND "),
    };
    Statement::new("delete the rows with staged keys", sql)
}

/// Returns the statement that inserts the stage; each value is cast to the column's own type.
pub fn insert(target: &Relation, values: &[(PostgresColumn, StagedValue)]) -> Statement {
    let names: Vec<String> = values.iter().map(|(column, _)| Ident::new(&column.name).to_string()).collect();
    let expressions: Vec<String> = values
        .iter()
        .map(|(column, value)| match value {
            StagedValue::Column(staged) => format!("  CAST({} AS {})", Ident::new(staged), column.data_type),
            StagedValue::Text(text) => format!("  CAST({} AS {})", Literal::new(text), column.data_type),
        })
        .collect();
    let sql = format!(
        "INSERT INTO {target} ({})\nSELECT\n{}\nFROM {}",
        names.join(", "),
        expressions.join(",\n"),
        Ident::new(STAGE_IN_POSTGRES)
    );
    Statement::new("insert the staged rows", sql)
}

fn definitions(columns: &[PostgresColumn]) -> String {
    columns.iter().map(|column| format!("  {}", definition(column))).collect::<Vec<_>>().join(",\n")
}

fn definition(column: &PostgresColumn) -> String {
    format!("{} {}", Ident::new(&column.name), column.data_type)
}
