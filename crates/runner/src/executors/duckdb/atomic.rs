//! An atomic run: all steps in one transaction, so that readers see the new state of the whole pipeline or none of it,
//! and the tests of every step gate all of it.
//!
//! The lake is attached for writing under the name that scripts use, so later steps read what earlier ones wrote. The
//! lane is held from BEGIN to the look-up. A conflict repeats the whole run; anything else rolls all of it back.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::partition::PartitionKey;
use pintail_core::schema::Schema;
use pintail_core::sql::Statement;
use pintail_core::sql::stamp::{StampEntry, group_message, to_extra_info};
use pintail_core::write::{ErrorClass, SeenCommit};
use pintail_engine::fault::FaultPoint;
use pintail_engine::lake::TableFacts;
use pintail_engine::transaction::CommitWords;
use pintail_engine::{Session, WriteTransaction};

use super::attempt::{Attempt, Ended, Landed};
use super::commit::{self, Applied};
use super::execute::unbegun;
use super::group::Common;
use super::staging::{self, Bench};
use super::view;
use crate::executors::{AssetMemory, RunContext, Slot, StepFailure, StepJob, StepOutcome, StepReport};

/// How often the whole run is tried before its conflict is told.
const MAX_TRIES: u32 = 3;

/// Does `jobs`, the steps of a whole run in order, in one transaction, and hands the report of each that was begun to
/// `done`.
pub fn execute_atomic(
    ctx: &RunContext,
    slot: &mut Slot,
    jobs: &[StepJob],
    report_phase: &dyn Fn(usize, &'static str),
    done: &mut dyn FnMut(StepReport),
) {
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    for job in jobs {
        match Attempt::first(ctx, job, slot.number, report_phase) {
            Ok(attempt) => attempts.push(attempt),
            Err(failure) => return done(unbegun(job, failure)),
        }
    }
    let mut tries = 0;
    loop {
        tries += 1;
        let remembered = memory_of(ctx, jobs);
        let broken = match try_all(slot, jobs, &mut attempts) {
            Ok(ended) => {
                for (mut attempt, ended) in attempts.into_iter().zip(ended) {
                    let outcome = attempt.remember(Ok(ended), true);
                    attempt.lease = None;
                    done(attempt.into_report(outcome));
                }
                return;
            }
            Err(broken) => broken,
        };
        restore_memory(ctx, remembered);
        let class = broken.failure.class;
        let is_worth_it = matches!(class, ErrorClass::Conflict | ErrorClass::Transient) && tries < MAX_TRIES;
        if !is_worth_it || ctx.cancel.is_set() {
            return tell_broken(attempts, broken, done);
        }
        attempts = begin_again(attempts, &broken);
        let is_lost = class == ErrorClass::Transient && attempts.iter().any(|attempt| !attempt.lake.needs_keeper());
        if is_lost {
            // The instance's connections to the server are broken, and a server that restarts is away for seconds.
            slot.discard();
        }
        ctx.pause(Duration::from_millis(if is_lost { 1_000 << tries } else { 20 * u64::from(tries) }));
    }
}

/// What ended a try: the step that failed, and why.
struct Broken {
    /// Its place among the steps of the run.
    at: usize,
    failure: StepFailure,
}

fn memory_of(ctx: &RunContext, jobs: &[StepJob]) -> HashMap<Asset, AssetMemory> {
    jobs.iter().filter_map(|job| job.step.asset.clone()).map(|asset| (asset.clone(), ctx.memory_of(&asset))).collect()
}

/// What was remembered inside the transaction is gone with it.
fn restore_memory(ctx: &RunContext, remembered: HashMap<Asset, AssetMemory>) {
    for (asset, before) in remembered {
        ctx.remember(&asset, |memory| *memory = before);
    }
}

/// Remembers what became of the attempts of a run that is given up: one failed, those before it were rolled back.
fn tell_broken(attempts: Vec<Attempt<'_>>, broken: Broken, done: &mut dyn FnMut(StepReport)) {
    let because = attempts[broken.at].job.step.name.clone();
    let is_stopped = broken.failure.class == ErrorClass::Cancelled;
    for (index, mut attempt) in attempts.into_iter().enumerate().take(broken.at + 1) {
        let failure = match index == broken.at {
            true => StepFailure { committed: "nothing of this run is committed".to_owned(), ..broken.failure.clone() },
            false => StepFailure {
                class: ErrorClass::Cancelled,
                ..StepFailure::user(Code::ENGINE_ERROR, "commit", format!("rolled back with {because}"))
            },
        };
        let failure = attempt.with_timeout(failure);
        let outcome = attempt.remember(Err(failure), true);
        attempt.lease = None;
        let outcome = match index == broken.at || is_stopped {
            true => outcome,
            false => StepOutcome::RolledBack { because: because.clone() },
        };
        done(attempt.into_report(outcome));
    }
}

/// Ends the attempts of a failed try and returns the next ones.
fn begin_again<'a>(attempts: Vec<Attempt<'a>>, broken: &Broken) -> Vec<Attempt<'a>> {
    attempts
        .into_iter()
        .enumerate()
        .map(|(index, mut attempt)| {
            if index <= broken.at {
                attempt.remember(Err(broken.failure.clone()), false);
            }
            attempt.lease = None;
            let mut next = attempt.next();
            next.notes.push(format!("{}; the whole run was repeated", broken.failure.message));
            next
        })
        .collect()
}

/// Tries the run once and returns how each step ended.
fn try_all(slot: &mut Slot, jobs: &[StepJob], attempts: &mut [Attempt<'_>]) -> Result<Vec<Ended>, Broken> {
    let at_first = |failure: StepFailure| Broken { at: 0, failure };
    let Some(first) = attempts.first_mut() else { return Ok(Vec::new()) };
    let (ctx, lake) = (first.ctx, first.lake);
    first.record_beginning().map_err(at_first)?;
    take_leases(attempts).map_err(at_first)?;
    let mut common = Common::of(ctx, jobs);
    common.lakes.remove(&lake.name);
    let mut bench = Bench::open(&mut attempts[0], slot, &common.lakes).map_err(at_first)?;
    slot.attach_for_script(lake).map_err(|error| at_first(error.into()))?;
    let outcome = in_transaction(&mut bench, attempts, &common.new_targets);
    drop(bench);
    if slot.detach_from_script(lake).is_err() {
        // A lake that stays attached for writing would let the next script see past its pin.
        slot.discard();
    }
    outcome
}

/// Takes the leases of all steps in the order of their assets, so that two atomic runs never wait for each other; one for
/// the whole asset where a step needs that, since a second one would wait for the first.
fn take_leases(attempts: &mut [Attempt<'_>]) -> Result<(), StepFailure> {
    let mut order: Vec<(String, Option<PartitionKey>, usize)> = attempts
        .iter()
        .enumerate()
        .map(|(index, attempt)| {
            let key = attempt.lease_key();
            (key.asset, key.partition, index)
        })
        .collect();
    // The whole asset sorts before its slices.
    order.sort();
    let mut taken_whole: Option<String> = None;
    for (asset, partition, index) in order {
        if taken_whole.as_ref() == Some(&asset) {
            continue;
        }
        attempts[index].take_lease()?;
        if partition.is_none() {
            taken_whole = Some(asset);
        }
    }
    Ok(())
}

fn in_transaction(
    bench: &mut Bench,
    attempts: &mut [Attempt<'_>],
    new_targets: &[(&str, &str)],
) -> Result<Vec<Ended>, Broken> {
    let at_first = |failure: StepFailure| Broken { at: 0, failure };
    let shared = bench.shared_session();
    let session = &*shared;
    let (lake, alias) = (attempts[0].lake, attempts[0].lake.sql_name());
    let lane = lake.lane();
    let _pass = attempts[0].enter(&lane).map_err(at_first)?;
    let transaction = WriteTransaction::begin(session, &alias).map_err(|error| at_first(error.into()))?;
    if let Some(ended) = landed_before(&transaction, attempts).map_err(at_first)? {
        return Ok(ended);
    }
    bench.find_absent(&alias, new_targets).map_err(at_first)?;
    let mut written: Vec<Written> = Vec::new();
    for (at, attempt) in attempts.iter_mut().enumerate() {
        attempt.alias.clone_from(&alias);
        let outcome = write_one(attempt, bench, &transaction, at == 0);
        attempt.sent.extend(session.take_sent());
        written.push(outcome.map_err(|failure| Broken { at, failure })?);
    }
    commit_all(session, transaction, attempts, written)
}

/// What a step has written, or how it ended without a write.
type Written = Result<(StampEntry, Schema), Ended>;

/// Stages, writes and tests one step inside the transaction.
fn write_one(
    attempt: &mut Attempt<'_>,
    bench: &Bench,
    transaction: &WriteTransaction<'_>,
    is_recorded: bool,
) -> Result<Written, StepFailure> {
    attempt.started = Instant::now();
    attempt.begun = attempt.started;
    if !is_recorded {
        attempt.record_beginning()?;
    }
    attempt.go_on("stage the query")?;
    attempt.reach(FaultPoint::Leased);
    if let Some(ended) = appended_by_another(transaction, attempt)? {
        return Ok(Err(ended));
    }
    attempt.stages_inside = true;
    let base = transaction.snapshot();
    attempt.is_absent = bench.lacks(attempt);
    attempt.pins.insert(attempt.lake.name.clone(), base);
    let applied = match attempt.strategy() {
        WriteStrategy::View => attempt.phase("commit", |attempt| {
            let facts = view::view_facts(attempt, bench.session(), base)?;
            view::apply(attempt, bench.session(), transaction, base, facts.as_ref())
        })?,
        _ => write_staged(attempt, bench, transaction, base)?,
    };
    match applied {
        Applied::Written(entry, schema) => {
            let entry = StampEntry { atomic: true, ..*entry };
            attempt.ctx.remember(attempt.asset, |memory| memory.take_in(&entry));
            Ok(Ok((entry, schema)))
        }
        Applied::Ended(_) => unreachable!("a step that stages inside the transaction has nothing to be compared with"),
    }
}

fn write_staged(
    attempt: &mut Attempt<'_>,
    bench: &Bench,
    transaction: &WriteTransaction<'_>,
    base: SnapshotId,
) -> Result<Applied, StepFailure> {
    let session = bench.session();
    let is_first_read = attempt.script.reads_target() && attempt.target_table(session, base)?.is_none();
    if is_first_read {
        staging::create_schema_if_missing(session, attempt, transaction)?;
        for statement in staging::declared_table(attempt, session)? {
            transaction.run(&statement)?;
        }
    }
    let mut staged = bench.stage(attempt);
    attempt.phase("stage", |attempt| staging::fill(attempt, &mut staged))?;
    if is_first_read {
        // It was there to be read; the write makes it in the query's own shape.
        transaction.run(&Statement::new("drop the empty table", format!("DROP TABLE {}", attempt.target())))?;
    }
    attempt.reach(FaultPoint::Staged);
    let prepared = commit::prepare(attempt, &mut staged)?;
    let applied = attempt.phase("commit", |attempt| commit::apply(attempt, session, transaction, &prepared))?;
    // The catalog tells of the table only after COMMIT; the next slice needs it now.
    let id = prepared.facts.as_ref().filter(|_| !prepared.shape.is_new_generation).map(|facts| facts.id);
    let facts = TableFacts {
        id: id.unwrap_or(TableFacts::UNCOMMITTED),
        is_view: false,
        schema: prepared.shape.schema.clone(),
        partition: prepared.shape.partition.clone(),
    };
    attempt.ctx.remember(attempt.asset, |memory| memory.table = Some((facts, base)));
    Ok(applied)
}

fn commit_all(
    session: &Session,
    transaction: WriteTransaction<'_>,
    attempts: &mut [Attempt<'_>],
    written: Vec<Written>,
) -> Result<Vec<Ended>, Broken> {
    let last = attempts.len() - 1;
    let at_last = |failure: StepFailure| Broken { at: last, failure };
    let started = Instant::now();
    let leader = &attempts[0];
    leader.go_on("commit").map_err(at_last)?;
    let entries: Vec<StampEntry> = written.iter().flatten().map(|(entry, _)| entry.clone()).collect();
    if entries.is_empty() {
        transaction.roll_back();
        return Ok(written.into_iter().filter_map(Result::err).collect());
    }
    let (message, extra_info) = (group_message(&entries), to_extra_info(&entries));
    let words = CommitWords { attempt: &entries[0].attempt, message: &message, extra_info: &extra_info };
    let committed = transaction.commit(&words, || {
        leader.reach(FaultPoint::Stamped);
        leader.ctx.cancel.shield(leader.slot);
    });
    let snapshot = committed.map_err(|error| at_last(error.into()))?;
    leader.reach(FaultPoint::Committed);
    attempts[last].sent.extend(session.take_sent());
    attempts[last].add_time("commit", started.elapsed());
    let ended = attempts.iter().zip(written).map(|(attempt, written)| {
        let (mut entry, schema) = match written {
            Ok(written) => written,
            Err(ended) => return ended,
        };
        entry.settle_inputs(&attempt.lake.name, snapshot);
        attempt.ctx.remember(attempt.asset, |memory| memory.table = None);
        Ended::Landed(Box::new(Landed { snapshot, entry, schema: Some(schema) }))
    });
    Ok(ended.collect())
}

/// Returns how each step ended when an earlier try has committed although its outcome was never read. A step without an
/// entry in that commit had been superseded before it.
fn landed_before(
    transaction: &WriteTransaction<'_>,
    attempts: &[Attempt<'_>],
) -> Result<Option<Vec<Ended>>, StepFailure> {
    let first = &attempts[0];
    let planned = first.job.pins.get(&first.lake.name).copied().unwrap_or(SnapshotId(0));
    if first.number == 1 || transaction.snapshot() <= planned {
        return Ok(None);
    }
    for attempt in attempts {
        let commits = transaction.commits_since(planned, &attempt.concern(None))?;
        let own =
            commits.iter().map(commit::seen).find(|seen| seen.stamps.iter().any(|entry| entry.step == attempt.job.id));
        if let Some(own) = own {
            return attempts
                .iter()
                .map(|attempt| ended_before(transaction, attempt, &own))
                .collect::<Result<_, _>>()
                .map(Some);
        }
    }
    Ok(None)
}

fn ended_before(
    transaction: &WriteTransaction<'_>,
    attempt: &Attempt<'_>,
    own: &SeenCommit,
) -> Result<Ended, StepFailure> {
    if let Some(entry) = own.stamps.iter().find(|entry| entry.step == attempt.job.id) {
        let (snapshot, mut entry) = (own.snapshot, entry.clone());
        entry.settle_inputs(&attempt.lake.name, snapshot);
        return Ok(Ended::Landed(Box::new(Landed { snapshot, entry, schema: None })));
    }
    appended_by_another(transaction, attempt)?.ok_or_else(|| StepFailure {
        class: ErrorClass::Bug,
        ..StepFailure::user(
            Code::ENGINE_ERROR,
            "look the commit up",
            format!("snapshot {} is this run's, and says nothing of {}", own.snapshot, attempt.asset),
        )
    })
}

/// Returns how a step ended when another run has written, since this one was planned, the slice to which it would append:
/// that run has appended the same input. What is replaced or merged is read anew, so nothing else can be repeated.
fn appended_by_another(
    transaction: &WriteTransaction<'_>,
    attempt: &Attempt<'_>,
) -> Result<Option<Ended>, StepFailure> {
    if !matches!(attempt.strategy(), WriteStrategy::Append) || attempt.script.reads_target() {
        return Ok(None);
    }
    let found = commit::check_commits(attempt, transaction, transaction.snapshot(), None)?;
    Ok(found.filter(|ended| matches!(ended, Ended::Superseded { .. })))
}
