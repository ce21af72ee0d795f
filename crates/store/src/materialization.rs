//! Table `materialization`: the record that an attempt wrote, or failed to write, a slice.
//!
//! Invariant: append-only, one row per attempt. A second word about the same attempt only completes its row: the
//! recorder's detail replaces what a stamp gave, and a stamp replaces a failure, never the other way round.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, LakeName, RunId, ScriptHash, ScriptName, SnapshotId, StepId, TableId};
use pintail_core::partition::{PartitionKey, Window};
use pintail_core::sql::stamp::StampEntry;

use crate::database::{Row, Tx, query};
use crate::encoding::{Fields, count, json, micros, words};
use crate::error::{ReadContext, ReadError};
use crate::open::Store;
use crate::run::Pins;
use crate::step::RecordedError;

/// The canonical text of an asset, as stamps and the store spell it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssetKey(String);

impl AssetKey {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes text that was an asset's canonical text when it was stored or stamped.
    pub(crate) fn from_stored(text: String) -> Self {
        Self(text)
    }
}

impl From<&Asset> for AssetKey {
    fn from(asset: &Asset) -> Self {
        Self(asset.to_string())
    }
}

impl fmt::Display for AssetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A row of `materialization`; grows in the order of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MaterializationId(pub i64);

words! {
    /// What an attempt did to its slice.
    MaterializationStatus {
        /// It committed.
        Materialized = "materialized",
        /// It confirmed the version that was there.
        Unchanged = "unchanged",
        /// It failed before or at the commit.
        Failed = "failed",
        /// Its tests or guards took the write back.
        RolledBack = "rolled_back",
    }
}

words! {
    /// Who wrote the row.
    Origin {
        /// The run that did it.
        Recorded = "recorded",
        /// A reader of the lake's stamps.
        Rebuilt = "rebuilt",
    }
}

/// A materialization as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Materialization {
    /// The row.
    pub id: MaterializationId,
    /// What was written.
    pub asset: AssetKey,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// Its window.
    pub window: Option<Window>,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The script.
    pub script: ScriptName,
    /// What was done.
    pub status: MaterializationStatus,
    /// Who wrote the row.
    pub origin: Origin,
    /// The lake; `None` for an asset outside a lake.
    pub lake: Option<LakeName>,
    /// The snapshot that holds the version; of an unchanged one, the version that it confirms.
    pub snapshot: Option<SnapshotId>,
    /// The table's id, when known.
    pub table_id: Option<TableId>,
    /// How often the table was made anew.
    pub generation: u32,
    /// Rows in the slice afterwards; `None` when unknown.
    pub rows: Option<u64>,
    /// Rows deleted.
    pub deleted: u64,
    /// Rows inserted.
    pub inserted: u64,
    /// The strategy, as the stamp spells it.
    pub strategy: String,
    /// The version of the asset's columns.
    pub schema_version: u32,
    /// The script text's hash.
    pub script_hash: ScriptHash,
    /// Pinned inputs.
    pub inputs: Pins,
    /// Local files that were read: asset -> fingerprint.
    pub files: BTreeMap<String, String>,
    /// When the attempt began; of a rebuilt row, the snapshot's time.
    pub started: DateTime<Utc>,
    /// When it ended; of a rebuilt row, the snapshot's time.
    pub finished: DateTime<Utc>,
    /// What failed.
    pub error: Option<RecordedError>,
}

/// A row to write.
#[derive(Debug)]
pub(crate) struct NewMaterialization<'a> {
    pub(crate) entry: &'a StampEntry,
    pub(crate) status: MaterializationStatus,
    pub(crate) origin: Origin,
    pub(crate) lake: Option<&'a LakeName>,
    pub(crate) snapshot: Option<SnapshotId>,
    pub(crate) started: DateTime<Utc>,
    pub(crate) finished: DateTime<Utc>,
    pub(crate) error: Option<&'a RecordedError>,
}

/// The insert with what to do when the attempt has a row.
macro_rules! insert_or {
    ($on_conflict:literal) => {
        concat!(
            "
            INSERT INTO materialization (project, asset, partition, window_start, window_end, run, step, attempt,
                script, status, origin, lake, snapshot, table_id, generation, rows, deleted, inserted, strategy,
                schema_version, script_hash, inputs, files, started, finished, error)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
                $22, $23, $24, $25, $26)
            ON CONFLICT (project, attempt) ",
            $on_conflict
        )
    };
}

/// What is done when the attempt already has a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnKnownAttempt {
    /// The recorder knows best: every fact is replaced.
    Replace,
    /// A failure says nothing new.
    Keep,
    /// A stamp adds a commit that the row does not have yet: a failure becomes a success, and a later commit of the same
    /// attempt (a manual script may have several) moves the snapshot on and adds its rows. A manual script that failed
    /// after some of its commits, or in the tests that follow them, stays failed.
    AddCommit,
}

impl OnKnownAttempt {
    fn insert_sql(self) -> &'static str {
        match self {
            OnKnownAttempt::Keep => insert_or!("DO NOTHING"),
            OnKnownAttempt::Replace => insert_or!(
                "DO UPDATE SET
                status = excluded.status, origin = excluded.origin, lake = excluded.lake, snapshot = excluded.snapshot,
                table_id = excluded.table_id, generation = excluded.generation, rows = excluded.rows,
                deleted = excluded.deleted, inserted = excluded.inserted, strategy = excluded.strategy,
                schema_version = excluded.schema_version, script_hash = excluded.script_hash,
                inputs = excluded.inputs, files = excluded.files, started = excluded.started,
                finished = excluded.finished, error = excluded.error"
            ),
            OnKnownAttempt::AddCommit => insert_or!(
                "DO UPDATE SET
                status = CASE WHEN materialization.status = 'failed' AND excluded.strategy IN ('manual', 'part')
                    THEN materialization.status ELSE excluded.status END,
                origin = excluded.origin, lake = excluded.lake, snapshot = excluded.snapshot,
                table_id = coalesce(excluded.table_id, materialization.table_id), generation = excluded.generation,
                rows = excluded.rows, deleted = materialization.deleted + excluded.deleted,
                inserted = materialization.inserted + excluded.inserted, strategy = excluded.strategy,
                schema_version = excluded.schema_version, script_hash = excluded.script_hash,
                inputs = excluded.inputs, files = excluded.files, finished = excluded.finished,
                error = CASE WHEN materialization.status = 'failed' AND excluded.strategy IN ('manual', 'part')
                    THEN materialization.error END
            WHERE coalesce(materialization.snapshot, -1) < excluded.snapshot"
            ),
        }
    }
}

impl Store {
    /// Writes a row; returns whether the table changed.
    pub(crate) async fn insert_materialization(
        &self,
        tx: &mut Tx,
        row: &NewMaterialization<'_>,
        on_known: OnKnownAttempt,
    ) -> Result<bool, sqlx::Error> {
        let entry = row.entry;
        let changed = query(on_known.insert_sql())
            .bind(self.project_text())
            .bind(&entry.asset)
            .bind(entry.partition.as_ref().map(PartitionKey::as_str))
            .bind(entry.window.map(|window| micros(window.start)))
            .bind(entry.window.map(|window| micros(window.end)))
            .bind(entry.run.as_str())
            .bind(entry.step.as_str())
            .bind(entry.attempt.as_str())
            .bind(&entry.script)
            .bind(row.status.as_str())
            .bind(row.origin.as_str())
            .bind(row.lake.map(LakeName::as_str))
            .bind(row.snapshot.map(|snapshot| snapshot.0))
            .bind(entry.table_id.map(|table| table.0))
            .bind(entry.generation)
            .bind(entry.rows.map(count))
            .bind(count(entry.deleted))
            .bind(count(entry.inserted))
            .bind(&entry.strategy)
            .bind(entry.schema_version)
            .bind(entry.script_hash.as_str())
            .bind(json(&entry.inputs))
            .bind(json(&entry.files))
            .bind(micros(row.started))
            .bind(micros(row.finished))
            .bind(row.error.map(json))
            .execute(tx)
            .await?;
        if let (None, Some(to), Some(at)) = (&entry.partition, entry.restored, row.snapshot) {
            self.undo_slices(tx, &entry.asset, to, at).await?;
        }
        if let (StampEntry::RETIRE, Some(window), Some(at)) = (entry.strategy.as_str(), entry.window, row.snapshot) {
            let sql = "
                UPDATE materialization SET undone_at = $4
                WHERE project = $1 AND asset = $2 AND window_end <= $3 AND snapshot < $4 AND undone_at IS NULL";
            let query = query(sql).bind(self.project_text()).bind(&entry.asset).bind(micros(window.end)).bind(at.0);
            query.execute(tx).await?;
        }
        Ok(0 < changed)
    }

    /// Notes what a rollback of the whole table to version `to`, committed as `at`, does to its slices: each is what it
    /// was at that version.
    async fn undo_slices(&self, tx: &mut Tx, asset: &str, to: SnapshotId, at: SnapshotId) -> Result<(), sqlx::Error> {
        let back = "
            UPDATE materialization SET undone_at = NULL
            WHERE project = $1 AND asset = $2 AND snapshot <= $3 AND $3 < undone_at AND undone_at < $4";
        let away = "
            UPDATE materialization SET undone_at = $4
            WHERE project = $1 AND asset = $2 AND partition IS NOT NULL AND $3 < snapshot AND snapshot < $4
                AND undone_at IS NULL";
        for sql in [back, away] {
            query(sql).bind(self.project_text()).bind(asset).bind(to.0).bind(at.0).execute(tx).await?;
        }
        Ok(())
    }

    /// Returns the newest materializations of an asset, newest first, failures among them by their place in time.
    pub async fn asset_history(&self, asset: &AssetKey, limit: u32) -> Result<Vec<Materialization>, ReadError> {
        let sql = "
            SELECT * FROM materialization WHERE project = $1 AND asset = $2
            ORDER BY finished DESC, snapshot DESC NULLS LAST, id DESC LIMIT $3";
        let query = query(sql).bind(self.project_text()).bind(asset.as_str()).bind(limit);
        let rows = query.read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(Materialization::from_row).collect())
            .reading(|| format!("the history of {asset}"))
    }

    /// Returns what an attempt recorded, or `None` when it recorded nothing.
    pub async fn materialization_of(&self, attempt: &AttemptId) -> Result<Option<Materialization>, ReadError> {
        let sql = "SELECT * FROM materialization WHERE project = $1 AND attempt = $2";
        let query = query(sql).bind(self.project_text()).bind(attempt.as_str());
        let row = query.read_optional(self.database()).await;
        row.and_then(|row| row.as_ref().map(Materialization::from_row).transpose())
            .reading(|| format!("the materialization of attempt {attempt}"))
    }
}

impl Materialization {
    pub(crate) fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: MaterializationId(row.integer("id")?),
            asset: AssetKey::from_stored(row.text("asset")?),
            partition: row.partition()?,
            window: row.window()?,
            run: RunId(row.text("run")?),
            step: StepId(row.text("step")?),
            attempt: AttemptId(row.text("attempt")?),
            script: ScriptName(row.text("script")?),
            status: row.state("status")?,
            origin: row.state("origin")?,
            lake: row.optional_text("lake")?.map(LakeName),
            snapshot: row.optional_integer("snapshot")?.map(SnapshotId),
            table_id: row.optional_integer("table_id")?.map(TableId),
            generation: row.number("generation")?,
            rows: row.optional_number("rows")?,
            deleted: row.number("deleted")?,
            inserted: row.number("inserted")?,
            strategy: row.text("strategy")?,
            schema_version: row.number("schema_version")?,
            script_hash: ScriptHash(row.text("script_hash")?),
            inputs: row.json("inputs")?,
            files: row.json("files")?,
            started: row.time("started")?,
            finished: row.time("finished")?,
            error: row.optional_json("error")?,
        })
    }
}
