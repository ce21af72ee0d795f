//! Scripts in Postgres SQL: their statements, what they read and write, their parameters, and what is wrong with them.
//!
//! Statements are told apart by their tokens, reads are found in sqlparser's AST. Invariant: a body that is not one
//! query with its setup is refused at its position; text that sqlparser cannot read is no error (Postgres is the judge
//! of its own dialect), but its reads are unknown, and that is said. Not here: names inside functions and views.

mod reads;
mod tokens;

use crate::asset::Asset;
use crate::diagnostic::{Code, Diagnostic, nearest};
use crate::lineage::{BodyLineage, Write};
use crate::source::{Located, SourceFile, Span};
use crate::sql::body::{Parameter, TableName};
use crate::sql::rewrite::{Rewriter, Rewritten};

use reads::{ReadName, reads_of};
use tokens::{Lexed, StatementTokens};

/// The names that a script may use, and how it writes.
#[derive(Clone, Copy, Debug)]
pub struct PostgresContext<'a> {
    /// The file, its header lines blanked.
    pub file: &'a SourceFile,
    /// The datatable that the script runs in; `None` when its target names none.
    pub database: Option<&'a str>,
    /// Whether the script is one query that is written for it.
    pub is_managed: bool,
    /// The variables of the project.
    pub vars: &'a [String],
}

/// What was found in a script.
#[derive(Clone, Debug, Default)]
pub struct PostgresScript {
    /// The setup statements, in order.
    pub setup: Vec<Span>,
    /// The query of a managed script.
    pub query: Option<Span>,
    /// Every statement, in order.
    pub statements: Vec<Span>,
    /// Every `$name`.
    pub parameters: Vec<Parameter>,
    /// Every `{partition}` inside a literal.
    pub placeholders: Vec<Span>,
    /// Reads and writes.
    pub lineage: BodyLineage,
    /// What is wrong or worth knowing.
    pub diagnostics: Vec<Diagnostic>,
}

/// A value that a script's parameter stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The partition's identity, as text.
    Partition,
    /// The window's start.
    PartitionStart,
    /// The window's end.
    PartitionEnd,
    /// Whether the target has no version yet.
    FirstRun,
    /// A variable of the project, as text.
    Variable(String),
}

/// A script's text with `$1` and on for its parameters.
#[derive(Clone, Debug)]
pub struct BoundText {
    /// The text, and where each part of it came from.
    pub text: Rewritten,
    /// What is bound, in order.
    pub values: Vec<Bound>,
}

/// The spelling of each parameter that every script has, and what it is cast to.
const PARAMETERS: [(&str, Bound, &str); 7] = [
    ("partition", Bound::Partition, "text"),
    ("WM_PARTITION", Bound::Partition, "text"),
    ("partition_start", Bound::PartitionStart, "timestamptz"),
    ("WM_PARTITION_START", Bound::PartitionStart, "timestamptz"),
    ("partition_end", Bound::PartitionEnd, "timestamptz"),
    ("WM_PARTITION_END", Bound::PartitionEnd, "timestamptz"),
    ("first_run", Bound::FirstRun, "boolean"),
];

/// Words that begin a statement which gives rows.
const QUERY_WORDS: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];

/// Words of transactions, which are not the script's to use.
const TRANSACTION_WORDS: [&str; 8] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "PREPARE", "SAVEPOINT"];

/// Reads the script in `ctx.file`.
pub fn parse_script(ctx: &PostgresContext<'_>) -> PostgresScript {
    let mut script = PostgresScript::default();
    let lexed = match Lexed::of(&ctx.file.text) {
        Ok(lexed) => lexed,
        Err((message, at)) => {
            let found = Diagnostic::new(Code::POSTGRES_BODY, &ctx.file.path, Span::new(at, at), message);
            script.diagnostics.push(found.with_help("close the quote or comment that begins here"));
            return script;
        }
    };
    script.placeholders = lexed.placeholders(&ctx.file.text);
    for (name, span) in lexed.parameters() {
        check_parameter(ctx, &name, span, &mut script.diagnostics);
        script.parameters.push(Parameter { name, span });
    }
    let mut temporary = Vec::new();
    for statement in lexed.statements() {
        script.statements.push(statement.span());
        collect(ctx, &statement, &mut temporary, &mut script);
    }
    match ctx.is_managed {
        true => sort_managed(ctx, &lexed, &mut script),
        false => refuse_transactions(ctx, &lexed, &mut script),
    }
    script.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    script
}

fn check_parameter(ctx: &PostgresContext<'_>, name: &str, span: Span, diagnostics: &mut Vec<Diagnostic>) {
    let known = || PARAMETERS.iter().map(|(spelling, ..)| *spelling).chain(ctx.vars.iter().map(String::as_str));
    if known().any(|spelling| spelling == name) {
        return;
    }
    let help = match nearest(name, known()) {
        Some(near) => format!("did you mean `${near}`?"),
        None => format!("declare it in pintail.toml: `[vars] {name} = …`"),
    };
    let message = format!("there is no parameter `${name}`");
    diagnostics.push(Diagnostic::new(Code::SQL_UNKNOWN_PARAMETER, &ctx.file.path, span, message).with_help(help));
}

/// Adds what one statement reads and writes.
fn collect(
    ctx: &PostgresContext<'_>,
    statement: &StatementTokens<'_>,
    temporary: &mut Vec<String>,
    script: &mut PostgresScript,
) {
    let written = statement.written();
    let has_reads = statement.has_reads();
    match reads_of(&statement.tokens) {
        Ok(reads) => {
            for read in reads {
                let is_written = written.as_ref().is_some_and(|written| written.name.span == read.span);
                if !is_written && !is_temporary(&read.parts, temporary) {
                    add_read(ctx, read, script);
                }
            }
        }
        Err(why) if has_reads => {
            let span = statement.span();
            let message = format!("what this statement reads could not be found out: {why}");
            script.diagnostics.push(
                Diagnostic::new(Code::POSTGRES_UNREADABLE, &ctx.file.path, span, message).with_help(
                    "Postgres decides when it runs; name what it reads, so that it runs after it: `-- on <uri>`",
                ),
            );
            script.lineage.unknown_reads.push(Located { value: why, span });
        }
        Err(_) => {}
    }
    let Some(written) = written else { return };
    if written.is_temporary {
        temporary.extend(written.name.parts.last().map(|name| name.to_lowercase()));
        return;
    }
    if !is_temporary(&written.name.parts, temporary)
        && let Some(asset) = asset_of(ctx, &written.name.parts)
    {
        let span = written.name.span;
        script.lineage.writes.push(Write { asset, span, name: Some(written.name) });
    }
}

fn is_temporary(parts: &[String], temporary: &[String]) -> bool {
    match parts {
        [table] => temporary.contains(&table.to_lowercase()),
        [schema, _] => schema.eq_ignore_ascii_case("pg_temp"),
        _ => false,
    }
}

fn add_read(ctx: &PostgresContext<'_>, read: ReadName, script: &mut PostgresScript) {
    let is_system = match read.parts.as_slice() {
        [table] => table.to_ascii_lowercase().starts_with("pg_"),
        [schema, _] => ["pg_catalog", "information_schema"].iter().any(|system| schema.eq_ignore_ascii_case(system)),
        _ => false,
    };
    if is_system {
        return;
    }
    let Some(asset) = asset_of(ctx, &read.parts) else {
        let written = read.parts.join(".");
        let message = format!("`{written}` is not in the datatable, and a Postgres script reads nothing else");
        script
            .diagnostics
            .push(Diagnostic::new(Code::POSTGRES_FOREIGN_READ, &ctx.file.path, read.span, message).with_help(
            "write the script in DuckDB SQL (`.sql`), which reads lakes and datatables and can write this datatable",
        ));
        return;
    };
    let name = TableName { parts: read.parts, span: read.span };
    script.lineage.table_refs.push(crate::lineage::ResolvedTable {
        name: name.clone(),
        asset: asset.clone(),
        at_clause: false,
    });
    script.lineage.reads.push(crate::lineage::Read { asset, span: read.span, name: Some(name) });
}

/// Returns the table that a name means; `None` when it lies outside the datatable.
fn asset_of(ctx: &PostgresContext<'_>, parts: &[String]) -> Option<Asset> {
    let database = ctx.database?;
    match parts {
        [table] => Some(Asset::datatable(database, crate::asset::DEFAULT_DATATABLE_SCHEMA, table)),
        // `lake` is what every DuckDB script calls the default lake; nobody names a schema so by chance.
        [schema, _] if schema.eq_ignore_ascii_case("lake") => None,
        [schema, table] => Some(Asset::datatable(database, schema, table)),
        _ => None,
    }
}

/// Tells setup and query of a managed script apart, and refuses everything else.
fn sort_managed(ctx: &PostgresContext<'_>, lexed: &Lexed, script: &mut PostgresScript) {
    let statements = lexed.statements();
    let Some((last, before)) = statements.split_last() else {
        let span = Span::new(ctx.file.text.len(), ctx.file.text.len());
        let found = Diagnostic::new(Code::POSTGRES_BODY, &ctx.file.path, span, "the script has no query");
        script.diagnostics.push(found.with_help("end it with one SELECT: its rows are what is written"));
        return;
    };
    for statement in before {
        match statement.is_setup() {
            true => script.setup.push(statement.span()),
            false => script.diagnostics.push(not_managed(ctx, statement, "before the query")),
        }
    }
    let writes_inside = last.writes_inside();
    if !QUERY_WORDS.contains(&last.first().as_str()) {
        script.diagnostics.push(not_managed(ctx, last, "as the query"));
    } else if let Some(span) = writes_inside {
        let message = "the query of a managed script changes rows";
        let found = Diagnostic::new(Code::POSTGRES_BODY, &ctx.file.path, span, message);
        script.diagnostics.push(found.with_help("only read here; for own statements: `materialize manual`"));
    } else {
        script.query = Some(last.span());
    }
}

fn not_managed(ctx: &PostgresContext<'_>, statement: &StatementTokens<'_>, place: &str) -> Diagnostic {
    let message = format!("`{}` cannot stand {place} in a managed script", statement.first());
    Diagnostic::new(Code::POSTGRES_BODY, &ctx.file.path, statement.span(), message).with_help(
        "a managed script is SET and CREATE TEMP statements and then one query; for own statements: `materialize manual`",
    )
}

fn refuse_transactions(ctx: &PostgresContext<'_>, lexed: &Lexed, script: &mut PostgresScript) {
    for statement in lexed.statements() {
        if TRANSACTION_WORDS.contains(&statement.first().as_str()) {
            let message = format!("`{}` cannot stand in a Postgres script", statement.first());
            script.diagnostics.push(
                Diagnostic::new(Code::POSTGRES_BODY, &ctx.file.path, statement.span(), message)
                    .with_help("remove it: the whole script is one transaction, with its tests and its stamp"),
            );
        }
    }
}

/// Returns `span` of `text` with its parameters as `$1` and on; `partition` takes the place of `{partition}`.
pub fn bind(
    text: &str,
    span: Span,
    parameters: &[Parameter],
    placeholders: &[Span],
    partition: Option<&str>,
) -> BoundText {
    let mut rewriter = Rewriter::new(text, span);
    let mut values: Vec<Bound> = Vec::new();
    for parameter in
        parameters.iter().filter(|parameter| span.start <= parameter.span.start && parameter.span.end <= span.end)
    {
        let known = PARAMETERS.iter().find(|(spelling, ..)| *spelling == parameter.name);
        let (bound, data_type) = match known {
            Some((_, bound, data_type)) => (bound.clone(), *data_type),
            None => (Bound::Variable(parameter.name.clone()), "text"),
        };
        let number = match values.iter().position(|value| *value == bound) {
            Some(position) => position + 1,
            None => {
                values.push(bound);
                values.len()
            }
        };
        // The cast fixes the parameter's type: without it `day = $1` would ask for a date.
        rewriter.replace(parameter.span, format!("CAST(${number} AS {data_type})"));
    }
    if let Some(partition) = partition {
        for placeholder in placeholders {
            rewriter.placeholder(*placeholder, partition);
        }
    }
    BoundText { text: rewriter.finish(), values }
}
