//! Scripts with `stream` between two runs: their cursors stand still while nothing comes, and must not hold the lake's
//! versions for ever.

use std::collections::BTreeMap;

use pintail_core::id::SnapshotId;
use pintail_engine::guard::{ConsumerProgress, Guard};
use pintail_engine::lake;
use pintail_engine::{EngineError, LakeLocation, Session};
use pintail_streams::consumer::{Place, script_feed};

use super::{Pintail, RunnerError};
use crate::executors::duckdb::{stream_kinds, stream_spec};

impl Pintail {
    /// Tells the guard of `location` that the scripts with nothing to take have seen everything up to the head: what came
    /// since their cursors was looked at, and none of it is theirs. `session` has the lake under its write alias.
    pub(crate) fn vouch_for_streams(
        &self,
        location: &LakeLocation,
        guard: &Guard,
        session: &Session,
    ) -> Result<(), RunnerError> {
        let of_lake = |script: &&crate::project::CompiledScript| {
            let stream = script.header.stream.as_ref();
            stream.and_then(|stream| stream.value.asset.lake()) == Some(&location.name)
        };
        let scripts: Vec<_> = self.project.scripts.iter().filter(of_lake).collect();
        if scripts.is_empty() {
            return Ok(());
        }
        let alias = location.write_alias();
        let head = lake::head(session, &alias)?;
        let place = Place { session, alias: &alias, lake: &location.name, pin: head };
        let known: BTreeMap<String, SnapshotId> = self
            .block_on(guard.consumers())
            .map_err(EngineError::from)?
            .into_iter()
            .map(|row| (row.consumer, row.snapshot))
            .collect();
        for script in scripts {
            let Some(spec) = stream_spec(script) else { continue };
            let name = spec.full_name();
            // One that has never run holds nothing.
            let Some(vouched) = known.get(&name) else { continue };
            // What keeps a script from going on is told when it runs; here it only holds what it holds.
            let Ok(feed) = script_feed(&place, &spec, stream_kinds(script), false, *vouched) else { continue };
            if feed.is_empty && !feed.makes_cursor() {
                let row = ConsumerProgress::new(name, head, (self.settings.now)().timestamp_micros());
                self.block_on(guard.report_progress(&row)).map_err(EngineError::from)?;
            }
        }
        Ok(())
    }
}
