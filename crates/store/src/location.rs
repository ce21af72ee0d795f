//! Where a store is.

use std::fmt;
use std::path::PathBuf;

use secrecy::SecretString;

use crate::error::SERVER_PLACE;

/// A place for a store.
#[derive(Clone, Debug)]
pub enum StoreLocation {
    /// A file of one machine.
    Sqlite {
        /// The file; it and its folders are made when they are missing.
        path: PathBuf,
    },
    /// The schema `pintail_store` of a Postgres database, which many projects and machines share.
    Postgres {
        /// A connection text as libpq reads it, `host=db dbname=pintail` or `postgres://…`, without a password.
        connection: String,
        /// The password.
        password: Option<SecretString>,
    },
}

impl StoreLocation {
    /// Returns whether several projects may share the place.
    pub fn is_shared(&self) -> bool {
        matches!(self, StoreLocation::Postgres { .. })
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::Sqlite { path } => path.display().fmt(f),
            StoreLocation::Postgres { connection, .. } => write!(f, "{SERVER_PLACE} ({connection})"),
        }
    }
}
