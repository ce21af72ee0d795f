//! The commit lane: at most one lake transaction at a time per process and lake, and on SQLite per machine.
//!
//! Held from BEGIN to the look-up of the stamp. In one process concurrent transactions with DDL corrupt DuckLake's
//! memory; between processes any commit of another one during ours fails ours on a SQLite catalog. The file lock is
//! freed by the kernel when its holder dies.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::EngineError;

/// How long a transaction waits for other processes when its caller says nothing else.
const PATIENCE: Duration = Duration::from_secs(120);

/// The lane of one lake.
#[derive(Clone, Debug)]
pub struct Lane {
    lake: String,
    lock_path: PathBuf,
    mutex: Arc<Mutex<()>>,
}

/// The right to be in a lake transaction; dropped after the look-up.
#[derive(Debug)]
pub struct LanePass<'a> {
    // Dropped in this order: the file first, so that another process may go on as soon as another thread may.
    _file: File,
    _process: MutexGuard<'a, ()>,
}

impl Lane {
    /// Returns the lane of the lake whose SQLite catalog is `catalog`; one per file in this process.
    pub fn of_catalog(lake: &str, catalog: &Path) -> Self {
        static LANES: OnceLock<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>> = OnceLock::new();
        let path = std::path::absolute(catalog).unwrap_or_else(|_| catalog.to_owned());
        let mutex = LANES
            .get_or_init(Mutex::default)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(path.clone())
            .or_default()
            .clone();
        let mut lock_path = path.into_os_string();
        lock_path.push(".lock");
        Self { lake: lake.to_owned(), lock_path: PathBuf::from(lock_path), mutex }
    }

    /// Waits for the lane and for other processes.
    pub fn enter(&self) -> Result<LanePass<'_>, EngineError> {
        self.enter_within(PATIENCE, &|| false)
    }

    /// Waits for the lane and, for as long as `patience`, for other processes, unless `is_stopped` says to give up.
    pub fn enter_within(&self, patience: Duration, is_stopped: &dyn Fn() -> bool) -> Result<LanePass<'_>, EngineError> {
        // A panic inside the lane has rolled back or will be seen by the check of the next transaction.
        let process = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.lock_path)
            .map_err(|source| self.file_error("open the lock file", source))?;
        self.lock(&file, patience, is_stopped)?;
        Ok(LanePass { _file: file, _process: process })
    }

    fn lock(&self, file: &File, patience: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), EngineError> {
        let started = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(source)) => return Err(self.file_error("lock", source)),
                Err(TryLockError::WouldBlock) if is_stopped() => {
                    return Err(EngineError::Stopped { lake: self.lake.clone() });
                }
                Err(TryLockError::WouldBlock) if patience <= started.elapsed() => {
                    return Err(EngineError::LakeBusy {
                        lake: self.lake.clone(),
                        seconds: patience.as_secs(),
                        lock: self.lock_path.clone(),
                    });
                }
                Err(TryLockError::WouldBlock) => {
                    // A blocking lock could not be given up; commits take tens of milliseconds.
                    std::thread::park_timeout(pause);
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
            }
        }
    }

    fn file_error(&self, operation: &'static str, source: std::io::Error) -> EngineError {
        EngineError::File { operation, path: self.lock_path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Lane;
    use crate::error::EngineError;

    #[test]
    fn who_waits_for_another_process_gives_up_in_time_or_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = folder.path().join("lake.sqlite");
        let lane = Lane::of_catalog("main", &catalog);
        // A lock of another open file is to this lane what one of another process is.
        let other = std::fs::File::create(&lane.lock_path).unwrap();
        other.lock().unwrap();
        let busy = lane.enter_within(Duration::ZERO, &|| false).unwrap_err();
        assert!(matches!(&busy, EngineError::LakeBusy { lock, .. } if *lock == lane.lock_path), "{busy}");
        let stopped = lane.enter_within(Duration::from_secs(3600), &|| true).unwrap_err();
        assert!(matches!(stopped, EngineError::Stopped { .. }), "{stopped}");
        other.unlock().unwrap();
        assert!(lane.enter_within(Duration::ZERO, &|| true).is_ok());
    }

    #[test]
    fn two_lanes_of_one_catalog_are_one() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = folder.path().join("lake.sqlite");
        let first = Lane::of_catalog("main", &catalog);
        let second = Lane::of_catalog("main", &catalog);
        let pass = first.enter().unwrap();
        assert!(second.mutex.try_lock().is_err());
        drop(pass);
        assert!(second.enter().is_ok());
    }
}
