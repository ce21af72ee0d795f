//! Errors of Postgres in the words that the user gets, sorted into classes by SQLSTATE: the one place that does.

use pintail_core::diagnostic::Code;
use pintail_core::write::ErrorClass;
use pintail_engine::Redactor;
use sqlx::postgres::{PgDatabaseError, PgErrorPosition};

use crate::executors::StepFailure;

/// Returns the class of an error by its SQLSTATE.
fn class_of_state(state: &str) -> ErrorClass {
    match state {
        "57014" => ErrorClass::Cancelled,
        // Serialization, deadlock, lock timeout; connections, resources and a server that stops or starts.
        "55P03" | "55006" => ErrorClass::Transient,
        state if ["40", "08", "53", "57P"].iter().any(|prefix| state.starts_with(prefix)) => ErrorClass::Transient,
        state if state.starts_with("XX") => ErrorClass::Bug,
        _ => ErrorClass::User,
    }
}

/// Returns the class of an error.
pub fn class_of(error: &sqlx::Error) -> ErrorClass {
    match error {
        sqlx::Error::Database(database) => database.code().map_or(ErrorClass::User, |state| class_of_state(&state)),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => {
            ErrorClass::Transient
        }
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => ErrorClass::User,
        _ => ErrorClass::Bug,
    }
}

/// Returns whether an error leaves the connection unusable, so that what was sent last may or may not have happened.
pub fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            database.code().is_some_and(|state| state.starts_with("08") || state.starts_with("57P"))
        }
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        _ => false,
    }
}

/// Returns the failure of `purpose`.
pub fn failure(purpose: &str, error: &sqlx::Error, redactor: &Redactor) -> StepFailure {
    let class = class_of(error);
    let code = match class {
        ErrorClass::Cancelled => Code::CANCELLED,
        ErrorClass::Transient => Code::TRANSIENT_ERROR,
        ErrorClass::Conflict => Code::CONFLICT,
        ErrorClass::User | ErrorClass::Bug => Code::ENGINE_ERROR,
    };
    let (message, help) = match error.as_database_error().map(|error| error.downcast_ref::<PgDatabaseError>()) {
        Some(error) => {
            let detail = error.detail().map_or_else(String::new, |detail| format!(" ({detail})"));
            (format!("Postgres: {}{detail}", error.message()), error.hint().map(str::to_owned))
        }
        None => (crate::with_sources(error), None),
    };
    StepFailure {
        class,
        help: help.map(|help| redactor.redact(&help)),
        ..StepFailure::user(code, purpose, redactor.redact(&message))
    }
}

/// Returns where in the statement Postgres saw the error, as a byte offset.
pub fn position(error: &sqlx::Error, sql: &str) -> Option<usize> {
    let error = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    let PgErrorPosition::Original(character) = error.position()? else { return None };
    sql.char_indices().nth(character.saturating_sub(1)).map(|(at, _)| at)
}
