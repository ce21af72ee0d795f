//! Numbered migrations, each applied once, all that are lacking in one transaction.
//!
//! Invariant: after opening, the schema equals `schema/<backend>.sql`, whoever migrated and however many opened at once.
//! A place with tables but without ours is refused untouched.

use crate::error::OpenError;

/// One numbered directory under `migrations/`.
pub(super) struct Migration {
    pub(super) version: i64,
    pub(super) sqlite: &'static str,
    pub(super) postgres: &'static str,
}

/// Declares the migration in one directory.
macro_rules! migration {
    ($version:literal, $folder:literal) => {
        Migration {
            version: $version,
            sqlite: include_str!(concat!("../../migrations/", $folder, "/sqlite.sql")),
            postgres: include_str!(concat!("../../migrations/", $folder, "/postgres.sql")),
        }
    };
}

const MIGRATIONS: &[Migration] =
    &[migration!(1, "0001_initial"), migration!(2, "0002_replay_and_backfill"), migration!(3, "0003_rollbacks_undo")];

const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

pub(super) const VERSION_TABLE: &str = "CREATE TABLE pintail_store (version BIGINT NOT NULL PRIMARY KEY)";

pub(super) const RECORD_VERSION: &str = "INSERT INTO pintail_store (version) VALUES ($1)";

pub(super) const READ_VERSION: &str = "SELECT coalesce(max(version), 0) AS version FROM pintail_store";

/// What a database turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Empty,
    Store { version: i64 },
    Foreign,
}

impl Found {
    pub(super) const LATEST: Self = Found::Store { version: NEWEST };

    /// Returns whether there is nothing to migrate.
    pub(super) fn is_settled(self) -> bool {
        match self {
            Found::Foreign => true,
            Found::Store { version } => NEWEST <= version,
            Found::Empty => false,
        }
    }

    /// Returns the migrations that it lacks, in order.
    pub(super) fn lacking(self) -> impl Iterator<Item = &'static Migration> {
        let version = if let Found::Store { version } = self { version } else { 0 };
        MIGRATIONS.iter().filter(move |migration| version < migration.version)
    }

    /// Refuses what this binary cannot use.
    pub(super) fn check(self, place: &str) -> Result<(), OpenError> {
        match self {
            Found::Foreign => Err(OpenError::NotAStore { place: place.to_owned() }),
            Found::Store { version } if NEWEST < version => {
                Err(OpenError::Newer { place: place.to_owned(), found: version, known: NEWEST })
            }
            Found::Store { .. } | Found::Empty => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
