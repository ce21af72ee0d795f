//! Observe, outside lakes: what datatables and files say about their writes, and what a crash left behind mended.
//!
//! A place that cannot be reached is no reason to plan nothing: what the store remembers of it stands, and the plan says
//! so; a step that needs the place fails by itself.

use std::collections::{BTreeMap, BTreeSet};

use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, LakeName, RunId, SnapshotId, StepId, TableId};
use pintail_core::partition::PartitionKey;
use pintail_core::plan::{Author, Extent};
use pintail_core::schema::{Column, Schema};
use pintail_core::sql::postgres::{PostgresColumn, duckdb_type};
use pintail_core::sql::stamp::StampEntry;
use pintail_engine::Session;
use pintail_engine::guard::OwnerId;
use pintail_engine::lake::TableFacts;
use pintail_store::{LakeStamp, SliceState, StepStatus};

use super::{Adopted, Observation, Pintail, Rebuilt, RunnerError, TableInfo};
use crate::executors::StepFailure;
use crate::executors::datatable::{Described, Postgres, Stamp, attach, describe};
use crate::executors::object::{Destination, Found};
use crate::project::CompiledScript;

impl Pintail {
    /// Connects to the datatable `name`.
    pub(super) fn postgres(&self, name: &str) -> Result<Postgres, StepFailure> {
        let Some(datatable) = self.project.project.config.datatables.get(name) else {
            return Err(StepFailure::user(
                pintail_core::diagnostic::Code::UNKNOWN_PLACE,
                "find the datatable",
                format!("there is no datatable `{name}`"),
            ));
        };
        Postgres::connect(name, &datatable.url, self.runtime.handle(), &self.redactor)
    }

    /// Observes every datatable that a script of the project reads or writes, and the files that it writes.
    pub(super) fn observe_outside(&self, seen: &mut Observation) -> Result<(), RunnerError> {
        for database in self.datatables_used() {
            if let Err(failure) = self.observe_datatable(&database, seen)? {
                seen.unreachable.push(failure.message);
            }
        }
        self.heal_files(seen)
    }

    fn datatables_used(&self) -> BTreeSet<String> {
        let database = |asset: &Asset| match asset {
            Asset::Datatable { database, .. } => Some(database.clone()),
            _ => None,
        };
        let scripts = self.project.scripts.iter().filter(|script| script.cannot_run.is_none());
        scripts
            .flat_map(|script| {
                let read = script.datatables_read().into_iter().map(str::to_owned);
                read.chain(script.target.as_ref().and_then(database)).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Takes in what one datatable says; the inner error is that it cannot be asked.
    fn observe_datatable(
        &self,
        database: &str,
        seen: &mut Observation,
    ) -> Result<Result<(), StepFailure>, RunnerError> {
        let place = LakeName(format!("datatable://{database}"));
        let asked = self.postgres(database).and_then(|mut postgres| {
            let head = postgres.overview()?;
            Ok((postgres, head))
        });
        let (mut postgres, head) = match asked {
            Ok(asked) => asked,
            Err(failure) => return Ok(Err(failure)),
        };
        let version = SnapshotId(head.version);
        seen.heads.insert(place.clone(), version);
        let stamped: BTreeSet<Asset> = head.changed.keys().cloned().collect();
        for (asset, changed) in head.changed {
            seen.changes.record_change(asset, Author::Us, &Extent::Whole, changed);
        }
        for asset in head.gone {
            // It is gone now, after whatever version was written.
            seen.changes.record_drop(asset, SnapshotId(i64::MAX));
        }
        let cursor = self.runtime.block_on(self.store.lake_cursor(&place))?.unwrap_or(SnapshotId(0));
        if cursor < version {
            let stamps = match postgres.stamps_after(cursor, None) {
                Ok(stamps) => lake_stamps(stamps),
                Err(failure) => return Ok(Err(failure)),
            };
            seen.healed += self.runtime.block_on(self.store.ingest_stamps(&place, &stamps, version))?.materializations;
        }
        Ok(self.print_tables(database, &mut postgres, &stamped, seen))
    }

    /// Takes the fingerprints of tables that scripts read and other programs write: the server's own counters of changes.
    fn print_tables(
        &self,
        database: &str,
        postgres: &mut Postgres,
        stamped: &BTreeSet<Asset>,
        seen: &mut Observation,
    ) -> Result<(), StepFailure> {
        let is_foreign = |asset: &Asset| {
            matches!(asset, Asset::Datatable { database: of, .. } if of == database) && !stamped.contains(asset)
        };
        let reads = self.project.scripts.iter().flat_map(|script| script.reads());
        let written: BTreeSet<&Asset> =
            self.project.scripts.iter().filter_map(|script| script.target.as_ref()).collect();
        let foreign: BTreeSet<&Asset> = reads.filter(|asset| is_foreign(asset) && !written.contains(asset)).collect();
        if foreign.is_empty() {
            return Ok(());
        }
        let prints = postgres.prints()?;
        for asset in foreign {
            let Asset::Datatable { schema, table, .. } = asset else { continue };
            let print = prints.get(&(schema.clone(), table.clone())).cloned().unwrap_or_default();
            seen.files.insert(asset.to_string(), print);
        }
        Ok(())
    }

    /// Takes in files that a killed run has published without telling the store.
    fn heal_files(&self, seen: &mut Observation) -> Result<(), RunnerError> {
        for run in self.runtime.block_on(self.store.running_runs())? {
            let owner = OwnerId(run.owner.0.clone());
            if self.is_owner_alive(&owner)? {
                continue;
            }
            let Some(detail) = self.runtime.block_on(self.store.show_run(&run.id))? else { continue };
            let open = detail.steps.iter().map(|step| &step.step).filter(|step| step.status == StepStatus::Running);
            for step in open {
                let Some(asset) = step.asset.as_ref().and_then(|asset| Asset::parse(asset.as_str()).ok()) else {
                    continue;
                };
                if !matches!(asset, Asset::Object { .. } | Asset::Volume { .. }) {
                    continue;
                }
                match self.file(&asset, step.partition.as_ref()).and_then(|file| file.found()) {
                    Ok(Some(found)) if found.stamp.as_ref().is_some_and(|stamp| stamp.step == step.id) => {
                        seen.healed += self.take_in_file(&asset, &found)?;
                    }
                    Ok(_) => {}
                    Err(failure) => seen.unreachable.push(failure.message),
                }
            }
        }
        Ok(())
    }

    fn file(&self, asset: &Asset, partition: Option<&PartitionKey>) -> Result<Destination, StepFailure> {
        Destination::of(&self.project.project, asset, partition, self.runtime.handle(), &self.redactor)
    }

    fn take_in_file(&self, asset: &Asset, found: &Found) -> Result<u64, RunnerError> {
        let Some(entry) = found.stamp.clone() else { return Ok(0) };
        let stamp = LakeStamp { snapshot: found.version(), at: found.changed, entry };
        let place = asset.place();
        let ingested = self.runtime.block_on(self.store.ingest_stamps(&place, &[stamp], found.version()))?;
        Ok(ingested.materializations)
    }

    /// Notes which of the slices that the store remembers have lost their file.
    pub(super) fn find_lost_files(&self, states: &[SliceState], seen: &mut Observation) {
        let mut by_asset: BTreeMap<Asset, Vec<&SliceState>> = BTreeMap::new();
        for state in states.iter().filter(|state| state.current.is_some()) {
            match Asset::parse(state.asset.as_str()) {
                Ok(asset @ (Asset::Object { .. } | Asset::Volume { .. })) if self.is_written(&asset) => {
                    by_asset.entry(asset).or_default().push(state);
                }
                _ => {}
            }
        }
        for (asset, states) in by_asset {
            for state in states {
                match self.file(&asset, state.partition.as_ref()).and_then(|file| file.exists()) {
                    Ok(true) => {}
                    Ok(false) => {
                        seen.lost.insert((asset.clone(), state.partition.clone()));
                    }
                    Err(failure) => {
                        seen.unreachable.push(failure.message);
                        break;
                    }
                }
            }
        }
    }

    fn is_written(&self, asset: &Asset) -> bool {
        self.project.scripts.iter().any(|script| script.target.as_ref() == Some(asset))
    }

    /// Attaches the datatables that `sql` names, read-only and under their own names.
    pub(super) fn attach_datatables(&self, session: &Session, sql: &str) -> Result<(), RunnerError> {
        let is_word = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
        let words: BTreeSet<String> =
            sql.split(|c: char| !is_word(&c.to_string())).map(str::to_ascii_lowercase).collect();
        for (name, datatable) in &self.project.project.config.datatables {
            if words.contains(name) {
                attach(session, &self.settings.extensions, &datatable.url, name)?;
            }
        }
        Ok(())
    }

    /// Returns what is known of an asset outside lakes: the columns of a Postgres table as they are, those of a file as they
    /// were written last.
    pub(super) fn table_outside(&self, asset: &Asset) -> Result<Option<TableInfo>, RunnerError> {
        let (is_view, schema) = match asset {
            Asset::Datatable { database, schema, table } => {
                match describe(&mut self.postgres(database)?, schema, table)? {
                    Some(described) => (described.table.is_no_table, held_schema(&described)),
                    None => return Ok(None),
                }
            }
            _ => match self.schema_versions(asset)?.pop() {
                Some(version) => (false, version.schema),
                None => return Ok(None),
            },
        };
        let facts = TableFacts { id: TableId(0), is_view, schema, partition: Vec::new() };
        Ok(Some(TableInfo { asset: asset.clone(), facts }))
    }

    /// Takes over a table of a datatable: a stamp that says so, and nothing else.
    pub(super) fn adopt_datatable(&self, asset: &Asset, script: &CompiledScript) -> Result<Adopted, RunnerError> {
        let Asset::Datatable { database, schema, table } = asset else {
            return Err(RunnerError::Usage { message: format!("{asset} is no table of a datatable") });
        };
        let mut postgres = self.postgres(database)?;
        postgres.make_home()?;
        if postgres.last_stamp(&asset.to_string(), None)?.is_some() {
            return Err(RunnerError::Usage { message: format!("Pintail writes {asset} already; nothing to adopt") });
        }
        let not_there =
            || RunnerError::NotFound { message: format!("{asset} does not exist; there is nothing to adopt") };
        let described = describe(&mut postgres, schema, table)?.ok_or_else(not_there)?;
        let rows = postgres.count_rows(&described.relation)?;
        let entry = StampEntry {
            attempt: AttemptId(crate::new_id()),
            run: RunId(crate::new_id()),
            step: StepId(crate::new_id()),
            asset: asset.to_string(),
            script: script.name().to_string(),
            table_id: None,
            generation: 0,
            partition: None,
            window: None,
            strategy: "adopt".to_owned(),
            deleted: 0,
            inserted: 0,
            rows: Some(rows),
            schema_version: 1,
            script_hash: script.hash().clone(),
            inputs: BTreeMap::new(),
            files: BTreeMap::new(),
            increment: None,
            restored: None,
            atomic: false,
        };
        postgres.batch("begin the transaction", "BEGIN")?;
        let snapshot = postgres.stamp(&entry)?;
        postgres.batch("commit", "COMMIT")?;
        let schema = held_schema(&described);
        // Takes the stamp into the store, as after any commit that the store has not seen.
        self.observe([])?;
        let table = TableFacts { id: TableId(0), is_view: false, schema, partition: Vec::new() };
        Ok(Adopted { asset: asset.clone(), snapshot, rows, table })
    }

    /// Reconstructs what the store knows of datatables from their stamps, and of files from what they carry.
    pub(super) fn rebuild_outside(&self) -> Result<Vec<Rebuilt>, RunnerError> {
        let mut rebuilt = Vec::new();
        for database in self.datatables_used() {
            let place = LakeName(format!("datatable://{database}"));
            let mut postgres = self.postgres(&database)?;
            if !postgres.has_home()? {
                continue;
            }
            let head = postgres.head()?;
            let stamps = lake_stamps(postgres.stamps_after(SnapshotId(0), None)?);
            rebuilt.push(self.rebuild_place(place, &stamps, head)?);
        }
        let mut files: BTreeMap<LakeName, Vec<LakeStamp>> = BTreeMap::new();
        let targets: BTreeSet<&Asset> =
            self.project.scripts.iter().filter_map(|script| script.target.as_ref()).collect();
        for asset in targets {
            if !matches!(asset, Asset::Object { .. } | Asset::Volume { .. }) {
                continue;
            }
            let stamps = files.entry(asset.place()).or_default();
            for found in self.file(asset, None)?.all()? {
                let is_of_asset = |entry: &&StampEntry| entry.asset == asset.to_string();
                if let Some(entry) = found.stamp.as_ref().filter(is_of_asset).cloned() {
                    stamps.push(LakeStamp { snapshot: found.version(), at: found.changed, entry });
                }
            }
        }
        for (place, stamps) in files {
            let head = stamps.iter().map(|stamp| stamp.snapshot).max().unwrap_or(SnapshotId(0));
            rebuilt.push(self.rebuild_place(place, &stamps, head)?);
        }
        Ok(rebuilt)
    }

    fn rebuild_place(&self, place: LakeName, stamps: &[LakeStamp], head: SnapshotId) -> Result<Rebuilt, RunnerError> {
        let ingested = self.runtime.block_on(self.store.rebuild_lake_state(&place, stamps, head))?;
        Ok(Rebuilt {
            lake: place,
            stamps: stamps.len(),
            materializations: ingested.materializations,
            unknown: Vec::new(),
        })
    }
}

/// Returns the columns of a Postgres table in the engine's types.
fn held_schema(described: &Described) -> Schema {
    let column =
        |column: &PostgresColumn| Column { name: column.name.clone(), data_type: duckdb_type(&column.data_type) };
    Schema { columns: described.table.columns.iter().map(column).collect() }
}

fn lake_stamps(stamps: Vec<Stamp>) -> Vec<LakeStamp> {
    stamps.into_iter().map(|stamp| LakeStamp { snapshot: stamp.version, at: stamp.at, entry: stamp.entry }).collect()
}
