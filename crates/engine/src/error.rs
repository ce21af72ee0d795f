//! What went wrong in the engine, one variant per kind of operation, each with its class.

use std::path::PathBuf;

use crate::classify::{EngineMessage, ErrorClass};
use crate::guard::GuardError;
use crate::redact::Redactor;

/// A statement that DuckDB refused.
#[derive(Clone, Debug)]
pub struct StatementFailure {
    /// What the statement was for.
    pub purpose: &'static str,
    /// Its text, redacted.
    pub sql: String,
    /// What the engine said, taken apart and redacted.
    pub message: EngineMessage,
}

/// A failed engine operation.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A statement failed.
    #[error("could not {}: {}", .0.purpose, .0.message.message)]
    Statement(Box<StatementFailure>),
    /// The library that was loaded is not the one that was built against.
    #[error(
        "the DuckDB library is {found}, but Pintail needs {wanted}; run `cargo xtask setup`, or `pintail doctor` to see which one was loaded"
    )]
    LibraryVersion {
        /// What was loaded.
        found: String,
        /// What is needed.
        wanted: &'static str,
    },
    /// An extension's file is nowhere.
    #[error("the DuckDB extension `{name}` {version} was not found in {}; run `cargo xtask setup`, or set PINTAIL_EXTENSION_DIR to the folder that holds {name}.duckdb_extension", looked_in(.folders))]
    ExtensionMissing {
        /// `ducklake`.
        name: String,
        /// The version needed.
        version: &'static str,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// An extension's file is there but cannot be loaded.
    #[error("the DuckDB extension file {} cannot be loaded: {message}; run `cargo xtask setup` to fetch it again", .path.display())]
    ExtensionBroken {
        /// The file.
        path: PathBuf,
        /// What the engine said.
        message: String,
    },
    /// The catalog is of a kind that Pintail does not use.
    #[error("lake `{lake}`: {reason}")]
    CatalogRefused {
        /// The lake.
        lake: String,
        /// Why, and what to use instead.
        reason: String,
    },
    /// The lake has never been written.
    #[error("lake `{lake}` does not exist yet ({}); the first script that writes to it makes it", .catalog.display())]
    LakeMissing {
        /// The lake.
        lake: String,
        /// Its catalog file.
        catalog: PathBuf,
    },
    /// Another process held the lake's lock for too long.
    #[error("another process has been writing lake `{lake}` for {seconds} s (lock {}); nothing was changed, try again", .lock.display())]
    LakeBusy {
        /// The lake.
        lake: String,
        /// How long we waited.
        seconds: u64,
        /// The lock file.
        lock: PathBuf,
    },
    /// The user stopped what waited for another process.
    #[error("stopped on request while waiting for another process to finish writing lake `{lake}`")]
    Stopped {
        /// The lake.
        lake: String,
    },
    /// The commit was sent, but whether it landed could not be read.
    #[error("the commit of attempt {attempt} was sent, but its outcome could not be read")]
    OutcomeUnknown {
        /// The attempt to look up.
        attempt: String,
        /// Why the look-up failed.
        #[source]
        source: Box<EngineError>,
    },
    /// The commit did not land although no statement failed.
    #[error("COMMIT reported success but attempt {attempt} is not in the lake; nothing was written")]
    NotCommitted {
        /// The attempt.
        attempt: String,
    },
    /// A file operation failed.
    #[error("could not {operation} {}", .path.display())]
    File {
        /// `create the folder`.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The guard failed.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// An answer had another shape than expected.
    #[error("could not read the answer to {purpose}: {detail}")]
    Answer {
        /// What was asked.
        purpose: &'static str,
        /// What was wrong with it.
        detail: String,
    },
}

fn looked_in(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl EngineError {
    /// Returns the failure of the statement `sql`, redacted.
    pub fn statement(purpose: &'static str, sql: &str, source: &duckdb::Error, redactor: &Redactor) -> Self {
        let text = match source {
            duckdb::Error::DuckDBFailure(_, Some(text)) => text.clone(),
            other => other.to_string(),
        };
        let mut message = EngineMessage::parse(&text);
        message.message = redactor.redact(&message.message);
        Self::Statement(Box::new(StatementFailure { purpose, sql: redactor.redact(sql), message }))
    }

    /// Returns how the caller should react.
    pub fn class(&self) -> ErrorClass {
        match self {
            EngineError::Statement(failure) => failure.message.class,
            EngineError::LakeBusy { .. } | EngineError::OutcomeUnknown { .. } => ErrorClass::Transient,
            EngineError::NotCommitted { .. } => ErrorClass::Conflict,
            EngineError::Stopped { .. } => ErrorClass::Cancelled,
            EngineError::Guard(error) => error.class(),
            EngineError::Answer { .. } => ErrorClass::Bug,
            EngineError::LibraryVersion { .. }
            | EngineError::ExtensionMissing { .. }
            | EngineError::ExtensionBroken { .. }
            | EngineError::CatalogRefused { .. }
            | EngineError::LakeMissing { .. }
            | EngineError::File { .. } => ErrorClass::User,
        }
    }

    /// Returns the statement that failed, when one did.
    pub fn failure(&self) -> Option<&StatementFailure> {
        match self {
            EngineError::Statement(failure) => Some(failure),
            _ => None,
        }
    }
}
