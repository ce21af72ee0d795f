//! The header while it is being read: typed parts, what several lines say about one thing, and the findings so far.

use crate::diagnostic::{Code, Diagnostic};
use crate::source::{Located, Span};

use super::spec::{Header, SchemaPolicy};
use super::words::materialize::MaterializeLine;

/// A finding before it knows its file; the error type of every parser here.
#[derive(Debug)]
pub(super) struct Problem {
    pub code: Code,
    pub span: Span,
    pub message: String,
    pub help: Option<String>,
    pub label: Option<(Span, &'static str)>,
}

impl Problem {
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: None, label: None }
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn with_label(mut self, span: Span, message: &'static str) -> Self {
        self.label = Some((span, message));
        self
    }
}

/// The header while it is being read.
pub(super) struct Draft<'a> {
    /// The file, for diagnostics.
    pub path: &'a str,
    /// The table that a bare `ducklake` means: the last part of the script's name.
    pub default_table: &'a str,
    /// What is certain already.
    pub header: Header,
    /// The findings, in the order they were made.
    pub diagnostics: Vec<Diagnostic>,
    /// Every annotation met, well-formed or not: the canonical word and where it stands.
    pub seen: Vec<(&'static str, Span)>,
    /// The `materialize` line.
    pub materialize: Option<MaterializeLine>,
    /// `unique_key`.
    pub unique_key: Option<Located<Vec<String>>>,
    /// `append`.
    pub append: Option<Span>,
    /// `on_schema_change`, as a word or on the `materialize` line.
    pub schema_change: Option<Located<SchemaPolicy>>,
    /// Columns of the target that tests, keys and partitions name.
    pub column_uses: Vec<Located<String>>,
    /// `scope=slice` options, which need partitions.
    pub slice_scopes: Vec<Span>,
    /// Lines of the description; an empty one is a paragraph break.
    prose: Vec<String>,
    not_yet: Vec<String>,
}

impl<'a> Draft<'a> {
    pub fn new(path: &'a str, default_table: &'a str) -> Self {
        Self {
            path,
            default_table,
            header: Header::default(),
            diagnostics: Vec::new(),
            seen: Vec::new(),
            materialize: None,
            unique_key: None,
            append: None,
            schema_change: None,
            column_uses: Vec::new(),
            slice_scopes: Vec::new(),
            prose: Vec::new(),
            not_yet: Vec::new(),
        }
    }

    /// Records a finding.
    pub fn report(&mut self, problem: Problem) {
        let mut diagnostic = Diagnostic::new(problem.code, self.path, problem.span, problem.message);
        diagnostic.help = problem.help;
        if let Some((span, message)) = problem.label {
            diagnostic = diagnostic.with_label(span, message);
        }
        self.diagnostics.push(diagnostic);
    }

    /// Keeps a value or records why there is none.
    pub fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(problem) => {
                self.report(problem);
                None
            }
        }
    }

    /// Says, once per feature, that it is checked but not acted on.
    pub fn note_not_yet(&mut self, feature: &str, span: Span) {
        if self.not_yet.iter().any(|known| known == feature) {
            return;
        }
        self.not_yet.push(feature.to_owned());
        self.report(Problem::new(
            Code::NOT_YET,
            span,
            format!("{feature} is parsed and checked, but this version does not act on it yet"),
        ));
    }

    /// Returns where the annotation `word` stands, when it does.
    pub fn place_of(&self, word: &str) -> Option<Span> {
        self.seen.iter().find(|(seen, _)| *seen == word).map(|(_, span)| *span)
    }

    /// Adds a line to the description; an empty one starts a paragraph.
    pub fn add_prose(&mut self, line: &str) {
        self.prose.push(line.to_owned());
    }

    /// Returns the description: the prose lines without empty ones at either end, and without runs of them.
    pub fn description(&self) -> Option<String> {
        let mut text = String::new();
        let mut paragraph_break = false;
        for line in &self.prose {
            if line.is_empty() {
                paragraph_break = !text.is_empty();
                continue;
            }
            if !text.is_empty() {
                text.push_str(if paragraph_break { "\n\n" } else { "\n" });
            }
            paragraph_break = false;
            text.push_str(line);
        }
        (!text.is_empty()).then_some(text)
    }
}
