//! Makes the table, and puts its layout right where it differs from what it should be.

use pintail_core::sql::{Ident, Statement};
use pintail_engine::lake::{self, TableFacts};
use pintail_engine::{EngineError, ErrorClass, WriteTransaction};
use pintail_streams::Writer;
use pintail_streams::commit::make_table;

use super::{COLUMNS, PARTITION, RawTable, SORT};

/// A table that cannot take raw events.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// There is a view or table of that name with other columns.
    #[error("{table} cannot take raw events: {reason}; name another one as `table` in `[ingest]`, or rename this one")]
    Columns {
        /// The table.
        table: String,
        /// What differs.
        reason: String,
    },
    /// The lake failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Makes the table where it is missing, checks its columns, and sets partition and sort keys where they differ.
pub fn prepare(writer: &Writer, table: &RawTable) -> Result<(), LayoutError> {
    make_table(writer, &table.schema, &table.name, &create(writer.alias(), table))?;
    let facts = lake::table_facts(writer.session(), writer.alias(), &table.schema, &table.name)?;
    let facts = facts.ok_or_else(|| EngineError::Answer {
        purpose: "look the raw table up",
        detail: format!("{table} was made and is not there"),
    })?;
    if let Some(reason) = misfit(&facts) {
        return Err(LayoutError::Columns { table: table.to_string(), reason });
    }
    set_again(writer, table, &facts)?;
    Ok(())
}

fn create(alias: &str, table: &RawTable) -> Vec<Statement> {
    let columns: Vec<String> =
        COLUMNS.iter().map(|(name, data_type)| format!("  {} {data_type}", Ident::new(*name))).collect();
    let schema = format!("{}.{}", Ident::new(alias), Ident::new(&table.schema));
    let create = format!("CREATE TABLE {} (\n{}\n)", table.relation(alias), columns.join(",\n"));
    vec![
        Statement::new("make the schema", format!("CREATE SCHEMA IF NOT EXISTS {schema}")),
        Statement::new("make the table of raw events", create),
        set_partition(alias, table),
        set_sort(alias, table),
    ]
}

fn set_partition(alias: &str, table: &RawTable) -> Statement {
    let keys = PARTITION.map(|(column, transform)| match transform {
        "identity" => Ident::new(column).to_string(),
        function => format!("{function}({})", Ident::new(column)),
    });
    let sql = format!("ALTER TABLE {} SET PARTITIONED BY ({})", table.relation(alias), keys.join(", "));
    Statement::new("partition the table of raw events", sql)
}

fn set_sort(alias: &str, table: &RawTable) -> Statement {
    let keys = SORT.map(|column| Ident::new(column).to_string());
    let sql = format!("ALTER TABLE {} SET SORTED BY ({})", table.relation(alias), keys.join(", "));
    Statement::new("sort the table of raw events", sql)
}

/// Returns what keeps a table from taking raw events.
fn misfit(facts: &TableFacts) -> Option<String> {
    if facts.is_view {
        return Some("it is a view".to_owned());
    }
    for (index, (name, data_type)) in COLUMNS.iter().enumerate() {
        let Some(found) = facts.schema.columns.get(index) else { return Some(format!("it has no column `{name}`")) };
        if found.name != *name || found.data_type != *data_type {
            return Some(format!(
                "column {} must be `{name}` {data_type}, found `{}` {}",
                index + 1,
                found.name,
                found.data_type
            ));
        }
    }
    // More columns at the end stay NULL.
    None
}

/// Sets what differs, in a commit of its own; another process that does the same at once is no failure.
fn set_again(writer: &Writer, table: &RawTable, facts: &TableFacts) -> Result<(), EngineError> {
    let alias = writer.alias();
    let wanted = PARTITION.map(|(column, transform)| (column.to_owned(), transform.to_owned()));
    let mut statements = Vec::new();
    if facts.partition != wanted {
        statements.push(set_partition(alias, table));
    }
    if let Some(id) = facts.committed_id()
        && lake::sort_keys(writer.session(), alias, id)? != SORT
    {
        statements.push(set_sort(alias, table));
    }
    if statements.is_empty() {
        return Ok(());
    }
    tracing::warn!(%table, "partition or sort keys differ from those of raw events, and are set again");
    let lane = writer.lake().lane();
    let _pass = lane.enter_within(writer.faults().patience(), &|| false)?;
    let transaction = WriteTransaction::begin(writer.session(), alias)?;
    let attempt = pintail_core::id::AttemptId(uuid::Uuid::now_v7().to_string());
    let words = pintail_engine::transaction::CommitWords {
        attempt: &attempt,
        message: &format!("lay {table} out as raw events"),
        extra_info: &serde_json::json!({"pintail": 1, "entries": [], "stream": {"attempt": attempt}}).to_string(),
    };
    writer.session().run_all(&statements)?;
    match transaction.commit(&words, || {}) {
        Err(error) if error.class() == ErrorClass::Conflict => Ok(()),
        committed => committed.map(|_| ()),
    }
}
