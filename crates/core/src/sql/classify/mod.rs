//! What a body is: which statements are setup, which one is the query, and what a manual script's statements need.
//!
//! The single source of truth for check, plan and run. A *managed* body is setup statements and one trailing query,
//! whose rows Pintail writes; a *manual* one sends its own statements. Invariant: every statement is either classified or
//! has a diagnostic at its place, so nothing is sent that was not understood. Deliberately not here: which tables are
//! read ([`crate::lineage`]) and whether names exist (the engine's binder).

mod attach;
mod managed;
mod manual;
mod parameters;
mod query;
mod statement;

pub use attach::{AttachTarget, attach_target};
pub use managed::{Managed, managed, test_script};
pub use manual::{Manual, ManualStatement, Need, manual};
pub(crate) use statement::is_reserved_name;

use super::body::ParsedStatement;
use crate::annotation::{Header, WriteStrategy};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::{SourceFile, Span};

/// What the classifier knows besides the body.
#[derive(Clone, Copy, Debug)]
pub struct ClassifyContext<'a> {
    /// The script's file.
    pub file: &'a SourceFile,
    /// Its header.
    pub header: &'a Header,
    /// The names of the project's variables.
    pub vars: &'a [String],
}

impl ClassifyContext<'_> {
    fn diagnostic(&self, code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, self.file.path.as_str(), span, message)
    }

    fn text(&self, span: Span) -> &str {
        self.file.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Returns `materialize manual <uri>` with the script's own target when it has one.
    fn manual_line(&self) -> String {
        let target = self.header.materialize.as_ref().map(|line| line.value.target.value.to_string());
        format!("-- materialize manual {}", target.as_deref().unwrap_or("<uri>"))
    }
}

/// Who sends a script's rows to the lake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMode {
    /// Pintail, from the query's rows.
    Managed,
    /// The script, with its own statements.
    Manual,
}

impl BodyMode {
    /// Returns the mode that the header asks for: manual when it says so or materializes nothing.
    pub fn of(header: &Header) -> Self {
        match header.materialize.as_ref().map(|line| &line.value.strategy) {
            None | Some(WriteStrategy::Manual) => Self::Manual,
            Some(_) => Self::Managed,
        }
    }
}

/// A statement before the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup<'b> {
    /// The statement.
    pub statement: &'b ParsedStatement,
    /// What is done with it.
    pub action: SetupAction,
}

/// What is done with a setup statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupAction {
    /// Its meaning is kept and it is not sent: ATTACH of an asset, USE, LOAD.
    Interpreted,
    /// It has no effect here: INSTALL.
    Ignored,
    /// It is sent before the query.
    Sent,
}

#[cfg(test)]
mod tests;
