//! History on a real lake: what it needs to know beside its stage, its guards before and inside the transaction, and the
//! view of the current rows.
//!
//! Invariant: a table that is not a history never becomes one, a view that is not ours is never replaced, and no column of
//! a history is ever dropped.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::schema::{Column, Schema, SchemaDecision};
use pintail_core::sql::strategy::{
    self, BOOKKEEPING, ComparedColumn, HistoryCounts, HistoryFault, HistoryWrite, IS_CURRENT, Layout, Target,
    bookkeeping_columns, broken_rows, compare_history, current_view, current_view_name, history_guards,
    instant_literal, judge_history,
};
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_engine::Session;
use pintail_engine::lake::{self, Named, TableFacts};

use super::attempt::Attempt;
use super::commit::sample;
use super::shape::{Shape, ShapeFacts, missing_column};
use super::staging::Staged;
use super::unchanged::compared_columns;
use crate::executors::{RunContext, StepFailure};

/// What a write depends on besides its stage and its table.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The run's time.
    pub at: DateTime<Utc>,
    /// Whether somebody reads the table's change feed.
    pub has_consumers: bool,
    /// Rows in the table, when known.
    pub rows: Option<u64>,
    /// Rows in the stage, once it is there.
    pub staged_rows: Option<u64>,
    /// What has the name of a history's view of current rows.
    pub at_view_name: Option<Named>,
}

/// A write of history, as its guards need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryShape {
    target: Target,
    columns: Vec<ComparedColumn>,
    key: Vec<String>,
    track: Vec<String>,
    updated_at: Option<String>,
    close_deleted: bool,
    at: String,
    exists: bool,
}

impl HistoryShape {
    fn write(&self) -> HistoryWrite<'_> {
        HistoryWrite {
            target: &self.target,
            columns: &self.columns,
            key: &self.key,
            track: &self.track,
            updated_at: self.updated_at.as_deref(),
            close_deleted: self.close_deleted,
            at: &self.at,
            exists: self.exists,
        }
    }
}

/// Reads what a write of `asset` depends on, from the lake attached to a session under an alias where it can be read.
pub fn surroundings(
    ctx: &RunContext,
    asset: &Asset,
    strategy: &WriteStrategy,
    read_from: Option<(&Session, &str)>,
) -> Result<Surroundings, StepFailure> {
    let rows = ctx.memory_of(asset).rows.get("").copied().flatten();
    let at_view_name = match (strategy, asset, read_from) {
        (WriteStrategy::History { .. }, Asset::Lake { schema, table, .. }, Some((session, alias))) => {
            lake::named(session, alias, schema, &current_view_name(table))?
        }
        _ => None,
    };
    let has_consumers = ctx.project.has_consumers(asset);
    Ok(Surroundings { at: ctx.started, has_consumers, rows, staged_rows: None, at_view_name })
}

/// Returns the columns that the strategy adds to those of the query.
pub fn own_columns(strategy: &WriteStrategy) -> Vec<Column> {
    match strategy {
        WriteStrategy::History { .. } => bookkeeping_columns().to_vec(),
        _ => Vec::new(),
    }
}

/// A history is never made anew in another shape: old versions would lose what the query does not give any more.
pub fn keep_columns(strategy: &WriteStrategy, decision: SchemaDecision) -> SchemaDecision {
    match (strategy, decision) {
        (WriteStrategy::History { .. }, SchemaDecision::Rebuild { diff, .. }) => SchemaDecision::Refuse { diff },
        (_, decision) => decision,
    }
}

/// Checks what a history asks of the query's columns and of the table.
pub fn check_columns(facts: &ShapeFacts<'_>, schema: &Schema) -> Result<(), StepFailure> {
    let WriteStrategy::History { track, updated_at, .. } = facts.strategy else { return Ok(()) };
    check_names(facts, schema)?;
    for (columns, by) in [(track.as_slice(), "`track=`"), (updated_at.as_slice(), "`updated_at=`")] {
        if let Some(missing) = columns.iter().find(|column| schema.column(column).is_none()) {
            return Err(missing_column(facts, schema, missing, by));
        }
    }
    if let Some(column) = updated_at.as_ref().and_then(|column| schema.column(column)) {
        check_time(facts, column)?;
    }
    check_is_history(facts)?;
    check_view_name(facts)
}

fn check_names(facts: &ShapeFacts<'_>, schema: &Schema) -> Result<(), StepFailure> {
    let Some(taken) = BOOKKEEPING.into_iter().find_map(|kept| schema.column(kept)) else { return Ok(()) };
    let name = &taken.name;
    Err(StepFailure::user(
        Code::HISTORY_COLUMN,
        "compare the columns",
        format!("the query has a column `{name}`, which a history table keeps itself"),
    )
    .with_help(format!("give it another name (`{name} AS source_{name}`), or leave it out: `* EXCLUDE ({name})`"))
    .at(facts.script.query_span()))
}

/// The time must be one that the engine can order without losing any of it.
fn check_time(facts: &ShapeFacts<'_>, column: &Column) -> Result<(), StepFailure> {
    const TIMES: [&str; 5] = ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "DATE"];
    if TIMES.contains(&column.data_type.to_ascii_uppercase().as_str()) {
        return Ok(());
    }
    let line = facts.script.header.materialize.as_ref().map(|line| line.span);
    let message = format!("`updated_at={0}` is no time of microseconds: `{0}` is {1}", column.name, column.data_type);
    Err(StepFailure::user(Code::HISTORY_TIME, "compare the columns", message)
        .with_help(format!("cast it in the query: `CAST({0} AS TIMESTAMPTZ) AS {0}`", column.name))
        .at(line))
}

/// A table that holds rows without validity has no history to add to.
fn check_is_history(facts: &ShapeFacts<'_>) -> Result<(), StepFailure> {
    let Some(table) = facts.table.filter(|table| !table.is_view) else { return Ok(()) };
    let lacks = |kept: &Column| {
        table.schema.column(&kept.name).is_none_or(|column| !column.data_type.eq_ignore_ascii_case(&kept.data_type))
    };
    let missing: Vec<String> =
        bookkeeping_columns().iter().filter(|kept| lacks(kept)).map(|kept| kept.name.clone()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let line = facts.script.header.materialize.as_ref().map(|line| line.span);
    let name = &facts.write.table.0;
    let message = format!("{name} keeps no history: it has no column `{}` of a history table", missing.join("`, `"));
    Err(StepFailure::user(Code::NOT_A_HISTORY, "check the target", message)
        .with_help(format!("write the history to another name: `materialize history ducklake://…/{name}_history`"))
        .at(line))
}

/// The view is ours when it says so.
fn check_view_name(facts: &ShapeFacts<'_>) -> Result<(), StepFailure> {
    let Some(named) = &facts.beside.at_view_name else { return Ok(()) };
    if named.is_view && named.comment.as_deref() == Some(view_comment(facts).as_str()) {
        return Ok(());
    }
    let (table, view) = (&facts.write.table.0, current_view_name(&facts.write.table.0));
    let what = if named.is_view { "a view" } else { "a table" };
    let line = facts.script.header.materialize.as_ref().map(|line| line.span);
    let message = format!("the current rows of {table} are to be read as {view}, but there is {what} of that name");
    Err(StepFailure::user(Code::CURRENT_VIEW_TAKEN, "check the target", message)
        .with_help(format!("rename or drop {view}, or write the history to another name"))
        .at(line))
}

/// The comment by which the view is known as ours.
fn view_comment(facts: &ShapeFacts<'_>) -> String {
    let target = facts.script.target.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("The current rows of {target}, made by Pintail.")
}

/// Returns the statements of a write of history, and puts what they need into `shape`; `None` for other strategies.
pub fn write(facts: &ShapeFacts<'_>, shape: &mut Shape, layout: &Layout) -> Option<Vec<Statement>> {
    let WriteStrategy::History { key, track, updated_at, close_deleted, .. } = facts.strategy else { return None };
    let at = instant_literal(facts.beside.at, "TIMESTAMPTZ", Tz::UTC).expect("a TIMESTAMPTZ holds a time");
    let history = HistoryShape {
        target: shape.target.clone(),
        columns: compared_columns(facts.table, shape),
        key: key.clone(),
        track: track.clone(),
        updated_at: updated_at.clone(),
        close_deleted: *close_deleted,
        at,
        exists: facts.table.is_some(),
    };
    let mut comparison = compare_history(&history.write());
    let mut statements = strategy::history(&history.write(), layout);
    let needs_view = facts.beside.at_view_name.is_none() || shape.schema_changes;
    if needs_view {
        let view = Relation { table: Ident::new(current_view_name(&facts.write.table.0)), ..facts.write.clone() };
        statements.extend(current_view(&history.write(), &view, &view_comment(facts)));
    }
    comparison.ends_when_same &= !needs_view;
    shape.comparison = Some(comparison);
    shape.history = Some(history);
    Some(statements)
}

/// Guards the stage of a history.
pub fn guard(
    attempt: &Attempt<'_>,
    staged: &Staged,
    shape: &Shape,
    history: &HistoryShape,
    facts: Option<&TableFacts>,
) -> Result<(), StepFailure> {
    let write = history.write();
    let line = attempt.script.header.materialize.as_ref();
    let span = line.map(|line| line.span);
    let queries = history_guards(&write);
    let counts = staged.session.one("guard the stage", &queries.summary, |row| {
        let count = |index: usize| row.get::<_, i64>(index).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(HistoryCounts { null_keys: count(0)?, no_time: count(1)?, tied: count(2)? })
    })?;
    if let Some((fault, message, help)) = judge_history(&write, &counts) {
        let (code, rows) = match fault {
            HistoryFault::NullKeys => (Code::NULL_KEYS, &queries.null_keys),
            HistoryFault::NoTime => (Code::HISTORY_TIME, &queries.no_time),
            HistoryFault::DuplicateKeys => (Code::DUPLICATE_KEYS, &queries.tied),
            HistoryFault::Contradiction => (Code::HISTORY_TIME, &queries.tied),
        };
        return Err(StepFailure::user(code, "guard the stage", message)
            .with_help(help)
            .with_sample(sample(&staged.session, rows)?)
            .at(span));
    }
    let allows_empty = line.is_some_and(|line| line.value.allow_empty);
    let would_close_all = history.close_deleted && !allows_empty && staged.rows == 0 && facts.is_some();
    if would_close_all && has_current_rows(&staged.session, shape)? {
        let message = "the query gives no rows, so every key would be taken for deleted";
        return Err(StepFailure::user(Code::EMPTY_REPLACE, "guard the stage", message)
            .with_help("if that is meant, say so: `materialize history … deletes=close allow_empty`")
            .at(span));
    }
    Ok(())
}

fn has_current_rows(session: &Session, shape: &Shape) -> Result<bool, StepFailure> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {} WHERE {})", shape.target.write, Ident::new(IS_CURRENT));
    Ok(session.one("see whether anything would be closed", &sql, |row| row.get(0))?)
}

/// Checks inside the transaction that the keys that were written have one chain each.
pub fn check_written(session: &Session, shape: &Shape) -> Result<(), StepFailure> {
    let Some(history) = &shape.history else { return Ok(()) };
    let broken = sample(session, &broken_rows(&history.write()))?;
    if broken.rows.is_empty() {
        return Ok(());
    }
    let message = format!("after the write, versions of {} would overlap", history.target.write.table.0);
    Err(StepFailure::user(Code::HISTORY_BROKEN, "check the versions", message)
        .with_help(
            "somebody has changed the table's `valid_from`, `valid_to` or `is_current` by hand: mend the rows above, or \
             bring back an older version of the table",
        )
        .with_sample(broken))
}
