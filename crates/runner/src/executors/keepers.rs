//! Keeps the catalogs' SQLite files open while a process works on them.
//!
//! DuckDB closes the file after every transaction, and whoever closes it last empties the write-ahead log under an
//! exclusive lock; another slot that opens the file in that moment waits a whole second. So one read transaction per
//! lake stays open. It also keeps the log from being emptied, so now and then it is given up and begun anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pintail_core::id::LakeName;
use pintail_engine::{EngineError, Instance, LakeLocation, Session};

/// After how many steps the log may be emptied.
const STEPS: u32 = 32;

/// The open read transactions of a process; clones share them.
#[derive(Clone, Default)]
pub struct Keepers(Arc<Mutex<BTreeMap<LakeName, Keeper>>>);

struct Keeper {
    _transaction: Session,
    steps: u32,
}

impl Keepers {
    /// Makes sure that the catalog of `lake`, attached for writing in `instance`, stays open for the next step.
    pub fn keep_open(&self, lake: &LakeLocation, instance: &Instance) -> Result<(), EngineError> {
        if !lake.needs_keeper() {
            return Ok(());
        }
        let mut keepers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = keepers.get_mut(&lake.name)
            && keeper.steps < STEPS
        {
            keeper.steps += 1;
            return Ok(());
        }
        keepers.remove(&lake.name);
        let session = instance.session()?;
        lake.begin_keeping_open(&session)?;
        keepers.insert(lake.name.clone(), Keeper { _transaction: session, steps: 0 });
        Ok(())
    }
}
