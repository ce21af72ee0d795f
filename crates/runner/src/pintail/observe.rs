//! Observe: what the lakes and the store say now, in as few questions as possible, and what a crash left behind mended.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::partition::PartitionKey;
use pintail_core::plan::{LastChanges, Origin, SliceFacts, SliceVersion};
use pintail_core::sql::stamp::{StampEntry, from_extra_info};
use pintail_engine::guard::{OwnerId, is_owner_alive};
use pintail_engine::lake::{self, Commit};
use pintail_engine::{LakeLocation, Session, object_store};
use pintail_store::{LakeStamp, Materialization, RunEnd, RunStatus, SliceState, WriteError};

use super::changes::{Reading, read_changes};
use super::{Pintail, RunnerError};
use crate::executors::AssetMemory;
use crate::project::{CompiledScript, fingerprint, object_address};

/// What was observed.
#[derive(Debug, Default)]
pub struct Observation {
    /// The head of each lake that exists.
    pub heads: BTreeMap<LakeName, SnapshotId>,
    /// The slices that are remembered.
    pub slices: HashMap<(Asset, Option<PartitionKey>), SliceFacts>,
    /// The live targets that Pintail has not written all of.
    pub origins: HashMap<Asset, Origin>,
    /// When each table last changed.
    pub changes: LastChanges,
    /// When the first row that lay in the future may be taken, of assets that are written by increments.
    pub waits: HashMap<Asset, DateTime<Utc>>,
    /// Fingerprints of local files that scripts read.
    pub files: BTreeMap<String, String>,
    /// What is remembered of each asset.
    pub memory: HashMap<Asset, AssetMemory>,
    /// The slices whose file is not there any more.
    pub lost: BTreeSet<(Asset, Option<PartitionKey>)>,
    /// Places outside lakes that could not be asked, with why; what is remembered of them stands.
    pub unreachable: Vec<String>,
    /// How many materializations a crash had kept from the store.
    pub healed: u64,
    /// How many runs had died.
    pub crashed: usize,
}

impl Pintail {
    /// Observes the lakes, the store and the files of `scripts`.
    pub fn observe<'s>(
        &self,
        scripts: impl IntoIterator<Item = &'s CompiledScript>,
    ) -> Result<Observation, RunnerError> {
        let mut seen = Observation::default();
        self.observe_outside(&mut seen)?;
        let mut slot = self.take_slot();
        let observed = self.observe_lakes(&mut slot, &mut seen);
        let scripts: Vec<&CompiledScript> = scripts.into_iter().collect();
        let observed = observed.and_then(|()| self.observe_objects(&mut slot, &scripts, &mut seen.files));
        self.keep_slot(slot);
        observed?;
        for script in scripts {
            for asset in script.reads() {
                if let Some(print) = fingerprint(&self.project.project, asset) {
                    seen.files.entry(asset.to_string()).or_insert(print);
                }
            }
        }
        Ok(seen)
    }

    /// Takes the fingerprints of the objects that `scripts` read.
    fn observe_objects(
        &self,
        slot: &mut crate::executors::Slot,
        scripts: &[&CompiledScript],
        prints: &mut BTreeMap<String, String>,
    ) -> Result<(), RunnerError> {
        for asset in scripts.iter().flat_map(|script| script.reads()) {
            let Some(address) = object_address(&self.project.project.config, asset) else { continue };
            // A key with a placeholder names other objects in each partition: its window says when it is due.
            if address.contains('{') || prints.contains_key(&asset.to_string()) {
                continue;
            }
            let print = object_store::fingerprint(&slot.session()?, &address)?;
            prints.insert(asset.to_string(), print);
        }
        Ok(())
    }

    fn observe_lakes(&self, slot: &mut crate::executors::Slot, seen: &mut Observation) -> Result<(), RunnerError> {
        let columns = self.time_columns();
        let mut live: HashMap<Asset, SnapshotId> = HashMap::new();
        // All lakes are healed before anything is read of the store: a commit of one may be an input in another.
        for location in self.existing_lakes()? {
            slot.attach_existing(location)?;
            let session = slot.session()?;
            let head = lake::head(&session, &location.write_alias())?;
            seen.heads.insert(location.name.clone(), head);
            if !self.is_deferred(&location.name) {
                seen.healed += self.heal(location, &session, head)?;
            }
        }
        seen.crashed = self.close_dead_runs()?;
        let states = self.runtime.block_on(self.store.current_slices(None))?;
        let states: Vec<SliceState> = states.into_iter().filter(|state| self.is_there(state, seen)).collect();
        for location in self.existing_lakes()? {
            let Some(head) = seen.heads.get(&location.name).copied() else { continue };
            let session = slot.session()?;
            let alias = location.write_alias();
            let oldest = states.iter().filter_map(|state| oldest_pin(state, &location.name)).min();
            let tables = lake::live_tables(&session, &alias)?;
            if let Some(oldest) = oldest.filter(|oldest| *oldest < head) {
                let reading = Reading {
                    location,
                    stamped_as: self.stamped_name(&location.name),
                    session: &session,
                    live: &tables,
                    columns: &columns,
                };
                read_changes(&reading, (oldest, head), &mut seen.changes)?;
            }
            self.read_waits(location, &session, &mut seen.waits)?;
            let named = |table: lake::LiveTable| {
                (Asset::lake_table(location.name.as_str(), &table.schema, &table.name), table.since)
            };
            live.extend(tables.into_iter().map(named));
        }
        self.find_lost_files(&states, seen);
        let rolled_back = rolled_back_wholly(&states);
        let origins = Origins::new(&states, live);
        for state in states {
            remember(state, &origins, seen);
        }
        forget_rows_of_changed(seen);
        for asset in rolled_back {
            seen.memory.entry(asset).or_default().forget_slices();
        }
        if let Some(deferral) = &self.project.deferral {
            let is_built = |asset: &&Asset| seen.memory.get(*asset).is_some_and(|memory| memory.has_version);
            deferral.set_built(deferral.originals().keys().filter(is_built).cloned());
        }
        let targets = self.project.scripts.iter().filter_map(|script| script.target.as_ref());
        for (asset, origin) in targets.filter_map(|asset| Some((asset, origins.of(asset)?))) {
            seen.origins.insert(asset.clone(), origin);
            if origin == Origin::Foreign {
                seen.memory.entry(asset.clone()).or_default().take_in_foreign(true);
            }
        }
        Ok(())
    }

    /// Returns the name by which the commits of a lake call it.
    fn stamped_name<'a>(&'a self, lake: &'a LakeName) -> &'a LakeName {
        self.project.deferral.as_ref().map_or(lake, |deferral| deferral.stamped_name(lake))
    }

    /// Returns whether the lake of a slice is there; one that is gone has taken its slices with it.
    fn is_there(&self, state: &SliceState, seen: &Observation) -> bool {
        let asset = Asset::parse(state.asset.as_str()).ok();
        let lake = asset.as_ref().and_then(Asset::lake).filter(|lake| self.lakes.contains_key(*lake));
        lake.is_none_or(|lake| seen.heads.contains_key(lake))
    }

    /// Takes in the stamps that the store has not seen.
    fn heal(&self, location: &LakeLocation, session: &Session, head: SnapshotId) -> Result<u64, RunnerError> {
        let cursor = self.runtime.block_on(self.store.lake_cursor(&location.name))?.unwrap_or(SnapshotId(-1));
        if head == cursor {
            return Ok(0);
        }
        if head < cursor && self.access == super::Access::Write {
            // The lake was made anew, or put back to an older copy: what the store knows of it is of another lake.
            let commits = lake::maintain::commits_and_kept(session, &location.write_alias(), SnapshotId(-1), head)?;
            let stamps = stamps_of(&location.name, &commits);
            let ingested = self.runtime.block_on(self.store.rebuild_lake_state(&location.name, &stamps, head))?;
            return Ok(ingested.materializations);
        }
        if head < cursor {
            // A reader may lag behind.
            return Ok(0);
        }
        // Others may have expired what this store has not seen.
        let commits = lake::maintain::commits_and_kept(session, &location.write_alias(), cursor, head)?;
        let stamps = stamps_of(&location.name, &commits);
        let ingested = self.runtime.block_on(self.store.ingest_stamps(&location.name, &stamps, head))?;
        Ok(ingested.materializations)
    }

    /// Closes the runs whose process died. A run's owner announces itself in the guard of a lake.
    pub(super) fn close_dead_runs(&self) -> Result<usize, RunnerError> {
        let running = self.runtime.block_on(self.store.running_runs())?;
        let mut crashed = 0;
        for run in running {
            let owner = OwnerId(run.owner.0.clone());
            // Its lake may not exist yet: the run makes it.
            if !self.is_owner_alive(&owner)? {
                let end = RunEnd {
                    status: RunStatus::Crashed,
                    finished: (self.settings.now)(),
                    error: Some("its process ended before the run did".to_owned()),
                };
                match self.runtime.block_on(self.store.finish_run(&run.id, &end)) {
                    Ok(()) => crashed += 1,
                    // Another process that starts now has closed it meanwhile.
                    Err(WriteError::NotOpen { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(crashed)
    }

    pub(super) fn is_owner_alive(&self, owner: &OwnerId) -> Result<bool, RunnerError> {
        for location in self.lakes.values() {
            if is_owner_alive(location, owner)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns every stamp of a lake, for a rebuild.
    pub(super) fn all_stamps(&self, location: &LakeLocation) -> Result<(Vec<LakeStamp>, SnapshotId), RunnerError> {
        let mut slot = self.take_slot();
        let read = || -> Result<(Vec<LakeStamp>, SnapshotId), RunnerError> {
            slot.attach_existing(location)?;
            let session = slot.session()?;
            let alias = location.write_alias();
            let head = lake::head(&session, &alias)?;
            let commits = lake::maintain::commits_and_kept(&session, &alias, SnapshotId(-1), head)?;
            Ok((stamps_of(&location.name, &commits), head))
        };
        let stamps = { read }();
        self.keep_slot(slot);
        stamps
    }
}

fn stamps_of(lake: &LakeName, commits: &[Commit]) -> Vec<LakeStamp> {
    commits
        .iter()
        .flat_map(|commit| {
            // A stamp of ours that cannot be read is a foreign commit to us; the rows it wrote are in the lake.
            let entries = commit.extra_info.as_deref().and_then(|text| from_extra_info(text).ok().flatten());
            let at = commit.at_micros.and_then(DateTime::<Utc>::from_timestamp_micros).unwrap_or_default();
            let snapshot = commit.snapshot;
            entries.unwrap_or_default().into_iter().map(move |mut entry| {
                entry.settle_inputs(lake, snapshot);
                LakeStamp { snapshot, at, entry }
            })
        })
        .collect()
}

fn oldest_pin(state: &SliceState, lake: &LakeName) -> Option<SnapshotId> {
    state.current.as_ref()?.inputs.get(lake).copied()
}

/// Which tables are live, and what of them is ours.
struct Origins {
    /// The live tables, with the snapshot since which each has its name.
    live: HashMap<Asset, SnapshotId>,
    /// The newest commit of ours to each asset.
    newest: HashMap<Asset, SnapshotId>,
    /// When each asset was taken over.
    adopted: HashMap<Asset, SnapshotId>,
}

impl Origins {
    fn new(states: &[SliceState], live: HashMap<Asset, SnapshotId>) -> Self {
        let (mut newest, mut adopted) = (HashMap::new(), HashMap::new());
        for current in states.iter().filter_map(|state| state.current.as_ref()) {
            let (Ok(asset), Some(snapshot)) = (Asset::parse(current.asset.as_str()), current.snapshot) else {
                continue;
            };
            if current.strategy == "adopt" {
                adopted.insert(asset.clone(), snapshot);
            }
            let last = newest.entry(asset).or_insert(snapshot);
            *last = snapshot.max(*last);
        }
        Self { live, newest, adopted }
    }

    /// Returns where the live table came from, when we have not written all of it.
    fn of(&self, asset: &Asset) -> Option<Origin> {
        let since = self.live.get(asset)?;
        // Every commit of ours is in the store by now, so a table that is newer than the newest is not ours.
        if self.newest.get(asset).is_none_or(|newest| newest < since) {
            return Some(Origin::Foreign);
        }
        self.adopted.contains_key(asset).then_some(Origin::Adopted)
    }

    /// Returns whether the version at `snapshot` may be live: the table is there, and was not another's meanwhile.
    fn holds(&self, asset: &Asset, snapshot: SnapshotId) -> bool {
        self.live.contains_key(asset) && self.adopted.get(asset).is_none_or(|adopted| *adopted <= snapshot)
    }
}

/// Puts one slice of the store among the facts.
fn remember(state: SliceState, origins: &Origins, seen: &mut Observation) {
    let Ok(asset) = Asset::parse(state.asset.as_str()) else {
        tracing::warn!(asset = state.asset.as_str(), "the store names an asset that cannot be read");
        return;
    };
    let is_seen = asset.has_numbered_versions() && seen.heads.contains_key(&asset.place());
    let is_live = |current: &Materialization| {
        let Some(snapshot) = current.snapshot.filter(|_| is_seen) else { return true };
        // The tables of datatables are not listed among those of lakes; they say themselves when they are gone.
        (asset.lake().is_none() || origins.holds(&asset, snapshot)) && !seen.changes.is_gone(&asset, snapshot)
    };
    let is_lost = seen.lost.contains(&(asset.clone(), state.partition.clone()));
    let is_there = !is_lost && state.current.as_ref().is_some_and(is_live);
    let memory = seen.memory.entry(asset.clone()).or_default();
    let is_version = |current: &&Materialization| !StampEntry::NO_VERSION.contains(&current.strategy.as_str());
    let version = state.current.as_ref().filter(|_| is_there).filter(is_version);
    if let Some(current) = &state.current {
        memory.is_ours = true;
        memory.has_version |= is_there && current.strategy != "create";
        memory.has_uncounted_rows |= is_there && current.strategy == "adopt";
        memory.generation = memory.generation.max(current.generation);
        memory.schema_version = memory.schema_version.max(current.schema_version);
    }
    if let Some(version) = version {
        let key = state.partition.as_ref().map_or_else(String::new, ToString::to_string);
        memory.set_rows(key, version.rows);
    }
    let facts = SliceFacts { version: version.and_then(version_of), has_failed: state.failure.is_some() };
    seen.slices.insert((asset, state.partition), facts);
}

/// Returns the assets of which slices were written before a rollback of the whole table: their rows are not known.
fn rolled_back_wholly(states: &[SliceState]) -> Vec<Asset> {
    let whole = states.iter().filter(|state| state.partition.is_none());
    let whole = whole.filter_map(|state| Some((&state.asset, state.current.as_ref()?)));
    let rolled_back = whole.filter(|(_, current)| current.strategy == StampEntry::ROLLBACK);
    let has_older_slice = |(asset, current): &(&pintail_store::AssetKey, &Materialization)| {
        states.iter().any(|state| {
            let is_older = |slice: &Materialization| slice.snapshot < current.snapshot;
            state.asset == **asset && state.partition.is_some() && state.current.as_ref().is_some_and(is_older)
        })
    };
    rolled_back.filter(has_older_slice).filter_map(|(asset, _)| Asset::parse(asset.as_str()).ok()).collect()
}

/// Forgets the numbers of rows of assets that somebody else has changed after our last commit.
fn forget_rows_of_changed(seen: &mut Observation) {
    let mut newest: HashMap<&Asset, SnapshotId> = HashMap::new();
    for ((asset, _), slice) in &seen.slices {
        if let Some(version) = &slice.version {
            let last = newest.entry(asset).or_insert(version.snapshot);
            *last = version.snapshot.max(*last);
        }
    }
    for (asset, newest) in newest {
        if seen.changes.changed_after(asset, newest).is_some()
            && let Some(memory) = seen.memory.get_mut(asset)
        {
            memory.take_in_foreign(false);
        }
    }
}

fn version_of(current: &Materialization) -> Option<SliceVersion> {
    Some(SliceVersion {
        snapshot: current.snapshot?,
        script_hash: current.script_hash.clone(),
        inputs: current.inputs.clone(),
        files: current.files.clone(),
        finished: current.finished,
    })
}
