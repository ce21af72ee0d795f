//! Opens a store and holds its connections.

use std::sync::Arc;

use pintail_core::id::ProjectName;

use crate::database::{Database, Tx};
use crate::error::OpenError;
use crate::location::StoreLocation;

/// The metadata of one project in an open store; clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    database: Arc<Database>,
    project: ProjectName,
}

impl Store {
    /// Opens the store at `location` for `project`, making it and bringing its schema up to date where needed.
    pub async fn open(location: &StoreLocation, project: ProjectName) -> Result<Self, OpenError> {
        Ok(Self { database: Arc::new(Database::open(location).await?), project })
    }

    /// Returns the same store for another project's rows.
    pub fn for_project(&self, project: ProjectName) -> Self {
        Self { database: Arc::clone(&self.database), project }
    }

    /// Returns the project whose rows this store sees.
    pub fn project(&self) -> &ProjectName {
        &self.project
    }

    /// Closes every connection after the operations that hold one; a SQLite store has its write-ahead log folded into the
    /// file.
    pub async fn close(&self) {
        self.database.close().await;
    }

    pub(crate) fn project_text(&self) -> &str {
        self.project.as_str()
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Begins a transaction that is the project's only writing one from its start.
    pub(crate) async fn begin_write(&self) -> Result<Tx, sqlx::Error> {
        self.database.begin_write(self.project_text()).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pintail_core::id::ProjectName;

    use crate::{ErrorClass, OpenError, Store, StoreLocation};

    async fn open(path: &Path) -> Result<Store, OpenError> {
        Store::open(&StoreLocation::Sqlite { path: path.to_owned() }, ProjectName("shop".into())).await
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_the_owner_can_read_the_store_and_the_files_beside_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("store.sqlite")).await.unwrap();
        let tx = store.begin_write().await.unwrap();
        tx.commit().await.unwrap();
        let rights = |file: std::fs::DirEntry| {
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            format!("{} {mode:o}", file.file_name().to_string_lossy())
        };
        let mut files: Vec<String> = folder.path().read_dir().unwrap().map(|file| rights(file.unwrap())).collect();
        files.sort();
        assert_eq!(files, ["store.sqlite 600", "store.sqlite-shm 600", "store.sqlite-wal 600"]);
    }

    #[tokio::test]
    async fn a_place_that_cannot_hold_a_store_is_the_users_to_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = open(&file.join("store.sqlite")).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::User);
        assert!(error.to_string().ends_with("file/store.sqlite"), "{error}");
        let error = open(folder.path()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::User, "{error:?}");
    }
}
