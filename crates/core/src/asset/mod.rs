//! Assets: the things that scripts read and write, named by URIs with one canonical form.
//!
//! Invariant: `parse(canonical(x)) == x`, and two URIs name one asset exactly when their canonical texts are equal.

use std::fmt;

use crate::id::LakeName;

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
    /// Returns the lake's name when the asset lies in a lake.
    pub fn lake(&self) -> Option<&LakeName> {
        match self {
            Asset::Lake { lake, .. } => Some(lake),
            _ => None,
        }
    }
}

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asset::Lake { lake, schema, table } if schema == "main" => write!(f, "ducklake://{lake}/{table}"),
            Asset::Lake { lake, schema, table } => write!(f, "ducklake://{lake}/{schema}.{table}"),
            Asset::Datatable { database, schema, table } if schema == "public" => {
                write!(f, "datatable://{database}/{table}")
            }
            Asset::Datatable { database, schema, table } => write!(f, "datatable://{database}/{schema}.{table}"),
            Asset::Object { store, key } => write!(f, "s3://{store}/{key}"),
            Asset::Volume { volume, path } => write!(f, "volume://{volume}/{path}"),
        }
    }
}
