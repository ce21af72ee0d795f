//! How a caller should react to a failure; decided by whoever saw it, read by the policies.

use std::fmt;

/// The class of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// What the user wrote or configured must change; a retry gives the same.
    User,
    /// Another writer was there first: retry with fresh facts.
    Conflict,
    /// Something outside failed for a while: retry as it is.
    Transient,
    /// Interrupted on request.
    Cancelled,
    /// A fault of the engine or of Pintail; the instance should be opened anew.
    Bug,
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorClass::User => "user",
            ErrorClass::Conflict => "conflict",
            ErrorClass::Transient => "transient",
            ErrorClass::Cancelled => "cancelled",
            ErrorClass::Bug => "bug",
        })
    }
}
