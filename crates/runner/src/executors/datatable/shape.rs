//! From the staged columns and the table as it is to the statements of the write.

use pintail_core::annotation::{SchemaPolicy, WriteStrategy};
use pintail_core::diagnostic::Code;
use pintail_core::schema::{Column, Schema, SchemaDecision, decide, diff};
use pintail_core::sql::postgres::{
    PostgresColumn, PostgresTable, StagedValue, add_columns, change_shape, comments, create_table, delete, duckdb_type,
    fitted, index, insert,
};
use pintail_core::sql::strategy::{Layout, Slice};
use pintail_core::sql::{Ident, Relation, Statement};
use sqlx::Row as _;

use super::connection::Postgres;
use super::home::Values;
use crate::executors::StepFailure;

/// One column that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The name.
    pub name: String,
    /// Its type in a table that is made for it.
    pub home: String,
    /// Where its values come from.
    pub value: StagedValue,
}

/// A table, where it is and what it looks like.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its true name.
    pub relation: Relation,
    /// Its columns.
    pub table: PostgresTable,
    /// The columns that have a value of their own when none is given.
    pub defaulted: Vec<String>,
}

/// What a write is shaped from.
pub struct ShapeFacts<'a> {
    /// What is written.
    pub incoming: &'a [Incoming],
    /// The table as it is; `None` when it does not exist.
    pub table: Option<&'a Described>,
    /// The name of the table when it must be made.
    pub target: Relation,
    /// Whether the schema of a table to be made exists.
    pub schema_exists: bool,
    /// The strategy.
    pub strategy: &'a WriteStrategy,
    /// What a difference of columns means.
    pub policy: SchemaPolicy,
    /// The rows of the partition.
    pub slice: Option<&'a Slice>,
    /// Descriptions.
    pub layout: &'a Layout,
}

/// The write.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// Statements that make or change the table.
    pub shaping: Vec<Statement>,
    /// The statement that makes room.
    pub delete: Option<Statement>,
    /// The statement that inserts.
    pub insert: Option<Statement>,
    /// The columns afterwards, in the engine's types.
    pub schema: Schema,
    /// Whether the columns change.
    pub schema_changes: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Returns the table `schema.table`, names compared without case; the exact spelling wins.
pub fn describe(postgres: &mut Postgres, schema: &str, table: &str) -> Result<Option<Described>, StepFailure> {
    let sql = "
        WITH found AS (
          SELECT c.oid, c.relkind::text AS kind, n.nspname, c.relname
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE lower(n.nspname) = lower($1) AND lower(c.relname) = lower($2)
            AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
          ORDER BY n.nspname = $1 DESC, c.relname = $2 DESC
          LIMIT 1
        )
        SELECT found.nspname::text, found.relname::text, found.kind, a.attname::text,
          format_type(a.atttypid, a.atttypmod), a.atthasdef OR a.attidentity <> ''
        FROM found
        LEFT JOIN pg_attribute a ON a.attrelid = found.oid AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attnum";
    let values = Values::default().with(schema.to_owned()).with(table.to_owned()).done();
    type Found = (String, String, String, Option<String>, Option<String>, Option<bool>);
    let rows: Vec<Found> = postgres.rows("describe the table", sql, values, |row| {
        Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?, row.try_get(5)?))
    })?;
    let Some((schema, table, kind, ..)) = rows.first() else { return Ok(None) };
    let relation = Relation { catalog: None, schema: Some(Ident::new(schema)), table: Ident::new(table) };
    let is_no_table = !matches!(kind.as_str(), "r" | "p");
    let mut found = PostgresTable { columns: Vec::new(), is_no_table };
    let mut defaulted = Vec::new();
    for (.., name, data_type, has_default) in &rows {
        let (Some(name), Some(data_type)) = (name, data_type) else { continue };
        if *has_default == Some(true) {
            defaulted.push(name.clone());
        }
        found.columns.push(PostgresColumn { name: name.clone(), data_type: data_type.clone() });
    }
    Ok(Some(Described { relation, table: found, defaulted }))
}

/// Returns the write, or why it must not happen.
pub fn shape(facts: &ShapeFacts<'_>) -> Result<Write, StepFailure> {
    let queried = Schema {
        columns: facts
            .incoming
            .iter()
            .map(|column| Column { name: column.name.clone(), data_type: duckdb_type(&column.home) })
            .collect(),
    };
    let Some(described) = facts.table else { return Ok(first_write(facts, queried)) };
    let table = held(described, &queried);
    let mut write = Write { schema: table.clone(), ..Write::default() };
    let mut written: Vec<Incoming> = facts.incoming.to_vec();
    let home = |name: &str| {
        let column = facts.incoming.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        column.map_or_else(|| "text".to_owned(), |column| column.home.clone())
    };
    match decide(diff(&table, &queried), facts.policy) {
        SchemaDecision::Write => {}
        SchemaDecision::AddColumns(columns) => {
            write.notes.push(format!("adds {}", names(&columns)));
            let added: Vec<PostgresColumn> = columns
                .iter()
                .map(|column| PostgresColumn { name: column.name.clone(), data_type: home(&column.name) })
                .collect();
            write.shaping.push(add_columns(&described.relation, &added));
            write.schema.columns.extend(columns);
            write.schema_changes = true;
        }
        SchemaDecision::Rebuild { diff, .. } => {
            write.notes.push(format!("changes the table's columns:\n{diff}"));
            write.shaping.push(change_shape(&described.relation, &diff, home));
            write.schema = queried;
            write.schema_changes = true;
        }
        SchemaDecision::WriteOnlyKnown { dropped, missing } => {
            for (columns, what) in [(&dropped, "not written"), (&missing, "NULL")] {
                if !columns.is_empty() {
                    write.notes.push(format!("{what} (on_schema_change ignore): {}", names(columns)));
                }
            }
            let is_dropped = |name: &str| dropped.iter().any(|column| column.name.eq_ignore_ascii_case(name));
            written.retain(|column| !is_dropped(&column.name));
        }
        SchemaDecision::Refuse { diff } => {
            let message = format!("the query's columns are not those of {}:\n{diff}", described.relation.table.0);
            return Err(StepFailure::user(Code::SCHEMA_CHANGED, "compare the columns", message).with_help(
                "change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) \
                 or `on_schema_change sync_all_columns` (the table takes the query's shape)",
            ));
        }
    }
    let values = written.into_iter().map(|column| {
        let own = described.table.column(&column.name).filter(|_| !retypes(&write, &column.name));
        let target = own.cloned().unwrap_or(PostgresColumn { name: column.name, data_type: column.home });
        (target, column.value)
    });
    write.insert = Some(insert(&described.relation, &values.collect::<Vec<_>>()));
    write.delete = delete(&described.relation, facts.strategy, facts.slice);
    Ok(write)
}

/// After a change of shape the columns have the query's types.
fn retypes(write: &Write, column: &str) -> bool {
    let retyped = format!("ALTER COLUMN {} TYPE", Ident::new(column));
    write.shaping.iter().any(|statement| statement.sql.contains(&retyped))
}

fn first_write(facts: &ShapeFacts<'_>, schema: Schema) -> Write {
    let column = |column: &Incoming| PostgresColumn { name: column.name.clone(), data_type: column.home.clone() };
    let columns: Vec<PostgresColumn> = facts.incoming.iter().map(column).collect();
    let values: Vec<_> = facts.incoming.iter().map(|incoming| (column(incoming), incoming.value.clone())).collect();
    let mut shaping = create_table(&facts.target, &columns, facts.schema_exists);
    shaping.extend(index(&facts.target, facts.strategy, facts.slice));
    let known = |name: &String| schema.column(name).is_some();
    let described: Vec<(String, String)> =
        facts.layout.column_comments.iter().filter(|(name, _)| known(name)).cloned().collect();
    shaping.extend(comments(&facts.target, facts.layout.comment.as_deref(), &described));
    Write {
        shaping,
        delete: None,
        insert: Some(insert(&facts.target, &values)),
        schema,
        schema_changes: true,
        notes: Vec::new(),
    }
}

/// Returns the table's columns in the engine's types, without those that fill themselves and the query does not give.
fn held(described: &Described, queried: &Schema) -> Schema {
    let columns = described.table.columns.iter().filter_map(|column| {
        let given = queried.column(&column.name);
        if given.is_none() && described.defaulted.contains(&column.name) {
            return None;
        }
        let data_type = match given {
            Some(given) => fitted(&column.data_type, &given.data_type),
            None => duckdb_type(&column.data_type),
        };
        Some(Column { name: column.name.clone(), data_type })
    });
    Schema { columns: columns.collect() }
}

fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| format!("`{}` {}", column.name, column.data_type)).collect::<Vec<_>>().join(", ")
}
