//! Taking stock: objects that no row names, and rows whose object is gone. Nothing is removed.
//!
//! Objects are listed before rows are read, since an object comes before its row; and young ones are left out, whose events
//! may still be in a log.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt as _;
use object_store::{ObjectStore, ObjectStoreExt as _};
use pintail_core::sql::Ident;
use pintail_engine::{EngineError, Session};

use super::{BlobError, Blobs, PREFIX, Place, check_key, failed, object};
use crate::raw::RawTable;

/// What does not go together, each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// Keys of objects that no row names.
    pub orphans: Vec<String>,
    /// Keys that rows name and no object has.
    pub missing: Vec<String>,
}

/// Stock that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum StockError {
    /// The store could not be read.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The lake could not be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Compares the objects that were there at `before` with the rows of `table` in the lake that `session` has as `alias`.
pub async fn take_stock(
    blobs: &Blobs,
    session: &Session,
    alias: &str,
    table: &RawTable,
    before: DateTime<Utc>,
) -> Result<Stock, StockError> {
    let objects = blobs.list().await?;
    let (relation, key) = (table.relation(alias), Ident::new("data_index_key"));
    let sql = format!("SELECT DISTINCT {key}\nFROM {relation}\nWHERE {key} IS NOT NULL\nORDER BY {key}");
    let named: BTreeSet<String> =
        session.rows("list the keys of payloads", &sql, |row| row.get(0))?.into_iter().collect();
    let is_orphan = |(key, written): &(String, DateTime<Utc>)| *written < before && !named.contains(key);
    let orphans: BTreeSet<String> =
        objects.iter().filter(|object| is_orphan(object)).map(|(key, _)| key.clone()).collect();
    let listed: BTreeSet<&str> = objects.iter().map(|(key, _)| key.as_str()).collect();
    let mut missing = Vec::new();
    for key in named.iter().filter(|key| !listed.contains(key.as_str())) {
        // It may have come after the objects were listed.
        if !blobs.has(key).await? {
            missing.push(key.clone());
        }
    }
    Ok(Stock { orphans: orphans.into_iter().collect(), missing })
}

impl Blobs {
    /// Returns every object's key and when it was written.
    async fn list(&self) -> Result<Vec<(String, DateTime<Utc>)>, BlobError> {
        match &self.place {
            Place::Folder(folder) => {
                let folder = folder.clone();
                let listed = tokio::task::spawn_blocking(move || {
                    let mut found = Vec::new();
                    list_folder(&folder, &folder.join(PREFIX), &mut found).map(|()| found)
                });
                listed.await.expect("listing a folder does not panic")
            }
            Place::Store { store, prefix } => {
                let objects =
                    store.list(Some(&object(prefix, PREFIX))).map_err(|source| failed("list", PREFIX, source));
                let key = |path: &str| path.strip_prefix(prefix).unwrap_or(path).trim_start_matches('/').to_owned();
                objects.map_ok(|object| (key(object.location.as_ref()), object.last_modified)).try_collect().await
            }
        }
    }

    /// Returns whether there is an object of that key.
    async fn has(&self, key: &str) -> Result<bool, BlobError> {
        if check_key(key).is_err() {
            return Ok(false);
        }
        match &self.place {
            Place::Folder(folder) => Ok(folder.join(key).exists()),
            Place::Store { store, prefix } => match store.head(&object(prefix, key)).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::NotFound { .. }) => Ok(false),
                Err(source) => Err(failed("look at", key, source)),
            },
        }
    }
}

fn list_folder(root: &Path, folder: &Path, found: &mut Vec<(String, DateTime<Utc>)>) -> Result<(), BlobError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| BlobError::File { operation: "list", path, source }
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed(folder))?,
    };
    for entry in entries {
        let path = entry.map_err(failed(folder))?.path();
        match fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => list_folder(root, &path, found)?,
            Ok(facts) => {
                let written = facts.modified().map_err(failed(&path))?.into();
                let key = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                found.push((key, written));
            }
            // A temporary file that has its name by now.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path)(error)),
        }
    }
    Ok(())
}
