//! The native parts: which DuckDB library is loaded and where the extension files of its version lie.
//!
//! Versions of the crate, the library and the extensions move together (docs/design/native.md). Extensions are loaded by
//! absolute path, and only after their signature was checked; nothing is ever installed or downloaded at run time.

pub(crate) mod checked;

use std::path::{Path, PathBuf};

use crate::error::EngineError;

/// The only DuckDB version that Pintail runs on.
pub const DUCKDB_VERSION: &str = "v1.5.5";

/// An extension that Pintail knows how to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extension {
    /// Lakes.
    DuckLake,
    /// SQLite catalogs.
    SqliteScanner,
    /// Postgres catalogs and databases.
    PostgresScanner,
    /// S3 and HTTP.
    Httpfs,
}

impl Extension {
    /// Every extension, in the order in which they are listed.
    pub const ALL: [Extension; 4] =
        [Extension::DuckLake, Extension::SqliteScanner, Extension::PostgresScanner, Extension::Httpfs];

    /// Returns the name that DuckDB uses.
    pub fn name(self) -> &'static str {
        match self {
            Extension::DuckLake => "ducklake",
            Extension::SqliteScanner => "sqlite_scanner",
            Extension::PostgresScanner => "postgres_scanner",
            Extension::Httpfs => "httpfs",
        }
    }
}

/// The folders that may hold `<name>.duckdb_extension`, in order of preference.
#[derive(Clone, Debug, Default)]
pub struct ExtensionFolders(pub Vec<PathBuf>);

impl ExtensionFolders {
    /// Returns the usual places: `configured`, beside a build of this repository, beside an installed binary, and
    /// DuckDB's own folder under `home`.
    pub fn usual(configured: Option<PathBuf>, executable: Option<&Path>, home: Option<&Path>) -> Self {
        let mut folders: Vec<PathBuf> = configured.into_iter().collect();
        if let Some(folder) = executable.and_then(Path::parent) {
            folders.push(folder.join("../../vendor/duckdb/extensions"));
            folders.push(folder.join("../../../vendor/duckdb/extensions"));
            folders.push(folder.join("../lib/pintail/extensions"));
        }
        if let Some(home) = home {
            folders.push(home.join(".duckdb/extensions").join(DUCKDB_VERSION).join("linux_amd64"));
        }
        Self(folders)
    }

    /// Returns the file of `extension`.
    pub fn find(&self, extension: Extension) -> Result<PathBuf, EngineError> {
        let file = format!("{}.duckdb_extension", extension.name());
        self.0
            .iter()
            .map(|folder| folder.join(&file))
            .find(|path| path.is_file())
            .map(|path| path.canonicalize().unwrap_or(path))
            .ok_or_else(|| EngineError::ExtensionMissing {
                name: extension.name().to_owned(),
                version: DUCKDB_VERSION,
                folders: self.0.clone(),
            })
    }
}
