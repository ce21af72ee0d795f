//! Older versions of a lake: a session that reads them, holds on them, and what a person's word for a version stands for.
//!
//! Invariant: a snapshot is read only after its hold was written, the lane was passed, and the snapshot was found. Expiry
//! looks at the holds and expires inside the lane, so whoever has passed it afterwards either is seen or sees.

use std::sync::Arc;

use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::version::Version;
use pintail_engine::guard::{Guard, PinId};
use pintail_engine::lake::{self, TableFacts};
use pintail_engine::{Instance, LakeLocation, Session};
use pintail_store::{AssetKey, Materialization, MaterializationStatus};
use tokio::runtime::Handle;

use super::{Pintail, RunnerError};

/// Holds of this process on snapshots of one lake; let go when dropped.
pub(super) struct Holds {
    guard: Arc<Guard>,
    runtime: Handle,
    pins: Vec<PinId>,
}

impl Holds {
    pub(super) fn new(guard: Arc<Guard>, runtime: Handle) -> Self {
        Self { guard, runtime, pins: Vec::new() }
    }

    /// Writes one more hold. Whether the snapshot is there has to be asked afterwards.
    pub(super) fn hold(&mut self, at: SnapshotId, reason: &str, now_micros: i64) -> Result<(), RunnerError> {
        let pinned = self.runtime.block_on(self.guard.pin(at, reason, now_micros));
        self.pins.push(pinned.map_err(pintail_engine::EngineError::from)?);
        Ok(())
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        for pin in &self.pins {
            if let Err(error) = self.runtime.block_on(self.guard.unpin(*pin)) {
                // It ends with this process at the latest.
                tracing::warn!(%error, "a pin could not be removed");
            }
        }
    }
}

/// A lake, opened to read older versions of its tables.
pub(super) struct OldVersions<'a> {
    // Declared in this order so that the session goes before its instance.
    pub(super) session: Session,
    _instance: Instance,
    pub(super) location: &'a LakeLocation,
    holds: Holds,
}

impl OldVersions<'_> {
    /// Returns the alias under which the lake is attached.
    pub(super) fn alias(&self) -> String {
        self.location.sql_name()
    }

    /// Returns what the table of `asset` was at `at`.
    pub(super) fn table_at(&self, asset: &Asset, at: SnapshotId) -> Result<Option<TableFacts>, RunnerError> {
        let Asset::Lake { schema, table, .. } = asset else { return Ok(None) };
        Ok(lake::table_at(&self.session, &self.alias(), schema, table, at)?)
    }
}

impl Pintail {
    /// Returns the lake and table of `asset`, or why there is none.
    pub(super) fn lake_of<'a>(&'a self, asset: &'a Asset) -> Result<(&'a LakeLocation, &'a str, &'a str), RunnerError> {
        let Asset::Lake { lake: name, schema, table } = asset else {
            let message = format!("{asset} is not a lake table: only lakes keep versions");
            return Err(RunnerError::Usage { message });
        };
        Ok((self.lake_named(name)?, schema, table))
    }

    /// Returns the lake `name`, which must exist.
    pub(super) fn lake_named(&self, name: &LakeName) -> Result<&LakeLocation, RunnerError> {
        let Some(location) = self.lakes.get(name) else {
            let near = pintail_core::diagnostic::nearest(name.as_str(), self.lakes.keys().map(LakeName::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(RunnerError::NotFound { message: format!("there is no lake `{name}`{hint}") });
        };
        if !location.exists()? {
            let message = format!("lake `{name}` does not exist yet; `pintail run` makes it");
            return Err(RunnerError::NotFound { message });
        }
        Ok(location)
    }

    /// Opens `location` to read its older versions, in an instance of its own.
    pub(super) fn old_versions<'a>(&self, location: &'a LakeLocation) -> Result<OldVersions<'a>, RunnerError> {
        let instance = Instance::open(self.instance_options(1))?;
        let session = instance.session()?;
        location.attach_for_reading(&instance, &session, &location.sql_name(), None)?;
        lake::read_old_versions(&session)?;
        let holds = Holds::new(self.guard(location)?, self.runtime.handle().clone());
        Ok(OldVersions { session, _instance: instance, location, holds })
    }

    /// Holds `at` while `old` lives, and makes sure that it is there.
    pub(super) fn hold(&self, old: &mut OldVersions<'_>, at: SnapshotId, reason: &str) -> Result<(), RunnerError> {
        old.holds.hold(at, reason, (self.settings.now)().timestamp_micros())?;
        self.require_snapshot(old.location, &old.session, &old.alias(), at)
    }

    /// Makes sure that the snapshot `at`, which is held already, is there and stays.
    pub(super) fn require_snapshot(
        &self,
        location: &LakeLocation,
        session: &Session,
        alias: &str,
        at: SnapshotId,
    ) -> Result<(), RunnerError> {
        match lake::stays(location, session, alias, at)? {
            true => Ok(()),
            false => Err(self.gone(location, session, alias, at)?),
        }
    }

    /// Says why the snapshot `at` is not there.
    fn gone(
        &self,
        location: &LakeLocation,
        session: &Session,
        alias: &str,
        at: SnapshotId,
    ) -> Result<RunnerError, RunnerError> {
        let lake_name = &location.name;
        let there = lake::snapshots(session, alias)?;
        let range = match (there.first(), there.last()) {
            (Some(oldest), Some(newest)) => format!("the oldest is {}, the newest {}", oldest.id, newest.id),
            _ => "it has none".to_owned(),
        };
        let message = match lake::maintain::expired_at(session, alias, at)? {
            Some(when) => format!(
                "snapshot {at} of lake `{lake_name}` is gone: it was expired at {}; {range}",
                crate::time_text(when)
            ),
            None => format!("there is no snapshot {at} in lake `{lake_name}`; {range}"),
        };
        Ok(RunnerError::NotFound { message })
    }

    /// Returns the snapshot that `text` names for `asset`.
    pub(super) fn version(&self, old: &OldVersions<'_>, asset: &Asset, text: &str) -> Result<SnapshotId, RunnerError> {
        match Version::parse(text).map_err(|error| RunnerError::Usage { message: error.to_string() })? {
            Version::Run(text) => self.version_of_run(asset, &text),
            _ => self.snapshot_named(old, text),
        }
    }

    /// Returns the snapshot that `text` names, of the whole lake.
    pub(super) fn snapshot_named(&self, old: &OldVersions<'_>, text: &str) -> Result<SnapshotId, RunnerError> {
        let alias = old.alias();
        match Version::parse(text).map_err(|error| RunnerError::Usage { message: error.to_string() })? {
            Version::Head => Ok(lake::head(&old.session, &alias)?),
            Version::Snapshot(id) => Ok(id),
            Version::Time(at) => {
                lake::snapshot_at(&old.session, &alias, at.timestamp_micros())?.ok_or_else(|| RunnerError::NotFound {
                    message: format!("lake `{}` has no snapshot as old as {text}", old.location.name),
                })
            }
            Version::Run(text) => {
                let pins = self.run_detail(&text)?.run.pins;
                pins.get(&old.location.name).copied().ok_or_else(|| RunnerError::NotFound {
                    message: format!("run {text} did not read lake `{}`", old.location.name),
                })
            }
        }
    }

    /// Returns the newest snapshot of `asset` that a run wrote.
    fn version_of_run(&self, asset: &Asset, text: &str) -> Result<SnapshotId, RunnerError> {
        let run = self.run_detail(text)?.run.id;
        let versions = self.versions_of(asset)?;
        let written = versions.iter().filter(|version| version.run == run).filter_map(|version| version.snapshot).max();
        written.ok_or_else(|| RunnerError::NotFound {
            message: format!("run {run} did not write {asset}; `pintail history {}` lists who did", asset.short_name()),
        })
    }

    /// Returns what was written to `asset`, newest first.
    pub(super) fn versions_of(&self, asset: &Asset) -> Result<Vec<Materialization>, RunnerError> {
        let all = self.runtime.block_on(self.store.asset_history(&AssetKey::from(asset), u32::MAX))?;
        Ok(all.into_iter().filter(|version| version.status == MaterializationStatus::Materialized).collect())
    }
}
