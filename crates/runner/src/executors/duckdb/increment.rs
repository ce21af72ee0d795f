//! Increments of `partitioned dynamic key=<column>`: what is new since the last one, found before the query runs.
//!
//! The last consumed value is in the stamp of the newest version, in the lake itself. Invariants: the next increment begins
//! where that one ended; a row that came late, lies in the future or has no value is taken or told, never lost in silence;
//! when it is not known what was consumed, nothing is written.

use std::collections::BTreeSet;
use std::time::Duration;

use pintail_core::annotation::{Trigger, WriteStrategy};
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::partition::{Increment, KeyKind, typed};
use pintail_core::sql::stamp::{StampEntry, from_extra_info};
use pintail_core::sql::{Ident, Literal, Relation};
use pintail_engine::lake::{self, Feed, LiveTable};
use pintail_engine::{LakeLocation, Session};

use super::attempt::{Attempt, Ended};
use super::unchanged::Confirmed;
use crate::executors::{RunContext, Slot, StepFailure};
use crate::project::CompiledScript;

/// An increment that is about to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenIncrement {
    /// Its bounds.
    pub increment: Increment,
    /// What `$partition_start` is in SQL.
    start: String,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The version that the increment follows; `None` for the first one.
    pub follows: Option<SnapshotId>,
    /// Whether there is anything to take.
    pub is_empty: bool,
}

impl OpenIncrement {
    /// Returns the variables of the script with their values in SQL.
    pub fn variables(&self) -> [(&'static str, String); 3] {
        let (identity, end) = match &self.increment.upto {
            Some(upto) => (Literal::new(upto).to_string(), self.increment.literal(upto)),
            None => ("CAST(NULL AS VARCHAR)".to_owned(), format!("CAST(NULL AS {})", self.increment.data_type)),
        };
        [("partition", identity), ("partition_start", self.start.clone()), ("partition_end", end)]
    }

    /// Returns the statement that makes `in_partition(column)`: after the last consumed value, up to the newest.
    pub fn macro_sql(&self) -> String {
        let lower = match &self.increment.after {
            Some(after) => format!("ts > {} AND ", self.increment.literal(after)),
            None => String::new(),
        };
        let upper = match &self.increment.upto {
            Some(upto) => format!("ts <= {}", self.increment.literal(upto)),
            None => "ts IS NULL AND false".to_owned(),
        };
        format!("CREATE OR REPLACE TEMP MACRO in_partition(ts) AS ({lower}{upper})")
    }
}

/// What an increment is found from.
pub struct Source<'a> {
    /// The run.
    pub ctx: &'a RunContext,
    /// The script.
    pub script: &'a CompiledScript,
    /// What it writes.
    pub asset: &'a Asset,
    /// Whether all is written anew.
    pub full_refresh: bool,
    /// The snapshot of each lake at which it reads.
    pub pins: std::collections::BTreeMap<LakeName, SnapshotId>,
}

/// Finds what the attempt takes; returns how it ended when there is nothing.
pub fn begin(attempt: &mut Attempt<'_>, slot: &mut Slot) -> Result<Option<Ended>, StepFailure> {
    if attempt.script.increment_column().is_none() {
        return Ok(None);
    }
    slot.attach_for_writing(attempt.lake)?;
    let source = Source {
        ctx: attempt.ctx,
        script: attempt.script,
        asset: attempt.asset,
        full_refresh: attempt.job.step.full_refresh,
        pins: attempt.pins.clone(),
    };
    let open = attempt.phase("pin", |_| open_increment(&source, slot))?;
    for note in &open.notes {
        attempt.warn(note.clone());
    }
    let ended = match (open.is_empty, open.follows) {
        (true, Some(snapshot)) => {
            let memory = attempt.ctx.memory_of(attempt.asset);
            let entry = StampEntry { rows: memory.rows.get("").copied().flatten(), ..attempt.entry() };
            Some(Ended::Unchanged(Box::new(Confirmed { snapshot, entry })))
        }
        _ => None,
    };
    attempt.ctx.take_increment(&attempt.job.id, open);
    Ok(ended)
}

/// Returns the next increment of a script.
pub fn open_increment(source: &Source<'_>, slot: &mut Slot) -> Result<OpenIncrement, StepFailure> {
    let last = last_consumed(source, slot)?;
    let table = find_table(source, slot)?;
    let session = slot.session()?;
    let column = Column::of(source, table, &session)?;
    if let Some(last) = &last {
        column.check_type(source, last)?;
    }
    let seen = column.bounds(&session, last.as_ref())?;
    let late = match last.as_ref().and_then(|last| Some((last, last.value()?))) {
        Some((last, value)) => column.late(slot, last, value)?,
        None => Late { nulls: seen.nulls, ..Late::default() },
    };
    column.open(source, &session, last.as_ref(), &seen, &late)
}

/// The newest version of the target, and what it consumed.
struct Last {
    snapshot: SnapshotId,
    increment: Increment,
    /// The snapshots at which it read.
    inputs: std::collections::BTreeMap<LakeName, SnapshotId>,
}

impl Last {
    /// Returns the greatest consumed value.
    fn value(&self) -> Option<&str> {
        self.increment.upto.as_deref()
    }
}

/// Returns what was consumed; `None` when nothing was, or all is taken anew.
fn last_consumed(source: &Source<'_>, slot: &mut Slot) -> Result<Option<Last>, StepFailure> {
    let Asset::Lake { lake, schema, table } = source.asset else { return Ok(None) };
    let Some(location) = source.ctx.lakes.get(lake) else { return Ok(None) };
    if !location.exists()? {
        return Ok(None);
    }
    if source.full_refresh {
        return Ok(None);
    }
    slot.attach_existing(location)?;
    let session = slot.session()?;
    let alias = location.write_alias();
    if lake::table_facts(&session, &alias, schema, table)?.is_none() {
        return Ok(None);
    }
    let asset = source.asset.to_string();
    let mut was_written = source.ctx.memory_of(source.asset).has_version;
    for (snapshot, text) in lake::newest_stamps(&session, &alias, &asset)? {
        let entries = from_extra_info(&text).ok().flatten().unwrap_or_default();
        for entry in entries.into_iter().rev().filter(|entry| entry.asset == asset) {
            was_written |= entry.strategy == "adopt";
            if !entry.is_version() {
                continue;
            }
            return match entry.increment {
                Some(increment) if Some(increment.column.as_str()) == source.script.increment_column() => {
                    Ok(Some(Last { snapshot, increment, inputs: entry.inputs }))
                }
                _ => Err(unknown(source, "its newest version was not written by increments of this column")),
            };
        }
    }
    match was_written {
        true => Err(unknown(source, "no stamp says it")),
        false => Ok(None),
    }
}

/// Nothing is written when it is not known where to begin: from the start would double every row.
fn unknown(source: &Source<'_>, why: &str) -> StepFailure {
    let message = format!("what {} has consumed is not known: {why}", source.asset);
    StepFailure::user(Code::CONSUMED_UNKNOWN, "find the increment", message)
        .with_help(format!("write it anew: `pintail run --select {} --full-refresh`", source.script.name()))
        .at(line_of(source))
}

fn line_of(source: &Source<'_>) -> Option<pintail_core::source::Span> {
    source.script.header.partitioned.as_ref().map(|line| line.span)
}

/// The table that has the column.
struct Table<'a> {
    asset: Asset,
    location: &'a LakeLocation,
    relation: Relation,
    pin: SnapshotId,
    data_type: String,
    name: String,
}

/// Returns the one table among what the script reads that has the column, `on` lines first.
fn find_table<'a>(source: &Source<'a>, slot: &mut Slot) -> Result<Table<'a>, StepFailure> {
    let column = source.script.increment_column().unwrap_or_default();
    let reads = source.script.reads();
    let on: BTreeSet<&Asset> = source
        .script
        .header
        .triggers
        .iter()
        .filter_map(|trigger| match &trigger.value {
            Trigger::Asset { asset, .. } => Some(asset),
            _ => None,
        })
        .filter(|asset| reads.contains(asset))
        .collect();
    for candidates in [on, reads] {
        let mut found: Vec<Table<'_>> = Vec::new();
        for asset in candidates.into_iter().filter(|asset| *asset != source.asset) {
            found.extend(table_with(source, slot, asset, column)?);
        }
        if found.len() == 1 {
            return Ok(found.remove(0));
        }
        if 1 < found.len() {
            let names: Vec<String> = found.iter().map(|table| table.asset.to_string()).collect();
            let message = format!("several of what it reads have a column `{column}`: {}", names.join(", "));
            return Err(StepFailure::user(Code::INCREMENT_SOURCE, "find the increment", message)
                .with_help(format!("say which one the increments go by: `-- on {}`", names[0]))
                .at(line_of(source)));
        }
    }
    let message = format!("nothing that it reads has a column `{column}`, which `key=` names");
    Err(StepFailure::user(Code::INCREMENT_SOURCE, "find the increment", message)
        .with_help("`key=` names a column of a lake table that the query reads, not of the query's result")
        .at(line_of(source)))
}

fn table_with<'a>(
    source: &Source<'a>,
    slot: &mut Slot,
    asset: &Asset,
    column: &str,
) -> Result<Option<Table<'a>>, StepFailure> {
    let Asset::Lake { lake, schema, table } = asset else { return Ok(None) };
    let Some(location) = source.ctx.lakes.get(lake) else { return Ok(None) };
    if !location.exists()? {
        return Ok(None);
    }
    let pin = match source.pins.get(lake) {
        Some(pin) => *pin,
        None => {
            slot.attach_existing(location)?;
            lake::head(&slot.session()?, &location.write_alias())?
        }
    };
    slot.attach_pinned(location, pin)?;
    let relation = Relation::in_catalog(&location.sql_name(), schema, table);
    let columns = slot.session()?.describe(&relation.to_string());
    let Ok(columns) = columns else { return Ok(None) };
    let found = columns.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
    Ok(found.map(|(name, data_type)| Table { asset: asset.clone(), location, relation, pin, data_type, name }))
}

/// The column that increments go by.
struct Column<'a> {
    table: Table<'a>,
    kind: KeyKind,
    /// The greatest time that is taken, as a literal; `None` for what has no time.
    limit: Option<String>,
}

/// What lies after the last consumed value.
struct Bounds {
    upto: Option<String>,
    /// What `$partition_start` is when there is no last value.
    floor: Option<String>,
    nulls: u64,
    ahead: u64,
    first_ahead: Option<String>,
    first_ahead_micros: Option<i64>,
}

/// What came since the last increment and is not after it.
#[derive(Default)]
struct Late {
    rows: u64,
    first: Option<String>,
    nulls: u64,
    /// Why it cannot be told whether rows came late.
    untold: Option<String>,
}

impl<'a> Column<'a> {
    fn of(source: &Source<'_>, table: Table<'a>, session: &Session) -> Result<Self, StepFailure> {
        let Some(kind) = KeyKind::of(&table.data_type) else {
            let message = format!("increments cannot go by `{}`, which is {}", table.name, table.data_type);
            return Err(StepFailure::user(Code::INCREMENT_SOURCE, "find the increment", message)
                .with_help("use a timestamp, a DATE, a whole or decimal number, or a VARCHAR that grows")
                .at(line_of(source)));
        };
        let limit = match kind.is_time() {
            true => {
                let tolerance = source.script.dynamic_spec().map_or(Duration::ZERO, |spec| spec.tolerance());
                let limit = (source.ctx.now)() + chrono::TimeDelta::from_std(tolerance).unwrap_or_default();
                let text = limit.format("%Y-%m-%d %H:%M:%S%.6f");
                let instant = format!("TIMESTAMPTZ '{text}+00'");
                let sql = format!("SELECT CAST(CAST({instant} AS {}) AS VARCHAR)", table.data_type);
                Some(typed(&session.one("read the clock", &sql, |row| row.get::<_, String>(0))?, &table.data_type))
            }
            false => None,
        };
        Ok(Self { table, kind, limit })
    }

    /// A value of another kind cannot be compared with what was consumed.
    fn check_type(&self, source: &Source<'_>, last: &Last) -> Result<(), StepFailure> {
        if KeyKind::of(&last.increment.data_type) == Some(self.kind) {
            return Ok(());
        }
        let why = format!("`{}` was {} and is {} now", self.table.name, last.increment.data_type, self.table.data_type);
        Err(unknown(source, &why))
    }

    fn bounds(&self, session: &Session, last: Option<&Last>) -> Result<Bounds, StepFailure> {
        let key = Ident::new(&self.table.name);
        let (within, beyond) = match &self.limit {
            Some(limit) => (format!("k <= {limit}"), format!("k > {limit}")),
            None => ("true".to_owned(), "false".to_owned()),
        };
        let condition = match last.and_then(Last::value) {
            Some(value) => format!("WHERE {key} > {}", typed(value, &self.table.data_type)),
            None => String::new(),
        };
        let floor = match self.kind {
            KeyKind::Instant | KeyKind::Timestamp | KeyKind::Date => "'-infinity'".to_owned(),
            KeyKind::Number => format!("CAST(TRY_CAST(TRY(low - 1) AS {}) AS VARCHAR)", self.table.data_type),
            KeyKind::Text => "CASE WHEN low > '' THEN '' END".to_owned(),
        };
        let micros = match self.kind.is_time() {
            true => format!("epoch_us(CAST(min(k) FILTER (WHERE {beyond} AND isfinite(k)) AS TIMESTAMPTZ))"),
            false => "CAST(NULL AS BIGINT)".to_owned(),
        };
        let sql = format!(
            "SELECT upto, {floor}, nulls, ahead, first_ahead, ahead_micros
             FROM (SELECT CAST(max(k) FILTER (WHERE {within}) AS VARCHAR) AS upto,
                          min(k) AS low,
                          count(*) FILTER (WHERE k IS NULL) AS nulls,
                          count(*) FILTER (WHERE {beyond}) AS ahead,
                          CAST(min(k) FILTER (WHERE {beyond}) AS VARCHAR) AS first_ahead,
                          {micros} AS ahead_micros
                   FROM (SELECT {key} AS k FROM {relation} {condition}))",
            relation = self.table.relation,
        );
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(session.one("find what is new", &sql, |row| {
            Ok(Bounds {
                upto: row.get(0)?,
                floor: row.get(1)?,
                nulls: count(row.get(2)?),
                ahead: count(row.get(3)?),
                first_ahead: row.get(4)?,
                first_ahead_micros: row.get(5)?,
            })
        })?)
    }

    /// Returns the rows at or before the last consumed value that came after it was consumed, from the change feed.
    fn late(&self, slot: &mut Slot, last: &Last, value: &str) -> Result<Late, StepFailure> {
        let untold = |why: String| Ok(Late { untold: Some(why), ..Late::default() });
        let Some(before) = last.inputs.get(&self.table.location.name).copied() else {
            return untold(format!("the last increment did not read the lake of {}", self.table.asset));
        };
        if self.table.pin <= before {
            return Ok(Late::default());
        }
        slot.attach_existing(self.table.location)?;
        let session = slot.session()?;
        let alias = self.table.location.write_alias();
        let Some(live) = self.live(&session, &alias)? else { return Ok(Late::default()) };
        let commits = lake::commits_between(&session, &alias, before, Some(self.table.pin))?;
        if self.is_view(&session, &alias)? {
            return untold(format!("{} is a view", self.table.asset));
        }
        if i64::try_from(commits.len()).is_ok_and(|found| found < self.table.pin.0 - before.0) {
            return untold("snapshots since the last increment have expired".to_owned());
        }
        let commits: Vec<SnapshotId> = commits
            .iter()
            .filter(|commit| commit.changes.changes_rows(live.id) || commit.changes.creates(&live.schema, &live.name))
            .map(|commit| commit.snapshot)
            .filter(|snapshot| live.since <= *snapshot)
            .collect();
        let feed = Feed { alias: &alias, table: &live, commits: &commits };
        let Some(relation) = feed.relation() else { return Ok(Late::default()) };
        let upto = typed(value, &self.table.data_type);
        let key = Ident::new(&self.table.name);
        let sql = format!(
            "SELECT count(*) FILTER (WHERE k <= {upto}), CAST(min(k) FILTER (WHERE k <= {upto}) AS VARCHAR),
                    count(*) FILTER (WHERE k IS NULL)
             FROM (SELECT {key} AS k FROM {relation}
                   WHERE change_type IN ('insert', 'update_postimage') AND {condition})",
            condition = feed.condition(),
        );
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Ok(session.one("look for late rows", &sql, |row| {
            Ok(Late { rows: count(row.get(0)?), first: row.get(1)?, nulls: count(row.get(2)?), untold: None })
        })?)
    }

    fn live(&self, session: &Session, alias: &str) -> Result<Option<LiveTable>, StepFailure> {
        let lake_name = self.table.location.name.as_str();
        let tables = lake::live_tables(session, alias)?;
        Ok(tables.into_iter().find(|t| Asset::lake_table(lake_name, &t.schema, &t.name) == self.table.asset))
    }

    fn is_view(&self, session: &Session, alias: &str) -> Result<bool, StepFailure> {
        let Asset::Lake { schema, table, .. } = &self.table.asset else { return Ok(false) };
        Ok(lake::table_facts(session, alias, schema, table)?.is_some_and(|facts| facts.is_view))
    }

    fn open(
        &self,
        source: &Source<'_>,
        session: &Session,
        last: Option<&Last>,
        seen: &Bounds,
        late: &Late,
    ) -> Result<OpenIncrement, StepFailure> {
        let merges = matches!(source.script.strategy(), WriteStrategy::Merge { .. });
        let reaches_back = merges && 0 < late.rows;
        let after = match (last, &late.first) {
            (Some(_), Some(first)) if reaches_back => self.value_before(session, first)?,
            (Some(last), _) => last.increment.upto.clone(),
            (None, _) => None,
        };
        let upto = seen.upto.clone().or_else(|| last.and_then(|last| last.increment.upto.clone()));
        let is_empty = seen.upto.is_none() && !reaches_back;
        let increment = Increment {
            column: source.script.increment_column().unwrap_or_default().to_owned(),
            data_type: self.table.data_type.clone(),
            after: after.clone(),
            upto,
            waits_micros: seen.first_ahead_micros,
        };
        let start = match (&after, &seen.floor) {
            (Some(after), _) => increment.literal(after),
            (None, Some(floor)) if !reaches_back => increment.literal(floor),
            (None, _) if self.kind.is_time() => increment.literal("-infinity"),
            (None, _) => format!("CAST(NULL AS {})", increment.data_type),
        };
        let notes = self.notes(last, seen, late, reaches_back);
        Ok(OpenIncrement { increment, start, notes, follows: last.map(|last| last.snapshot), is_empty })
    }

    /// Returns the greatest value below `first`, after which an increment that includes it begins.
    fn value_before(&self, session: &Session, first: &str) -> Result<Option<String>, StepFailure> {
        let key = Ident::new(&self.table.name);
        let sql = format!(
            "SELECT CAST(max({key}) AS VARCHAR) FROM {} WHERE {key} < {}",
            self.table.relation,
            typed(first, &self.table.data_type)
        );
        Ok(session.one("find where the late rows begin", &sql, |row| row.get(0))?)
    }

    fn notes(&self, last: Option<&Last>, seen: &Bounds, late: &Late, reaches_back: bool) -> Vec<String> {
        let (asset, name) = (&self.table.asset, &self.table.name);
        let mut notes = Vec::new();
        if let (Some(value), Some(first)) = (last.and_then(Last::value), &late.first) {
            let came = format!(
                "{} of {asset} came late: at or before {value}, which was consumed already, the first at {first}",
                rows(late.rows),
            );
            notes.push(match reaches_back {
                true => format!("{came}; this increment reaches back to them"),
                false => format!(
                    "{came}; they are not written: give the script a key (`key=`), which takes late rows in, or write it \
                     anew with `--full-refresh`"
                ),
            });
        }
        if 0 < late.nulls {
            notes.push(format!("{} of {asset} with NULL in `{name}` belong to no increment", rows(late.nulls)));
        }
        if let Some(first) = &seen.first_ahead {
            notes.push(format!(
                "{} of {asset} lie too far ahead of now, the first at {first}; they wait until their time has come \
                 (`tolerance=`)",
                rows(seen.ahead)
            ));
        }
        if let Some(why) = &late.untold {
            notes.push(format!("it cannot be told whether rows came late: {why}"));
        }
        notes
    }
}

fn rows(count: u64) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}
