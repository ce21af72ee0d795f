//! Questions: queries on the lakes, previews of scripts, history, and the state's rebuild.

use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, RunId, SnapshotId};
use pintail_core::partition::{PartitionKey, value_key};
use pintail_core::plan::{Content, Reason, Step};
use pintail_core::source::Span;
use pintail_core::sql::{Ident, Relation};
use pintail_engine::lake::{self, TableFacts};
use pintail_engine::result::ResultSet;
use pintail_engine::{Instance, Session};
use pintail_store::{AssetKey, Materialization, Run, RunDetail, SchemaVersion};

use super::{Pintail, RunnerError};
use crate::executors::duckdb::{ReadAs, Source, open_increment, rewrite};
use crate::executors::{StepFailure, StepJob};
use crate::project::CompiledScript;

/// A run with what is below it.
pub type RunInfo = RunDetail;

/// A table of a lake.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// The asset.
    pub asset: Asset,
    /// What the catalog says.
    pub facts: TableFacts,
}

/// What a rebuild found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// The lake.
    pub lake: LakeName,
    /// How many stamps it holds.
    pub stamps: usize,
    /// How many materializations were written.
    pub materializations: u64,
    /// Tables that nobody stamped.
    pub unknown: Vec<Asset>,
}

impl Pintail {
    /// Runs `sql` on the lakes, each attached read-only under its SQL name, the default lake first in the search path;
    /// at `at`, the default lake is read as of that snapshot.
    pub fn query(&self, sql: &str, at: Option<SnapshotId>, limit: Option<u64>) -> Result<ResultSet, RunnerError> {
        let (_instance, session) = self.reading_session(at)?;
        self.attach_datatables(&session, sql)?;
        let _watch = self.cancel.watch(usize::MAX, &session);
        let (before, after) = match limit {
            Some(limit) => ("SELECT * FROM (\n", format!("\n) LIMIT {limit}")),
            None => ("", String::new()),
        };
        session.query("run the query", &format!("{before}{sql}{after}")).map_err(|error| {
            if at.is_some() && is_no_snapshot(&error) {
                return self.attach_failure(error, at);
            }
            let original = |position: usize| position.saturating_sub(before.len());
            StepFailure::in_text(error, original, Span::new(0, sql.len())).into()
        })
    }

    fn attach_failure(&self, error: pintail_engine::EngineError, at: Option<SnapshotId>) -> RunnerError {
        match (is_no_snapshot(&error), at) {
            (true, Some(at)) => RunnerError::NotFound {
                message: format!("there is no snapshot {at}; `pintail history` lists those that Pintail made"),
            },
            _ => error.into(),
        }
    }

    /// Opens a session that can only read, with every lake that exists.
    fn reading_session(&self, at: Option<SnapshotId>) -> Result<(Instance, Session), RunnerError> {
        let instance = Instance::open(self.instance_options(1))?;
        let session = instance.session()?;
        for location in self.existing_lakes()? {
            let pin = at.filter(|_| location.name == self.project.default_lake);
            location
                .attach_for_reading(&instance, &session, &location.sql_name(), pin)
                .map_err(|error| self.attach_failure(error, pin))?;
        }
        let default = self.existing_lake(&self.project.default_lake)?;
        if let Some(default) = default {
            session.batch("use the default lake", &format!("USE {}", Ident::new(default.sql_name())))?;
        }
        Ok((instance, session))
    }

    /// Shows what a script would produce, without writing.
    pub fn preview(&self, text: &str, partition: Option<&str>, limit: u64) -> Result<ResultSet, RunnerError> {
        let script = self.find_script(text)?;
        if let Some(reason) = &script.cannot_run {
            return Err(RunnerError::Usage { message: format!("`{}` cannot run: {reason}", script.name()) });
        }
        let Some(query) = script.query else {
            return Err(RunnerError::Usage {
                message: format!("`{}` writes with statements of its own; there is no query to preview", script.name()),
            });
        };
        let now = (self.settings.now)();
        let (key, window) = match (script.time_spec(), partition) {
            (Some(spec), text) => {
                let key = match text {
                    Some(text) => {
                        spec.parse_key(text).map_err(|error| RunnerError::Usage { message: error.to_string() })?
                    }
                    None => spec.last_closed(now),
                };
                let window = spec.window(&key).map_err(|error| RunnerError::Usage { message: error.to_string() })?;
                (Some(key), Some(window))
            }
            (None, text) => (self.preview_value(script, text)?, None),
        };
        let seen = self.observe([script])?;
        let ctx = self.context(crate::new_id(), &seen)?;
        let step = Step {
            script: 0,
            name: script.name().clone(),
            asset: script.target.clone(),
            strategy: script.strategy_word(),
            partition: key,
            window,
            reason: Reason::Requested,
            content: Content::Script,
            full_refresh: false,
            script_hash: script.hash().clone(),
            depends_on: Vec::new(),
        };
        let job = StepJob { index: 0, id: pintail_core::id::StepId(String::new()), step, pins: seen.heads.clone() };
        let mut slot = self.take_slot();
        for lake in script.lakes_needed(&self.project) {
            let Some(location) = self.lakes.get(&lake) else { continue };
            let pin = seen.heads.get(&lake).copied().ok_or_else(|| location.missing())?;
            slot.attach_pinned(location, pin)?;
        }
        if script.language() == pintail_core::source::Language::PostgresSql {
            let message =
                format!("`{}` is Postgres SQL, which is not previewed; run its query with psql", script.name());
            return Err(RunnerError::Usage { message });
        }
        if script.increment_column().is_some()
            && let Some(asset) = &script.target
        {
            let pins = seen.heads.clone();
            let source = Source { ctx: &ctx, script, asset, full_refresh: false, pins };
            ctx.take_increment(&job.id, open_increment(&source, &mut slot)?);
        }
        let session = slot.session()?;
        let _watch = self.cancel.watch(slot.number, &session);
        crate::executors::duckdb::prepare_session(&session, &ctx, &job, script, None)?;
        if let Some(lake) = script.header.stream.as_ref().and_then(|stream| stream.value.asset.lake())
            && let (Some(location), Some(pin)) = (self.lakes.get(lake), seen.heads.get(lake))
        {
            slot.attach_existing(location)?;
            crate::executors::duckdb::preview_stream(&session, script, location, *pin)?;
        }
        let sent = rewrite(&script.text, query, &ReadAs::PINNED, job.step.partition.as_ref());
        let (before, after) = ("SELECT * FROM (\n", format!("\n) LIMIT {limit}"));
        let result = session.query("preview the query", &format!("{before}{}{after}", sent.sql)).map_err(|error| {
            StepFailure::in_text(error, |position| sent.original_offset_in(position, before.len()), query)
        })?;
        drop(session);
        self.keep_slot(slot);
        Ok(result)
    }

    /// Returns the value by which a script without a calendar is previewed.
    fn preview_value(&self, script: &CompiledScript, text: Option<&str>) -> Result<Option<PartitionKey>, RunnerError> {
        let usage = |message: String| Err(RunnerError::Usage { message });
        match (script.payload_path(), text) {
            (Some(_), Some(text)) => match value_key(text) {
                Ok(key) => Ok(Some(key)),
                Err(error) => usage(error.to_string()),
            },
            (Some(path), None) => {
                usage(format!("`{}` works on a value at `{path}`: give one with `--partition <value>`", script.name()))
            }
            (None, Some(_)) if script.increment_column().is_some() => {
                usage(format!("`{}` goes by increments; its preview is the next one", script.name()))
            }
            (None, Some(_)) => usage(format!("`{}` has no partitions", script.name())),
            (None, None) => Ok(None),
        }
    }

    /// Returns the versions of an asset, newest first.
    pub fn history(&self, asset: &Asset, limit: u32) -> Result<Vec<Materialization>, RunnerError> {
        self.observe([])?;
        Ok(self.runtime.block_on(self.store.asset_history(&AssetKey::from(asset), limit))?)
    }

    /// Returns the versions of an asset's columns, oldest first.
    pub fn schema_versions(&self, asset: &Asset) -> Result<Vec<SchemaVersion>, RunnerError> {
        Ok(self.runtime.block_on(self.store.schema_versions(&AssetKey::from(asset)))?)
    }

    /// Returns the newest runs, newest first.
    pub fn runs(&self, limit: u32) -> Result<Vec<Run>, RunnerError> {
        // A run whose process was killed must not be shown as running.
        self.close_dead_runs()?;
        Ok(self.runtime.block_on(self.store.list_runs(limit))?)
    }

    /// Returns one run; `text` may be the start of its id when only one begins so, or `last`.
    pub fn run_detail(&self, text: &str) -> Result<RunInfo, RunnerError> {
        let runs = self.runs(10_000)?;
        let matching: Vec<&Run> = match text {
            "last" => runs.iter().take(1).collect(),
            text => runs.iter().filter(|run| run.id.as_str().starts_with(text)).collect(),
        };
        let missing = || RunnerError::NoRun(RunId(text.to_owned()));
        match matching.as_slice() {
            [run] => self.runtime.block_on(self.store.show_run(&run.id))?.ok_or_else(missing),
            [] => Err(missing()),
            several => Err(RunnerError::Usage {
                message: format!("{} runs begin with `{text}`; give more of the id", several.len()),
            }),
        }
    }

    /// Returns what the lake's catalog says of `asset`, or what is known of one outside lakes; `None` when it does not exist.
    pub fn table(&self, asset: &Asset) -> Result<Option<TableInfo>, RunnerError> {
        let Asset::Lake { lake: name, schema, table } = asset else { return self.table_outside(asset) };
        let Some(location) = self.existing_lake(name)? else { return Ok(None) };
        let mut slot = self.take_slot();
        slot.attach_existing(location)?;
        let session = slot.session()?;
        let facts = lake::table_facts(&session, &location.write_alias(), schema, table)?;
        drop(session);
        self.keep_slot(slot);
        Ok(facts.map(|facts| TableInfo { asset: asset.clone(), facts }))
    }

    /// Reconstructs what the store knows of the lakes from their commit messages.
    pub fn rebuild_state(&self) -> Result<Vec<Rebuilt>, RunnerError> {
        let mut rebuilt = Vec::new();
        for location in self.existing_lakes()?.into_iter().filter(|lake| !self.is_deferred(&lake.name)) {
            let (stamps, head) = self.all_stamps(location)?;
            let ingested = self.runtime.block_on(self.store.rebuild_lake_state(&location.name, &stamps, head))?;
            let stamped: std::collections::BTreeSet<&str> =
                stamps.iter().map(|stamp| stamp.entry.asset.as_str()).collect();
            let mut unknown = Vec::new();
            for (asset, facts) in self.tables_of(location)? {
                let is_current_view =
                    self.project.scripts.iter().any(|script| script.current_view().as_ref() == Some(&asset));
                if is_current_view {
                    continue;
                }
                if !stamped.contains(asset.to_string().as_str()) {
                    unknown.push(asset);
                    continue;
                }
                // Stamps hold no columns: those of the live table are taken from the lake.
                let version = stamps
                    .iter()
                    .filter(|stamp| stamp.entry.asset == asset.to_string())
                    .map(|stamp| (stamp.entry.schema_version, stamp.snapshot))
                    .max();
                if let Some((version, snapshot)) = version {
                    let schema = SchemaVersion { version, from_snapshot: Some(snapshot), schema: facts.schema.clone() };
                    self.runtime.block_on(self.store.record_schema_if_changed(&asset, &schema))?;
                }
            }
            rebuilt.push(Rebuilt {
                lake: location.name.clone(),
                stamps: stamps.len(),
                materializations: ingested.materializations,
                unknown,
            });
        }
        rebuilt.extend(self.rebuild_outside()?);
        Ok(rebuilt)
    }

    fn tables_of(&self, location: &pintail_engine::LakeLocation) -> Result<Vec<(Asset, TableFacts)>, RunnerError> {
        let mut slot = self.take_slot();
        slot.attach_existing(location)?;
        let session = slot.session()?;
        let alias = location.write_alias();
        let mut tables = Vec::new();
        for (schema, table, ..) in lake::list_tables(&session, &alias)? {
            if let Some(facts) = lake::table_facts(&session, &alias, &schema, &table)? {
                tables.push((Asset::lake_table(location.name.as_str(), &schema, &table), facts));
            }
        }
        drop(session);
        self.keep_slot(slot);
        Ok(tables)
    }

    /// Returns the relation under which a query reads `asset`.
    pub fn relation(&self, asset: &Asset) -> Option<Relation> {
        let Asset::Lake { lake, schema, table } = asset else { return None };
        Some(Relation::in_catalog(lake.sql_name(), schema, table))
    }
}

fn is_no_snapshot(error: &pintail_engine::EngineError) -> bool {
    error.failure().is_some_and(|failure| failure.message.is_no_snapshot())
}
