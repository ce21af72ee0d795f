//! The behavioural suite on SQLite: each case gets a fresh file.

#![expect(clippy::unwrap_used, reason = "a failed step of a case is a failed test")]

mod suite;

use std::path::PathBuf;

use pintail_core::id::ProjectName;
use pintail_store::{Store, StoreLocation};

/// A store in a folder that goes away with the test.
struct SqliteStore {
    folder: tempfile::TempDir,
}

impl suite::Backend for SqliteStore {
    async fn fresh() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    async fn open(&self) -> Store {
        Store::open(&StoreLocation::Sqlite { path: self.path() }, ProjectName("shop".into())).await.unwrap()
    }
}

impl SqliteStore {
    fn path(&self) -> PathBuf {
        self.folder.path().join("store.sqlite")
    }
}

suite::run_on!(SqliteStore);
