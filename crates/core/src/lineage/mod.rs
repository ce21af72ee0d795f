//! What a body reads and writes: assets with their place in the text, and what cannot be known without running.
//!
//! Names follow the engine's rules: CTEs are visible to what follows them and hide tables of one part; temp tables made
//! by setup statements are no assets. Invariant: every table in the text is an asset, a CTE, a temp table, a system
//! table, or an *unknown read*: nothing is dropped silently. A self read is a read; that it is no edge is the graph's
//! rule. One pass over each AST, so the work is linear. Deliberately not here: columns, and whether names exist.

mod files;
mod functions;
mod names;
mod query;

use std::collections::BTreeMap;

use crate::asset::Asset;
use crate::diagnostic::{Code, Diagnostic};
use crate::id::LakeName;
use crate::source::{Located, SourceFile, Span};
use crate::sql::body::{ParsedBody, ParsedStatement, StatementKind, TableName};
use crate::sql::classify::is_reserved_name;
use crate::sql::scan::Lexemes;
use names::{Resolved, Session};
use query::QueryWalk;

/// The project's names that a body can use.
#[derive(Clone, Copy, Debug)]
pub struct LineageContext<'a> {
    /// The lake that unqualified names mean.
    pub default_lake: &'a LakeName,
    /// Every configured lake. The lake `main` is written `lake` in SQL, every other one by its own name.
    pub lakes: &'a [LakeName],
    /// Every configured Postgres database.
    pub datatables: &'a [String],
    /// Configured volumes: `(name, directory)`, the directory absolute or relative to the project root.
    pub volumes: &'a [(String, String)],
}

/// One read of an asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// What is read; a glob is a pattern over files.
    pub asset: Asset,
    /// Where the text says so.
    pub span: Span,
    /// The dotted name; `None` for a file and for a name inside a string.
    pub name: Option<TableName>,
}

/// One write of an asset by a statement of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What is written.
    pub asset: Asset,
    /// Where the text says so.
    pub span: Span,
    /// The dotted name; `None` for a file.
    pub name: Option<TableName>,
}

/// A table's dotted name that can be replaced in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTable {
    /// The name, with its true extent in the text.
    pub name: TableName,
    /// What it means.
    pub asset: Asset,
    /// Whether AT (VERSION | TIMESTAMP) follows.
    pub at_clause: bool,
}

/// What a body reads and writes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BodyLineage {
    /// Every read, in the order of the text.
    pub reads: Vec<Read>,
    /// Every write by the body's own statements, in the order of the text.
    pub writes: Vec<Write>,
    /// Every table name that is read, in the order of the text.
    pub table_refs: Vec<ResolvedTable>,
    /// What is read and cannot be known without running, in the order of the text.
    pub unknown_reads: Vec<Located<String>>,
    /// The aliases of lakes that the body attaches.
    pub aliases: BTreeMap<String, LakeName>,
    /// The aliases of Postgres databases that the body attaches.
    pub datatable_aliases: BTreeMap<String, String>,
    /// What is wrong or worth knowing, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Returns what `body`, the parsed body of `file`, reads and writes.
pub fn of_body(body: &ParsedBody, ctx: &LineageContext<'_>, file: &SourceFile) -> BodyLineage {
    let mut collector = Collector { ctx, file, session: Session::new(ctx), lineage: BodyLineage::default() };
    for statement in &body.statements {
        collector.statement(statement);
    }
    let mut lineage = collector.lineage;
    lineage.reads.sort_by_key(|read| read.span);
    lineage.table_refs.sort_by_key(|table| table.name.span);
    lineage.unknown_reads.sort_by_key(|read| read.span);
    lineage.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    lineage
}

/// Gathers the lineage statement by statement, with the names that earlier statements made.
struct Collector<'a> {
    ctx: &'a LineageContext<'a>,
    file: &'a SourceFile,
    session: Session<'a>,
    lineage: BodyLineage,
}

impl Collector<'_> {
    fn statement(&mut self, statement: &ParsedStatement) {
        self.reads_of(statement);
        for name in &statement.other_reads {
            self.read_table(name.clone(), false);
        }
        match &statement.kind {
            StatementKind::Attach { target, alias } => self.attach(statement.span, target, alias.as_deref()),
            StatementKind::Use { parts } => self.session.use_name(parts),
            StatementKind::Create { object, temporary: true, name: Some(name) } => {
                self.session.add_temporary(object, name);
            }
            StatementKind::Create { object, temporary: false, name: Some(name) } => self.write_object(object, name),
            StatementKind::Drop { object, name } if !self.session.drop_temporary(name) => {
                self.write_object(object, name);
            }
            StatementKind::Insert { target }
            | StatementKind::Update { target }
            | StatementKind::Delete { target }
            | StatementKind::Merge { target } => self.write_table(target),
            StatementKind::Alter { name } => self.write_table(name),
            StatementKind::CopyFrom { table, source } => {
                self.read_file(source, self.literal_span(statement.span, source));
                self.write_table(table);
            }
            StatementKind::CopyTo { target } => {
                self.write_file(target, self.literal_span(statement.span, target));
            }
            _ => {}
        }
    }

    fn reads_of(&mut self, statement: &ParsedStatement) {
        let span = statement.query_span.unwrap_or(statement.span);
        if let Some(query) = &statement.query {
            QueryWalk::new(self, span).walk(query);
            return;
        }
        let has_query = match &statement.kind {
            StatementKind::Query => true,
            StatementKind::Create { object, .. } if object == "macro" || object == "table" || object == "view" => {
                Lexemes::within(&self.file.text, statement.span)
                    .any(|word| word.is_word("FROM") || word.is_word("PIVOT"))
            }
            _ => false,
        };
        if has_query {
            self.unknown(span, "the query of this statement is known only when it runs");
        }
    }

    /// Records the read of a table by its dotted name.
    fn read_table(&mut self, name: TableName, at_clause: bool) {
        if let Some(part) = name.parts.iter().find(|part| is_reserved_name(part)) {
            let message = format!("the name `{part}` is reserved");
            self.report(Code::SQL_RESERVED_NAME, name.span, message, "read the asset by its own name");
            return;
        }
        match self.session.resolve(&name.parts) {
            Resolved::Asset(asset) => {
                let table = ResolvedTable { name: name.clone(), asset: asset.clone(), at_clause };
                self.lineage.table_refs.push(table);
                self.lineage.reads.push(Read { asset, span: name.span, name: Some(name) });
            }
            Resolved::NotAnAsset => {}
            Resolved::Unknown(why) => self.unknown(name.span, why),
        }
    }

    /// Records the read of a table that is named inside a string.
    fn read_named(&mut self, parts: &[String], span: Span) {
        match self.session.resolve(parts) {
            Resolved::Asset(asset) => self.lineage.reads.push(Read { asset, span, name: None }),
            Resolved::NotAnAsset => {}
            Resolved::Unknown(why) => self.unknown(span, why),
        }
    }

    fn read_file(&mut self, path: &str, span: Span) {
        match files::file_asset(path, self.ctx) {
            Ok(asset) => self.lineage.reads.push(Read { asset, span, name: None }),
            Err(why) => self.unknown(span, why),
        }
    }

    fn unknown(&mut self, span: Span, why: impl Into<String>) {
        let why = why.into();
        self.report(
            Code::SQL_UNKNOWN_READS,
            span,
            format!("what is read here is not known before it runs: {why}"),
            "name what it reads, so that the script runs after it: `-- on <uri>`",
        );
        self.lineage.unknown_reads.push(Located { value: why, span });
    }

    fn report(&mut self, code: Code, span: Span, message: String, help: impl Into<String>) {
        let diagnostic = Diagnostic::new(code, self.file.path.as_str(), span, message);
        self.lineage.diagnostics.push(diagnostic.with_help(help));
    }

    fn write_object(&mut self, object: &str, name: &TableName) {
        if matches!(object, "table" | "view") {
            self.write_table(name);
        }
    }

    fn write_table(&mut self, name: &TableName) {
        match self.session.resolve(&name.parts) {
            Resolved::Asset(asset) => {
                self.lineage.writes.push(Write { asset, span: name.span, name: Some(name.clone()) });
            }
            Resolved::NotAnAsset => {}
            Resolved::Unknown(why) => self.unknown_write(name.span, &why),
        }
    }

    fn write_file(&mut self, path: &str, span: Span) {
        match files::file_asset(path, self.ctx) {
            Ok(asset) => self.lineage.writes.push(Write { asset, span, name: None }),
            Err(why) => self.unknown_write(span, &why),
        }
    }

    fn unknown_write(&mut self, span: Span, why: &str) {
        self.report(
            Code::SQL_UNKNOWN_READS,
            span,
            format!("what is written here is no asset of the project: {why}"),
            "write to an asset, so that what reads it can run after it",
        );
    }

    fn attach(&mut self, span: Span, target: &str, alias: Option<&str>) {
        if let Err(problem) = self.session.attach(target, alias, &mut self.lineage) {
            self.report(Code::SQL_ATTACH_NOT_AN_ASSET, span, problem.message, problem.help);
        }
        if let Some(file) = names::attached_file(target) {
            self.read_file(file, self.literal_span(span, target));
        }
    }

    /// Returns where the literal of `text` stands in a statement; the whole statement when it is written otherwise.
    fn literal_span(&self, statement: Span, text: &str) -> Span {
        Lexemes::within(&self.file.text, statement)
            .find(|lexeme| lexeme.text.len() == text.len() + 2 && lexeme.text.get(1..text.len() + 1) == Some(text))
            .map_or(statement, |lexeme| lexeme.span)
    }
}

#[cfg(test)]
mod tests;
