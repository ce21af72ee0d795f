//! The whole of what a face calls: open a project, observe, plan, run, and ask.
//!
//! Opening heals: stamps that a crash kept from the store are taken in, and runs whose process died are closed.

mod adopt;
mod ask;
mod audit;
mod backfill;
mod changes;
mod diff;
mod error;
mod health;
mod maintain;
mod observe;
mod outside;
mod pins;
mod planning;
mod replay;
mod rollback;
mod runnable;
mod running;
mod selecting;
mod status;
mod streams;
mod testing;
mod values;
mod versions;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use pintail_core::id::{LakeName, ProjectName};
use pintail_engine::fault::Faults;
use pintail_engine::guard::Guard;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{InstanceOptions, LakeLocation, ObjectStore, PostgresLocation, Redactor};
use pintail_store::{Store, StoreLocation};
use tokio::runtime::Runtime;

pub use adopt::Adopted;
pub use ask::{Rebuilt, RunInfo, TableInfo};
pub use audit::{Audit, Check, Finding, Question};
pub use backfill::{
    BackfillEvent, BackfillInfo, BackfillPlan, BackfillRange, BackfillRequest, BackfillSummary, CancelledBackfill,
    Estimate, UnwrittenUpstream,
};
pub use diff::{AssetDiff, Compared, DiffRequest, DiffRow, RowChange, RowDiff, RowText};
pub use error::RunnerError;
pub use health::Health;
pub use maintain::{
    CompactedTable, Compaction, HeldBy, MaintainRequest, Maintained, Retired, Standing, describe_upkeep,
};
pub use observe::Observation;
pub use pins::PinInfo;
pub use planning::PlanRequest;
pub use replay::{ReplayOutcome, ReplayRequest, Replayed, ReplayedStep};
pub use rollback::{Rollback, RollbackRequest};
pub use selecting::asks_for_state;
pub use status::ScriptStatus;
pub use testing::{TestReport, TestedScript};

use crate::executors::{Cancel, Keepers, Slot};
use crate::project::{CompiledProject, reads_objects};
use crate::workspace::{Catalog, Config, DataPath, StoreUrl};

/// What a face hands in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where extension files may lie.
    pub extensions: ExtensionFolders,
    /// The command line, for the record; secrets in it are redacted here.
    pub command: Vec<String>,
    /// Test faults.
    pub faults: Faults,
    /// The clock.
    pub now: fn() -> DateTime<Utc>,
}

/// An open project.
pub struct Pintail {
    project: Arc<CompiledProject>,
    settings: Settings,
    lakes: BTreeMap<LakeName, LakeLocation>,
    store: Store,
    runtime: Runtime,
    redactor: Redactor,
    cancel: Cancel,
    /// The slot that observes; a run takes it over as its first.
    observer: Mutex<Option<Slot>>,
    guards: Mutex<BTreeMap<LakeName, Arc<Guard>>>,
    keepers: Keepers,
    access: Access,
}

/// What a project is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Runs, and all that changes something.
    Write,
    /// Questions: lakes are reached as their `reader`, and nothing is leased or pinned.
    Read,
}

impl Pintail {
    /// Opens `project`: its store, not yet its lakes.
    pub fn open(project: Arc<CompiledProject>, settings: Settings) -> Result<Self, RunnerError> {
        Self::open_for(Access::Write, project, settings)
    }

    /// Opens `project` to ask only: a lake with a `reader` is reached as that, which may be a role that only reads.
    pub fn open_for_questions(project: Arc<CompiledProject>, settings: Settings) -> Result<Self, RunnerError> {
        Self::open_for(Access::Read, project, settings)
    }

    fn open_for(access: Access, project: Arc<CompiledProject>, settings: Settings) -> Result<Self, RunnerError> {
        let config = &project.project.config;
        let redactor = Redactor::new(config.secrets.expose());
        let lakes = locate_lakes(&project, access)?;
        let location = store_location(&config.store);
        let name = project_name(&project, &location);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(RunnerError::Runtime)?;
        let store = runtime.block_on(Store::open(&location, name))?;
        Ok(Self {
            project,
            settings,
            lakes,
            store,
            runtime,
            redactor,
            cancel: Cancel::default(),
            observer: Mutex::new(None),
            guards: Mutex::default(),
            keepers: Keepers::default(),
            access,
        })
    }

    /// Returns the compiled project.
    pub fn project(&self) -> &Arc<CompiledProject> {
        &self.project
    }

    /// Returns the handle by which the user stops what is running.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Returns the redactor that everything shown must pass.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the lakes.
    pub fn lakes(&self) -> &BTreeMap<LakeName, LakeLocation> {
        &self.lakes
    }

    /// Returns whether a lake belongs to the profile that is deferred to, and so is only read.
    pub(crate) fn is_deferred(&self, lake: &LakeName) -> bool {
        !self.project.project.config.lakes.contains_key(lake)
    }

    /// Returns the lakes that are there.
    pub fn existing_lakes(&self) -> Result<Vec<&LakeLocation>, RunnerError> {
        let mut existing = Vec::new();
        for lake in self.lakes.values() {
            if lake.exists()? {
                existing.push(lake);
            }
        }
        Ok(existing)
    }

    /// Returns the lake `name` when it is there.
    pub(crate) fn existing_lake(&self, name: &LakeName) -> Result<Option<&LakeLocation>, RunnerError> {
        let Some(lake) = self.lakes.get(name) else { return Ok(None) };
        Ok(lake.exists()?.then_some(lake))
    }

    /// Returns what tests ask for between two steps.
    pub fn faults(&self) -> &Faults {
        &self.settings.faults
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the runtime on which the store's questions are asked.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Returns how an instance is opened when `slots` of them share what the process may use.
    pub fn instance_options(&self, slots: u64) -> InstanceOptions {
        let run = &self.project.project.config.run;
        InstanceOptions {
            extensions: self.settings.extensions.clone(),
            loads: self.lakes.values().flat_map(LakeLocation::extensions).collect(),
            memory_limit: Some(run.memory_limit.0 / slots.max(1)),
            threads: None,
            temp_directory: Some(run.temp_directory.clone()),
            temp_limit: Some(run.temp_limit.0 / slots.max(1)),
            project_root: Some(self.project.root().clone()),
            object_stores: object_stores(&self.project.project.config),
            reaches_objects: self.project.scripts.iter().any(|script| reads_objects(&script.text)),
            redactor: self.redactor.clone(),
        }
    }

    pub(crate) fn slots(&self) -> u64 {
        u64::from(self.project.project.config.run.slots.get())
    }

    /// Takes the observing slot, or makes one.
    pub(crate) fn take_slot(&self) -> Slot {
        let kept = self.observer.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.unwrap_or_else(|| Slot::new(0, self.instance_options(self.slots()), self.keepers.clone()))
    }

    /// Keeps a slot warm for the next question.
    pub(crate) fn keep_slot(&self, slot: Slot) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
    }

    /// Returns the guard of `lake`, opened once.
    pub(crate) fn guard(&self, lake: &LakeLocation) -> Result<Arc<Guard>, RunnerError> {
        let mut guards = self.guards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guard) = guards.get(&lake.name) {
            return Ok(guard.clone());
        }
        if let Some(folder) = lake.catalog_file().and_then(std::path::Path::parent) {
            std::fs::create_dir_all(folder).map_err(|source| pintail_engine::EngineError::File {
                operation: "create the folder",
                path: folder.to_owned(),
                source,
            })?;
        }
        let guard = Arc::new(self.runtime.block_on(Guard::open(lake)).map_err(pintail_engine::EngineError::from)?);
        guards.insert(lake.name.clone(), guard.clone());
        Ok(guard)
    }
}

fn store_location(url: &StoreUrl) -> StoreLocation {
    match url {
        StoreUrl::Sqlite { path } => StoreLocation::Sqlite { path: path.clone() },
        StoreUrl::Postgres { connection, password } => {
            StoreLocation::Postgres { connection: connection.clone(), password: password.clone() }
        }
    }
}

/// Returns the name under which the store keeps the project's rows. A file holds one project, under a fixed name, so that
/// folders can be renamed; a shared store tells projects apart by `[project] name`, or else by the folder's name.
/// Each profile has a part of its own: its lakes are others, or its assets have other names.
fn project_name(project: &CompiledProject, location: &StoreLocation) -> ProjectName {
    let config = &project.project.config;
    let fixed = || ProjectName("default".to_owned());
    let folder = || project.root().file_name().map(|name| ProjectName(name.to_string_lossy().into_owned()));
    let name = match location.is_shared() {
        true => config.project_name.clone().or_else(folder).unwrap_or_else(fixed),
        false => fixed(),
    };
    match &config.profile {
        Some(profile) => ProjectName(format!("{name}@{profile}")),
        None => name,
    }
}

fn locate_lakes(project: &CompiledProject, access: Access) -> Result<BTreeMap<LakeName, LakeLocation>, RunnerError> {
    let mut lakes = BTreeMap::new();
    let config = &project.project.config;
    let deferred = config
        .deferred
        .iter()
        .flat_map(|deferred| deferred.lakes.iter().map(|(name, lake)| (deferred.lake_name(name), lake)));
    for (name, lake) in config.lakes.iter().map(|(name, lake)| (name.clone(), lake)).chain(deferred) {
        let as_reader = lake.reader.as_ref().filter(|_| access == Access::Read);
        let catalog = match as_reader.unwrap_or(&lake.catalog) {
            Catalog::Sqlite { path } => pintail_engine::Catalog::Sqlite(real(path)),
            Catalog::Postgres { connection, password } => {
                let location = PostgresLocation::parse(connection, password.clone());
                pintail_engine::Catalog::Postgres(
                    location.map_err(|error| RunnerError::Usage { message: format!("lake `{name}`: {error}") })?,
                )
            }
        };
        let data = match &lake.data {
            DataPath::Local(path) => format!("{}/", absolute(path).display()),
            DataPath::Url(url) => format!("{}/", url.trim_end_matches('/')),
        };
        lakes.insert(name.clone(), LakeLocation { name, catalog, data });
    }
    Ok(lakes)
}

fn object_stores(config: &Config) -> Vec<ObjectStore> {
    let store = |(name, store): (&String, &crate::workspace::ObjectStore)| ObjectStore {
        name: name.clone(),
        url: store.url.clone(),
        endpoint: store.endpoint.clone(),
        region: store.region.clone(),
        url_style: store.url_style.clone(),
        use_ssl: store.use_ssl,
        key: store.key.clone(),
        secret: store.secret.clone(),
    };
    config.object_stores.iter().map(store).collect()
}

/// Returns the place of a file without symbolic links, also when the file does not exist yet: the lock and the guard lie
/// beside the catalog, and everyone who reaches one lake must find the same ones.
fn real(path: &std::path::Path) -> PathBuf {
    let path = absolute(path);
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => real(folder).join(name),
        _ => path,
    }
}

fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
