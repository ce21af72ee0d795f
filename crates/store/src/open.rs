//! Opens a store: one writing connection, a few reading ones, all of them waiting for locks.
//!
//! Invariant: writes of one process queue on its single writing connection and start with `BEGIN IMMEDIATE`, so that
//! between processes only the start of a transaction waits and nothing fails half way. A file of another program is
//! recognised before anything in it is changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pintail_core::id::ProjectName;
use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

use crate::encoding::{Backend, Tx};
use crate::error::{OpenError, is_locked, is_no_database};
use crate::migrate;

/// How long a connection waits for another one's lock; far above what any transaction here takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// How long to pause when SQLite refuses at once instead of waiting, as it does while the journal mode changes.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

const READERS: u32 = 4;

/// The metadata of one project in an open store; clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    pools: Arc<Pools>,
    project: ProjectName,
}

#[derive(Debug)]
struct Pools {
    writer: sqlx::Pool<Backend>,
    readers: sqlx::Pool<Backend>,
}

impl Store {
    /// Opens the store in the SQLite file `path` for `project`, making the file and its folders and bringing its schema
    /// up to date where needed.
    pub async fn open(path: &Path, project: ProjectName) -> Result<Self, OpenError> {
        create_folder(path)?;
        create_private_file(path);
        let options = connect_options(path);
        let writer = connect_writer(path, &options).await?;
        migrate::bring_up_to_date(path, &writer).await?;
        let readers = PoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(LOCK_TIMEOUT)
            .connect_lazy_with(options.create_if_missing(false));
        Ok(Self { pools: Arc::new(Pools { writer, readers }), project })
    }

    /// Returns the same store for another project's rows.
    pub fn for_project(&self, project: ProjectName) -> Self {
        Self { pools: Arc::clone(&self.pools), project }
    }

    /// Returns the project whose rows this store sees.
    pub fn project(&self) -> &ProjectName {
        &self.project
    }

    /// Closes every connection after the operations that hold one, and folds the write-ahead log into the file.
    pub async fn close(&self) {
        self.pools.readers.close().await;
        self.pools.writer.close().await;
    }

    pub(crate) fn project_text(&self) -> &str {
        self.project.as_str()
    }

    pub(crate) fn readers(&self) -> &sqlx::Pool<Backend> {
        &self.pools.readers
    }

    /// Begins a transaction that holds the write lock from its start.
    pub(crate) async fn begin_write(&self) -> Result<Tx<'static>, sqlx::Error> {
        self.pools.writer.begin_with("BEGIN IMMEDIATE").await
    }
}

fn create_folder(path: &Path) -> Result<(), OpenError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|source| OpenError::Folder { path: path.to_owned(), source })
}

/// Makes the file so that only its owner can read it: failing rows, statements and logs stand in it, and SQLite gives the
/// files beside it the same rights. What cannot be made here is refused by SQLite with its reason.
fn create_private_file(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

/// Returns options without a journal mode: that is set once the file is known to be ours. `NORMAL` keeps every commit
/// through a crash of the process; a power cut may take the last ones, which the lake's stamps bring back.
fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .foreign_keys(true)
        .busy_timeout(LOCK_TIMEOUT)
        .synchronous(SqliteSynchronous::Normal)
}

async fn connect_writer(path: &Path, options: &SqliteConnectOptions) -> Result<sqlx::Pool<Backend>, OpenError> {
    let pool = || PoolOptions::new().max_connections(1).acquire_timeout(LOCK_TIMEOUT).connect_with(options.clone());
    retry_while_locked(pool).await.map_err(|source| database_error(path, source))
}

/// Repeats `operation` while it says locked without having waited.
pub(crate) async fn retry_while_locked<T, F>(operation: impl Fn() -> F) -> Result<T, sqlx::Error>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let begun = Instant::now();
    loop {
        match operation().await {
            Err(error) if is_locked(&error) && begun.elapsed() < LOCK_TIMEOUT => tokio::time::sleep(RETRY_PAUSE).await,
            result => return result,
        }
    }
}

/// Returns the error of opening `path`: a file that is no database at all is no store either.
pub(crate) fn database_error(path: &Path, source: sqlx::Error) -> OpenError {
    let path = PathBuf::from(path);
    match is_no_database(&source) {
        true => OpenError::NotAStore { path },
        false => OpenError::Database { path, source },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pintail_core::id::ProjectName;
    use sqlx::ConnectOptions as _;

    use super::{Store, connect_options, is_locked};
    use crate::{ErrorClass, WriteError};

    #[tokio::test]
    async fn a_write_holds_the_lock_from_its_start_and_another_one_is_transient() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let store = Store::open(&path, ProjectName("shop".into())).await.unwrap();
        let impatient = connect_options(&path).busy_timeout(Duration::ZERO);
        let mut other = impatient.connect().await.unwrap();
        let tx = store.begin_write().await.unwrap();
        let source = sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap_err();
        assert!(is_locked(&source), "{source:?}");
        let error = WriteError::Database { operation: "begin run 1".into(), source };
        assert_eq!((error.class(), error.to_string().as_str()), (ErrorClass::Transient, "begin run 1 in the store"));
        tx.commit().await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_the_owner_can_read_the_store_and_the_files_beside_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.sqlite"), ProjectName("shop".into())).await.unwrap();
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
        let error = Store::open(&file.join("store.sqlite"), ProjectName("shop".into())).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::User);
        assert!(error.to_string().ends_with("file/store.sqlite"), "{error}");
        let error = Store::open(folder.path(), ProjectName("shop".into())).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::User, "{error:?}");
    }
}
