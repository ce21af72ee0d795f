//! What went wrong in the engine, one variant per kind of operation, each with its class.

use std::path::PathBuf;

use pintail_core::id::SnapshotId;

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
    #[error("lake `{lake}` does not exist yet ({catalog}); the first script that writes to it makes it")]
    LakeMissing {
        /// The lake.
        lake: String,
        /// Its catalog's file or database.
        catalog: String,
    },
    /// Another process held the lake's lock for too long.
    #[error(
        "another process has been writing lake `{lake}` for {seconds} s (lock {lock}); nothing was changed, try again"
    )]
    LakeBusy {
        /// The lake.
        lake: String,
        /// How long we waited.
        seconds: u64,
        /// The lock file, or what it is on Postgres.
        lock: String,
    },
    /// A connection of ours to Postgres failed.
    #[error("could not {operation} (Postgres, {place}): {reason}")]
    Postgres {
        /// What was being done.
        operation: &'static str,
        /// Host, port, user and database.
        place: String,
        /// What the server or the network said.
        reason: String,
        /// How to react.
        class: ErrorClass,
    },
    /// The database of a Postgres catalog is not there.
    #[error("Postgres has no database `{database}`; a lake lives in a database of its own: make it by `{command}`")]
    DatabaseMissing {
        /// Its name.
        database: String,
        /// What makes it.
        command: String,
    },
    /// The server cannot take the connections that a run needs.
    #[error(
        "lake `{lake}` needs {needed} connections to Postgres with {slots} slots, but only {free} of the server's {limit} \
         are free; lower `slots` in `[run]`, or raise `max_connections`"
    )]
    TooFewConnections {
        /// The lake.
        lake: String,
        /// What a run needs at most.
        needed: u64,
        /// With so many slots.
        slots: u64,
        /// What the server can still take.
        free: u64,
        /// What it can take in all, without those that it reserves.
        limit: u64,
    },
    /// No configured store has the place.
    #[error(
        "{url} lies in no object store that pintail.toml configures{hint}; add `[object_store.<name>]` with its `url`"
    )]
    NoObjectStore {
        /// The place.
        url: String,
        /// `; configured are …`, or empty.
        hint: String,
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
    /// A commit is stored whose files are gone.
    #[error(
        "the answer to COMMIT was lost: the lake has the commit as snapshot {snapshot}, but DuckLake took it for failed and removed its files, such as {file}"
    )]
    FilesLost {
        /// The commit's snapshot.
        snapshot: SnapshotId,
        /// One of the files.
        file: String,
    },
    /// A commit was stored without its files, and was taken back.
    #[error(
        "the answer to COMMIT was lost, and DuckLake removed the files of the commit; so snapshot {snapshot} was taken back, and nothing is \
         written"
    )]
    TakenBack {
        /// The snapshot, which is there and shows nothing new.
        snapshot: SnapshotId,
        /// What COMMIT said.
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

/// Returns the words of `error` and of what caused it, without repetition.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
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
            EngineError::LakeBusy { .. } | EngineError::OutcomeUnknown { .. } | EngineError::TakenBack { .. } => {
                ErrorClass::Transient
            }
            EngineError::NotCommitted { .. } => ErrorClass::Conflict,
            EngineError::Stopped { .. } => ErrorClass::Cancelled,
            EngineError::Guard(error) => error.class(),
            EngineError::Postgres { class, .. } => *class,
            EngineError::TooFewConnections { .. } => ErrorClass::Transient,
            EngineError::Answer { .. } => ErrorClass::Bug,
            EngineError::FilesLost { .. }
            | EngineError::LibraryVersion { .. }
            | EngineError::ExtensionMissing { .. }
            | EngineError::ExtensionBroken { .. }
            | EngineError::CatalogRefused { .. }
            | EngineError::LakeMissing { .. }
            | EngineError::DatabaseMissing { .. }
            | EngineError::NoObjectStore { .. }
            | EngineError::File { .. } => ErrorClass::User,
        }
    }

    /// Returns whether DuckDB's memory limit was reached.
    pub fn is_out_of_memory(&self) -> bool {
        self.failure().is_some_and(|failure| failure.message.is_out_of_memory())
    }

    /// Returns the statement that failed, when one did.
    pub fn failure(&self) -> Option<&StatementFailure> {
        match self {
            EngineError::Statement(failure) => Some(failure),
            _ => None,
        }
    }
}
