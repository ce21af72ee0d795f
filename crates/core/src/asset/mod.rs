//! Assets: the things that scripts read and write, named by URIs with one canonical form.
//!
//! Invariant: `parse(canonical(x)) == x`, and two URIs name one asset exactly when their canonical texts are equal.
//! Reading order: the type (here), names and their escapes, the parser, globs. What is deliberately not here: which
//! lakes and stores exist (the project knows) and whether an asset does (the lake knows).

mod error;
mod glob;
mod lake_name;
mod name;
mod parse;

#[cfg(test)]
mod tests;

use std::fmt;

pub use error::{AssetError, AssetErrorKind};
pub use lake_name::{DEFAULT_LAKE, LakeNameError, check_lake_name};
pub use parse::Catalog;

use crate::id::LakeName;

use name::{Escaped, canonical_name};

/// The schema of a lake table that names none.
pub const DEFAULT_LAKE_SCHEMA: &str = "main";

/// The schema of a Postgres table that names none.
pub const DEFAULT_DATATABLE_SCHEMA: &str = "public";

/// The database that the bare word `datatable` means.
pub const DEFAULT_DATATABLE: &str = "main";

/// The volume whose directory is the project root.
pub const PROJECT_VOLUME: &str = "project";

/// A canonical asset. Build one only through the parser or the constructors, which canonicalise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asset {
    /// A table or view of a lake.
    Lake {
        /// The lake's configured name.
        lake: LakeName,
        /// Schema, `main` by default. ASCII-lower-cased, NFC.
        schema: String,
        /// Table. ASCII-lower-cased, NFC.
        table: String,
    },
    /// A table of a Postgres database.
    Datatable {
        /// The configured database name.
        database: String,
        /// Schema, `public` by default.
        schema: String,
        /// Table.
        table: String,
    },
    /// An object (or a glob over objects) of a configured store; keys are exact, never case-folded.
    Object {
        /// The configured store's name; empty for the default store.
        store: String,
        /// The key or glob.
        key: String,
    },
    /// A file (or a glob over files) under a configured directory; `project` is the project root.
    Volume {
        /// The configured volume.
        volume: String,
        /// The path below it, with `/`.
        path: String,
    },
}

impl Asset {
    /// Returns the table `schema.table` of `lake`, all three as the user spells them.
    pub fn lake_table(lake: &str, schema: &str, table: &str) -> Self {
        Asset::Lake {
            lake: LakeName(canonical_name(lake)),
            schema: canonical_name(schema),
            table: canonical_name(table),
        }
    }

    /// Returns the table `schema.table` of the Postgres database `database`, all three as the user spells them.
    pub fn datatable(database: &str, schema: &str, table: &str) -> Self {
        Asset::Datatable {
            database: canonical_name(database),
            schema: canonical_name(schema),
            table: canonical_name(table),
        }
    }

    /// Returns the object or glob `key` of `store`; the empty store is the default one.
    pub fn object(store: &str, key: &str) -> Self {
        Asset::Object { store: store.to_owned(), key: key.to_owned() }
    }

    /// Returns the file or glob `path` of `volume`, with empty and `.` parts removed.
    ///
    /// # Errors
    /// When the path leaves the volume (`..`) or names nothing.
    pub fn volume_file(volume: &str, path: &str) -> Result<Self, AssetError> {
        let path = name::canonical_path(path)?;
        Ok(Asset::Volume { volume: volume.to_owned(), path })
    }

    /// Returns the lake's name when the asset lies in a lake.
    pub fn lake(&self) -> Option<&LakeName> {
        match self {
            Asset::Lake { lake, .. } => Some(lake),
            _ => None,
        }
    }

    /// Returns the place that counts the asset's versions: its lake by name, or `datatable://app`, `s3://raw`,
    /// `volume://landing`. No lake can have such a name, so that all of them share one map of pins.
    pub fn place(&self) -> LakeName {
        match self {
            Asset::Lake { lake, .. } => lake.clone(),
            Asset::Datatable { database, .. } => LakeName(format!("datatable://{database}")),
            Asset::Object { store, .. } => LakeName(format!("s3://{store}")),
            Asset::Volume { volume, .. } => LakeName(format!("volume://{volume}")),
        }
    }

    /// Returns whether the place of the asset numbers its versions in one sequence, as a lake and a datatable do; files
    /// are compared by their fingerprints.
    pub fn has_numbered_versions(&self) -> bool {
        matches!(self, Asset::Lake { .. } | Asset::Datatable { .. })
    }

    /// Returns the name that a person calls the asset by: the table, or the last part of the key or path.
    pub fn short_name(&self) -> &str {
        match self {
            Asset::Lake { table, .. } | Asset::Datatable { table, .. } => table,
            Asset::Object { key: path, .. } | Asset::Volume { path, .. } => {
                path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
            }
        }
    }

    /// Returns the scheme, such as `ducklake`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Asset::Lake { .. } => "ducklake",
            Asset::Datatable { .. } => "datatable",
            Asset::Object { .. } => "s3",
            Asset::Volume { .. } => "volume",
        }
    }
}

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asset::Lake { lake, schema, table } => {
                write!(f, "ducklake://{}/", Escaped(lake.as_str()))?;
                write_table(f, schema, DEFAULT_LAKE_SCHEMA, table)
            }
            Asset::Datatable { database, schema, table } => {
                write!(f, "datatable://{}/", Escaped(database))?;
                write_table(f, schema, DEFAULT_DATATABLE_SCHEMA, table)
            }
            Asset::Object { store, key } => write!(f, "s3://{store}/{key}"),
            Asset::Volume { volume, path } => write!(f, "volume://{volume}/{path}"),
        }
    }
}

fn write_table(f: &mut fmt::Formatter<'_>, schema: &str, default_schema: &str, table: &str) -> fmt::Result {
    if schema != default_schema {
        write!(f, "{}.", Escaped(schema))?;
    }
    write!(f, "{}", Escaped(table))
}
