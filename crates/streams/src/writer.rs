//! A lake as a stream writes it: one instance, one session with the lake under its write alias, and this process's presence
//! in the lake's guard.
//!
//! Invariant: a writer is used by one thread; what it sends goes through [`crate::commit`], which holds the lane. Several
//! writers of one process on one lake are as safe as several processes.

use std::cell::RefCell;

use pintail_core::sql::Relation;
use pintail_engine::fault::Faults;
use pintail_engine::guard::StandingGuard;
use pintail_engine::lake::OWN_SCHEMA;
use pintail_engine::{EngineError, Instance, InstanceOptions, LakeLocation, Session};

/// After how many commits the log of a SQLite catalog may be emptied.
const COMMITS: u32 = 32;

/// A lake that is open for writing.
pub struct Writer {
    lake: LakeLocation,
    alias: String,
    faults: Faults,
    guard: StandingGuard,
    // Declared before the instance, so that they go first.
    keeper: RefCell<Keeper>,
    session: Session,
    instance: Instance,
}

/// A read transaction that keeps a SQLite catalog open: DuckDB closes the file after every transaction, and whoever closes
/// it last empties the log under an exclusive lock.
#[derive(Default)]
struct Keeper {
    session: Option<Session>,
    commits: u32,
}

impl Writer {
    /// Opens `lake` for writing, making it when it does not exist, and announces this process in its guard.
    pub fn open(lake: &LakeLocation, options: InstanceOptions, faults: Faults) -> Result<Self, EngineError> {
        let instance = Instance::open(options)?;
        let session = instance.session()?;
        lake.attach_for_writing(&instance, &session)?;
        let guard = StandingGuard::open(lake)?;
        let (lake, alias) = (lake.clone(), lake.write_alias());
        let writer = Self { lake, alias, faults, guard, keeper: RefCell::default(), session, instance };
        writer.keep_open()?;
        Ok(writer)
    }

    /// Returns the lake.
    pub fn lake(&self) -> &LakeLocation {
        &self.lake
    }

    /// Returns the alias under which the session writes the lake.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// Returns the session that writes. Stages are made on it, before a commit begins.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the session with the alias.
    pub(crate) fn place(&self) -> (&Session, &str) {
        (&self.session, &self.alias)
    }

    /// Returns another session of the same instance, for reading while the first one writes.
    pub fn reader(&self) -> Result<Session, EngineError> {
        self.instance.session()
    }

    /// Returns the lake's guard.
    pub fn guard(&self) -> &StandingGuard {
        &self.guard
    }

    /// Returns what tests ask for between two steps.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns how the instance was opened.
    pub fn options(&self) -> &InstanceOptions {
        self.instance.options()
    }

    /// Returns the table `name` of Pintail's own schema.
    pub fn own_table(&self, name: &str) -> Relation {
        Relation::in_catalog(&self.alias, OWN_SCHEMA, name)
    }

    /// Keeps the catalog open for the next commits.
    pub(crate) fn keep_open(&self) -> Result<(), EngineError> {
        if !self.lake.needs_keeper() {
            return Ok(());
        }
        let mut keeper = self.keeper.borrow_mut();
        if keeper.session.is_some() && keeper.commits < COMMITS {
            keeper.commits += 1;
            return Ok(());
        }
        keeper.session = None;
        let session = self.instance.session()?;
        self.lake.begin_keeping_open(&session)?;
        *keeper = Keeper { session: Some(session), commits: 0 };
        Ok(())
    }
}
