//! From the stage's columns and the table as it is to the statements of the write: pure, so that `plan --sql` shows what
//! a run sends.

use std::collections::BTreeMap;

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::{Code, nearest};
use pintail_core::partition::{PartitionKey, SliceLayout, TimeSpec, layout, slice_bounds};
use pintail_core::plan::Step;
use pintail_core::schema::{Column, Schema, SchemaDecision, contract_diff, decide, diff, lake_schema};
use pintail_core::sql::strategy::{
    Comparison, Kept, Layout, PartitionBy, Slice, Target, add_columns, append, kept_projection, merge, projection,
    rebuild, write,
};
use pintail_core::sql::{Relation, Statement};
use pintail_engine::lake::TableFacts;

use super::history::{self, HistoryShape, Surroundings};
use super::unchanged;
use crate::executors::StepFailure;
use crate::project::CompiledScript;

/// What a write is shaped from.
pub struct ShapeFacts<'a> {
    /// The script.
    pub script: &'a CompiledScript,
    /// The step.
    pub step: &'a Step,
    /// The stage's columns.
    pub staged: &'a Schema,
    /// The stage.
    pub stage: &'a Relation,
    /// The table as it is; `None` when it does not exist.
    pub table: Option<&'a TableFacts>,
    /// The table under the write alias.
    pub write: Relation,
    /// The strategy, a full refresh taken into account.
    pub strategy: &'a WriteStrategy,
    /// What else it depends on.
    pub beside: Surroundings,
}

/// The write.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Where it goes and where its rows come from.
    pub target: Target,
    /// The rows that belong to the partition.
    pub slice: Option<Slice>,
    /// The window that every row must lie in.
    pub window: Option<Slice>,
    /// What is asked before the transaction, when nothing may have to be written.
    pub comparison: Option<Comparison>,
    /// Rows in the slice after a write of what differs, when the stage says so.
    pub rows_after: Option<u64>,
    /// What the guards of a history look at.
    pub history: Option<HistoryShape>,
    /// What is sent inside the transaction, in order.
    pub statements: Vec<Statement>,
    /// The table's columns afterwards.
    pub schema: Schema,
    /// How the table is partitioned, as [`TableFacts::partition`] says it.
    pub partition: Vec<(String, String)>,
    /// Whether the columns change.
    pub schema_changes: bool,
    /// Whether the table is made anew.
    pub is_new_generation: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Shape {
    /// Returns everything that may be sent, in order.
    pub fn into_statements(self) -> Vec<Statement> {
        let before = self.comparison.iter().flat_map(Comparison::statements).cloned();
        before.chain(self.statements.iter().cloned()).collect()
    }
}

/// The slice of a partitioned script, and how the table holds it.
struct Sliced {
    partition_by: PartitionBy,
    slice: Slice,
    window: Option<Slice>,
    identity: Option<(String, String)>,
}

impl Sliced {
    /// The slice of a partition that is a value: the rows whose identity column holds it.
    fn of_value(column: &str, key: &PartitionKey) -> Self {
        Self {
            partition_by: PartitionBy::Identity(column.to_owned()),
            slice: Slice::identity(column, key),
            window: None,
            identity: Some((column.to_owned(), key.to_string())),
        }
    }
}

/// Returns the write, or why it must not happen.
pub fn shape(facts: &ShapeFacts<'_>) -> Result<Shape, StepFailure> {
    let script = facts.script;
    let sliced = match (script.time_spec(), &facts.step.partition) {
        (Some(spec), Some(key)) => Some(sliced(script, facts.staged, spec, key)?),
        (None, Some(key)) => Some(Sliced::of_value(script.identity_column(), key)),
        _ => None,
    };
    let identity = sliced.as_ref().and_then(|sliced| sliced.identity.clone());
    let mut notes = Vec::new();
    let own_columns = without_identity(facts.staged, identity.as_ref(), &mut notes);
    let declared = || script.header.columns.iter().map(|column| &column.value);
    let held = lake_schema(&own_columns, declared()).map_err(refused_types)?;
    check_contract(script, &held.schema, &mut notes)?;
    check_key(facts, &held.schema)?;
    history::check_columns(facts, &held.schema)?;

    let mut schema = held.schema.clone();
    schema.columns.extend(history::own_columns(facts.strategy));
    if let Some((column, _)) = &identity {
        schema.columns.push(Column { name: column.clone(), data_type: "VARCHAR".to_owned() });
    }
    let mut casts: BTreeMap<String, String> =
        held.casts.iter().map(|cast| (cast.name.to_ascii_lowercase(), cast.data_type.clone())).collect();
    let layout = Layout {
        partition_by: sliced.as_ref().map(|sliced| sliced.partition_by.clone()).unwrap_or_default(),
        ..script.layout_words()
    };
    let mut shape = Shape {
        target: Target {
            write: facts.write.clone(),
            stage: facts.stage.clone(),
            projection: pintail_core::sql::strategy::Projection::default(),
        },
        slice: sliced.as_ref().map(|sliced| sliced.slice.clone()),
        window: sliced.and_then(|sliced| sliced.window),
        comparison: None,
        rows_after: None,
        history: None,
        statements: Vec::new(),
        schema: schema.clone(),
        partition: spec_of(&layout.partition_by),
        schema_changes: facts.table.is_none(),
        is_new_generation: false,
        notes,
    };
    let identity = identity.as_ref().map(|(column, value)| (column.as_str(), value.as_str()));
    let decision = match facts.table {
        None => SchemaDecision::Write,
        Some(table) => {
            check_partition_spec(facts, table, &layout)?;
            history::keep_columns(facts.strategy, decide(diff(&table.schema, &schema), script.header.on_schema_change))
        }
    };
    let mut dropped = Vec::new();
    match decision {
        SchemaDecision::Write => {}
        SchemaDecision::AddColumns(columns) => {
            shape.notes.push(format!("adds {}", names(&columns)));
            shape.statements.extend(add_columns(&facts.write, &columns));
            shape.schema = extended(facts.table, &columns);
            shape.schema_changes = true;
        }
        SchemaDecision::WriteOnlyKnown { dropped: unknown, missing } => {
            if !unknown.is_empty() {
                shape.notes.push(format!(
                    "{} not written (on_schema_change ignore): {}",
                    count(unknown.len()),
                    names(&unknown)
                ));
            }
            if !missing.is_empty() {
                shape.notes.push(format!(
                    "{} NULL (on_schema_change ignore): {}",
                    count(missing.len()),
                    names(&missing)
                ));
            }
            dropped = unknown.into_iter().map(|column| column.name).collect();
            shape.schema = facts.table.map(|table| table.schema.clone()).unwrap_or_default();
        }
        SchemaDecision::Rebuild { columns, diff } => {
            shape.notes.push(format!("makes the table anew in another shape:\n{diff}"));
            shape.schema = Schema { columns };
            shape.schema_changes = true;
            shape.is_new_generation = true;
            casts.extend(shape.schema.columns.iter().filter_map(|column| {
                let staged = own_columns.column(&column.name)?;
                (staged.data_type != column.data_type)
                    .then(|| (column.name.to_ascii_lowercase(), column.data_type.clone()))
            }));
        }
        SchemaDecision::Refuse { diff } => {
            return Err(StepFailure::user(
                Code::SCHEMA_CHANGED,
                "compare the columns",
                format!("the query's columns are not those of {}:\n{diff}", facts.write.table.0),
            )
            .with_help(match facts.strategy {
                WriteStrategy::History { .. } => {
                    "change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) \
                     or `on_schema_change ignore`; a history keeps the columns that it has"
                }
                _ => {
                    "change the query, or say what shall happen: `on_schema_change append_new_columns` (new columns only) \
                     or `on_schema_change sync_all_columns` (the table takes the query's shape)"
                }
            }));
        }
    }
    shape.target.projection = projection(facts.staged, &casts, &dropped, identity);
    let statements = match unchanged::compared_write(facts, &mut shape) {
        Some(statements) => statements,
        None => match history::write(facts, &mut shape, &layout) {
            Some(statements) => statements,
            None => statements(facts, &shape, &layout)?,
        },
    };
    shape.statements.extend(statements);
    Ok(shape)
}

fn statements(facts: &ShapeFacts<'_>, shape: &Shape, layout: &Layout) -> Result<Vec<Statement>, StepFailure> {
    let slice = shape.slice.as_ref();
    let (true, Some(table)) = (shape.is_new_generation, facts.table) else {
        return write(facts.strategy, &shape.target, slice, layout, facts.table.is_some()).map_err(|unsupported| {
            StepFailure::user(Code::ENGINE_ERROR, "choose the write", unsupported.message).with_help(unsupported.help)
        });
    };
    let kept = |replaced: Option<Slice>| Kept { replaced, projection: kept_projection(&table.schema, &shape.schema) };
    let (kept_rows, stage) = match facts.strategy {
        WriteStrategy::Merge { key, .. } => (Some(kept(None)), merge(&shape.target, key, slice)),
        WriteStrategy::Append => (Some(kept(None)), append(&shape.target)),
        _ => (slice.map(|slice| kept(Some(slice.clone()))), append(&shape.target)),
    };
    let mut statements = rebuild(&shape.target, layout, kept_rows.as_ref());
    statements.extend(stage);
    Ok(statements)
}

/// Returns the rows of `key` in a table or stage of `script` with the columns `schema`.
pub fn slice_of(script: &CompiledScript, schema: &Schema, key: &PartitionKey) -> Result<Slice, StepFailure> {
    match script.time_spec() {
        Some(spec) => Ok(sliced(script, schema, spec, key)?.slice),
        None => Ok(Sliced::of_value(script.identity_column(), key).slice),
    }
}

/// Returns how the table of `script` with the columns `schema` is partitioned.
pub fn partitions_of(script: &CompiledScript, schema: &Schema) -> Result<PartitionBy, StepFailure> {
    let Some(spec) = script.time_spec() else {
        let has_values = script.payload_path().is_some();
        return Ok(match has_values {
            true => PartitionBy::Identity(script.identity_column().to_owned()),
            false => PartitionBy::Nothing,
        });
    };
    // Which partition is asked for makes no difference to the layout.
    let key = spec.last_closed(chrono::DateTime::UNIX_EPOCH);
    Ok(sliced(script, schema, spec, &key)?.partition_by)
}

fn sliced(
    script: &CompiledScript,
    schema: &Schema,
    spec: &TimeSpec,
    key: &PartitionKey,
) -> Result<Sliced, StepFailure> {
    let wrong = |error: pintail_core::partition::LayoutError| {
        StepFailure::user(Code::ENGINE_ERROR, "find the slice", error.to_string()).at(script
            .header
            .partitioned
            .as_ref()
            .map(|partitioned| partitioned.span))
    };
    let identity_column = script.identity_column();
    let by_type = spec.by.as_ref().and_then(|by| Some(schema.column(by)?.data_type.clone()));
    let slice_layout = layout(spec, by_type.as_deref(), identity_column).map_err(wrong)?;
    let window = match (&spec.by, &by_type) {
        (Some(by), Some(data_type)) => {
            let (lower, upper) = slice_bounds(spec, key, data_type).map_err(wrong)?;
            Some(Slice::Window { column: by.clone(), lower, upper })
        }
        _ => None,
    };
    Ok(match (slice_layout, window) {
        (SliceLayout::Transforms { column, .. }, Some(window)) => Sliced {
            partition_by: PartitionBy::Calendar { column, unit: spec.unit },
            slice: window.clone(),
            window: Some(window),
            identity: None,
        },
        (SliceLayout::Transforms { column, .. } | SliceLayout::Identity { column }, window) => Sliced {
            partition_by: PartitionBy::Identity(column.clone()),
            slice: Slice::identity(column.clone(), key),
            window,
            identity: Some((column, key.to_string())),
        },
    })
}

/// Returns the staged columns without an identity column that came from an upstream.
fn without_identity(staged: &Schema, identity: Option<&(String, String)>, notes: &mut Vec<String>) -> Schema {
    let Some((column, _)) = identity else { return staged.clone() };
    let (inherited, own): (Vec<Column>, Vec<Column>) =
        staged.columns.iter().cloned().partition(|staged| staged.name.eq_ignore_ascii_case(column));
    if !inherited.is_empty() {
        notes.push(format!("the column `{column}` of an upstream is replaced by this script's own"));
    }
    Schema { columns: own }
}

fn refused_types(refused: Vec<pintail_core::schema::RefusedColumn>) -> StepFailure {
    let lines: Vec<String> = refused
        .iter()
        .map(|refused| format!("`{}` is {}: {}", refused.column.name, refused.column.data_type, refused.help))
        .collect();
    StepFailure::user(
        Code::TYPE_NOT_STORABLE,
        "compare the columns",
        format!("the lake cannot hold {}:\n{}", count(refused.len()), lines.join("\n")),
    )
}

/// Compares the columns with the declared ones: an enforced contract refuses differences, else they become notes.
pub fn check_contract(script: &CompiledScript, schema: &Schema, notes: &mut Vec<String>) -> Result<(), StepFailure> {
    let declared = script.header.columns.iter().map(|column| &column.value);
    let enforced = script.header.contract_enforced;
    let difference = contract_diff(declared, schema, enforced.is_some());
    if difference.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = difference.differences.iter().map(ToString::to_string).collect();
    if enforced.is_none() {
        notes.extend(lines);
        return Ok(());
    }
    Err(StepFailure::user(
        Code::CONTRACT_BROKEN,
        "check the contract",
        format!("the query breaks the script's contract:\n{}", lines.join("\n")),
    )
    .with_help("change the query, or the `column` lines")
    .at(enforced))
}

/// Every column of the key must be one of the query's.
fn check_key(facts: &ShapeFacts<'_>, schema: &Schema) -> Result<(), StepFailure> {
    let (WriteStrategy::Merge { key, .. } | WriteStrategy::History { key, .. }) = facts.script.strategy() else {
        return Ok(());
    };
    let Some(missing) = key.iter().find(|column| schema.column(column).is_none()) else { return Ok(()) };
    Err(missing_column(facts, schema, missing, "the key"))
}

/// A line of the header names a column that the query does not have.
pub(super) fn missing_column(facts: &ShapeFacts<'_>, schema: &Schema, missing: &str, by: &str) -> StepFailure {
    let message = format!("the query has no column `{missing}`, which {by} names");
    let columns = schema.columns.iter().map(|column| column.name.as_str());
    let help = match nearest(missing, columns.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("its columns are {}", columns.collect::<Vec<_>>().join(", ")),
    };
    let line = facts.script.header.materialize.as_ref();
    StepFailure::user(Code::ENGINE_ERROR, "find the key", message).with_help(help).at(line.map(|line| line.span))
}

fn check_partition_spec(facts: &ShapeFacts<'_>, table: &TableFacts, layout: &Layout) -> Result<(), StepFailure> {
    if table.is_view {
        return Err(StepFailure::user(
            Code::TARGET_NOT_OURS,
            "check the target",
            format!("{} is a view, and the script writes a table", facts.write.table.0),
        )
        .with_help("drop the view by hand, or materialize under another name"));
    }
    let wanted = spec_of(&layout.partition_by);
    let is_same = wanted.len() == table.partition.len()
        && wanted
            .iter()
            .zip(&table.partition)
            .all(|((column, transform), (other, of))| column.eq_ignore_ascii_case(other) && transform == of);
    if is_same {
        return Ok(());
    }
    Err(StepFailure::user(
        Code::TARGET_PARTITIONED_OTHERWISE,
        "check the target",
        format!(
            "{} is partitioned by {}, and the script asks for {}",
            facts.write.table.0,
            spec_words(&table.partition),
            spec_words(&wanted)
        ),
    )
    .with_help("change `partitioned` back, or write a new table: another name in `materialize`, then a backfill"))
}

/// Returns partition keys as the catalog says them.
pub fn spec_of(partition_by: &PartitionBy) -> Vec<(String, String)> {
    partition_by.keys().into_iter().map(|(column, transform)| (column, transform.to_owned())).collect()
}

fn spec_words(spec: &[(String, String)]) -> String {
    if spec.is_empty() {
        return "nothing".to_owned();
    }
    let word = |(column, transform): &(String, String)| match transform.as_str() {
        "identity" => format!("`{column}`"),
        transform => format!("{transform}(`{column}`)"),
    };
    spec.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn extended(table: Option<&TableFacts>, added: &[Column]) -> Schema {
    let mut columns = table.map(|table| table.schema.columns.clone()).unwrap_or_default();
    columns.extend(added.iter().cloned());
    Schema { columns }
}

fn names(columns: &[Column]) -> String {
    let one = |column: &Column| format!("`{}` {}", column.name, column.data_type);
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn count(columns: usize) -> String {
    match columns {
        1 => "1 column".to_owned(),
        several => format!("{several} columns"),
    }
}
