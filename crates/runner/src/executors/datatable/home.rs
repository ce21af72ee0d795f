//! What Pintail keeps in a datatable: the schema `pintail` with one row for each write, `pintail.stamp`.
//!
//! Versions are numbered in one sequence for the database, without gaps and in the order in which they become visible: the
//! number is taken under a lock that lasts until COMMIT. So `version` means for a datatable what a snapshot means for a
//! lake, and reading `version > n` never misses a write that commits late.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, SnapshotId};
use pintail_core::sql::Relation;
use pintail_core::sql::stamp::StampEntry;
use sqlx::Row as _;
use sqlx::postgres::{PgArguments, PgRow};

use super::connection::Postgres;
use crate::executors::StepFailure;

/// The table, its index, and the schema around them; the lock lets two first writers make them one after the other.
const HOME: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(hashtextextended('pintail home', 0));
CREATE SCHEMA IF NOT EXISTS pintail;
CREATE TABLE IF NOT EXISTS pintail.stamp (
  version bigint PRIMARY KEY,
  attempt text NOT NULL UNIQUE,
  run text NOT NULL,
  step text NOT NULL,
  asset text NOT NULL,
  partition text,
  strategy text NOT NULL,
  deleted bigint NOT NULL,
  inserted bigint NOT NULL,
  rows bigint,
  script text NOT NULL,
  script_hash text NOT NULL,
  inputs jsonb NOT NULL,
  entry jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS stamp_asset ON pintail.stamp (asset, version);
COMMENT ON TABLE pintail.stamp IS 'What Pintail wrote: one row for each write, in the same transaction as its rows';
COMMIT";

/// One row of `pintail.stamp`.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Its number.
    pub version: SnapshotId,
    /// When it was written.
    pub at: DateTime<Utc>,
    /// What it says.
    pub entry: StampEntry,
}

/// What a datatable says about its writes.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The newest version; 0 before the first.
    pub version: i64,
    /// The newest version of each asset.
    pub changed: BTreeMap<Asset, SnapshotId>,
    /// The stamped assets whose table is not there any more.
    pub gone: Vec<Asset>,
}

/// Values to bind; text and numbers always encode.
#[derive(Default)]
pub struct Values(PgArguments);

impl Values {
    /// Adds a value.
    pub fn with<'q, T>(mut self, value: T) -> Self
    where
        T: sqlx::Encode<'q, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        use sqlx::Arguments as _;
        self.0.add(value).expect("text, numbers and times always encode");
        self
    }

    /// Returns the values.
    pub fn done(self) -> PgArguments {
        self.0
    }
}

impl Postgres {
    /// Returns whether the datatable has stamps at all.
    pub fn has_home(&mut self) -> Result<bool, StepFailure> {
        let sql = "SELECT to_regclass('pintail.stamp') IS NOT NULL";
        let found = self.rows("look for the stamps", sql, PgArguments::default(), |row| row.try_get::<bool, _>(0))?;
        Ok(found.first().copied().unwrap_or(false))
    }

    /// Makes the place of the stamps unless it is there.
    pub fn make_home(&mut self) -> Result<(), StepFailure> {
        if self.has_home()? {
            return Ok(());
        }
        self.batch("make the place of the stamps", HOME).inspect_err(|_| self.roll_back())
    }

    /// Returns the newest version.
    pub fn head(&mut self) -> Result<SnapshotId, StepFailure> {
        let sql = "SELECT coalesce(max(version), 0) FROM pintail.stamp";
        let found =
            self.rows("read the newest version", sql, PgArguments::default(), |row| row.try_get::<i64, _>(0))?;
        Ok(SnapshotId(found.first().copied().unwrap_or(0)))
    }

    /// Returns the newest versions and what is gone.
    pub fn overview(&mut self) -> Result<Head, StepFailure> {
        if !self.has_home()? {
            return Ok(Head::default());
        }
        let sql = "SELECT asset, max(version) FROM pintail.stamp GROUP BY asset";
        let newest = self.rows("read the newest versions", sql, PgArguments::default(), |row| {
            Ok((row.try_get::<String, _>(0)?, SnapshotId(row.try_get(1)?)))
        })?;
        let tables = self.tables()?;
        let mut head = Head::default();
        for (text, version) in newest {
            head.version = head.version.max(version.0);
            // A stamp of an asset that cannot be read is another version's; its rows are in the table all the same.
            let Ok(asset) = Asset::parse(&text) else { continue };
            let is_there = matches!(&asset, Asset::Datatable { schema, table, .. }
                if tables.iter().any(|(of, name)| of == schema && name == table));
            if !is_there {
                head.gone.push(asset.clone());
            }
            head.changed.insert(asset, version);
        }
        Ok(head)
    }

    /// Returns every table and view as lower-cased schema and name.
    pub fn tables(&mut self) -> Result<Vec<(String, String)>, StepFailure> {
        let sql = "
            SELECT lower(nspname), lower(relname)
            FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname NOT IN ('pg_catalog', 'information_schema', 'pintail')";
        self.rows("list the tables", sql, PgArguments::default(), |row| Ok((row.try_get(0)?, row.try_get(1)?)))
    }

    /// Returns for each table, by lower-cased schema and name, a text that changes whenever its rows or its shape do: the
    /// server's counters of changes. They may lag by a second and start anew after a crash of the server, which at worst
    /// makes a reader run once too often.
    pub fn prints(&mut self) -> Result<BTreeMap<(String, String), String>, StepFailure> {
        let sql = "
            SELECT lower(n.nspname), lower(c.relname),
              concat_ws(':', c.relfilenode, s.n_tup_ins, s.n_tup_upd, s.n_tup_del,
                (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))
            FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')";
        let prints = self.rows("read the counters of changes", sql, PgArguments::default(), |row| {
            Ok(((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?))
        })?;
        Ok(prints.into_iter().collect())
    }

    /// Returns the stamps after `after`, in order; only those of `asset` when one is given.
    pub fn stamps_after(&mut self, after: SnapshotId, asset: Option<&str>) -> Result<Vec<Stamp>, StepFailure> {
        let sql = "
            SELECT version, at, entry::text FROM pintail.stamp
            WHERE version > $1 AND ($2::text IS NULL OR asset = $2)
            ORDER BY version";
        let values = Values::default().with(after.0).with(asset.map(str::to_owned)).done();
        let stamps = self.rows("read the stamps", sql, values, read_stamp)?;
        Ok(stamps.into_iter().flatten().collect())
    }

    /// Returns how many rows a table has.
    pub fn count_rows(&mut self, relation: &Relation) -> Result<u64, StepFailure> {
        let sql = format!("SELECT count(*) FROM {relation}");
        let found = self.rows("count the rows", &sql, PgArguments::default(), |row| row.try_get::<i64, _>(0))?;
        Ok(found.first().and_then(|count| u64::try_from(*count).ok()).unwrap_or(0))
    }

    /// Returns the newest stamp of `asset`, or of one of its slices.
    pub fn last_stamp(&mut self, asset: &str, slice: Option<Option<&str>>) -> Result<Option<StampEntry>, StepFailure> {
        let sql = "
            SELECT version, at, entry::text FROM pintail.stamp
            WHERE asset = $1 AND ($2 OR partition IS NOT DISTINCT FROM $3)
            ORDER BY version DESC LIMIT 1";
        let partition = slice.flatten().map(str::to_owned);
        let values = Values::default().with(asset.to_owned()).with(slice.is_none()).with(partition).done();
        let found = self.rows("read the last stamp", sql, values, read_stamp)?;
        Ok(found.into_iter().flatten().next().map(|stamp| stamp.entry))
    }

    /// Looks an attempt up.
    pub fn find(&mut self, attempt: &AttemptId) -> Result<Option<Stamp>, StepFailure> {
        let sql = "SELECT version, at, entry::text FROM pintail.stamp WHERE attempt = $1";
        let values = Values::default().with(attempt.as_str().to_owned()).done();
        Ok(self.rows("look the attempt up", sql, values, read_stamp)?.into_iter().flatten().next())
    }

    /// Stamps the open transaction and returns the version; from here to COMMIT nobody else takes a number.
    pub fn stamp(&mut self, entry: &StampEntry) -> Result<SnapshotId, StepFailure> {
        self.batch("take the next version", "SELECT pg_advisory_xact_lock(hashtextextended('pintail version', 0))")?;
        let sql = "
            INSERT INTO pintail.stamp (version, attempt, run, step, asset, partition, strategy, deleted, inserted, rows,
                script, script_hash, inputs, entry)
            SELECT coalesce(max(version), 0) + 1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::jsonb, $13::jsonb
            FROM pintail.stamp
            RETURNING version";
        let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let json = |value: serde_json::Result<String>| value.expect("keys are text and values are plain");
        let values = Values::default()
            .with(entry.attempt.as_str().to_owned())
            .with(entry.run.as_str().to_owned())
            .with(entry.step.as_str().to_owned())
            .with(entry.asset.clone())
            .with(entry.partition.as_ref().map(ToString::to_string))
            .with(entry.strategy.clone())
            .with(signed(entry.deleted))
            .with(signed(entry.inserted))
            .with(entry.rows.map(signed))
            .with(entry.script.clone())
            .with(entry.script_hash.as_str().to_owned())
            .with(json(serde_json::to_string(&entry.inputs)))
            .with(json(serde_json::to_string(entry)))
            .done();
        let version = self.rows("stamp the transaction", sql, values, |row| row.try_get::<i64, _>(0))?;
        Ok(SnapshotId(version.first().copied().unwrap_or(0)))
    }

    /// Takes the lock of `asset` for the open transaction, if nobody else has it.
    pub fn try_lock(&mut self, asset: &str) -> Result<bool, StepFailure> {
        let sql = "SELECT pg_try_advisory_xact_lock(hashtextextended('pintail asset ' || $1, 0))";
        let values = Values::default().with(asset.to_owned()).done();
        let taken = self.rows("lock the target", sql, values, |row| row.try_get::<bool, _>(0))?;
        Ok(taken.first().copied().unwrap_or(false))
    }
}

/// Reads a stamp; one that cannot be read is a later version's and says nothing to this one.
fn read_stamp(row: &PgRow) -> Result<Option<Stamp>, sqlx::Error> {
    let text: String = row.try_get(2)?;
    let entry = match serde_json::from_str(&text) {
        Ok(entry) => entry,
        Err(error) => {
            tracing::warn!(%error, "a stamp cannot be read");
            return Ok(None);
        }
    };
    Ok(Some(Stamp { version: SnapshotId(row.try_get(0)?), at: row.try_get(1)?, entry }))
}
