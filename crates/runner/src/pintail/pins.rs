//! `pintail pin`, `unpin`, `pins`: holds on snapshots, and what past runs need.

use std::collections::BTreeMap;
use std::time::Duration;

use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::retention::bytes_held;
use pintail_engine::guard::{Pin, PinId, PinKind};
use pintail_engine::{EngineError, LakeLocation, lake};

use super::{Pintail, RunnerError};

/// One pin with what it costs.
#[derive(Clone, Debug)]
pub struct PinInfo {
    /// The lake.
    pub lake: LakeName,
    /// The pin.
    pub pin: Pin,
    /// Bytes of files that the head no longer shows and its snapshot does; others may hold them too.
    pub bytes: u64,
    /// Whether its snapshot is there.
    pub is_there: bool,
}

impl Pintail {
    /// Holds a snapshot of a lake until it is let go or `expires` has passed, and returns the pin and its snapshot.
    pub fn pin(
        &self,
        lake: &str,
        at: &str,
        owner: &str,
        reason: &str,
        expires: Option<Duration>,
    ) -> Result<(PinId, SnapshotId), RunnerError> {
        let location = self.lake_named(&LakeName(lake.to_owned()))?;
        let old = self.old_versions(location)?;
        let snapshot = self.snapshot_named(&old, at)?;
        let now = (self.settings.now)();
        let end = expires.map(|time| (now + time).timestamp_micros());
        let guard = self.guard(location)?;
        let held = self.runtime.block_on(guard.hold(snapshot, owner, reason, now.timestamp_micros(), end));
        let id = held.map_err(EngineError::from)?;
        if let Err(error) = self.require_snapshot(location, &old.session, &old.alias(), snapshot) {
            self.runtime.block_on(guard.release_hold(id)).map_err(EngineError::from)?;
            return Err(error);
        }
        Ok((id, snapshot))
    }

    /// Lets a durable pin go.
    pub fn unpin(&self, lake: &str, id: i64) -> Result<Pin, RunnerError> {
        let location = self.lake_named(&LakeName(lake.to_owned()))?;
        let guard = self.guard(location)?;
        let pins = self.runtime.block_on(guard.pins()).map_err(EngineError::from)?;
        let Some(pin) = pins.into_iter().find(|pin| pin.id == PinId(id)) else {
            let message = format!("lake `{lake}` has no pin {id}; `pintail pins {lake}` lists them");
            return Err(RunnerError::NotFound { message });
        };
        if pin.kind == PinKind::Process {
            let message = format!("pin {id} is that of work in progress ({}); it ends with it", pin.reason);
            return Err(RunnerError::Usage { message });
        }
        if pin.owner == self.keeper() {
            let message = format!(
                "pin {id} keeps what past runs of this project read; `keep_runs` and `keep_days` in pintail.toml say \
                 how many"
            );
            return Err(RunnerError::Usage { message });
        }
        self.runtime.block_on(guard.release_hold(pin.id)).map_err(EngineError::from)?;
        Ok(pin)
    }

    /// Returns the pins of one lake, or of all.
    pub fn pins(&self, lake: Option<&str>) -> Result<Vec<PinInfo>, RunnerError> {
        let mut found = Vec::new();
        for location in self.lakes_named(lake)? {
            let guard = self.guard(location)?;
            let pins = self.runtime.block_on(guard.pins()).map_err(EngineError::from)?;
            if pins.is_empty() {
                continue;
            }
            let old = self.old_versions(location)?;
            let files = lake::maintain::file_spans(&old.session, &old.alias())?;
            let there = lake::snapshots(&old.session, &old.alias())?;
            found.extend(pins.into_iter().map(|pin| PinInfo {
                lake: location.name.clone(),
                bytes: bytes_held(&files, &[pin.snapshot]),
                is_there: there.binary_search_by_key(&pin.snapshot, |snapshot| snapshot.id).is_ok(),
                pin,
            }));
        }
        Ok(found)
    }

    /// Returns the lake `name`, or all that exist.
    pub(super) fn lakes_named(&self, name: Option<&str>) -> Result<Vec<&LakeLocation>, RunnerError> {
        match name {
            Some(name) => Ok(vec![self.lake_named(&LakeName(name.to_owned()))?]),
            // Those of a profile that is deferred to are not ours to look after.
            None => Ok(self.existing_lakes()?.into_iter().filter(|lake| !self.is_deferred(&lake.name)).collect()),
        }
    }

    /// Returns the name under which this project holds what its past runs need.
    pub(super) fn keeper(&self) -> String {
        let root = self.project.root().display();
        match &self.project.project.config.profile {
            // Two profiles of one folder may share a lake, and each holds what its own runs need.
            Some(profile) => format!("project {root}, profile {profile}"),
            None => format!("project {root}"),
        }
    }

    /// Holds, in every lake, what the last runs of each asset read and made, so that nobody's upkeep takes it away.
    pub(super) fn keep_past_runs(&self) -> Result<(), RunnerError> {
        let run = &self.project.project.config.run;
        let now = (self.settings.now)();
        let since = now - Duration::from_secs(u64::from(run.keep_days) * 86_400);
        let kept = self.runtime.block_on(self.store.kept_inputs(run.keep_runs, since))?;
        let mut wanted: BTreeMap<&LakeName, BTreeMap<SnapshotId, String>> = BTreeMap::new();
        for past in &kept {
            let own = past.lake.as_ref().zip(past.snapshot.as_ref());
            for (lake, snapshot) in past.inputs.iter().chain(own) {
                let reasons = wanted.entry(lake).or_default();
                reasons.entry(*snapshot).or_insert_with(|| format!("run {} of {}", past.run, past.asset));
            }
        }
        let nothing = BTreeMap::new();
        for location in self.existing_lakes()? {
            let wanted = wanted.get(&location.name).unwrap_or(&nothing);
            let guard = self.guard(location)?;
            self.runtime
                .block_on(guard.keep_exactly(&self.keeper(), wanted, now.timestamp_micros()))
                .map_err(EngineError::from)?;
        }
        Ok(())
    }
}
