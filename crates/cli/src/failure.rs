//! What stops a command, and which exit code that is.
//!
//! Invariant: a message is one sentence without a full stop; what helps is a hint of its own.

use std::fmt;

use pintail_core::select::SelectFailure;
use pintail_engine::EngineError;
use pintail_runner::executors::StepFailure;
use pintail_runner::project::CompileError;
use pintail_runner::{RunnerError, with_sources};

use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::render::diagnostics;
use crate::terminal::Terminal;

/// A command that could not go on.
#[derive(Debug)]
pub enum Failure {
    /// All was said already.
    Told(Exit),
    /// A message that is still to be said.
    Message {
        /// The exit code.
        exit: Exit,
        /// What happened.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A question failed as a step would, in the text of the user.
    Step {
        /// How.
        failure: Box<StepFailure>,
        /// The file and its text, when there is one.
        source: Option<(String, String)>,
    },
    /// A selection is wrong.
    Selection {
        /// What is wrong.
        failure: SelectFailure,
        /// `--select`, as given.
        select: String,
        /// `--exclude`, as given.
        exclude: String,
    },
}

impl Failure {
    /// Returns the failure of a command line that asks for something that cannot be.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::Message { exit: Exit::Usage, message: message.into(), hint: None }
    }

    /// Returns the failure of something that Pintail needs.
    pub fn internal(message: impl Into<String>) -> Self {
        Failure::Message { exit: Exit::Internal, message: message.into(), hint: None }
    }

    /// Returns the failure of an error that says after a semicolon what to do; here that is a hint of its own.
    pub fn advised(exit: Exit, error: &dyn std::error::Error) -> Self {
        let text = with_sources(error);
        let (message, hint) = match text.split_once("; ") {
            Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
            None => (text, None),
        };
        Failure::Message { exit, message, hint }
    }

    /// Adds what to do.
    pub fn with_hint(mut self, text: impl Into<String>) -> Self {
        if let Failure::Message { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// Adds the texts that a wrong selection is shown in.
    pub fn in_selection(self, texts: &SelectArgs) -> Self {
        match self {
            Failure::Selection { failure, .. } => Failure::Selection {
                failure,
                select: texts.select().unwrap_or_default(),
                exclude: texts.exclude().unwrap_or_default(),
            },
            other => other,
        }
    }

    /// Adds the file that a failed question is shown in.
    pub fn in_file(self, path: &str, text: &str) -> Self {
        match self {
            Failure::Step { failure, .. } => {
                Failure::Step { failure, source: Some((path.to_owned(), text.to_owned())) }
            }
            other => other,
        }
    }

    /// Says what happened and returns the exit code.
    pub fn tell(self, terminal: &Terminal) -> Exit {
        match self {
            Failure::Told(exit) => exit,
            Failure::Message { exit, message, hint } => {
                terminal.error(&message);
                if let Some(hint) = hint {
                    terminal.hint(&hint);
                }
                exit
            }
            Failure::Step { failure, source } => {
                let source = source.as_ref().map(|(path, text)| (path.as_str(), text.as_str()));
                terminal.talk(&diagnostics::question_failure(&failure, source, terminal.colors_talk()));
                Exit::Failed
            }
            Failure::Selection { failure, select, exclude } => {
                let options = [("--select", &failure.select, &select), ("--exclude", &failure.exclude, &exclude)];
                for (option, errors, text) in options {
                    for error in errors {
                        let diagnostic = error.to_diagnostic(option);
                        terminal.talk(&diagnostics::render(&diagnostic, Some(text), terminal.colors_talk()));
                    }
                }
                Exit::Usage
            }
        }
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Select(failure) => {
                Failure::Selection { failure, select: String::new(), exclude: String::new() }
            }
            RunnerError::Step(failure) => Failure::Step { failure, source: None },
            RunnerError::ProjectHasErrors => {
                Failure::Message { exit: Exit::CheckErrors, message: error.to_string(), hint: None }
            }
            RunnerError::Damaged { message } => Failure::Message { exit: Exit::Failed, message, hint: None },
            RunnerError::Usage { .. }
            | RunnerError::NotFound { .. }
            | RunnerError::Plan(_)
            | RunnerError::NoRun(_)
            | RunnerError::NoScript { .. } => Failure::usage(with_sources(&error)),
            RunnerError::Engine(error) => error.into(),
            RunnerError::Open(ref open) => {
                let hint = match open.is_on_server() {
                    true => "the server must be there, and its user must be allowed to make the schema `pintail_store`",
                    false => "the store's file and its folder must be yours to read and write; `pintail doctor` checks",
                };
                Failure::internal(with_sources(&error)).with_hint(hint)
            }
            RunnerError::Read(_) | RunnerError::Write(_) | RunnerError::Runtime(_) => {
                Failure::internal(with_sources(&error))
            }
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Failure::advised(Exit::Internal, &error)
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Engine(error) => error.into(),
        }
    }
}

impl fmt::Display for Failure {
    /// In one line, for a place where a failure is a fact among others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Told(_) => f.write_str("told above"),
            Failure::Message { message, hint: Some(hint), .. } => write!(f, "{message}; {hint}"),
            Failure::Message { message, hint: None, .. } => f.write_str(message),
            Failure::Step { failure, .. } => f.write_str(&failure.message),
            Failure::Selection { .. } => f.write_str("the selection is wrong"),
        }
    }
}
