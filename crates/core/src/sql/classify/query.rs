//! Checks of the query whose rows are written: fixed columns, the identity column, and filters that cannot skip files.

use serde_json::Value;

use super::ClassifyContext;
use crate::annotation::{Header, WriteStrategy};
use crate::diagnostic::{Code, Diagnostic};
use crate::partition::PartitionSpec;
use crate::source::Span;
use crate::sql::body::ParsedStatement;
use crate::sql::scan::{Lexeme, LexemeKind, Lexemes};
use crate::sql::strategy::BOOKKEEPING;

/// The identity column when the header names no other.
const IDENTITY_COLUMN: &str = "_partition";

/// Statements that describe instead of giving a table's rows.
const DESCRIBING: [&str; 4] = ["DESCRIBE", "DESC", "SUMMARIZE", "SHOW"];

/// Adds what is wrong with a query whose rows are kept.
pub(super) fn check_query(ctx: &ClassifyContext<'_>, statement: &ParsedStatement, found: &mut Vec<Diagnostic>) {
    if let Some(word) = describing_word(ctx, statement.span) {
        found.push(
            ctx.diagnostic(
                Code::SQL_NOT_MANAGED,
                word.span,
                format!("{} gives no rows to keep", word.text.to_uppercase()),
            )
            .with_help(format!("to keep its rows, select from it: `FROM ({})`", ctx.text(statement.span))),
        );
        return;
    }
    let Some(node) = statement.query.as_ref().and_then(|query| query.get("node")) else {
        found.push(without_fixed_columns(ctx, statement.span));
        return;
    };
    if has_identity_column(ctx.header) {
        check_identity_alias(ctx, statement, node, found);
    }
    check_history_names(ctx, statement, node, found);
}

fn describing_word<'t>(ctx: &'t ClassifyContext<'_>, query: Span) -> Option<Lexeme<'t>> {
    let first = Lexemes::within(&ctx.file.text, query).next()?;
    DESCRIBING.iter().any(|word| first.is_word(word)).then_some(first)
}

/// The engine serialises every query but a PIVOT whose columns depend on the data.
fn without_fixed_columns(ctx: &ClassifyContext<'_>, query: Span) -> Diagnostic {
    let pivot =
        Lexemes::within(&ctx.file.text, query).find(|lexeme| lexeme.is_word("PIVOT") || lexeme.is_word("PIVOT_WIDER"));
    match pivot {
        Some(pivot) => ctx
            .diagnostic(
                Code::SQL_PIVOT_WITHOUT_IN,
                pivot.span,
                "the columns of this PIVOT depend on the data, so the table has no fixed shape",
            )
            .with_help("list the values: `PIVOT … ON <column> IN ('a', 'b') USING …`"),
        None => ctx.diagnostic(Code::SQL_NOT_MANAGED, query, "this statement gives no rows to keep"),
    }
}

/// Returns whether rows get an identity column: a partitioned script whose slice is not a window on a column of its own.
fn has_identity_column(header: &Header) -> bool {
    match header.partitioned.as_ref().map(|spec| &spec.value) {
        None => false,
        Some(spec @ PartitionSpec::Dynamic { .. }) => spec.payload_path().is_some(),
        Some(PartitionSpec::Time(time)) => time.by.is_none() || time.tz.is_some_and(|zone| zone != chrono_tz::Tz::UTC),
    }
}

fn check_identity_alias(
    ctx: &ClassifyContext<'_>,
    statement: &ParsedStatement,
    node: &Value,
    found: &mut Vec<Diagnostic>,
) {
    let materialize = ctx.header.materialize.as_ref().map(|line| &line.value);
    let column = materialize.and_then(|line| line.partition_column.as_deref()).unwrap_or(IDENTITY_COLUMN);
    for item in output_columns(node) {
        let alias = item.get("alias").and_then(Value::as_str).unwrap_or_default();
        if !alias.eq_ignore_ascii_case(column) {
            continue;
        }
        found.push(
            ctx.diagnostic(
                Code::SQL_PARTITION_COLUMN_ALIASED,
                name_in_list(ctx, statement, item, alias),
                format!("the column `{alias}` is added by Pintail and holds the partition's identity"),
            )
            .with_help("give the column another name, or leave it out"),
        );
    }
}

/// Refuses columns of a history's query that are named like those that the history keeps itself.
fn check_history_names(
    ctx: &ClassifyContext<'_>,
    statement: &ParsedStatement,
    node: &Value,
    found: &mut Vec<Diagnostic>,
) {
    let strategy = ctx.header.materialize.as_ref().map(|line| &line.value.strategy);
    if !matches!(strategy, Some(WriteStrategy::History { .. })) {
        return;
    }
    for item in output_columns(node) {
        let alias = item.get("alias").and_then(Value::as_str).filter(|alias| !alias.is_empty());
        let column = item.get("column_names").and_then(Value::as_array).and_then(|names| names.last()?.as_str());
        let Some(name) = alias.or(column) else { continue };
        if !BOOKKEEPING.iter().any(|kept| kept.eq_ignore_ascii_case(name)) {
            continue;
        }
        found.push(
            ctx.diagnostic(
                Code::HISTORY_COLUMN,
                name_in_list(ctx, statement, item, name),
                format!("the column `{name}` is kept by the history table itself"),
            )
            .with_help(format!("give the column another name: `{name} AS source_{name}`")),
        );
    }
}

/// Returns where the name of an output column stands.
fn name_in_list(ctx: &ClassifyContext<'_>, statement: &ParsedStatement, item: &Value, name: &str) -> Span {
    let query_start = statement.query_span.unwrap_or(statement.span).start;
    let location = item.get("query_location").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
    let from = location.and_then(|at| at.checked_add(query_start)).filter(|at| *at < statement.span.end);
    let within = Span::new(from.unwrap_or(query_start), statement.span.end);
    let found = Lexemes::within(&ctx.file.text, within).find(|lexeme| is_named(lexeme, name));
    found.map_or(statement.span, |lexeme| lexeme.span)
}

/// Returns the select list that names the result's columns: the left-most one of a set operation.
fn output_columns(node: &Value) -> impl Iterator<Item = &Value> {
    let mut node = node;
    while let Some(left) = node.get("left") {
        node = left;
    }
    node.get("select_list").and_then(Value::as_array).into_iter().flatten()
}

fn is_named(lexeme: &Lexeme<'_>, name: &str) -> bool {
    match lexeme.kind {
        LexemeKind::Word => lexeme.text.eq_ignore_ascii_case(name),
        LexemeKind::QuotedName => lexeme.text.trim_matches('"').eq_ignore_ascii_case(name),
        _ => false,
    }
}

/// Adds a hint at each call of `wm_partition`: a function on the column reads every file.
pub(super) fn check_partition_filters(ctx: &ClassifyContext<'_>, body: Span, found: &mut Vec<Diagnostic>) {
    let mut lexemes = Lexemes::within(&ctx.file.text, body).peekable();
    while let Some(lexeme) = lexemes.next() {
        let is_call = lexemes.peek().is_some_and(|next| next.is_symbol("("));
        if lexeme.is_word("wm_partition") && is_call {
            found.push(
                ctx.diagnostic(
                    Code::SQL_SLOW_PARTITION_FILTER,
                    lexeme.span,
                    "a function on the column reads every file of the table",
                )
                .with_help("let the engine skip files: `WHERE in_partition(<column>)`"),
            );
        }
    }
}
