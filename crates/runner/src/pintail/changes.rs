//! Which tables changed since the oldest pin, and which of their slices: from the stamps of our own commits, and for the
//! commits of others from the change feed, where the table is partitioned by a time.
//!
//! Invariant: what cannot be told counts for the whole table.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId, TableId};
use pintail_core::partition::{TimeSpec, TimeUnit, Window};
use pintail_core::plan::{Author, Extent, LastChanges};
use pintail_core::sql::changes::{Change, ChangeSet};
use pintail_core::sql::stamp::{StampEntry, from_extra_info};
use pintail_engine::lake::{self, Commit, Feed, LiveTable};
use pintail_engine::{LakeLocation, Session};

use super::{Pintail, RunnerError};

/// How many changed rows of one table the change feed is asked for in one plan; about a second.
const MOST_FEED_ROWS: u64 = 2_000_000;

/// How many different hours of change are told apart.
const MOST_HOURS: usize = 50_000;

/// Strategies whose stamps do not say which rows were written.
const UNTOLD: [&str; 3] = ["manual", "part", "adopt"];

/// The column by which the slices of an asset are told apart, where the project says it.
#[derive(Clone, Debug)]
pub(super) struct TimeColumn {
    /// `by=`; the table's own partition key when absent.
    pub column: Option<String>,
    /// The calendar of DATE columns.
    pub spec: Option<TimeSpec>,
}

/// A lake that is being read.
pub(super) struct Reading<'a> {
    pub location: &'a LakeLocation,
    /// The name by which the lake's own commits call it.
    pub stamped_as: &'a LakeName,
    pub session: &'a Session,
    pub live: &'a [LiveTable],
    /// The assets whose slices matter to somebody.
    pub columns: &'a HashMap<Asset, TimeColumn>,
}

impl Pintail {
    /// Reads from the newest stamps of assets that are written by increments when rows that lay in the future are due.
    pub(super) fn read_waits(
        &self,
        location: &LakeLocation,
        session: &Session,
        waits: &mut HashMap<Asset, DateTime<Utc>>,
    ) -> Result<(), RunnerError> {
        for script in self.project.scripts.iter().filter(|script| script.increment_column().is_some()) {
            let Some(asset) = script.target.as_ref().filter(|asset| asset.lake() == Some(&location.name)) else {
                continue;
            };
            let name = asset.to_string();
            let stamps = lake::newest_stamps(session, &location.write_alias(), &name)?;
            let entries = stamps.iter().filter_map(|(_, text)| from_extra_info(text).ok().flatten()).flatten();
            let newest = entries.into_iter().find(|entry| entry.asset == name && entry.is_version());
            let first = newest.and_then(|entry| entry.increment?.waits_micros);
            let tolerance = script.dynamic_spec().map_or(std::time::Duration::ZERO, |spec| spec.tolerance());
            let due = first
                .and_then(DateTime::<Utc>::from_timestamp_micros)
                .and_then(|first| first.checked_sub_signed(TimeDelta::from_std(tolerance).ok()?));
            waits.extend(due.map(|due| (asset.clone(), due)));
        }
        Ok(())
    }

    /// Returns the assets that scripts with time partitions read, with the columns by which their slices are told apart.
    pub(super) fn time_columns(&self) -> HashMap<Asset, TimeColumn> {
        let readers = self.project.scripts.iter().filter(|script| script.time_spec().is_some());
        let read: Vec<Asset> = readers.flat_map(|script| script.reads()).cloned().collect();
        read.into_iter()
            .map(|asset| {
                let writer = self.project.graph.writer(&asset).and_then(|node| self.project.script_at(node));
                let spec = writer.and_then(|script| script.time_spec().cloned());
                let column = spec.as_ref().and_then(|spec| spec.by.clone());
                (asset, TimeColumn { column, spec })
            })
            .collect()
    }
}

/// Returns the names that each table and view ever had.
pub(super) fn names_by_id(
    session: &Session,
    alias: &str,
) -> Result<HashMap<TableId, Vec<(String, String)>>, RunnerError> {
    let mut names: HashMap<TableId, Vec<(String, String)>> = HashMap::new();
    for (id, schema, table) in lake::table_names(session, alias)? {
        names.entry(id).or_default().push((schema, table));
    }
    Ok(names)
}

/// Reads what is known of the changes whose commits have expired: when each table last changed, and nothing of where.
fn read_expired(reading: &Reading<'_>, alias: &str, changes: &mut LastChanges) -> Result<(), RunnerError> {
    for ((schema, table), last) in lake::maintain::last_changes(reading.session, alias)? {
        let asset = Asset::lake_table(reading.location.name.as_str(), &schema, &table);
        last.changed.into_iter().for_each(|changed| changes.record(asset.clone(), changed));
        last.dropped.into_iter().for_each(|dropped| changes.record_drop(asset.clone(), dropped));
    }
    Ok(())
}

/// Reads which tables changed after `oldest`, up to `head`, also where the commits have expired.
pub(super) fn read_changes(
    reading: &Reading<'_>,
    (oldest, head): (SnapshotId, SnapshotId),
    changes: &mut LastChanges,
) -> Result<(), RunnerError> {
    let alias = reading.location.write_alias();
    let commits = lake::commits_between(reading.session, &alias, oldest, None)?;
    if i64::try_from(commits.len()).unwrap_or(i64::MAX) < head.0 - oldest.0 {
        read_expired(reading, &alias, changes)?;
    }
    if commits.is_empty() {
        return Ok(());
    }
    let names = names_by_id(reading.session, &alias)?;
    let mut untold: BTreeMap<Asset, Vec<SnapshotId>> = BTreeMap::new();
    let lake = reading.location.name.as_str();
    for commit in &commits {
        let stamps = stamps_by_asset(commit);
        for (schema, table) in changed_tables(&commit.changes, &names) {
            let asset = Asset::lake_table(lake, &schema, &table);
            let stamped_as = Asset::lake_table(reading.stamped_as.as_str(), &schema, &table).to_string();
            let stamped = stamps.get(&stamped_as).map_or(&[][..], Vec::as_slice);
            if is_only_retired(stamped) {
                continue;
            }
            let is_reshaped = is_reshaped(&commit.changes, &names, &schema, &table);
            match extents(stamped) {
                Some(extents) if !is_reshaped => {
                    for extent in &extents {
                        changes.record_change(asset.clone(), Author::Us, extent, commit.snapshot);
                    }
                }
                _ if is_reshaped || !reading.columns.contains_key(&asset) => {
                    let author = if stamped.is_empty() { Author::Others } else { Author::Us };
                    changes.record_change(asset, author, &Extent::Whole, commit.snapshot);
                }
                _ => untold.entry(asset).or_default().push(commit.snapshot),
            }
        }
        for (schema, table) in dropped_tables(&commit.changes, &names) {
            changes.record_drop(Asset::lake_table(lake, &schema, &table), commit.snapshot);
        }
    }
    for (asset, commits) in untold {
        ask_feed(reading, &asset, &commits, changes);
    }
    Ok(())
}

/// Returns the stamps of a commit by the asset that each names.
pub(super) fn stamps_by_asset(commit: &Commit) -> HashMap<String, Vec<StampEntry>> {
    let mut stamps: HashMap<String, Vec<StampEntry>> = HashMap::new();
    let entries = commit.extra_info.as_deref().and_then(|text| from_extra_info(text).ok().flatten());
    for entry in entries.unwrap_or_default() {
        stamps.entry(entry.asset.clone()).or_default().push(entry);
    }
    stamps
}

/// Returns whether all that the stamps of a table say is that old slices have gone, which is no news to who reads it.
pub(super) fn is_only_retired(stamps: &[StampEntry]) -> bool {
    !stamps.is_empty() && stamps.iter().all(|entry| entry.strategy == StampEntry::RETIRE)
}

/// Returns what stamped writes changed; `None` when their stamps do not say it.
fn extents(stamps: &[StampEntry]) -> Option<Vec<Extent>> {
    if stamps.is_empty() || stamps.iter().any(|entry| UNTOLD.contains(&entry.strategy.as_str())) {
        return None;
    }
    let extent = |entry: &StampEntry| match (&entry.partition, entry.window) {
        (None, _) => Extent::Whole,
        (Some(_), Some(window)) => Extent::Windows(vec![window]),
        (Some(key), None) => Extent::Key(key.clone()),
    };
    Some(stamps.iter().map(extent).collect())
}

/// A new or altered table has changed for every reader, whichever slice was written.
fn is_reshaped(
    changes: &ChangeSet,
    names: &HashMap<TableId, Vec<(String, String)>>,
    schema: &str,
    table: &str,
) -> bool {
    let is_it = |id: &TableId| names.get(id).into_iter().flatten().any(|(s, t)| s == schema && t == table);
    changes.creates(schema, table)
        || changes.changes().iter().any(|change| match change {
            Change::Altered(id) | Change::Dropped(id) => is_it(id),
            Change::Unknown { .. } => true,
            _ => false,
        })
}

/// Asks the change feed which times `commits` changed, the newest first as far as the bound allows.
fn ask_feed(reading: &Reading<'_>, asset: &Asset, commits: &[SnapshotId], changes: &mut LastChanges) {
    let told = match times_of(reading, asset, commits) {
        Ok(told) => told,
        Err(error) => {
            tracing::warn!(%asset, %error, "the change feed could not be read; every slice counts as changed");
            Told::default()
        }
    };
    // What was left unread counts for everything, up to its newest commit.
    let unread = &commits[..commits.len() - told.commits];
    if let Some(newest) = unread.last() {
        changes.record(asset.clone(), *newest);
    }
    for (snapshot, extent) in told.extents {
        changes.record_change(asset.clone(), Author::Others, &extent, snapshot);
    }
}

/// What the change feed told.
#[derive(Default)]
struct Told {
    /// How many of the commits, the newest.
    commits: usize,
    extents: Vec<(SnapshotId, Extent)>,
}

fn times_of(reading: &Reading<'_>, asset: &Asset, commits: &[SnapshotId]) -> Result<Told, pintail_engine::EngineError> {
    let lake_name = reading.location.name.as_str();
    let is_it = |table: &&LiveTable| Asset::lake_table(lake_name, &table.schema, &table.name) == *asset;
    let (Some(table), Some(known)) = (reading.live.iter().find(is_it), reading.columns.get(asset)) else {
        return Ok(Told::default());
    };
    let alias = reading.location.write_alias();
    let Some(column) = time_column(reading.session, &alias, table, known)? else { return Ok(Told::default()) };
    // A table that was made anew has a feed of its own, which begins with it.
    let from = commits.partition_point(|commit| *commit < table.since);
    let mut feed = Feed { alias: &alias, table, commits: &commits[from..] };
    while MOST_FEED_ROWS < feed.rows_at_most(reading.session)? && !feed.commits.is_empty() {
        feed.commits = &feed.commits[feed.commits.len().div_ceil(2)..];
    }
    let times = feed.changed_times(reading.session, &column.name, MOST_HOURS)?;
    if times.len() == MOST_HOURS {
        return Ok(Told::default());
    }
    let extents = times.into_iter().map(|(snapshot, hour)| (snapshot, column.extent(hour)));
    Ok(Told { commits: feed.commits.len(), extents: extents.collect() })
}

/// A column that holds time.
struct Column {
    name: String,
    /// The calendar when it is a DATE.
    dates: Option<TimeSpec>,
}

impl Column {
    /// Returns the time that a changed hour or day stands for; a NULL lies nowhere, so it counts for everything.
    fn extent(&self, micros: Option<i64>) -> Extent {
        let Some(start) = micros.and_then(DateTime::<Utc>::from_timestamp_micros) else { return Extent::Whole };
        let window = match &self.dates {
            Some(spec) => spec.parse_key(&start.format("%Y-%m-%d").to_string()).and_then(|key| spec.window(&key)).ok(),
            None => start.checked_add_signed(TimeDelta::hours(1)).map(|end| Window { start, end }),
        };
        window.map_or(Extent::Whole, |window| Extent::Windows(vec![window]))
    }
}

/// Returns the column by which the slices of `table` are told apart: `by=`, or a time that the table is partitioned by.
fn time_column(
    session: &Session,
    alias: &str,
    table: &LiveTable,
    known: &TimeColumn,
) -> Result<Option<Column>, pintail_engine::EngineError> {
    const TRANSFORMS: [&str; 5] = ["year", "month", "day", "hour", "identity"];
    let facts = lake::table_facts(session, alias, &table.schema, &table.name)?;
    let Some(facts) = facts.filter(|facts| !facts.is_view) else { return Ok(None) };
    let by_key = || {
        let (column, _) = facts.partition.iter().find(|(_, transform)| TRANSFORMS.contains(&transform.as_str()))?;
        Some(column.clone())
    };
    let Some(name) = known.column.clone().or_else(by_key) else { return Ok(None) };
    let Some(column) = facts.schema.column(&name) else { return Ok(None) };
    let is_date = column.data_type == "DATE";
    if !is_date && !column.data_type.starts_with("TIMESTAMP") {
        return Ok(None);
    }
    let daily = TimeSpec {
        unit: TimeUnit::Day,
        by: None,
        tz: known.spec.as_ref().and_then(|spec| spec.tz),
        start: None,
        retention: None,
    };
    Ok(Some(Column { name, dates: is_date.then_some(daily) }))
}

/// Returns the tables and views whose rows or shape a commit changed.
pub(super) fn changed_tables(
    changes: &ChangeSet,
    names: &HashMap<TableId, Vec<(String, String)>>,
) -> Vec<(String, String)> {
    let mut tables = Vec::new();
    for change in changes.changes() {
        match change {
            Change::Inserted(id) | Change::Deleted(id) | Change::Altered(id) | Change::Dropped(id) => {
                tables.extend(names.get(id).into_iter().flatten().cloned());
            }
            Change::CreatedTable { schema, table } => tables.push((schema.clone(), table.clone())),
            Change::CreatedView { schema, view } => tables.push((schema.clone(), view.clone())),
            // What is not understood may have changed anything.
            Change::Unknown { .. } => tables.extend(names.values().flatten().cloned()),
            Change::Maintained(_) | Change::Other { .. } => {}
        }
    }
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// Returns the tables and views that a commit dropped without making another of the same name.
pub(super) fn dropped_tables(
    changes: &ChangeSet,
    names: &HashMap<TableId, Vec<(String, String)>>,
) -> Vec<(String, String)> {
    let is_made_anew = |(schema, table): &(String, String)| changes.creates(schema, table);
    changes
        .changes()
        .iter()
        .filter_map(|change| match change {
            Change::Dropped(id) => names.get(id),
            _ => None,
        })
        .flatten()
        .filter(|name| !is_made_anew(name))
        .cloned()
        .collect()
}
