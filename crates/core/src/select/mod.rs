//! The selection language of `--select` and `--exclude`: lexer, parser, evaluation.
//!
//! ```text
//! selection = term { " " term }          union
//! term      = atom { "," atom }          intersection
//! atom      = [ "@" | [N] "+" ] subject [ "+" [N] ]
//! subject   = name | glob | folder/ | file path | asset URI | lake table
//!           | tag:… | owner:… | kind:… | source:… | state:… | result:…
//!           | stale | missing | failed | partial | fresh | unchanged
//! ```
//!
//! Invariant: a selection never means less than it says: whatever it names must exist, and every mistake in it is
//! reported with its position, not only the first. Not here: where facts such as `stale` come from; the caller gives
//! them or evaluation says that it needs them.

mod evaluate;
mod parse;
mod universe;

#[cfg(test)]
mod tests;

pub use evaluate::{SelectFailure, evaluate, select};
pub use parse::parse;
pub use universe::{ScriptLabels, ScriptSet, Universe};

use std::collections::BTreeSet;

use thiserror::Error;

use crate::annotation::WriteStrategy;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::State;
use crate::source::{Language, Located, Span};

/// A parsed selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The union of these.
    pub terms: Vec<Term>,
}

/// An intersection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// What all must hold of a script; at least one.
    pub atoms: Vec<Atom>,
}

impl Selection {
    /// Returns the states that it asks for.
    pub fn states(&self) -> BTreeSet<State> {
        let facts = self.facts().filter_map(|fact| match fact {
            Fact::State(state) => Some(state),
            _ => None,
        });
        facts.collect()
    }

    /// Returns what it asks of the recorded state.
    pub fn facts(&self) -> impl Iterator<Item = Fact> + '_ {
        let atoms = self.terms.iter().flat_map(|term| &term.atoms);
        atoms.filter_map(|atom| match atom.subject.value {
            Subject::Fact(fact) => Some(fact),
            _ => None,
        })
    }
}

/// One subject and how far it reaches along the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// What is selected; the span is the subject's without its operators.
    pub subject: Located<Subject>,
    /// What comes with it.
    pub reach: Reach,
}

/// What is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A script by name, glob, folder or file, or the writer of an asset.
    Name(String),
    /// `tag:`; may be a glob.
    Tag(String),
    /// `owner:`; may be a glob.
    Owner(String),
    /// `kind:`.
    Kind(KindFilter),
    /// `source:`: the scripts that read an asset; may be a glob.
    Source(String),
    /// What only the recorded state knows.
    Fact(Fact),
}

/// What comes with a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `2+x+`: so many steps up and down.
    Steps {
        /// Towards what it reads.
        upstream: Depth,
        /// Towards what reads it.
        downstream: Depth,
    },
    /// `@x`: everything downstream, and all that this needs.
    Family,
}

/// How many steps along the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// At most this many; 0 without an operator.
    Steps(u32),
    /// All the way.
    All,
}

/// The declared write strategy, without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScriptKind {
    /// Replaces the table or slice.
    Replace,
    /// Merges by key.
    Merge,
    /// Appends.
    Append,
    /// Keeps history.
    History,
    /// Is a view.
    View,
    /// Writes with its own statements.
    Manual,
}

impl From<&WriteStrategy> for ScriptKind {
    fn from(strategy: &WriteStrategy) -> Self {
        match strategy {
            WriteStrategy::Replace => ScriptKind::Replace,
            WriteStrategy::Merge { .. } => ScriptKind::Merge,
            WriteStrategy::Append => ScriptKind::Append,
            WriteStrategy::History { .. } => ScriptKind::History,
            WriteStrategy::View => ScriptKind::View,
            WriteStrategy::Manual => ScriptKind::Manual,
        }
    }
}

/// What `kind:` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindFilter {
    /// A write strategy.
    Strategy(ScriptKind),
    /// A language.
    Language(Language),
    /// `kind:sql`: DuckDB or Postgres SQL.
    AnySql,
}

/// What only the recorded state knows of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// `stale`, `missing`, `failed`, `partial`, `state:unknown`: a slice of it is in that state; `fresh`, `unchanged`: all are.
    State(State),
    /// `state:new`: not in what is compared with.
    New,
    /// `state:modified`: another text than in what is compared with.
    Modified,
    /// `result:…`: how its step of the last run ended.
    Result(StepResult),
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepResult {
    /// It wrote.
    Materialized,
    /// There was nothing to write.
    Unchanged,
    /// It failed.
    Failed,
    /// A test took its write back.
    RolledBack,
}

/// A mistake in a selection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SelectError {
    /// The stable code.
    pub code: Code,
    /// Where in the selection's text.
    pub span: Span,
    /// One line, lower case, no full stop.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl SelectError {
    fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: None }
    }

    /// Returns the mistake as a diagnostic of the option that was given, such as `--select`.
    pub fn to_diagnostic(&self, option: &str) -> Diagnostic {
        let diagnostic = Diagnostic::new(self.code, option, self.span, &self.message);
        match &self.help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        }
    }

    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn with_near(self, near: Option<impl AsRef<str>>) -> Self {
        match near {
            Some(near) => self.with_help(format!("did you mean `{}`?", near.as_ref())),
            None => self,
        }
    }
}
