//! Manual scripts: every statement is the user's own, and each is told what it needs around it.
//!
//! Bare DML and DDL is wrapped in a transaction of its own with a stamp; inside the user's BEGIN … COMMIT the stamp is
//! set before their COMMIT. What would go past the lease, the stamp or the pins is refused.

use std::collections::BTreeSet;

use super::managed::check_body;
use super::statement::{check_name, check_setup};
use super::{AttachTarget, ClassifyContext, attach_target};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::sql::body::{ParsedBody, ParsedStatement, StatementKind, TableName};

/// Statements that rewrite or copy a whole database.
const MAINTENANCE: [&str; 6] = ["CHECKPOINT", "VACUUM", "ANALYZE", "EXPORT", "IMPORT", "FORCE"];

/// A manual script, classified.
#[derive(Clone, Debug, PartialEq)]
pub struct Manual<'b> {
    /// The statements that were not refused, in order.
    pub statements: Vec<ManualStatement<'b>>,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// One statement of a manual script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManualStatement<'b> {
    /// The statement.
    pub statement: &'b ParsedStatement,
    /// What it needs.
    pub need: Need,
}

/// What a statement needs around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Its meaning is kept and it is not sent: ATTACH of an asset, USE, LOAD.
    Interpreted,
    /// It has no effect here: INSTALL.
    Ignored,
    /// It is sent as it is: setup, queries, what touches temp tables or files.
    Nothing,
    /// Bare DML or DDL: BEGIN, the statement, the stamp, COMMIT.
    OwnTransaction,
    /// It is sent inside the transaction that the script opened.
    InTransaction,
    /// The script's BEGIN.
    Begin,
    /// The script's COMMIT: the stamp is set before it.
    Commit,
    /// The script's ROLLBACK.
    Rollback,
}

/// Classifies the body of a script that writes with its own statements.
pub fn manual<'b>(body: &'b ParsedBody, ctx: &ClassifyContext<'_>) -> Manual<'b> {
    let mut reader =
        Reader { ctx, begin: None, temporary: BTreeSet::new(), statements: Vec::new(), diagnostics: Vec::new() };
    for statement in &body.statements {
        reader.read(statement);
    }
    if let Some(begin) = reader.begin.filter(|_| body.error.is_none()) {
        reader.refuse(begin, "this transaction is never committed", "end the script with COMMIT");
    }
    let mut diagnostics = reader.diagnostics;
    check_body(body, ctx, &mut diagnostics);
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    Manual { statements: reader.statements, diagnostics }
}

struct Reader<'b, 'c> {
    ctx: &'c ClassifyContext<'c>,
    /// The user's open transaction.
    begin: Option<Span>,
    /// Names of temp tables, lower case.
    temporary: BTreeSet<String>,
    statements: Vec<ManualStatement<'b>>,
    diagnostics: Vec<Diagnostic>,
}

impl<'b> Reader<'b, '_> {
    fn read(&mut self, statement: &'b ParsedStatement) {
        check_setup(self.ctx, statement, &mut self.diagnostics);
        if let Some(name) = written_name(&statement.kind) {
            check_name(self.ctx, name, &mut self.diagnostics);
        }
        if let Some(need) = self.need(statement) {
            self.statements.push(ManualStatement { statement, need });
        }
    }

    /// Returns what the statement needs; `None` when it was refused.
    fn need(&mut self, statement: &ParsedStatement) -> Option<Need> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Begin => self.open(span),
            StatementKind::Commit => self.close(span, Need::Commit),
            StatementKind::Rollback => self.close(span, Need::Rollback),
            StatementKind::Install => Some(Need::Ignored),
            StatementKind::Use { .. } | StatementKind::Load { .. } => Some(Need::Interpreted),
            StatementKind::Attach { target, .. } => Some(match attach_target(target) {
                AttachTarget::Other => Need::Nothing,
                AttachTarget::Lake(_) | AttachTarget::Datatable(_) => Need::Interpreted,
            }),
            StatementKind::Set { .. } | StatementKind::Pragma { .. } | StatementKind::Query => Some(self.as_it_is()),
            StatementKind::CopyTo { .. } => Some(self.as_it_is()),
            StatementKind::Create { object, .. } if object == "secret" => self.refuse(
                span,
                "a secret cannot be made in a script",
                "name it in pintail.toml, by reference: `secret = \"${NAME}\"`",
            ),
            StatementKind::Create { temporary: true, name, .. } => {
                self.temporary.extend(name.as_ref().and_then(|name| name.parts.last()).map(|n| n.to_ascii_lowercase()));
                Some(self.as_it_is())
            }
            StatementKind::Detach => {
                self.refuse(span, "DETACH would take a lake away that the step needs", "remove the line")
            }
            StatementKind::Call => self.refuse(
                span,
                "CALL can change the lake behind the stamp and the pins",
                "use the command for it: `pintail maintain`",
            ),
            StatementKind::Other { word } if word == "EXPLAIN" => Some(self.as_it_is()),
            StatementKind::Other { word } if MAINTENANCE.contains(&word.as_str()) => {
                let message = format!("{word} cannot stand in a script: it would go past the pins of other readers");
                self.refuse(span, &message, "remove the line; maintenance is `pintail maintain`")
            }
            StatementKind::Other { word } => {
                let message = format!("this form of {word} is not understood, so what it writes is not known");
                self.refuse(
                    span,
                    &message,
                    "write it as INSERT, UPDATE, DELETE, MERGE, COPY, CREATE, ALTER or DROP with a table's name",
                )
            }
            StatementKind::Create { .. }
            | StatementKind::Insert { .. }
            | StatementKind::Update { .. }
            | StatementKind::Delete { .. }
            | StatementKind::Merge { .. }
            | StatementKind::CopyFrom { .. }
            | StatementKind::Drop { .. }
            | StatementKind::Alter { .. }
            | StatementKind::Comment => Some(self.write(&statement.kind)),
        }
    }

    fn as_it_is(&self) -> Need {
        if self.begin.is_some() { Need::InTransaction } else { Need::Nothing }
    }

    fn write(&self, kind: &StatementKind) -> Need {
        let is_temporary = written_name(kind).is_some_and(|name| match name.parts.as_slice() {
            [table] => self.temporary.contains(&table.to_ascii_lowercase()),
            [first, ..] => first.eq_ignore_ascii_case("temp"),
            [] => false,
        });
        match (self.begin, is_temporary) {
            (Some(_), _) => Need::InTransaction,
            (None, true) => Need::Nothing,
            (None, false) => Need::OwnTransaction,
        }
    }

    fn open(&mut self, span: Span) -> Option<Need> {
        if self.begin.is_some() {
            return self.refuse(span, "a transaction is already open", "COMMIT the first one before");
        }
        self.begin = Some(span);
        Some(Need::Begin)
    }

    fn close(&mut self, span: Span, need: Need) -> Option<Need> {
        if self.begin.take().is_none() {
            return self.refuse(span, "no transaction is open here", "remove the line, or BEGIN before it");
        }
        Some(need)
    }

    fn refuse(&mut self, span: Span, message: &str, help: &str) -> Option<Need> {
        self.diagnostics.push(self.ctx.diagnostic(Code::SQL_NOT_MANAGED, span, message).with_help(help));
        None
    }
}

/// Returns the name that a statement creates or writes.
fn written_name(kind: &StatementKind) -> Option<&TableName> {
    match kind {
        StatementKind::Create { name, .. } => name.as_ref(),
        StatementKind::Insert { target }
        | StatementKind::Update { target }
        | StatementKind::Delete { target }
        | StatementKind::Merge { target } => Some(target),
        StatementKind::CopyFrom { table, .. } => Some(table),
        StatementKind::Drop { name, .. } | StatementKind::Alter { name } => Some(name),
        _ => None,
    }
}
