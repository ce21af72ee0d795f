//! Retention: slices that ended too long ago leave their table, in one stamped commit for each asset.
//!
//! The rows go by the write protocol, under the lease of the table; the stamp says that slices up to a moment have gone,
//! so the state knows it after a rebuild, too. What reads the asset stays as it is: nothing about it is out of date.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, RunId, StepId};
use pintail_core::partition::{PartitionKey, Window};
use pintail_core::sql::stamp::{StampEntry, to_extra_info};
use pintail_core::sql::strategy::fence;
use pintail_core::sql::{Relation, Statement};
use pintail_engine::guard::{LeaseAnswer, LeaseKey};
use pintail_engine::lane::Purpose;
use pintail_engine::transaction::CommitWords;
use pintail_engine::{EngineError, ErrorClass, WriteTransaction, lake};

use super::At;
use crate::executors::duckdb::slice_of;
use crate::pintail::{Pintail, RunnerError};
use crate::project::CompiledScript;

/// So many slices are named in one DELETE.
const SLICES_AT_ONCE: usize = 200;

/// What retention did to one asset, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// The asset.
    pub asset: Asset,
    /// The slices that went, oldest first.
    pub slices: Vec<PartitionKey>,
    /// How many rows they had; `None` when they have not been deleted.
    pub rows: Option<u64>,
    /// Why it was left for the next time.
    pub left: Option<String>,
}

impl Pintail {
    /// Deletes the slices of `location` whose time is over; in a dry run only says which.
    pub(super) fn retire(&self, at: &At<'_>) -> Result<Vec<Retired>, RunnerError> {
        let location = at.location;
        let mut told = Vec::new();
        for script in &self.project.scripts {
            let Some(asset) = script.target.as_ref().filter(|asset| asset.lake() == Some(&location.name)) else {
                continue;
            };
            let now = (self.settings.now)();
            let Some(kept_since) = script.time_spec().and_then(|spec| spec.kept_since(now)) else { continue };
            let slices = self.slices_before(asset, kept_since)?;
            if slices.is_empty() {
                continue;
            }
            let mut retired = Retired { asset: asset.clone(), slices, rows: None, left: None };
            if !at.request.dry_run {
                let work = Work { at, script, asset, kept_since };
                self.retire_slices(&work, &mut retired)?;
            }
            told.push(retired);
        }
        if told.iter().any(|retired| retired.rows.is_some()) {
            // Takes the stamps into the store, as after any commit that the store has not seen.
            self.observe([])?;
        }
        Ok(told)
    }

    fn slices_before(&self, asset: &Asset, kept_since: DateTime<Utc>) -> Result<Vec<PartitionKey>, RunnerError> {
        let states = self.runtime.block_on(self.store.current_slices(Some(std::slice::from_ref(asset))))?;
        let mut slices: Vec<(Window, PartitionKey)> = states
            .into_iter()
            .filter_map(|state| Some((state.current?.window?, state.partition?)))
            .filter(|(window, _)| window.end <= kept_since)
            .collect();
        slices.sort();
        Ok(slices.into_iter().map(|(_, key)| key).collect())
    }

    fn retire_slices(&self, work: &Work<'_>, retired: &mut Retired) -> Result<(), RunnerError> {
        let key = LeaseKey { asset: work.asset.to_string(), partition: None };
        let run = RunId(crate::new_id());
        let now = (self.settings.now)().timestamp_micros();
        let asked = work.at.guard.try_lease(&key, &run, now);
        let LeaseAnswer::Granted(lease) = self.runtime.block_on(asked).map_err(EngineError::from)? else {
            retired.left = Some("it is being written; the next upkeep comes to it".to_owned());
            return Ok(());
        };
        let done = work.commit(&retired.slices, run);
        self.runtime.block_on(work.at.guard.release(&lease)).map_err(EngineError::from)?;
        match done {
            Ok(rows) => retired.rows = Some(rows),
            Err(RunnerError::Engine(error))
                if matches!(error.class(), ErrorClass::Conflict | ErrorClass::Transient) =>
            {
                retired.left = Some("it was written meanwhile; the next upkeep comes to it".to_owned());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// One asset and what is needed for it.
struct Work<'a> {
    at: &'a At<'a>,
    script: &'a CompiledScript,
    asset: &'a Asset,
    kept_since: DateTime<Utc>,
}

impl Work<'_> {
    /// Deletes the rows of `slices` in one commit and returns how many there were.
    fn commit(&self, slices: &[PartitionKey], run: RunId) -> Result<u64, RunnerError> {
        let At { location, alias, session, .. } = *self.at;
        let Asset::Lake { schema, table, .. } = self.asset else { return Ok(0) };
        // A table that somebody dropped has no rows left to delete.
        let Some(facts) = lake::table_facts(session, alias, schema, table)? else { return Ok(0) };
        let relation = Relation::in_catalog(alias, schema, table);
        let mut deletes = Vec::new();
        for some in slices.chunks(SLICES_AT_ONCE) {
            let slice = |key| slice_of(self.script, &facts.schema, key).map(|slice| slice.predicate(None));
            let conditions =
                some.iter().map(slice).collect::<Result<Vec<_>, _>>().map_err(|failure| RunnerError::Usage {
                    message: format!("the slices of {} cannot be named: {}", self.asset, failure.message),
                })?;
            let sql = format!("DELETE FROM {relation}\nWHERE {}", conditions.join("\n   OR "));
            deletes.push(Statement::new("delete the slices that retention takes", sql));
        }
        let lane = location.lane();
        let _pass = self.at.enter(&lane, Purpose::Write)?;
        let transaction = WriteTransaction::begin(session, alias)?;
        let mut rows = 0;
        for delete in &deletes {
            rows += transaction.run(delete)?;
        }
        if rows == 0 || !location.conflicts_on_empty_delete() {
            transaction.run(&fence(alias, self.asset))?;
        }
        let attempt = AttemptId(crate::new_id());
        let message = format!("retire {} slices of {} before {}", slices.len(), self.asset, self.kept_since);
        let extra_info = to_extra_info(std::slice::from_ref(&self.entry(attempt.clone(), run, facts.id, rows)));
        let words = CommitWords { attempt: &attempt, message: &message, extra_info: &extra_info };
        transaction.commit(&words, || {})?;
        Ok(rows)
    }

    fn entry(&self, attempt: AttemptId, run: RunId, table: pintail_core::id::TableId, deleted: u64) -> StampEntry {
        StampEntry {
            attempt,
            run,
            step: StepId(crate::new_id()),
            asset: self.asset.to_string(),
            script: self.script.name().to_string(),
            table_id: Some(table),
            generation: 0,
            partition: None,
            window: Some(Window { start: DateTime::UNIX_EPOCH, end: self.kept_since }),
            increment: None,
            strategy: StampEntry::RETIRE.to_owned(),
            deleted,
            inserted: 0,
            rows: None,
            schema_version: 0,
            script_hash: self.script.hash().clone(),
            inputs: BTreeMap::new(),
            files: BTreeMap::new(),
            atomic: false,
            restored: None,
        }
    }
}
