//! The Postgres transaction of a write: lock, check, shape, delete, insert, tests, stamp, COMMIT and look-up.

use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::{SnapshotId, TableId};
use pintail_core::schema::Schema;
use pintail_core::sql::changes::ChangeSet;
use pintail_core::sql::stamp::StampEntry;
use pintail_core::sql::strategy::Slice;
use pintail_core::sql::{Ident, Relation};
use pintail_core::write::{Check, CheckFacts, ErrorClass, SeenCommit, check};
use pintail_engine::fault::FaultPoint;
use sqlx::Row as _;
use sqlx::postgres::PgArguments;

use super::connection::Postgres;
use super::failure::{failure, is_lost};
use super::home::{Stamp, Values};
use super::shape::{Described, Incoming, ShapeFacts, Write, describe, shape};
use crate::executors::StepFailure;
use crate::executors::outside::{Attempt, Ended, Landed};

/// The number that stands for the target in a check: a datatable's stamps are asked for one asset only.
const TARGET: TableId = TableId(1);

/// What is about to be written, with the stage in the open transaction.
pub struct Pending<'a> {
    /// The newest version when the query was run.
    pub base: SnapshotId,
    /// The columns.
    pub incoming: &'a [Incoming],
    /// The rows of the partition.
    pub slice: Option<&'a Slice>,
    /// Rows in the stage.
    pub rows: u64,
}

/// What a write did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Rows deleted.
    pub deleted: u64,
    /// Rows inserted.
    pub inserted: u64,
}

/// Returns the datatable, schema and table of the attempt's target.
pub fn target_of<'a>(attempt: &Attempt<'a>) -> Result<(&'a str, &'a str, &'a str), StepFailure> {
    match attempt.asset {
        Asset::Datatable { database, schema, table } => Ok((database, schema, table)),
        other => Err(StepFailure::user(Code::ENGINE_ERROR, "find the target", format!("{other} is no datatable"))),
    }
}

/// Waits until nobody else writes the target; the wait can be stopped.
pub fn lock(attempt: &Attempt<'_>, postgres: &mut Postgres) -> Result<(), StepFailure> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(2);
    while !postgres.try_lock(&attempt.asset.to_string())? {
        attempt.go_on("wait for another writer")?;
        if attempt.ctx.faults.patience() <= started.elapsed() {
            let message =
                format!("another run has been writing {} for {} s", attempt.asset, started.elapsed().as_secs());
            return Err(StepFailure::user(Code::LEASE_HELD, "lock the target", message)
                .with_help("wait until that run has ended, or stop that process"));
        }
        attempt.ctx.pause(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Ok(())
}

/// Reads what was written since the write was prepared, and ends the attempt when there is no point in going on.
pub fn check_stamps(
    attempt: &Attempt<'_>,
    postgres: &mut Postgres,
    base: SnapshotId,
) -> Result<Option<Ended>, StepFailure> {
    let planned = attempt.job.pins.get(&attempt.place).copied().unwrap_or(SnapshotId(0));
    let asset = attempt.asset.to_string();
    let stamps = postgres.stamps_after(planned.min(base), Some(&asset))?;
    let commits: Vec<SeenCommit> = stamps.iter().map(seen).collect();
    let (_, schema, table) = target_of(attempt)?;
    let facts = CheckFacts {
        attempt: &attempt.id,
        step: &attempt.job.id,
        asset: &asset,
        partition: attempt.partition(),
        table_id: Some(TARGET),
        schema,
        table,
        reads_target: attempt.script.reads_target(),
        base,
    };
    match check(&facts, &commits) {
        Check::Clear => Ok(None),
        Check::Done { snapshot } => {
            let stamp = stamps.into_iter().find(|stamp| stamp.version == snapshot);
            let entry = stamp.map_or_else(|| attempt.entry(), |stamp| stamp.entry);
            Ok(Some(Ended::Landed(Box::new(Landed { version: snapshot, entry, schema: None }))))
        }
        Check::Superseded { snapshot, run } => Ok(Some(Ended::Superseded { version: snapshot, run })),
        Check::Conflict { by, .. } => {
            let message = format!("{by} changed {} meanwhile", attempt.asset);
            let failure = StepFailure::user(Code::CONFLICT, "check the target", message);
            Err(StepFailure { class: ErrorClass::Conflict, ..failure })
        }
    }
}

fn seen(stamp: &Stamp) -> SeenCommit {
    SeenCommit {
        snapshot: stamp.version,
        changes: ChangeSet::parse(&format!("inserted_into_table:{}", TARGET.0)),
        stamps: vec![stamp.entry.clone()],
        author: None,
    }
}

/// Writes the stage of the open transaction and commits.
pub fn write(
    attempt: &mut Attempt<'_>,
    postgres: &mut Postgres,
    pending: &Pending<'_>,
    test: impl FnOnce(&mut Attempt<'_>, &mut Postgres, &Relation, &Schema) -> Result<(), StepFailure>,
) -> Result<Ended, StepFailure> {
    lock(attempt, postgres)?;
    if let Some(ended) = check_stamps(attempt, postgres, pending.base)? {
        postgres.roll_back();
        return Ok(ended);
    }
    attempt.reach(FaultPoint::Checked);
    let (_, schema_name, table_name) = target_of(attempt)?;
    let described = describe(postgres, schema_name, table_name)?;
    let asset = attempt.asset.to_string();
    let last = postgres.last_stamp(&asset, None)?;
    refuse_foreign(attempt, described.as_ref(), last.is_some())?;
    let relation = match &described {
        Some(described) => described.relation.clone(),
        None => Relation { catalog: None, schema: Some(Ident::new(schema_name)), table: Ident::new(table_name) },
    };
    if described.is_some() && pending.rows == 0 {
        let has_rows = has_rows(postgres, &relation, pending.slice)?;
        attempt.guard_empty(pending.rows, has_rows)?;
    }
    let strategy = attempt.strategy();
    let shaped = shape(&ShapeFacts {
        incoming: pending.incoming,
        table: described.as_ref(),
        target: relation.clone(),
        schema_exists: described.is_some() || schema_exists(postgres, schema_name)?,
        strategy: &strategy,
        policy: attempt.script.header.on_schema_change,
        slice: pending.slice,
        layout: &attempt.script.layout_words(),
    })?;
    for note in &shaped.notes {
        if !attempt.notes.contains(note) {
            attempt.notes.push(note.clone());
        }
    }
    let counts = send(postgres, &shaped)?;
    attempt.reach(FaultPoint::Written);
    test(attempt, postgres, &relation, &shaped.schema)?;
    let partition = attempt.partition().map(ToString::to_string);
    let last_of_slice = postgres.last_stamp(&asset, Some(partition.as_deref()))?;
    let before = Before { existed: described.is_some(), last, last_of_slice };
    let entry = stamp(attempt, &shaped, &strategy, &before, counts);
    finish(attempt, postgres, entry, Some(shaped.schema))
}

/// Refuses a table that nobody of ours made: overwriting it would destroy somebody's work.
pub fn refuse_foreign(
    attempt: &Attempt<'_>,
    described: Option<&Described>,
    is_stamped: bool,
) -> Result<(), StepFailure> {
    let Some(described) = described else { return Ok(()) };
    let asset = attempt.asset;
    if described.table.is_no_table {
        let message = format!("{asset} is no plain table, and the script writes one");
        return Err(StepFailure::user(Code::TARGET_NOT_OURS, "check the target", message)
            .with_help("drop it by hand, or materialize under another name"));
    }
    if is_stamped {
        return Ok(());
    }
    let message = format!("{asset} exists, but Pintail has not made it");
    Err(StepFailure::user(Code::TARGET_NOT_OURS, "check the target", message)
        .with_help(format!("to let Pintail write it from now on: `pintail adopt {asset}`")))
}

fn schema_exists(postgres: &mut Postgres, schema: &str) -> Result<bool, StepFailure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)";
    let values = Values::default().with(schema.to_owned()).done();
    let found = postgres.rows("look for the schema", sql, values, |row| row.try_get::<bool, _>(0))?;
    Ok(found.first().copied().unwrap_or(false))
}

fn has_rows(postgres: &mut Postgres, relation: &Relation, slice: Option<&Slice>) -> Result<bool, StepFailure> {
    let condition = slice.map_or_else(String::new, |slice| format!(" WHERE {}", slice.predicate(None)));
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {relation}{condition})");
    let purpose = "see whether anything would be emptied";
    let found = postgres.rows(purpose, &sql, PgArguments::default(), |row| row.try_get::<bool, _>(0))?;
    Ok(found.first().copied().unwrap_or(false))
}

fn send(postgres: &mut Postgres, write: &Write) -> Result<Counts, StepFailure> {
    for statement in &write.shaping {
        postgres.run(statement)?;
    }
    let deleted = write.delete.as_ref().map_or(Ok(0), |statement| postgres.run(statement))?;
    let inserted = write.insert.as_ref().map_or(Ok(0), |statement| postgres.run(statement))?;
    Ok(Counts { deleted, inserted })
}

/// What was there before the write.
struct Before {
    existed: bool,
    last: Option<StampEntry>,
    last_of_slice: Option<StampEntry>,
}

fn stamp(
    attempt: &Attempt<'_>,
    write: &Write,
    strategy: &WriteStrategy,
    before: &Before,
    counts: Counts,
) -> StampEntry {
    let is_adopted = before.last.as_ref().is_some_and(|last| last.strategy == "adopt");
    let rows_before = match (before.existed, &before.last_of_slice) {
        (false, _) => Some(0),
        (true, Some(last)) => last.rows,
        // A slice of our own table that was never written is empty; what an adopted table holds nobody counted.
        (true, None) => (!is_adopted && !attempt.ctx.memory_of(attempt.asset).has_uncounted_rows).then_some(0),
    };
    let rows = match strategy {
        WriteStrategy::Replace => Some(counts.inserted),
        _ => rows_before.and_then(|rows| (rows + counts.inserted).checked_sub(counts.deleted)),
    };
    StampEntry {
        schema_version: before.last.as_ref().map_or(0, |last| last.schema_version) + u32::from(write.schema_changes),
        deleted: counts.deleted,
        inserted: counts.inserted,
        rows,
        ..attempt.entry()
    }
}

/// Stamps, commits and proves.
pub fn finish(
    attempt: &Attempt<'_>,
    postgres: &mut Postgres,
    entry: StampEntry,
    schema: Option<Schema>,
) -> Result<Ended, StepFailure> {
    postgres.stamp(&entry)?;
    attempt.go_on("commit")?;
    attempt.reach(FaultPoint::Stamped);
    // From COMMIT to its look-up a wish to stop could only make the outcome unknown.
    attempt.ctx.cancel.shield(attempt.slot);
    let found = match postgres.try_batch("commit", "COMMIT") {
        Ok(()) => postgres.find(&attempt.id)?,
        Err(error) if is_lost(&error) => look_up_anew(attempt)?,
        Err(error) => return Err(failure("commit", &error, &postgres.redactor)),
    };
    let Some(stamp) = found else {
        let message = "the commit did not take place; nothing was written";
        let failed = StepFailure::user(Code::TRANSIENT_ERROR, "commit", message);
        return Err(StepFailure { class: ErrorClass::Transient, ..failed });
    };
    attempt.reach(FaultPoint::Committed);
    Ok(Ended::Landed(Box::new(Landed { version: stamp.version, entry: stamp.entry, schema })))
}

/// Settles a COMMIT whose answer was lost. The server may still be at it: who has the target's lock sees the end of it.
fn look_up_anew(attempt: &Attempt<'_>) -> Result<Option<Stamp>, StepFailure> {
    let (database, ..) = target_of(attempt)?;
    let mut postgres = Postgres::of_run(attempt.ctx, database)?;
    postgres.batch("begin the look-up", "BEGIN")?;
    lock(attempt, &mut postgres)?;
    let found = postgres.find(&attempt.id);
    postgres.roll_back();
    found
}
