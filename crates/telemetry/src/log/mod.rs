//! The write-ahead log: what was acknowledged and is not yet in the lake, in a SQLite file of its own.
//!
//! Invariant: [`Log::append`] returns when its records are on disk, and requests that wait at the same time share one
//! fsync. Positions only grow, also over restarts and after all entries are gone. An entry goes by [`Log::forget`] only,
//! which is for commits that are proved. A log has an id; the position of another one means nothing in it.
//!
//! What records mean, and how they reach the lake, is in the sink.

mod database;
mod index;
mod record;
mod writer;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

pub use index::Pending;
pub use record::{Arrival, Record, RecordError, Refusal, decode, encode};

use database::Database;
pub(crate) use index::Index;
use writer::{Request, Writer};

/// How many requests may wait for the writer.
const QUEUE: usize = 4_096;

/// What an entry takes beside its records.
const ENTRY_BYTES: u64 = 64;

/// A position in a log: that of one append. 0 is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition(pub u64);

/// How a log is opened.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The file; its folder is made when it is missing.
    pub path: PathBuf,
    /// So many bytes may wait for the lake; more are refused.
    pub limit: u64,
}

/// What one append wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub position: LogPosition,
    /// Its records, encoded.
    pub body: Vec<u8>,
}

/// Why nothing was appended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppendError {
    /// The lake is behind by more than the log may hold.
    #[error("{held} bytes wait for the lake, and the log may hold {limit}")]
    Full {
        /// So many bytes wait.
        held: u64,
        /// So many may.
        limit: u64,
    },
    /// There is no room on the disk: it may be taken later.
    #[error("the disk that the log lies on is full")]
    DiskFull,
    /// The file cannot be written.
    #[error("the log cannot be written")]
    Broken(#[source] Arc<sqlx::Error>),
    /// The log is being closed.
    #[error("the log is closed")]
    Closed,
}

/// A log that could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another process has it open.
    #[error("another process uses the log {}; two would write each other's events twice; stop it, or give this one a log of its own", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file system failed.
    #[error("could not {operation} {}", .path.display())]
    File {
        /// `make the folder of`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("could not {operation} the log {}", .path.display())]
    Database {
        /// `open`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The file is of a later version.
    #[error("the log {} has format {found}, this version reads format {}; let the version that wrote it empty it", .path.display(), database::FORMAT)]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format found.
        found: String,
    },
}

/// An open log; clones are the same one.
#[derive(Clone, Debug)]
pub struct Log {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: String,
    limit: u64,
    database: Database,
    requests: mpsc::Sender<Request>,
    index: Arc<Mutex<Index>>,
    /// Bytes that wait for the lake or for the disk.
    held: Arc<AtomicU64>,
    head: watch::Receiver<LogPosition>,
}

impl Log {
    /// Opens the log, making it when it is not there, and keeps every other process out. Runs on tokio.
    pub async fn open(options: &LogOptions) -> Result<Self, LogError> {
        let lock = Arc::new(lock(&options.path)?);
        let (database, id) = Database::open(&options.path).await?;
        let index = database.load_index().await?;
        let held = Arc::new(AtomicU64::new(index.pending(LogPosition(0)).bytes));
        let (head_sender, head) = watch::channel(index.head());
        let index = Arc::new(Mutex::new(index));
        let (requests, queue) = mpsc::channel(QUEUE);
        let writer = Writer::new(database.clone(), index.clone(), held.clone(), head_sender, lock);
        tokio::spawn(writer.run(queue));
        let shared = Shared { id, limit: options.limit, database, requests, index, held, head };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns what tells this log from every other one.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Returns how many bytes wait for the lake.
    pub fn held(&self) -> u64 {
        self.shared.held.load(Ordering::Relaxed)
    }

    /// Returns how many bytes may wait for the lake.
    pub fn limit(&self) -> u64 {
        self.shared.limit
    }

    /// Appends `records` as one entry, all or none, and returns when they are on disk.
    pub async fn append(&self, records: &[Record]) -> Result<LogPosition, AppendError> {
        let body = encode(records);
        let bytes = body.len() as u64 + ENTRY_BYTES;
        self.reserve(bytes)?;
        let (answer, answered) = oneshot::channel();
        let entry = writer::NewEntry { body, records: records.len() as u64, bytes, answer };
        if self.shared.requests.send(Request::Append(entry)).await.is_err() {
            self.shared.held.fetch_sub(bytes, Ordering::Relaxed);
            return Err(AppendError::Closed);
        }
        // A caller that goes away leaves its entry to be written: it was not acknowledged, and may land all the same.
        answered.await.unwrap_or(Err(AppendError::Closed))
    }

    /// Says early that the log is full, before anything is done for records that it would not take.
    pub fn check_room(&self) -> Result<(), AppendError> {
        let (held, limit) = (self.held(), self.limit());
        match held.checked_add(ENTRY_BYTES).is_some_and(|least| least <= limit) {
            true => Ok(()),
            false => Err(full(held, limit)),
        }
    }

    fn reserve(&self, bytes: u64) -> Result<(), AppendError> {
        let limit = self.shared.limit;
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= limit);
        match self.shared.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(held) => Err(full(held, limit)),
        }
    }

    /// Returns what lies after `after`.
    pub fn pending(&self, after: LogPosition) -> Pending {
        self.index().pending(after)
    }

    /// Returns the last position that a batch after `after` may have within `records` and `bytes`, and at least one
    /// entry; `None` when there is none.
    pub fn cut(&self, after: LogPosition, records: u64, bytes: u64) -> Option<LogPosition> {
        self.index().cut(after, records, bytes)
    }

    /// Returns the first position that is still there.
    pub fn first(&self) -> Option<LogPosition> {
        self.index().first()
    }

    /// Returns the newest position that was given to anything, also when it is gone.
    pub fn last_given(&self) -> LogPosition {
        self.index().head()
    }

    /// Returns the entries in `(after, upto]`, in order.
    pub async fn read(&self, after: LogPosition, upto: LogPosition) -> Result<Vec<Entry>, LogError> {
        self.shared.database.read(after, upto).await
    }

    /// Removes the entries up to `upto`, whose commit is proved. It may be done later, or, after a crash, never: then it
    /// is asked for again.
    pub async fn forget(&self, upto: LogPosition) {
        // A writer that is gone forgets nothing, and the next start does.
        let _ = self.shared.requests.send(Request::Forget(upto)).await;
    }

    /// Returns a receiver that changes whenever something was appended.
    pub fn watch(&self) -> watch::Receiver<LogPosition> {
        self.shared.head.clone()
    }

    /// Writes what waits, closes the file, and lets other processes have it.
    pub async fn close(&self) {
        let (answer, answered) = oneshot::channel();
        if self.shared.requests.send(Request::Close(answer)).await.is_ok() {
            let _ = answered.await;
        }
    }

    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        self.shared.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full(held: u64, limit: u64) -> AppendError {
    metrics::counter!("pintail_ingest_refused_total", "reason" => "log_full").increment(1);
    AppendError::Full { held, limit }
}

/// Takes the log's lock file, which the kernel frees when its process dies.
fn lock(path: &Path) -> Result<File, LogError> {
    let failed = |operation, path: &Path| {
        let path = path.to_owned();
        move |source| LogError::File { operation, path, source }
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed("make the folder of", path))?;
    }
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    let file = File::create(&lock_path).map_err(failed("open the lock file", &lock_path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LogError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", &lock_path)(source)),
    }
}

#[cfg(test)]
mod tests;
