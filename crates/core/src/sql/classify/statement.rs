//! Checks of single statements that hold in every body: ATTACH, LOAD, INSTALL, settings, and reserved names.

use super::{AttachTarget, ClassifyContext, attach_target};
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::source::Span;
use crate::sql::body::{ParsedStatement, StatementKind, TableName};
use crate::sql::scan::{LexemeKind, Lexemes};

/// Extensions that are shipped with Pintail or are inside the engine.
const EXTENSIONS: [&str; 7] = ["ducklake", "sqlite_scanner", "postgres_scanner", "httpfs", "icu", "json", "parquet"];

/// Other names under which the engine knows an extension of ours.
const EXTENSION_ALIASES: [&str; 3] = ["sqlite", "postgres", "https"];

/// Settings that change only how this script's own query reads and orders. Time zone, memory, threads and paths belong
/// to the step; the search path is USE.
const SETTINGS: [&str; 16] = [
    "default_collation",
    "default_null_order",
    "default_order",
    "explain_output",
    "http_retries",
    "http_retry_backoff",
    "http_retry_wait_ms",
    "http_timeout",
    "ieee_floating_point_ops",
    "integer_division",
    "max_expression_depth",
    "null_order",
    "order_by_non_integer_literal",
    "pivot_limit",
    "preserve_insertion_order",
    "scalar_subquery_error_on_multiple_rows",
];

/// Aliases that the engine or Pintail uses itself.
const RESERVED_ALIASES: [&str; 7] = ["main", "temp", "system", "memory", "lake", "pg_catalog", "information_schema"];

/// Adds what is wrong with a setup statement, in any body.
pub(super) fn check_setup(ctx: &ClassifyContext<'_>, statement: &ParsedStatement, found: &mut Vec<Diagnostic>) {
    match &statement.kind {
        StatementKind::Attach { target, alias } => check_attach(ctx, statement, target, alias.as_deref(), found),
        StatementKind::Install => found.push(
            ctx.diagnostic(
                Code::SQL_INSTALL_IGNORED,
                statement.span,
                "INSTALL is ignored: extensions come with Pintail",
            )
            .with_help("remove the line"),
        ),
        StatementKind::Load { what } => check_load(ctx, statement, what, found),
        StatementKind::Set { name, variable: true } => check_variable(ctx, statement, name, found),
        StatementKind::Set { name, variable: false } | StatementKind::Pragma { name } => {
            check_setting(ctx, statement, name, found);
        }
        StatementKind::Use { parts } => {
            for part in parts.iter().filter(|part| is_reserved_name(part)) {
                found.push(reserved(ctx, name_span(ctx, statement.span, part), part));
            }
        }
        _ => {}
    }
}

fn check_attach(
    ctx: &ClassifyContext<'_>,
    statement: &ParsedStatement,
    target: &str,
    alias: Option<&str>,
    found: &mut Vec<Diagnostic>,
) {
    if let Some(alias) = alias {
        let is_reserved = RESERVED_ALIASES.iter().any(|reserved| reserved.eq_ignore_ascii_case(alias));
        if is_reserved || is_reserved_name(alias) {
            found.push(reserved(ctx, name_span(ctx, statement.span, alias), alias));
        }
    }
    let is_read_only = Lexemes::within(&ctx.file.text, statement.span).any(|lexeme| lexeme.is_word("READ_ONLY"));
    if target == ":memory:" {
        found.push(
            ctx.diagnostic(Code::SQL_ATTACH_NOT_AN_ASSET, statement.span, "a database in memory is not an asset")
                .with_help("use `CREATE TEMP TABLE`"),
        );
    } else if attach_target(target) == AttachTarget::Other && !is_read_only {
        let options = alias.map(|alias| format!(" AS {alias}")).unwrap_or_default();
        found.push(
            ctx.diagnostic(
                Code::SQL_ATTACH_NOT_AN_ASSET,
                statement.span,
                "what is not an asset of the project can be attached only for reading",
            )
            .with_help(format!(
                "add READ_ONLY: `ATTACH '…'{options} (READ_ONLY)`, or attach an asset: `ATTACH 'ducklake://<lake>'{options}`"
            )),
        );
    }
}

fn check_load(ctx: &ClassifyContext<'_>, statement: &ParsedStatement, what: &str, found: &mut Vec<Diagnostic>) {
    let name = what.to_ascii_lowercase();
    if EXTENSIONS.contains(&name.as_str()) || EXTENSION_ALIASES.contains(&name.as_str()) {
        return;
    }
    found.push(
        ctx.diagnostic(
            Code::SQL_LOAD_NOT_ALLOWED,
            statement.span,
            format!("the extension `{what}` does not come with Pintail"),
        )
        .with_help(format!("extensions that can be loaded: {}", EXTENSIONS.join(", "))),
    );
}

fn check_setting(ctx: &ClassifyContext<'_>, statement: &ParsedStatement, name: &str, found: &mut Vec<Diagnostic>) {
    if SETTINGS.iter().any(|setting| setting.eq_ignore_ascii_case(name)) {
        return;
    }
    let help = match (name.to_ascii_lowercase().as_str(), nearest(name, SETTINGS)) {
        ("timezone", _) => "every connection runs in UTC; convert in the query: `ts AT TIME ZONE '…'`".to_owned(),
        ("schema" | "search_path", _) => "use `USE <name>`".to_owned(),
        ("threads" | "worker_threads" | "memory_limit" | "max_memory" | "temp_directory", _) => {
            "this is set for the whole process in pintail.toml, under `[run]`".to_owned()
        }
        (_, Some(near)) => format!("did you mean `{near}`?"),
        _ => format!("settings that can be changed: {}", SETTINGS.join(", ")),
    };
    found.push(
        ctx.diagnostic(
            Code::SQL_SETTING_NOT_ALLOWED,
            statement.span,
            format!("a script may not change the setting `{name}`"),
        )
        .with_help(help),
    );
}

/// The step's own variables are set by the runner; a script that sets one would run for another partition than it says.
fn check_variable(ctx: &ClassifyContext<'_>, statement: &ParsedStatement, name: &str, found: &mut Vec<Diagnostic>) {
    let is_step_variable = super::parameters::step_variables().any(|known| known.eq_ignore_ascii_case(name));
    if is_step_variable || is_reserved_name(name) {
        found.push(reserved(ctx, name_span(ctx, statement.span, name), name));
    }
}

/// Adds a diagnostic when a name that the script creates or writes is ours.
pub(super) fn check_name(ctx: &ClassifyContext<'_>, name: &TableName, found: &mut Vec<Diagnostic>) {
    if let Some(part) = name.parts.iter().find(|part| is_reserved_name(part)) {
        found.push(reserved(ctx, name.span, part));
    }
}

/// Returns whether a name is one that Pintail makes itself: `_pt_…` and the schema `_pintail`.
pub(crate) fn is_reserved_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("_pt_") || name == "_pintail"
}

fn reserved(ctx: &ClassifyContext<'_>, span: Span, name: &str) -> Diagnostic {
    ctx.diagnostic(Code::SQL_RESERVED_NAME, span, format!("the name `{name}` is reserved"))
        .with_help("choose another name")
}

/// Returns where `name` stands as a word in the statement; the whole statement when it is not found.
fn name_span(ctx: &ClassifyContext<'_>, statement: Span, name: &str) -> Span {
    let is_name = |kind: LexemeKind| matches!(kind, LexemeKind::Word | LexemeKind::QuotedName);
    Lexemes::within(&ctx.file.text, statement)
        .filter(|lexeme| is_name(lexeme.kind) && lexeme.text.trim_matches('"').eq_ignore_ascii_case(name))
        .last()
        .map_or(statement, |lexeme| lexeme.span)
}
