//! `pintail diff`: what changed between two versions of an asset, in columns, in numbers, and by example.
//!
//! What is cheap is asked first: the commits in between, then the fingerprints of both versions, then the rows. Memory is
//! bounded: groups of rows spill to disk, and only the sample comes into this process.

use std::collections::BTreeMap;

use pintail_core::annotation::{TestCheck, WriteStrategy};
use pintail_core::asset::Asset;
use pintail_core::diagnostic::nearest;
use pintail_core::id::SnapshotId;
use pintail_core::partition::{PartitionKey, value_key};
use pintail_core::sql::diff::{Comparison, ShapeChange, Side, shape_changes};
use pintail_engine::Session;
use pintail_engine::lake::{self, TableFacts};

use super::versions::OldVersions;
use super::{Pintail, RunnerError};
use crate::executors::duckdb::slice_of;
use crate::project::CompiledScript;

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct DiffRequest {
    /// The asset, a table of the default lake, or a script.
    pub asset: String,
    /// The older version.
    pub from: String,
    /// The newer version; the head without one.
    pub to: Option<String>,
    /// One partition.
    pub partition: Option<String>,
    /// At most so many rows of each kind are shown.
    pub limit: u64,
}

/// What differs between two versions.
#[derive(Clone, Debug)]
pub struct AssetDiff {
    /// The asset.
    pub asset: Asset,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// The older version.
    pub from: SnapshotId,
    /// The newer version.
    pub to: SnapshotId,
    /// What changed in the columns.
    pub shape: Vec<ShapeChange>,
    /// What changed in the rows.
    pub rows: RowDiff,
}

impl AssetDiff {
    /// Returns whether the two versions are the same.
    pub fn is_empty(&self) -> bool {
        self.shape.is_empty() && self.rows.is_empty()
    }
}

/// How rows were told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Not at all: no commit in between touched the table.
    ByCommits,
    /// By their number and the sum and xor of their hashes, which are equal.
    ByFingerprint,
    /// One by one.
    ByRows,
}

/// What differs between two sets of rows.
#[derive(Clone, Debug)]
pub struct RowDiff {
    /// How they were compared.
    pub compared: Compared,
    /// The key; empty when whole rows were compared.
    pub key: Vec<String>,
    /// Rows that only the newer one has.
    pub added: u64,
    /// Rows that only the older one has.
    pub removed: u64,
    /// Rows of the newer one with a key of the older one and other values.
    pub changed: u64,
    /// Rows that are the same in both; `None` when nobody counted.
    pub same: Option<u64>,
    /// The columns of the sample.
    pub columns: Vec<String>,
    /// Some of the rows.
    pub sample: Vec<DiffRow>,
}

impl RowDiff {
    /// Returns whether no row differs.
    pub fn is_empty(&self) -> bool {
        self.added == 0 && self.removed == 0 && self.changed == 0
    }

    fn same(compared: Compared, key: Vec<String>, rows: Option<u64>) -> Self {
        let (columns, sample) = (Vec::new(), Vec::new());
        Self { compared, key, added: 0, removed: 0, changed: 0, same: rows, columns, sample }
    }
}

/// What happened to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowChange {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It has other values.
    Changed,
}

/// The values of a row as text; NULL is `None`.
pub type RowText = Vec<Option<String>>;

/// A row of the sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffRow {
    /// What happened to it.
    pub change: RowChange,
    /// How often: equal rows without a key are shown once.
    pub times: u64,
    /// Its values before.
    pub before: Option<RowText>,
    /// Its values after.
    pub after: Option<RowText>,
}

impl Pintail {
    /// Compares two versions of an asset.
    pub fn diff(&self, request: &DiffRequest) -> Result<AssetDiff, RunnerError> {
        let asset = self.parse_asset(&request.asset)?;
        // Takes in what the store has not seen, so that runs are found.
        self.observe([])?;
        let (location, ..) = self.lake_of(&asset)?;
        let mut old = self.old_versions(location)?;
        let from = self.version(&old, &asset, &request.from)?;
        let to = self.version(&old, &asset, request.to.as_deref().unwrap_or("head"))?;
        for at in [from, to] {
            self.hold(&mut old, at, "a comparison reads it")?;
        }
        let partition = self.partition_of(&asset, request.partition.as_deref())?;
        self.compare_versions(&old, &asset, partition, (from, to), request.limit)
    }

    /// Returns the partition that `text` names of the script that writes `asset`.
    pub(super) fn partition_of(&self, asset: &Asset, text: Option<&str>) -> Result<Option<PartitionKey>, RunnerError> {
        let Some(text) = text else { return Ok(None) };
        let wrong = |error: String| RunnerError::Usage { message: error };
        match self.writer_of(asset) {
            Some(script) if script.time_spec().is_some() => {
                let spec = script.time_spec().expect("it was asked for just now");
                spec.parse_key(text).map(Some).map_err(|error| wrong(error.to_string()))
            }
            Some(script) if script.payload_path().is_some() => {
                value_key(text).map(Some).map_err(|error| wrong(error.to_string()))
            }
            _ => Err(wrong(format!("{asset} has no partitions that a script declares"))),
        }
    }

    /// Returns the script that writes `asset`.
    pub(super) fn writer_of(&self, asset: &Asset) -> Option<&CompiledScript> {
        self.project.scripts.iter().find(|script| script.target.as_ref() == Some(asset))
    }

    /// Compares two versions that are held.
    pub(super) fn compare_versions(
        &self,
        old: &OldVersions<'_>,
        asset: &Asset,
        partition: Option<PartitionKey>,
        (from, to): (SnapshotId, SnapshotId),
        limit: u64,
    ) -> Result<AssetDiff, RunnerError> {
        let before = self.side(old, asset, partition.as_ref(), from)?;
        let after = self.side(old, asset, partition.as_ref(), to)?;
        let shape = shape_changes(&before.1.schema, &after.1.schema);
        let _watch = self.cancel.watch(usize::MAX, &old.session);
        let key = self.writer_of(asset).map(key_of).unwrap_or_default();
        let rows = match self.is_untouched(old, asset, (&before.0, &after.0), (from, to))? {
            true => RowDiff::same(Compared::ByCommits, key, None),
            false => compare_rows(&old.session, &Comparison::new(before.1, after.1, &key), shape.is_empty(), limit)?,
        };
        Ok(AssetDiff { asset: asset.clone(), partition, from, to, shape, rows })
    }

    fn side(
        &self,
        old: &OldVersions<'_>,
        asset: &Asset,
        partition: Option<&PartitionKey>,
        at: SnapshotId,
    ) -> Result<(TableFacts, Side), RunnerError> {
        let (_, schema, table) = self.lake_of(asset)?;
        let facts = old.table_at(asset, at)?.ok_or_else(|| self.not_there(asset, at))?;
        let relation = lake::at_version(&old.alias(), schema, table, at);
        let from = match (partition, self.writer_of(asset)) {
            (Some(key), Some(script)) => {
                let slice = slice_of(script, &facts.schema, key)?;
                format!("(SELECT * FROM {relation} WHERE {})", slice.predicate(None))
            }
            _ => relation,
        };
        let side = Side { from, schema: facts.schema.clone() };
        Ok((facts, side))
    }

    fn not_there(&self, asset: &Asset, at: SnapshotId) -> RunnerError {
        let targets = self.project.scripts.iter().filter_map(|script| script.target.as_ref()).map(Asset::short_name);
        let hint = match nearest(asset.short_name(), targets) {
            Some(near) if self.writer_of(asset).is_none() => format!("did you mean `{near}`?"),
            _ => format!("`pintail history {}` lists its versions", asset.short_name()),
        };
        RunnerError::NotFound { message: format!("{asset} did not exist at snapshot {at}; {hint}") }
    }

    /// Whether no commit between two versions of one table touched it. With a snapshot expired in between nobody knows.
    fn is_untouched(
        &self,
        old: &OldVersions<'_>,
        asset: &Asset,
        (before, after): (&TableFacts, &TableFacts),
        (from, to): (SnapshotId, SnapshotId),
    ) -> Result<bool, RunnerError> {
        if before.id != after.id || before.is_view {
            return Ok(false);
        }
        let (low, high) = (from.min(to), from.max(to));
        let (_, schema, table) = self.lake_of(asset)?;
        let commits = lake::commits_between(&old.session, &old.alias(), low, Some(high))?;
        let is_complete = i64::try_from(commits.len()).ok() == Some(high.0 - low.0);
        let touches =
            |commit: &lake::Commit| commit.changes.touches_table(after.id) || commit.changes.creates(schema, table);
        Ok(is_complete && !commits.iter().any(touches))
    }
}

/// Returns the columns that tell the rows of a script's target apart: the key of its merge, or of its first unique test.
pub(super) fn key_of(script: &CompiledScript) -> Vec<String> {
    if let WriteStrategy::Merge { key, .. } = script.strategy() {
        return key;
    }
    let unique = script.header.tests.iter().find_map(|test| match &test.value.check {
        TestCheck::Unique(columns) if test.value.filter.is_none() => Some(columns.clone()),
        _ => None,
    });
    unique.unwrap_or_default()
}

/// Compares the rows of two sides; `may_be_equal` when their columns are the same, so that equal fingerprints say all.
pub(super) fn compare_rows(
    session: &Session,
    comparison: &Comparison,
    may_be_equal: bool,
    limit: u64,
) -> Result<RowDiff, RunnerError> {
    let key: Vec<String> = comparison.key().into_iter().map(str::to_owned).collect();
    let [before, after] = comparison.fingerprints();
    let (before, after) = (fingerprint(session, &before)?, fingerprint(session, &after)?);
    if may_be_equal && before == after {
        return Ok(RowDiff::same(Compared::ByFingerprint, key, Some(after.0)));
    }
    session.run(&comparison.groups())?;
    let counts = session.one("count what differs", &comparison.counts(), |row| {
        let count = |index: usize| row.get::<_, i64>(index).map(|count| u64::try_from(count).unwrap_or(0));
        Ok([count(0)?, count(1)?, count(3)?])
    })?;
    let [added, removed, changed] = counts;
    let sample = match limit {
        0 => Vec::new(),
        _ => sample(session, &comparison.sample(limit))?,
    };
    Ok(RowDiff {
        compared: Compared::ByRows,
        key,
        added,
        removed,
        changed,
        same: Some(after.0.saturating_sub(added + changed)),
        columns: comparison.shown_columns(),
        sample,
    })
}

/// The number of rows, and sum and xor of their hashes.
pub(super) fn fingerprint(session: &Session, sql: &str) -> Result<(u64, String, String), RunnerError> {
    Ok(session.one("take the fingerprint", sql, |row| {
        Ok((u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0), row.get(1)?, row.get(2)?))
    })?)
}

/// The rows of one group of the sample: before, after, how often.
type Group = (Vec<RowText>, Vec<RowText>, u64);

fn sample(session: &Session, sql: &str) -> Result<Vec<DiffRow>, RunnerError> {
    let mut groups: BTreeMap<(RowChange, u64), Group> = BTreeMap::new();
    for mut row in session.query("read rows that differ", sql)?.text_rows()? {
        let values = row.split_off(5);
        let word = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
        let change = match word(0).as_str() {
            "added" => RowChange::Added,
            "removed" => RowChange::Removed,
            _ => RowChange::Changed,
        };
        let group = groups.entry((change, word(1).parse().unwrap_or(0))).or_default();
        group.2 = word(3).parse().unwrap_or(1);
        if word(2) == "true" { group.1.push(values) } else { group.0.push(values) }
    }
    Ok(groups.into_iter().flat_map(|((change, _), group)| pairs(change, group)).collect())
}

/// Puts the rows of a group side by side; a key that is not unique has several.
fn pairs(change: RowChange, (before, after, times): Group) -> impl Iterator<Item = DiffRow> {
    let count = before.len().max(after.len());
    let (mut before, mut after) = (before.into_iter(), after.into_iter());
    (0..count).map(move |_| DiffRow { change, times, before: before.next(), after: after.next() })
}
