//! Diagnostics: what is wrong with what the user wrote, with a code, a place, and help that can be pasted.
//!
//! A diagnostic is data; it is collected, never thrown, and rendered by a face. Errors about what *happened* are
//! `thiserror` enums beside the code that fails, not here.

mod nearest;
mod registry;

pub use nearest::nearest;
pub use registry::{CODES, Code, CodeInfo};

use crate::source::Span;

/// How bad a diagnostic is; `Error` stops `plan` and `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing to do.
    Info,
    /// Probably not what was meant; runs all the same.
    Warning,
    /// Must be mended before the script can run.
    Error,
}

/// A second place that belongs to a diagnostic, with what it has to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there, in a few words.
    pub message: String,
}

/// One finding in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code, explained by `pintail explain <code>`.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The file, relative to the project root; empty for a finding about the project as a whole.
    pub path: String,
    /// The place; `None` when the finding is about the whole file.
    pub span: Option<Span>,
    /// One line, lower case, no full stop.
    pub message: String,
    /// Other places in the same file.
    pub labels: Vec<Label>,
    /// What to do, ideally as text that can be pasted.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Returns a diagnostic of the code's own severity at `span` of the file `path`.
    pub fn new(code: Code, path: impl Into<String>, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.info().severity,
            path: path.into(),
            span: span.into(),
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// Adds what to do about it.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a second place of the same file.
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }
}
