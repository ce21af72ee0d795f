//! Taking over a table that somebody else made: a stamped commit that says so, and nothing else.

use std::collections::BTreeMap;

use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, RunId, SnapshotId, StepId};
use pintail_core::sql::stamp::{StampEntry, to_extra_info};
use pintail_core::sql::strategy::fence;
use pintail_engine::WriteTransaction;
use pintail_engine::lake::{self, TableFacts};
use pintail_engine::transaction::CommitWords;

use super::{Pintail, RunnerError};
use crate::executors::AssetMemory;

/// What was taken over.
#[derive(Clone, Debug)]
pub struct Adopted {
    /// The asset.
    pub asset: Asset,
    /// The stamped snapshot.
    pub snapshot: SnapshotId,
    /// Rows in the table.
    pub rows: u64,
    /// The table as it is.
    pub table: TableFacts,
}

impl Pintail {
    /// Takes over the table `text`; `partition` are partition keys to set for files written from now on, such as
    /// `year(ts), month(ts)` or a column's name.
    pub fn adopt(&self, text: &str, partition: Option<&str>) -> Result<Adopted, RunnerError> {
        let asset = self.parse_asset(text)?;
        let script =
            self.project.scripts.iter().find(|script| script.target.as_ref() == Some(&asset)).ok_or_else(|| {
                RunnerError::Usage {
                    message: format!(
                        "no script writes {asset}; write one with `materialize {asset}` first, then adopt"
                    ),
                }
            })?;
        if let (Asset::Datatable { .. }, None) = (&asset, partition) {
            return self.adopt_datatable(&asset, script);
        }
        let Asset::Lake { lake: name, schema, table } = &asset else {
            return Err(RunnerError::Usage {
                message: format!("{asset} is not a lake table, so it cannot be adopted so"),
            });
        };
        let location = self
            .lakes
            .get(name)
            .ok_or_else(|| RunnerError::NotFound { message: format!("there is no lake `{name}`") })?;
        // What was taken over may get its partitions afterwards.
        let may_partition = |memory: &AssetMemory| partition.is_some() && memory.has_uncounted_rows;
        if self.observe([])?.memory.get(&asset).is_some_and(|memory| memory.is_ours && !may_partition(memory)) {
            return Err(RunnerError::Usage { message: format!("Pintail writes {asset} already; nothing to adopt") });
        }
        let mut slot = self.take_slot();
        if location.exists()? {
            slot.attach_existing(location)?;
        }
        slot.attach_for_writing(location)?;
        let session = slot.session()?;
        let alias = location.write_alias();
        let not_there =
            || RunnerError::NotFound { message: format!("{asset} does not exist; there is nothing to adopt") };
        let facts = lake::table_facts(&session, &alias, schema, table)?.ok_or_else(not_there)?;
        let relation = pintail_core::sql::Relation::in_catalog(&alias, schema, table);
        let rows =
            session.one("count the rows", &format!("SELECT count(*) FROM {relation}"), |row| row.get::<_, i64>(0))?;
        let attempt = AttemptId(crate::new_id());
        let entry = StampEntry {
            attempt: attempt.clone(),
            run: RunId(crate::new_id()),
            step: StepId(crate::new_id()),
            asset: asset.to_string(),
            script: script.name().to_string(),
            table_id: Some(facts.id),
            generation: 0,
            partition: None,
            window: None,
            increment: None,
            strategy: "adopt".to_owned(),
            deleted: 0,
            inserted: 0,
            rows: u64::try_from(rows).ok(),
            schema_version: 1,
            script_hash: script.hash().clone(),
            inputs: BTreeMap::new(),
            files: BTreeMap::new(),
            atomic: false,
            restored: None,
        };
        let lane = location.lane();
        let pass = lane.enter()?;
        let transaction = WriteTransaction::begin(&session, &alias)?;
        match partition {
            Some(keys) => {
                let keys = pintail_core::sql::Fragment::new(keys)
                    .map_err(|error| RunnerError::Usage { message: format!("`--partition {keys}`: {error}") })?;
                let sql = format!("ALTER TABLE {relation}\nSET PARTITIONED BY ({keys})");
                transaction.run(&pintail_core::sql::Statement::new("partition the table", sql))?;
            }
            // A commit that changes nothing has no snapshot to carry the stamp.
            None => {
                transaction.run(&fence(&alias, &asset))?;
            }
        }
        let (message, extra_info) = (format!("adopt {asset}"), to_extra_info(std::slice::from_ref(&entry)));
        let words = CommitWords { attempt: &attempt, message: &message, extra_info: &extra_info };
        let snapshot = transaction.commit(&words, || {})?;
        drop(pass);
        let table = lake::table_facts(&session, &alias, schema, table)?.ok_or_else(not_there)?;
        drop(session);
        self.keep_slot(slot);
        // Takes the stamp into the store, as after any commit that the store has not seen.
        self.observe([])?;
        Ok(Adopted { asset, snapshot, rows: entry.rows.unwrap_or(0), table })
    }

    /// Returns the asset that `text` names: a URI, or a table of the default lake.
    pub fn parse_asset(&self, text: &str) -> Result<Asset, RunnerError> {
        if text.contains("://") {
            return Asset::parse(text).map_err(|error| RunnerError::Usage { message: format!("`{text}`: {error}") });
        }
        if let Ok(script) = self.find_script(text)
            && let Some(target) = &script.target
        {
            return Ok(target.clone());
        }
        let parts: Vec<&str> = text.split('.').collect();
        match parts.as_slice() {
            [table] => Ok(Asset::lake_table("main", "main", table)),
            [schema, table] => Ok(Asset::lake_table("main", schema, table)),
            [lake, schema, table] => {
                let name = if *lake == "lake" { "main" } else { lake };
                Ok(Asset::lake_table(name, schema, table))
            }
            _ => Err(RunnerError::Usage { message: format!("`{text}` is not an asset") }),
        }
    }
}
