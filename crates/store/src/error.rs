//! Errors of the store: one enum for opening, one for reading, one for writing, each with its class.
//!
//! Retry policy reads the class, never the text. A store that is locked or whose server went away is `transient`; one
//! that cannot be used as it is (another program's file, a newer version, a full disk, a wrong password) is the `user`'s;
//! anything else is a `bug`.

use std::path::PathBuf;

use sqlx::error::DatabaseError as _;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

use crate::encoding::words;

words! {
    /// What a caller may do about an error; stored with a failed attempt.
    ErrorClass {
        /// The user must change something; trying again alone does not help.
        User = "user",
        /// Facts changed under the attempt; try again with fresh ones.
        Conflict = "conflict",
        /// A newer commit of the same slice exists; stop.
        Superseded = "superseded",
        /// Something outside did not answer; try again.
        Transient = "transient",
        /// Pintail is wrong.
        Bug = "bug",
    }
}

/// How the place of a store on a server begins.
pub(crate) const SERVER_PLACE: &str = "on Postgres";

/// Opening a store failed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file, or the schema in the database, belongs to another program.
    #[error("open the store {place}: it is not a Pintail store; name another place in `[store] url`")]
    NotAStore {
        /// The store.
        place: String,
    },
    /// The store was written by a newer Pintail.
    #[error(
        "open the store {place}: it has schema version {found}, this pintail knows versions up to {known}; use a newer \
         pintail"
    )]
    Newer {
        /// The store.
        place: String,
        /// The version in the store.
        found: i64,
        /// The newest version that this binary knows.
        known: i64,
    },
    /// The folder of the file cannot be made.
    #[error("create the folder of the store {}", path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The connection text cannot be used.
    #[error("open the store {place}: {reason}")]
    Connection {
        /// The store.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The database refused.
    #[error("open the store {place}")]
    Database {
        /// The store.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
}

impl OpenError {
    /// Returns whether the store is on a server, and not in a file.
    pub fn is_on_server(&self) -> bool {
        match self {
            OpenError::Folder { .. } => false,
            OpenError::Connection { .. } => true,
            OpenError::NotAStore { place } | OpenError::Newer { place, .. } | OpenError::Database { place, .. } => {
                place.starts_with(SERVER_PLACE)
            }
        }
    }

    /// Returns what the caller may do about it.
    pub fn class(&self) -> ErrorClass {
        match self {
            OpenError::NotAStore { .. }
            | OpenError::Newer { .. }
            | OpenError::Folder { .. }
            | OpenError::Connection { .. } => ErrorClass::User,
            OpenError::Database { source, .. } => class_of(source),
        }
    }
}

/// Reading from the store failed.
#[derive(Debug, thiserror::Error)]
#[error("read {subject} from the store")]
pub struct ReadError {
    /// What was read, such as `the steps of run 17`.
    pub subject: String,
    /// Why it failed.
    pub source: sqlx::Error,
}

impl ReadError {
    /// Returns what the caller may do about it.
    pub fn class(&self) -> ErrorClass {
        class_of(&self.source)
    }
}

/// Writing to the store failed; nothing of the operation was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The row to change is not there, or is in a state that the change does not start from.
    #[error("{operation}: it is unknown to the store or already finished")]
    NotOpen {
        /// The operation and its object.
        operation: String,
    },
    /// A run cannot succeed while steps are open.
    #[error("finish run {run} as succeeded: {open} of its steps are not finished")]
    OpenSteps {
        /// The run.
        run: String,
        /// How many.
        open: i64,
    },
    /// The database refused.
    #[error("{operation} in the store")]
    Database {
        /// The operation and its object.
        operation: String,
        /// Why.
        source: sqlx::Error,
    },
}

impl WriteError {
    /// Returns what the caller may do about it.
    pub fn class(&self) -> ErrorClass {
        match self {
            WriteError::NotOpen { .. } | WriteError::OpenSteps { .. } => ErrorClass::Bug,
            WriteError::Database { source, .. } => class_of(source),
        }
    }
}

/// Names what was read when a read fails.
pub(crate) trait ReadContext<T> {
    fn reading(self, subject: impl FnOnce() -> String) -> Result<T, ReadError>;
}

impl<T> ReadContext<T> for Result<T, sqlx::Error> {
    fn reading(self, subject: impl FnOnce() -> String) -> Result<T, ReadError> {
        self.map_err(|source| ReadError { subject: subject(), source })
    }
}

/// Names the operation when a write fails.
pub(crate) trait WriteContext<T> {
    fn writing(self, operation: impl FnOnce() -> String) -> Result<T, WriteError>;
}

impl<T> WriteContext<T> for Result<T, sqlx::Error> {
    fn writing(self, operation: impl FnOnce() -> String) -> Result<T, WriteError> {
        self.map_err(|source| WriteError::Database { operation: operation(), source })
    }
}

/// Returns whether another connection holds the lock that was needed.
pub(crate) fn is_locked(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(SQLITE_BUSY | SQLITE_LOCKED))
}

/// Returns whether the file is no database at all.
pub(crate) fn is_no_database(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(SQLITE_NOTADB)
}

const SQLITE_PERM: i32 = 3;
const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
const SQLITE_READONLY: i32 = 8;
const SQLITE_IOERR: i32 = 10;
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_FULL: i32 = 13;
const SQLITE_CANTOPEN: i32 = 14;
const SQLITE_NOTADB: i32 = 26;

/// Returns the primary result code of an error of SQLite; the higher bits of an extended code only refine it.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    let code: i32 = error.code()?.parse().ok()?;
    Some(code & 0xff)
}

/// Returns the five characters that Postgres gives an error.
fn sql_state(error: &sqlx::Error) -> Option<String> {
    let error = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    Some(error.code().to_owned())
}

/// Returns whether a server is there but not ready yet, as after a crash.
pub(crate) fn is_starting(error: &sqlx::Error) -> bool {
    sql_state(error).as_deref() == Some(CANNOT_CONNECT_NOW)
}

/// Returns whether the connection was lost, or the transaction was given up for another's sake, so that the same again
/// may well succeed at once.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    if matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed) {
        return true;
    }
    sql_state(error).is_some_and(|state| LOST.contains(&state.as_str()) || state.starts_with(CONNECTION_EXCEPTION))
}

const CONNECTION_EXCEPTION: &str = "08";
const CANNOT_CONNECT_NOW: &str = "57P03";
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Serialization failure, deadlock, too many connections, shutdown by an administrator, crash of another session, starting.
const LOST: [&str; 6] = ["40001", "40P01", "53300", "57P01", "57P02", CANNOT_CONNECT_NOW];

/// The user's to change: the server's disk is full, it is a reader, wrong name or password, no such database, no right.
const USERS_STATES: [&str; 6] = ["53100", "25006", "28000", "28P01", "3D000", "42501"];

fn class_of(error: &sqlx::Error) -> ErrorClass {
    const USERS: [i32; 7] =
        [SQLITE_PERM, SQLITE_READONLY, SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_FULL, SQLITE_CANTOPEN, SQLITE_NOTADB];
    if is_locked(error) || is_lost(error) || matches!(error, sqlx::Error::PoolTimedOut) {
        return ErrorClass::Transient;
    }
    if matches!(error, sqlx::Error::Configuration(_) | sqlx::Error::Tls(_)) {
        return ErrorClass::User;
    }
    if let Some(state) = sql_state(error) {
        return match state.as_str() {
            LOCK_NOT_AVAILABLE => ErrorClass::Transient,
            state if USERS_STATES.contains(&state) => ErrorClass::User,
            _ => ErrorClass::Bug,
        };
    }
    match primary_code(error) {
        Some(code) if USERS.contains(&code) => ErrorClass::User,
        _ => ErrorClass::Bug,
    }
}
