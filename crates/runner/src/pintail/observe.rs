//! Observe: what the lakes and the store say now, in as few questions as possible, and what a crash left behind mended.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId, TableId};
use pintail_core::partition::PartitionKey;
use pintail_core::plan::{LastChanges, SliceFacts, SliceVersion};
use pintail_core::sql::changes::{Change, ChangeSet};
use pintail_core::sql::stamp::{StampEntry, from_extra_info};
use pintail_engine::guard::{OwnerId, is_owner_alive};
use pintail_engine::lake::{self, Commit};
use pintail_engine::{LakeLocation, Session};
use pintail_store::{LakeStamp, Materialization, RunEnd, RunStatus, SliceState};

use super::{Pintail, RunnerError};
use crate::executors::AssetMemory;
use crate::project::{CompiledScript, fingerprint};

/// What was observed.
#[derive(Debug, Default)]
pub struct Observation {
    /// The head of each lake that exists.
    pub heads: BTreeMap<LakeName, SnapshotId>,
    /// The slices that are remembered.
    pub slices: HashMap<(Asset, Option<PartitionKey>), SliceFacts>,
    /// When each table last changed.
    pub changes: LastChanges,
    /// Fingerprints of local files that scripts read.
    pub files: BTreeMap<String, String>,
    /// What is remembered of each asset.
    pub memory: HashMap<Asset, AssetMemory>,
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
        let mut slot = self.take_slot();
        let observed = self.observe_lakes(&mut slot, &mut seen);
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

    fn observe_lakes(&self, slot: &mut crate::executors::Slot, seen: &mut Observation) -> Result<(), RunnerError> {
        let mut states: Option<Vec<SliceState>> = None;
        for location in self.existing_lakes()? {
            slot.attach_existing(location)?;
            let session = slot.session()?;
            let alias = location.write_alias();
            let head = lake::head(&session, &alias)?;
            seen.heads.insert(location.name.clone(), head);
            seen.healed += self.heal(location, &session, head)?;
            if states.is_none() {
                states = Some(self.runtime.block_on(self.store.current_slices(None))?);
            }
            let oldest = states.iter().flatten().filter_map(|state| oldest_pin(state, &location.name)).min();
            if let Some(oldest) = oldest.filter(|oldest| *oldest < head) {
                read_changes(location, &session, oldest, &mut seen.changes)?;
            }
        }
        seen.crashed = self.close_dead_runs()?;
        let states = match states {
            Some(states) => states,
            None => self.runtime.block_on(self.store.current_slices(None))?,
        };
        for state in states {
            remember(state, seen);
        }
        forget_rows_of_changed(seen);
        Ok(())
    }

    /// Takes in the stamps that the store has not seen.
    fn heal(&self, location: &LakeLocation, session: &Session, head: SnapshotId) -> Result<u64, RunnerError> {
        let cursor = self.runtime.block_on(self.store.lake_cursor(&location.name))?.unwrap_or(SnapshotId(-1));
        if head <= cursor {
            return Ok(0);
        }
        let commits = lake::commits_between(session, &location.write_alias(), cursor, Some(head))?;
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
                self.runtime.block_on(self.store.finish_run(&run.id, &end))?;
                crashed += 1;
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
            let commits = lake::commits_between(&session, &alias, SnapshotId(-1), Some(head))?;
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

/// Reads which tables changed after `oldest`.
fn read_changes(
    location: &LakeLocation,
    session: &Session,
    oldest: SnapshotId,
    changes: &mut LastChanges,
) -> Result<(), RunnerError> {
    let alias = location.write_alias();
    let commits = lake::commits_between(session, &alias, oldest, None)?;
    if commits.is_empty() {
        return Ok(());
    }
    let names: HashMap<TableId, Vec<(String, String)>> = {
        let mut names: HashMap<TableId, Vec<(String, String)>> = HashMap::new();
        for (id, schema, table) in lake::table_names(session, &alias)? {
            names.entry(id).or_default().push((schema, table));
        }
        names
    };
    for commit in &commits {
        for (schema, table) in changed_tables(&commit.changes, &names) {
            changes.record(Asset::lake_table(location.name.as_str(), &schema, &table), commit.snapshot);
        }
        for (schema, table) in dropped_tables(&commit.changes, &names) {
            changes.record_drop(Asset::lake_table(location.name.as_str(), &schema, &table), commit.snapshot);
        }
    }
    Ok(())
}

/// Returns the tables and views whose rows or shape a commit changed.
fn changed_tables(changes: &ChangeSet, names: &HashMap<TableId, Vec<(String, String)>>) -> Vec<(String, String)> {
    let mut tables = Vec::new();
    for change in changes.changes() {
        match change {
            Change::Inserted(id) | Change::Deleted(id) | Change::Altered(id) | Change::Dropped(id) => {
                tables.extend(names.get(id).into_iter().flatten().cloned());
            }
            Change::CreatedTable { schema, table } => tables.push((schema.clone(), table.clone())),
            Change::CreatedView { schema, view } => tables.push((schema.clone(), view.clone())),
            // What is not understood may have changed anything.
            Change::Unknown { .. } => tables.extend(names.values().flatten().cloned()),
            Change::Maintained(_) | Change::Other { .. } => {}
        }
    }
    tables
}

/// Returns the tables and views that a commit dropped without making another of the same name.
fn dropped_tables(changes: &ChangeSet, names: &HashMap<TableId, Vec<(String, String)>>) -> Vec<(String, String)> {
    let is_made_anew = |(schema, table): &(String, String)| changes.creates(schema, table);
    changes
        .changes()
        .iter()
        .filter_map(|change| match change {
            Change::Dropped(id) => names.get(id),
            _ => None,
        })
        .flatten()
        .filter(|name| !is_made_anew(name))
        .cloned()
        .collect()
}

/// Puts one slice of the store among the facts.
fn remember(state: SliceState, seen: &mut Observation) {
    let Ok(asset) = Asset::parse(state.asset.as_str()) else {
        tracing::warn!(asset = state.asset.as_str(), "the store names an asset that cannot be read");
        return;
    };
    let is_gone =
        |current: &Materialization| current.snapshot.is_some_and(|snapshot| seen.changes.is_gone(&asset, snapshot));
    let is_there = state.current.as_ref().is_some_and(|current| !is_gone(current));
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

/// Forgets the numbers of rows of assets that somebody else has changed after our last commit.
fn forget_rows_of_changed(seen: &mut Observation) {
    for (asset, memory) in &mut seen.memory {
        let versions = seen.slices.iter().filter(|((other, _), _)| other == asset);
        let newest = versions.filter_map(|(_, slice)| slice.version.as_ref()).map(|version| version.snapshot).max();
        if newest.is_some_and(|newest| seen.changes.changed_after(asset, newest).is_some()) {
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
