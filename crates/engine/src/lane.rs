//! The commit lane: at most one lake transaction at a time per process and lake, and on SQLite per machine.
//!
//! Held from BEGIN to the look-up of the stamp. In one process concurrent transactions with DDL corrupt DuckLake's
//! memory; between processes any commit of another one during ours fails ours on a SQLite catalog. The file lock is
//! freed by the kernel when its holder dies.
//!
//! On Postgres transactions of several processes may overlap, since DuckLake finds their conflicts. Advisory locks keep
//! apart those that should not even try (`advisory.rs`): what must be alone in the lake, and compaction of a table whose
//! rows another process changes.

mod advisory;

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::EngineError;
use crate::postgres::PostgresLocation;

/// How long a transaction waits for other processes when its caller says nothing else.
const PATIENCE: Duration = Duration::from_secs(120);

/// The lane of one lake.
#[derive(Clone, Debug)]
pub struct Lane {
    lake: String,
    beyond: Beyond,
    mutex: Arc<Mutex<()>>,
}

/// What keeps other processes out.
#[derive(Clone, Debug)]
enum Beyond {
    File(PathBuf),
    Postgres(PostgresLocation),
}

/// What somebody does in the lane: whom it keeps out where the catalog lets transactions overlap.
///
/// Tables are given by schema and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose<'a> {
    /// Whatever DuckLake itself finds the conflicts of, or a lease keeps others from: nobody is kept out.
    Write,
    /// Changes or deletes rows of these tables, without their leases: nobody compacts them meanwhile.
    Change(&'a [(&'a str, &'a str)]),
    /// Compacts the files of this table: nobody changes its rows meanwhile.
    Compact((&'a str, &'a str)),
    /// Must be alone in the lake.
    Alone,
}

/// The right to be in a lake transaction; dropped after the look-up.
#[derive(Debug)]
pub struct LanePass<'a> {
    // Dropped in this order: the other processes' lock first, so that another process may go on as soon as another
    // thread may.
    _held: Held,
    _process: MutexGuard<'a, ()>,
}

#[derive(Debug)]
enum Held {
    File(#[expect(dead_code, reason = "the lock is the file's, and ends with it")] File),
    Postgres(#[expect(dead_code, reason = "the locks end with it")] advisory::Locks),
}

impl Lane {
    /// Returns the lane of the lake whose SQLite catalog is `catalog`; one per file in this process.
    pub fn of_catalog(lake: &str, catalog: &Path) -> Self {
        let path = std::path::absolute(catalog).unwrap_or_else(|_| catalog.to_owned());
        let mutex = mutex_of(&format!("sqlite:{}", path.display()));
        let mut lock_path = path.into_os_string();
        lock_path.push(".lock");
        Self { lake: lake.to_owned(), beyond: Beyond::File(PathBuf::from(lock_path)), mutex }
    }

    /// Returns the lane of the lake whose catalog is the database at `location`; one per connection text in this process.
    pub fn of_postgres(lake: &str, location: &PostgresLocation) -> Self {
        let mutex = mutex_of(&format!("postgres:{}", location.dsn()));
        Self { lake: lake.to_owned(), beyond: Beyond::Postgres(location.clone()), mutex }
    }

    /// Waits for the lane and for other processes.
    pub fn enter(&self) -> Result<LanePass<'_>, EngineError> {
        self.enter_within(PATIENCE, &|| false)
    }

    /// Waits for the lane and, for as long as `patience`, for other processes, unless `is_stopped` says to give up.
    pub fn enter_within(&self, patience: Duration, is_stopped: &dyn Fn() -> bool) -> Result<LanePass<'_>, EngineError> {
        self.enter_to(Purpose::Write, patience, is_stopped)
    }

    /// Waits until no other process is in a transaction of the lake, and keeps all of them out.
    pub fn enter_exclusively(&self) -> Result<LanePass<'_>, EngineError> {
        self.enter_to(Purpose::Alone, PATIENCE, &|| false)
    }

    /// Waits for the lane and, for as long as `patience`, for those whom `purpose` and this keep apart, unless `is_stopped`
    /// says to give up.
    pub fn enter_to(
        &self,
        purpose: Purpose<'_>,
        patience: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<LanePass<'_>, EngineError> {
        // A panic inside the lane has rolled back or will be seen by the check of the next transaction.
        let process = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = Wait { lane: self, started: Instant::now(), patience, is_stopped };
        let held = match &self.beyond {
            // The file's lock keeps everybody out.
            Beyond::File(path) => Held::File(lock_file(path, &wait)?),
            Beyond::Postgres(location) => Held::Postgres(advisory::lock(location, purpose, &wait)?),
        };
        Ok(LanePass { _held: held, _process: process })
    }
}

/// How long somebody waits, and what ends it.
struct Wait<'a> {
    lane: &'a Lane,
    started: Instant,
    patience: Duration,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Wait<'_> {
    /// Fails when the wait has been long enough.
    fn go_on(&self, lock: &str) -> Result<(), EngineError> {
        if (self.is_stopped)() {
            return Err(EngineError::Stopped { lake: self.lane.lake.clone() });
        }
        if self.patience <= self.started.elapsed() {
            return Err(EngineError::LakeBusy {
                lake: self.lane.lake.clone(),
                seconds: self.patience.as_secs(),
                lock: lock.to_owned(),
            });
        }
        Ok(())
    }
}

fn mutex_of(catalog: &str) -> Arc<Mutex<()>> {
    static LANES: OnceLock<Mutex<HashMap<String, Arc<Mutex<()>>>>> = OnceLock::new();
    let mut lanes = LANES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    lanes.entry(catalog.to_owned()).or_default().clone()
}

fn lock_file(path: &Path, wait: &Wait<'_>) -> Result<File, EngineError> {
    let failed = |operation| {
        let path = path.to_owned();
        move |source| EngineError::File { operation, path, source }
    };
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = opened.map_err(failed("open the lock file"))?;
    let mut pause = Duration::from_micros(200);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
            Err(TryLockError::WouldBlock) => {
                wait.go_on(&path.display().to_string())?;
                // A blocking lock could not be given up; commits take tens of milliseconds.
                std::thread::park_timeout(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pintail_testkit::services::database;
    use secrecy::SecretString;

    use super::{Beyond, Lane, Purpose};
    use crate::error::EngineError;
    use crate::postgres::PostgresLocation;

    fn lock_of(lane: &Lane) -> std::path::PathBuf {
        match &lane.beyond {
            Beyond::File(path) => path.clone(),
            Beyond::Postgres(location) => panic!("{location}"),
        }
    }

    #[test]
    fn who_waits_for_another_process_gives_up_in_time_or_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = folder.path().join("lake.sqlite");
        let lane = Lane::of_catalog("main", &catalog);
        // A lock of another open file is to this lane what one of another process is.
        let other = std::fs::File::create(lock_of(&lane)).unwrap();
        other.lock().unwrap();
        let busy = lane.enter_within(Duration::ZERO, &|| false).unwrap_err();
        let path = lock_of(&lane).display().to_string();
        assert!(matches!(&busy, EngineError::LakeBusy { lock, .. } if *lock == path), "{busy}");
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

    #[test]
    fn on_postgres_transactions_of_processes_overlap_and_who_must_be_alone_waits_for_them() {
        let database = database();
        let password = Some(SecretString::from(database.password()));
        let location = |extra: &str| {
            let text = format!("{}{extra}", database.connection_without_password());
            PostgresLocation::parse(&text, password.clone()).unwrap()
        };
        // Another connection text is to this process what another process is.
        let (here, there) = (location(""), location(" application_name=other"));
        let (here, there) = (Lane::of_postgres("main", &here), Lane::of_postgres("main", &there));
        let (first, second) = (here.enter().unwrap(), there.enter().unwrap());
        drop(second);
        let busy = there.enter_to(Purpose::Alone, Duration::ZERO, &|| false).unwrap_err();
        assert!(matches!(busy, EngineError::LakeBusy { .. }), "{busy}");
        drop(first);
        let alone = there.enter_exclusively().unwrap();
        let stopped = here.enter_within(Duration::from_secs(3600), &|| true).unwrap_err();
        assert!(matches!(stopped, EngineError::Stopped { .. }), "{stopped}");
        drop(alone);
        assert!(here.enter().is_ok());
    }
    #[test]
    fn on_postgres_a_table_is_not_compacted_while_others_change_its_rows_and_all_else_goes_on() {
        let database = database();
        let password = Some(SecretString::from(database.password()));
        let lane = |name: &str| {
            let text = format!("{} application_name={name}", database.connection_without_password());
            Lane::of_postgres("main", &PostgresLocation::parse(&text, password.clone()).unwrap())
        };
        let (one, other, third) = (lane("one"), lane("other"), lane("third"));
        let change = Purpose::Change(&[("main", "b"), ("main", "A")]);
        let changing = one.enter_to(change, Duration::ZERO, &|| false).unwrap();
        let also = other.enter_to(Purpose::Change(&[("main", "a")]), Duration::ZERO, &|| false).unwrap();
        drop(also);
        let compact = |table| other.enter_to(Purpose::Compact(("main", table)), Duration::ZERO, &|| false);
        for table in ["a", "b"] {
            let busy = compact(table).unwrap_err().to_string();
            assert!(busy.contains(&format!("the rows or files of main.{table}")), "{busy}");
        }
        drop(compact("c").unwrap());
        drop(changing);
        let compacting = compact("a").unwrap();
        let busy = one.enter_to(change, Duration::ZERO, &|| false).unwrap_err();
        assert!(matches!(busy, EngineError::LakeBusy { .. }), "{busy}");
        // What was locked before the one that did not come is free again.
        drop(third.enter_to(Purpose::Compact(("main", "b")), Duration::ZERO, &|| false).unwrap());
        drop(one.enter().unwrap());
        drop(compacting);
        assert!(one.enter_to(change, Duration::ZERO, &|| false).is_ok());
    }
}
