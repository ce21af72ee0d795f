//! What every step of a run shares, what one is handed, and what it reports.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, RunId, ScriptName, SnapshotId, StepId};
use pintail_core::plan::Step;
use pintail_core::schema::Schema;
use pintail_core::sql::stamp::StampEntry;
use pintail_engine::fault::Faults;
use pintail_engine::guard::Guard;
use pintail_engine::lake::TableFacts;
use pintail_engine::{InstanceOptions, LakeLocation, Session};
use pintail_store::{Store, TestResult};
use tokio::runtime::Handle;

use super::duckdb::OpenIncrement;
use super::{Keepers, StepFailure};
use crate::project::CompiledProject;

/// What the steps of one run share.
pub struct RunContext {
    /// The project.
    pub project: Arc<CompiledProject>,
    /// The lakes, by name.
    pub lakes: BTreeMap<LakeName, LakeLocation>,
    /// The guards of the lakes.
    pub guards: BTreeMap<LakeName, Arc<Guard>>,
    /// The store.
    pub store: Store,
    /// Where asynchronous work runs; steps block on it.
    pub runtime: Handle,
    /// How a slot's instance is opened.
    pub instance: InstanceOptions,
    /// What keeps the catalogs open.
    pub keepers: Keepers,
    /// Test faults; none outside tests.
    pub faults: Faults,
    /// The run.
    pub run: RunId,
    /// The variables of scripts.
    pub vars: BTreeMap<String, String>,
    /// The fingerprints, as the run was planned or a step of it has made them, of what scripts read and nobody counts
    /// versions of.
    pub prints: Mutex<BTreeMap<String, String>>,
    /// What is known of assets, kept up to date as steps commit.
    pub memory: Mutex<HashMap<Asset, AssetMemory>>,
    /// What the steps of this run take of the columns that they go by, as far as they have begun.
    pub increments: Mutex<HashMap<StepId, OpenIncrement>>,
    /// The run's logical time: one instant for all that it writes.
    pub started: DateTime<Utc>,
    /// Whether the user wants to stop.
    pub cancel: Cancel,
    /// The clock.
    pub now: fn() -> DateTime<Utc>,
}

/// What is remembered of one asset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssetMemory {
    /// Whether Pintail has written or adopted it.
    pub is_ours: bool,
    /// Whether it holds a version: not merely the empty table that a first run reads.
    pub has_version: bool,
    /// Whether it was taken over with rows whose slices nobody counted.
    pub has_uncounted_rows: bool,
    /// How often its table was made anew.
    pub generation: u32,
    /// How often its columns changed.
    pub schema_version: u32,
    /// The columns last seen.
    pub schema: Option<Schema>,
    /// Rows in each slice, when known; the key is the partition's text, empty for the whole. Shared, since there may be
    /// thousands and every step looks here.
    pub rows: Arc<HashMap<String, Option<u64>>>,
    /// The table as the catalog described it, and the head then; it holds while no commit has changed its shape since.
    pub table: Option<(TableFacts, SnapshotId)>,
    /// The newest commit that was seen to change the table's shape.
    pub shape_changed: Option<SnapshotId>,
    /// The newest commit about the table that was taken in.
    pub caught_up: Option<SnapshotId>,
}

impl AssetMemory {
    /// Takes in what a commit of ours says.
    pub fn take_in(&mut self, entry: &StampEntry) {
        self.is_ours = true;
        // A table that was only made for its first reader has no rows of anyone yet; an adopted one has.
        self.has_version |= entry.strategy != "create";
        self.generation = self.generation.max(entry.generation);
        self.schema_version = self.schema_version.max(entry.schema_version);
        if entry.is_version() {
            if entry.partition.is_none() {
                Arc::make_mut(&mut self.rows).clear();
            }
            self.set_rows(entry.partition.as_ref().map_or_else(String::new, ToString::to_string), entry.rows);
            self.has_uncounted_rows |= entry.restored.is_some() && entry.partition.is_none();
        }
    }

    /// Remembers how many rows a slice has.
    pub fn set_rows(&mut self, slice: String, rows: Option<u64>) {
        Arc::make_mut(&mut self.rows).insert(slice, rows);
    }

    /// Returns the table as it was described, when nothing that was taken in has changed its shape since.
    pub fn described_table(&self) -> Option<&TableFacts> {
        let (facts, at) = self.table.as_ref()?;
        self.shape_changed.is_none_or(|changed| changed <= *at).then_some(facts)
    }

    /// Forgets how many rows slices have, written or not: the table was rolled back as a whole.
    pub fn forget_slices(&mut self) {
        Arc::make_mut(&mut self.rows).retain(|slice, _| slice.is_empty());
        self.has_uncounted_rows = true;
    }

    /// Takes in that somebody else has changed the table, or even made it.
    pub fn take_in_foreign(&mut self, is_made: bool) {
        Arc::make_mut(&mut self.rows).values_mut().for_each(|rows| *rows = None);
        self.is_ours &= !is_made;
    }
}

impl RunContext {
    /// Returns what is remembered of `asset`.
    pub fn memory_of(&self, asset: &Asset) -> AssetMemory {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(asset).cloned().unwrap_or_default()
    }

    /// Returns what the step takes of the column that it goes by.
    pub fn increment_of(&self, step: &StepId) -> Option<OpenIncrement> {
        self.increments.lock().unwrap_or_else(PoisonError::into_inner).get(step).cloned()
    }

    /// Remembers what a step takes.
    pub fn take_increment(&self, step: &StepId, increment: OpenIncrement) {
        self.increments.lock().unwrap_or_else(PoisonError::into_inner).insert(step.clone(), increment);
    }

    /// Returns the fingerprint of what `asset` names, when it has one.
    pub fn print_of(&self, asset: &str) -> Option<String> {
        self.prints.lock().unwrap_or_else(PoisonError::into_inner).get(asset).cloned()
    }

    /// Returns what has a fingerprint and can change when `written` does.
    pub fn printed_over(&self, written: &Asset) -> Vec<Asset> {
        let prints = self.prints.lock().unwrap_or_else(PoisonError::into_inner);
        prints.keys().filter_map(|key| Asset::parse(key).ok()).filter(|asset| asset.covers(written)).collect()
    }

    /// Remembers a new fingerprint.
    pub fn set_print(&self, asset: &Asset, print: String) {
        self.prints.lock().unwrap_or_else(PoisonError::into_inner).insert(asset.to_string(), print);
    }

    /// Waits on the run's runtime; a timer can be made only inside it.
    pub fn pause(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    /// Replaces what is remembered of `asset`.
    pub fn remember(&self, asset: &Asset, change: impl FnOnce(&mut AssetMemory)) {
        change(self.memory.lock().unwrap_or_else(PoisonError::into_inner).entry(asset.clone()).or_default());
    }
}

/// One step to do.
#[derive(Clone, Debug)]
pub struct StepJob {
    /// Its place in the plan.
    pub index: usize,
    /// Its id in the store.
    pub id: StepId,
    /// The step.
    pub step: Step,
    /// The snapshot of each lake at which it reads: the run's pin, or a later one of a step it depends on.
    pub pins: BTreeMap<LakeName, SnapshotId>,
}

/// What became of a step.
#[derive(Clone, Debug)]
pub enum StepOutcome {
    /// It committed.
    Materialized {
        /// The snapshot; for a datatable the number of its stamp, `None` for a file.
        snapshot: Option<SnapshotId>,
        /// Rows deleted.
        deleted: u64,
        /// Rows inserted.
        inserted: u64,
        /// Rows in the slice afterwards, when known.
        rows: Option<u64>,
    },
    /// What it would have written is there already: nothing was committed.
    Unchanged {
        /// The snapshot of the version that it confirms.
        snapshot: SnapshotId,
        /// Rows in the slice, when known.
        rows: Option<u64>,
    },
    /// A newer run has written the slice meanwhile.
    Superseded {
        /// Its snapshot.
        snapshot: SnapshotId,
        /// Its run.
        run: RunId,
    },
    /// It was written, but another step of its atomic run failed, so nothing of it is committed.
    RolledBack {
        /// The script that failed.
        because: ScriptName,
    },
    /// It failed.
    Failed(Box<StepFailure>),
}

/// A step's report.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// The step's place in the plan.
    pub index: usize,
    /// What became of it.
    pub outcome: StepOutcome,
    /// What the tests found.
    pub tests: Vec<TestResult>,
    /// What happened besides, for people.
    pub notes: Vec<String>,
    /// How long each phase took.
    pub phases: Vec<(&'static str, Duration)>,
    /// How long all of it took.
    pub elapsed: Duration,
}

/// The user's wish to stop; cloned into every slot.
#[derive(Clone, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Default)]
struct CancelState {
    is_set: AtomicBool,
    interrupts: Mutex<HashMap<usize, Arc<dyn Fn() + Send + Sync>>>,
    /// The slots whose step has run out of time.
    late: Mutex<BTreeSet<usize>>,
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_set()).finish()
    }
}

impl Cancel {
    /// Asks everything to stop and interrupts what is running.
    pub fn cancel(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        for interrupt in self.0.interrupts.lock().unwrap_or_else(PoisonError::into_inner).values() {
            interrupt();
        }
    }

    /// Returns whether the user asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Says that a new step begins in slot `slot`, which has all its time.
    pub fn begin(&self, slot: usize) {
        self.0.late.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot);
    }

    /// Returns whether the time of the step in slot `slot` is up.
    pub fn is_late(&self, slot: usize) -> bool {
        self.0.late.lock().unwrap_or_else(PoisonError::into_inner).contains(&slot)
    }

    /// Lets nothing interrupt slot `slot` until it is watched again: from COMMIT to its look-up a wish to stop could only
    /// make the outcome unknown.
    pub fn shield(&self, slot: usize) {
        self.0.interrupts.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot);
    }

    /// Says that the time of the step in slot `slot` is up and interrupts it, and nothing else.
    pub fn interrupt(&self, slot: usize) {
        self.0.late.lock().unwrap_or_else(PoisonError::into_inner).insert(slot);
        if let Some(interrupt) = self.0.interrupts.lock().unwrap_or_else(PoisonError::into_inner).get(&slot) {
            interrupt();
        }
    }

    /// Lets the user's wish reach `session` of `slot` until the returned watch is dropped.
    pub fn watch(&self, slot: usize, session: &Session) -> CancelWatch {
        let handle = session.interrupt_handle();
        self.watch_by(slot, Arc::new(move || handle.interrupt()))
    }

    /// Lets the user's wish be carried out by `interrupt` until the returned watch is dropped.
    pub fn watch_by(&self, slot: usize, interrupt: Arc<dyn Fn() + Send + Sync>) -> CancelWatch {
        self.0.interrupts.lock().unwrap_or_else(PoisonError::into_inner).insert(slot, interrupt);
        CancelWatch { cancel: self.clone(), slot }
    }
}

/// Ends a watch when dropped.
pub struct CancelWatch {
    cancel: Cancel,
    slot: usize,
}

impl Drop for CancelWatch {
    fn drop(&mut self) {
        self.cancel.0.interrupts.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.slot);
    }
}
