//! Managed bodies: setup statements, then exactly one query.

use super::parameters::check_parameters;
use super::query::{check_partition_filters, check_query};
use super::statement::{check_name, check_setup};
use super::{AttachTarget, ClassifyContext, Setup, SetupAction, attach_target};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::sql::body::{ParsedBody, ParsedStatement, StatementKind};

/// First words of writes, also in forms that the parser does not take apart.
const WRITES: [&str; 7] = ["INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "DROP", "ALTER"];

/// A managed body, classified.
#[derive(Clone, Debug, PartialEq)]
pub struct Managed<'b> {
    /// The statements before the query, in order.
    pub setup: Vec<Setup<'b>>,
    /// The query; `None` when there is none, which is a diagnostic.
    pub query: Option<&'b ParsedStatement>,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Classifies the body of a script whose rows Pintail writes.
pub fn managed<'b>(body: &'b ParsedBody, ctx: &ClassifyContext<'_>) -> Managed<'b> {
    let mut managed = split(body, ctx);
    match managed.query {
        // A query that cannot be parsed is told once, as that.
        Some(query) if query.query.is_none() && has_error_in(body, query.span) => {}
        Some(query) => check_query(ctx, query, &mut managed.diagnostics),
        None if body.error.is_none() && !tells_where_the_rows_are(&managed.diagnostics) => {
            managed.diagnostics.push(no_query(ctx));
        }
        None => {}
    }
    finish(managed, body, ctx)
}

/// Classifies a test script: the same shape, and whatever else stands there is told that a test only asks.
pub fn test_script<'b>(body: &'b ParsedBody, ctx: &ClassifyContext<'_>) -> Managed<'b> {
    let mut managed = split(body, ctx);
    for diagnostic in &mut managed.diagnostics {
        if [Code::SQL_NOT_MANAGED, Code::SQL_WRITE_NEEDS_MANUAL, Code::SQL_MANY_QUERIES].contains(&diagnostic.code) {
            *diagnostic = test_not_query(ctx, diagnostic.span);
        }
    }
    let is_told = managed.diagnostics.iter().any(|found| found.code == Code::SQL_TEST_NOT_QUERY);
    if managed.query.is_none() && body.error.is_none() && !is_told {
        managed.diagnostics.push(test_not_query(ctx, None));
    }
    finish(managed, body, ctx)
}

fn test_not_query(ctx: &ClassifyContext<'_>, place: Option<Span>) -> Diagnostic {
    Diagnostic::new(Code::SQL_TEST_NOT_QUERY, ctx.file.path.as_str(), place, "a test is one query")
        .with_help("a test file holds one SELECT that returns the rows which must not exist")
}

fn no_query(ctx: &ClassifyContext<'_>) -> Diagnostic {
    Diagnostic::new(Code::SQL_NO_QUERY, ctx.file.path.as_str(), None, "there is no query whose rows could be written")
        .with_help(format!("end the body with one query, or write with your own statements: `{}`", ctx.manual_line()))
}

fn has_error_in(body: &ParsedBody, span: Span) -> bool {
    body.error.as_ref().is_some_and(|error| error.span.start <= span.end)
}

/// Returns whether a refused statement already explains why there is no query.
fn tells_where_the_rows_are(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|found| [Code::SQL_WRITE_NEEDS_MANUAL, Code::SQL_NOT_MANAGED].contains(&found.code))
}

/// Sorts the statements into setup and query; the first query counts when there are several.
fn split<'b>(body: &'b ParsedBody, ctx: &ClassifyContext<'_>) -> Managed<'b> {
    let mut managed = Managed { setup: Vec::new(), query: None, diagnostics: Vec::new() };
    for statement in &body.statements {
        if statement.kind == StatementKind::Query {
            match managed.query {
                Some(first) => managed.diagnostics.push(many_queries(ctx, first, statement)),
                None => managed.query = Some(statement),
            }
            continue;
        }
        check_setup(ctx, statement, &mut managed.diagnostics);
        match setup_action(&statement.kind) {
            Some(action) => {
                if let StatementKind::Create { name: Some(name), .. } = &statement.kind {
                    check_name(ctx, name, &mut managed.diagnostics);
                }
                if let Some(query) = managed.query {
                    managed.diagnostics.push(query_not_last(ctx, query, statement));
                }
                managed.setup.push(Setup { statement, action });
            }
            None => managed.diagnostics.push(not_setup(ctx, statement)),
        }
    }
    managed
}

fn finish<'b>(mut managed: Managed<'b>, body: &ParsedBody, ctx: &ClassifyContext<'_>) -> Managed<'b> {
    check_body(body, ctx, &mut managed.diagnostics);
    managed.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    managed
}

/// Adds what every body is checked for: its syntax, its parameters, its filters.
pub(super) fn check_body(body: &ParsedBody, ctx: &ClassifyContext<'_>, found: &mut Vec<Diagnostic>) {
    if let Some(error) = &body.error {
        found.push(ctx.diagnostic(Code::SQL_SYNTAX, error.span, error.message.clone()));
    }
    check_parameters(ctx, body, found);
    for statement in &body.statements {
        check_partition_filters(ctx, statement.span, found);
    }
}

/// Returns what is done with a statement before the query; `None` when it cannot stand there.
fn setup_action(kind: &StatementKind) -> Option<SetupAction> {
    match kind {
        StatementKind::Attach { target, .. } => Some(match attach_target(target) {
            AttachTarget::Other => SetupAction::Sent,
            AttachTarget::Lake(_) | AttachTarget::Datatable(_) => SetupAction::Interpreted,
        }),
        StatementKind::Use { .. } | StatementKind::Load { .. } => Some(SetupAction::Interpreted),
        StatementKind::Install => Some(SetupAction::Ignored),
        StatementKind::Set { .. } | StatementKind::Pragma { .. } => Some(SetupAction::Sent),
        StatementKind::Create { object, temporary: true, .. } => {
            matches!(object.as_str(), "table" | "view" | "macro").then_some(SetupAction::Sent)
        }
        _ => None,
    }
}

/// Returns the diagnostic of a statement that is neither setup nor query.
fn not_setup(ctx: &ClassifyContext<'_>, statement: &ParsedStatement) -> Diagnostic {
    let first_word = ctx.text(statement.span).split_whitespace().next().unwrap_or_default().to_uppercase();
    match &statement.kind {
        StatementKind::Create { object, temporary: false, .. } if object == "macro" => ctx
            .diagnostic(Code::SQL_MACRO_NOT_TEMP, statement.span, "the lake is read-only here, a macro cannot be stored in it")
            .with_help("make it temporary: `CREATE TEMP MACRO …`, or put it into a macro library under `macros/`"),
        StatementKind::Create { object, .. } if matches!(object.as_str(), "table" | "view") => {
            write_needs_manual(ctx, statement, &format!("CREATE {}", object.to_uppercase()))
                .with_help(format!(
                    "if it is only for this query, make it temporary: `CREATE TEMP {} …`; to write with your own statements: `{}`",
                    object.to_uppercase(),
                    ctx.manual_line()
                ))
        }
        StatementKind::Insert { .. }
        | StatementKind::Update { .. }
        | StatementKind::Delete { .. }
        | StatementKind::Merge { .. }
        | StatementKind::CopyTo { .. }
        | StatementKind::CopyFrom { .. }
        | StatementKind::Drop { .. }
        | StatementKind::Alter { .. }
        | StatementKind::Comment => write_needs_manual(ctx, statement, &first_word),
        StatementKind::Other { word } if WRITES.contains(&word.as_str()) => write_needs_manual(ctx, statement, word),
        _ => ctx
            .diagnostic(
                Code::SQL_NOT_MANAGED,
                statement.span,
                format!("{first_word} cannot stand in a managed body: it is neither setup nor the query"),
            )
            .with_help(format!("to send your own statements: `{}`", ctx.manual_line())),
    }
}

fn write_needs_manual(ctx: &ClassifyContext<'_>, statement: &ParsedStatement, what: &str) -> Diagnostic {
    ctx.diagnostic(
        Code::SQL_WRITE_NEEDS_MANUAL,
        statement.span,
        format!("{what} writes by itself, but Pintail writes the rows of a managed body"),
    )
    .with_help(format!(
        "end the body with one query and remove this statement, or write with your own statements: `{}`",
        ctx.manual_line()
    ))
}

fn many_queries(ctx: &ClassifyContext<'_>, first: &ParsedStatement, statement: &ParsedStatement) -> Diagnostic {
    ctx.diagnostic(Code::SQL_MANY_QUERIES, statement.span, "a managed body has one query, this is another")
        .with_label(first.span, "the first query")
        .with_help("keep one query; what the other prepares can be a `CREATE TEMP TABLE … AS` before it")
}

fn query_not_last(ctx: &ClassifyContext<'_>, query: &ParsedStatement, statement: &ParsedStatement) -> Diagnostic {
    ctx.diagnostic(
        Code::SQL_QUERY_NOT_LAST,
        statement.span,
        "this statement comes after the query and would not be used",
    )
    .with_label(query.span, "the query")
    .with_help("move it before the query")
}
