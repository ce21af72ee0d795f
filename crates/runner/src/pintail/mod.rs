//! The whole of what a face calls: open a project, observe, plan, run, and ask.
//!
//! Opening heals: stamps that a crash kept from the store are taken in, and runs whose process died are closed.

mod adopt;
mod ask;
mod backfill;
mod changes;
mod error;
mod observe;
mod planning;
mod runnable;
mod running;
mod selecting;
mod status;
mod testing;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use pintail_core::id::{LakeName, ProjectName};
use pintail_engine::fault::Faults;
use pintail_engine::guard::Guard;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{InstanceOptions, LakeLocation, Redactor};
use pintail_store::Store;
use tokio::runtime::Runtime;

pub use adopt::Adopted;
pub use ask::{Rebuilt, RunInfo, TableInfo};
pub use backfill::BackfillRange;
pub use error::RunnerError;
pub use observe::Observation;
pub use planning::PlanRequest;
pub use selecting::asks_for_state;
pub use status::ScriptStatus;
pub use testing::{TestReport, TestedScript};

use crate::executors::{Cancel, Keepers, Slot};
use crate::project::CompiledProject;
use crate::workspace::{Catalog, DataPath, StoreUrl};

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
}

impl Pintail {
    /// Opens `project`: its store, not yet its lakes.
    pub fn open(project: Arc<CompiledProject>, settings: Settings) -> Result<Self, RunnerError> {
        let config = &project.project.config;
        let redactor = Redactor::new(config.secrets.expose());
        let lakes = locate_lakes(&project)?;
        let StoreUrl::Sqlite { path } = &config.store else {
            return Err(RunnerError::StoreNotYet);
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(RunnerError::Runtime)?;
        let store = runtime.block_on(Store::open(path, project_name(config.profile.as_deref())))?;
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

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the runtime on which the store's questions are asked.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub(crate) fn instance_options(&self, slots: u64) -> InstanceOptions {
        let run = &self.project.project.config.run;
        InstanceOptions {
            extensions: self.settings.extensions.clone(),
            memory_limit: Some(run.memory_limit.0 / slots.max(1)),
            threads: None,
            temp_directory: Some(run.temp_directory.clone()),
            temp_limit: Some(run.temp_limit.0 / slots.max(1)),
            project_root: Some(self.project.root().clone()),
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
        if let Some(folder) = lake.catalog_file().parent() {
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

/// One store belongs to one project until several share a Postgres store; each profile of it has its own part, since its
/// lakes are others, or its assets have other names.
fn project_name(profile: Option<&str>) -> ProjectName {
    ProjectName(profile.map_or_else(|| "default".to_owned(), |profile| format!("default@{profile}")))
}

fn locate_lakes(project: &CompiledProject) -> Result<BTreeMap<LakeName, LakeLocation>, RunnerError> {
    let mut lakes = BTreeMap::new();
    let config = &project.project.config;
    let deferred = config
        .deferred
        .iter()
        .flat_map(|deferred| deferred.lakes.iter().map(|(name, lake)| (deferred.lake_name(name), lake)));
    for (name, lake) in config.lakes.iter().map(|(name, lake)| (name.clone(), lake)).chain(deferred) {
        let catalog = match &lake.catalog {
            Catalog::Sqlite { path } => pintail_engine::Catalog::Sqlite(real(path)),
            Catalog::Postgres { .. } => return Err(RunnerError::CatalogNotYet { lake: name.clone() }),
        };
        let data = match &lake.data {
            DataPath::Local(path) => format!("{}/", absolute(path).display()),
            DataPath::Url(url) => url.clone(),
        };
        lakes.insert(name.clone(), LakeLocation { name, catalog, data });
    }
    Ok(lakes)
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
