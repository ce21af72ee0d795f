//! Group commit: several ready steps of one lake with one pin, staged one after the other and committed together.
//!
//! On DuckLake a commit costs far more than a small write. Each member has its own lease, stage, check, tests and stamp
//! entry; only BEGIN, COMMIT and the look-up are shared. When a member fails inside the transaction, all is rolled back
//! and every member goes on by itself with the stage that it has: nobody fails because of a neighbour.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::schema::Schema;
use pintail_core::sql::stamp::{StampEntry, group_message, to_extra_info};
use pintail_core::write::ErrorClass;
use pintail_engine::fault::FaultPoint;
use pintail_engine::transaction::CommitWords;
use pintail_engine::{Session, WriteTransaction};

use super::attempt::{Attempt, Ended, Landed};
use super::commit::{self, Applied, Prepared};
use super::execute::{execute, settle, unbegun};
use super::staging::{self, Bench, Staged};
use super::text::uses_variables;
use crate::executors::{RunContext, Slot, StepFailure, StepJob, StepReport};
use crate::project::CompiledScript;

/// How many steps may share a commit.
const MAX_MEMBERS: usize = 32;

/// How large the stages of a group may be together, in bytes as far as they can be told.
const MAX_STAGED_BYTES: u64 = 64_000_000;

/// How long a group collects stages: what is staged does not wait for a slow neighbour.
const MAX_STAGING: Duration = Duration::from_secs(1);

/// Returns whether a step may share its commit: managed, no reader of its own target, and nothing that it leaves in a
/// session could be seen by a neighbour.
pub fn may_share(script: &CompiledScript) -> bool {
    let is_staged =
        matches!(script.strategy(), WriteStrategy::Replace | WriteStrategy::Merge { .. } | WriteStrategy::Append);
    let looks_around = ["getvariable", "current_setting"]
        .iter()
        .any(|name| script.text.body.functions.iter().any(|function| function.eq_ignore_ascii_case(name)));
    let stays_in_lakes =
        script.target.as_ref().is_some_and(|asset| asset.lake().is_some()) && script.datatables_read().is_empty();
    is_staged
        && stays_in_lakes
        && !looks_around
        && !script.reads_target()
        && script.increment_column().is_none()
        && script.header.stream.is_none()
        && script.setup_spans().next().is_none()
        && script.header.timeout.is_none()
}

/// One step of a group, staged and ready to be written.
struct Member<'a> {
    attempt: Attempt<'a>,
    staged: Staged,
    prepared: Prepared,
}

/// What concerns several steps in one session.
pub struct Common<'j> {
    /// The lakes that their scripts read.
    pub lakes: BTreeSet<LakeName>,
    /// Whether variables must be kept apart.
    pub uses_variables: bool,
    /// The targets that Pintail has not written: schemas and tables.
    pub new_targets: Vec<(&'j str, &'j str)>,
}

impl<'j> Common<'j> {
    /// Returns what concerns `jobs`.
    pub fn of(ctx: &RunContext, jobs: &'j [StepJob]) -> Self {
        let scripts = || jobs.iter().filter_map(|job| ctx.project.script(&job.step.name));
        let new_target = |job: &'j StepJob| match job.step.asset.as_ref() {
            Some(asset @ Asset::Lake { schema, table, .. }) if !ctx.memory_of(asset).is_ours => {
                Some((schema.as_str(), table.as_str()))
            }
            _ => None,
        };
        Self {
            lakes: scripts().flat_map(|script| script.lakes_needed(&ctx.project)).collect(),
            uses_variables: scripts().any(uses_variables),
            new_targets: jobs.iter().filter_map(new_target).collect(),
        }
    }
}

/// Ready steps that may share commits: they have one lake and one pin. Several slots may work on one batch, each with
/// groups of its own.
pub struct Batch {
    jobs: Vec<StepJob>,
    next: AtomicUsize,
}

impl Batch {
    /// Returns a batch of `jobs`.
    pub fn new(jobs: Vec<StepJob>) -> Self {
        Self { jobs, next: AtomicUsize::new(0) }
    }

    /// Returns every step of the batch.
    pub fn jobs(&self) -> &[StepJob] {
        &self.jobs
    }

    /// Takes the next step; nobody else gets it.
    pub fn claim(&self) -> Option<&StepJob> {
        self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns whether there is a step that nobody has taken.
    pub fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.jobs.len()
    }
}

/// Does the steps of `batch` that `claim` gives, and hands each report to `done`.
pub fn execute_group<'b>(
    ctx: &RunContext,
    slot: &mut Slot,
    batch: &'b Batch,
    claim: &dyn Fn() -> Option<&'b StepJob>,
    report_phase: &dyn Fn(usize, &'static str),
    done: &mut dyn FnMut(StepReport),
) {
    if let [_] = batch.jobs() {
        if let Some(job) = claim() {
            done(execute(ctx, slot, job, report_phase));
        }
        return;
    }
    let common = Common::of(ctx, batch.jobs());
    while let Some(first) = claim() {
        one_commit(ctx, slot, first, &common, claim, report_phase, done);
    }
}

/// Stages `first` and as many more steps as one commit may hold, commits them, and sees to those that could not join.
fn one_commit<'b>(
    ctx: &RunContext,
    slot: &mut Slot,
    first: &'b StepJob,
    common: &Common<'_>,
    claim: &dyn Fn() -> Option<&'b StepJob>,
    report_phase: &dyn Fn(usize, &'static str),
    done: &mut dyn FnMut(StepReport),
) {
    let mut bench: Option<Bench> = None;
    let mut members: Vec<Member<'_>> = Vec::new();
    let mut failed: Vec<(Attempt<'_>, StepFailure)> = Vec::new();
    let mut alone: Vec<&StepJob> = Vec::new();
    let (mut bytes, started, mut next) = (0, Instant::now(), Some(first));
    while let Some(job) = next {
        match Attempt::first(ctx, job, slot.number, report_phase) {
            Err(failure) => done(unbegun(job, failure)),
            Ok(mut attempt) => match begin_at_once(&mut attempt) {
                Err(failure) => failed.push((attempt, failure)),
                // Whoever holds the lease may be slow, or may wait for a slice of this group.
                Ok(false) => alone.push(job),
                Ok(true) => match stage_member(&mut attempt, slot, &mut bench, common) {
                    Err(failure) => failed.push((attempt, failure)),
                    Ok((staged, prepared)) => {
                        bytes += staged.estimated_bytes();
                        members.push(Member { attempt, staged, prepared });
                    }
                },
            },
        }
        let is_full = MAX_STAGED_BYTES < bytes || MAX_MEMBERS <= members.len() || MAX_STAGING < started.elapsed();
        next = if is_full || ctx.cancel.is_set() { None } else { claim() };
    }
    commit_members(slot, members, common, done);
    drop(bench);
    for (mut attempt, failure) in failed {
        // What passes by itself is tried again as often as for a step alone.
        let is_passing = matches!(failure.class, ErrorClass::Transient | ErrorClass::Conflict);
        let ended = if is_passing && attempt.lease.is_some() { attempt.write(slot, None) } else { Err(failure) };
        done(settle(attempt, ended, slot));
    }
    for job in alone {
        done(execute(ctx, slot, job, report_phase));
    }
}

/// Begins an attempt unless somebody holds its lease; an attempt that is not begun leaves no trace.
fn begin_at_once(attempt: &mut Attempt<'_>) -> Result<bool, StepFailure> {
    if attempt.phase("lease", Attempt::try_lease)?.is_some() {
        return Ok(false);
    }
    attempt.record_beginning()?;
    attempt.reach(FaultPoint::Leased);
    Ok(true)
}

fn stage_member(
    attempt: &mut Attempt<'_>,
    slot: &mut Slot,
    bench: &mut Option<Bench>,
    common: &Common<'_>,
) -> Result<(Staged, Prepared), StepFailure> {
    if bench.is_none() {
        let opened = attempt.phase("pin", |attempt| -> Result<Bench, StepFailure> {
            let mut bench = Bench::open(attempt, slot, &common.lakes)?;
            bench.find_absent(&attempt.alias, &common.new_targets)?;
            Ok(bench)
        });
        *bench = Some(opened?);
    }
    let bench = bench.as_ref().expect("it was opened just now");
    let uses_variables = common.uses_variables;
    attempt.go_on("stage the query")?;
    let mut staged = bench.stage(attempt);
    let outcome = attempt
        .phase("stage", |attempt| {
            if uses_variables {
                staging::set_variables(bench.session(), attempt)?;
            }
            staging::fill(attempt, &mut staged)
        })
        .and_then(|()| commit::prepare(attempt, &mut staged));
    attempt.sent.extend(staged.session.take_sent());
    if outcome.is_ok() {
        attempt.reach(FaultPoint::Staged);
    }
    outcome.map(|prepared| (staged, prepared))
}

/// Commits the members together, or one by one when that fails.
fn commit_members(
    slot: &mut Slot,
    mut members: Vec<Member<'_>>,
    common: &Common<'_>,
    done: &mut dyn FnMut(StepReport),
) {
    let Some(session) = members.first().map(|member| member.staged.session.clone()) else { return };
    let together = match members.len() {
        1 => None,
        _ => transact(&session, &mut members, common.uses_variables),
    };
    for (index, member) in members.into_iter().enumerate() {
        let Member { mut attempt, staged, .. } = member;
        let ended = match together.as_ref().map(|ends| ends[index].clone()) {
            Some(ended) => Ok(ended),
            None => write_alone(&mut attempt, slot, staged, common),
        };
        done(settle(attempt, ended, slot));
    }
}

/// Writes a member by itself, with its stage, in the session that its neighbours have used as well.
fn write_alone(
    attempt: &mut Attempt<'_>,
    slot: &mut Slot,
    staged: Staged,
    common: &Common<'_>,
) -> Result<Ended, StepFailure> {
    if common.uses_variables {
        staging::set_variables(&staged.session, attempt)?;
    }
    attempt.write(slot, Some(staged))
}

/// Writes and commits all members in one transaction and returns how each ended; `None` when nothing of it is committed
/// as far as can be told: each member then finds out for itself.
fn transact(session: &Rc<Session>, members: &mut [Member<'_>], uses_variables: bool) -> Option<Vec<Ended>> {
    let leader = &members.first()?.attempt;
    let (lake, alias) = (leader.lake, leader.alias.clone());
    let lane = lake.lane();
    let _pass = leader.enter(&lane).ok()?;
    let transaction = WriteTransaction::begin(session, &alias).ok()?;
    let mut written: Vec<Result<(StampEntry, Schema), Ended>> = Vec::new();
    for member in members.iter_mut() {
        let applied = member.attempt.phase("commit", |attempt| {
            if uses_variables {
                staging::set_variables(session, attempt)?;
            }
            commit::apply(attempt, session, &transaction, &member.prepared)
        });
        member.attempt.sent.extend(session.take_sent());
        written.push(match applied {
            Ok(Applied::Written(entry, schema)) => Ok((*entry, schema)),
            Ok(Applied::Ended(ended)) => Err(ended),
            // Dropping the transaction rolls it back; the member meets its failure again by itself.
            Err(_) => return None,
        });
    }
    let entries: Vec<StampEntry> = written.iter().filter_map(|one| Some(one.as_ref().ok()?.0.clone())).collect();
    if entries.is_empty() {
        transaction.roll_back();
        return written.into_iter().map(Result::err).collect();
    }
    let committed = commit_together(members, transaction, &entries, session)?;
    Some(written.into_iter().map(|one| one.map_or_else(|ended| ended, |written| landed(committed, written))).collect())
}

fn landed(snapshot: SnapshotId, (entry, schema): (StampEntry, Schema)) -> Ended {
    Ended::Landed(Box::new(Landed { snapshot, entry, schema: Some(schema) }))
}

fn commit_together(
    members: &mut [Member<'_>],
    transaction: WriteTransaction<'_>,
    entries: &[StampEntry],
    session: &Session,
) -> Option<SnapshotId> {
    let started = Instant::now();
    let leader = &members.first()?.attempt;
    if leader.is_stopped() {
        return None;
    }
    let extra_info = to_extra_info(entries);
    let message = group_message(entries);
    let words = CommitWords { attempt: &entries.first()?.attempt, message: &message, extra_info: &extra_info };
    let snapshot = transaction.commit(&words, || {
        leader.reach(FaultPoint::Stamped);
        leader.ctx.cancel.shield(leader.slot);
    });
    let sent = session.take_sent();
    let share = started.elapsed() / u32::try_from(members.len()).unwrap_or(1);
    for member in members.iter_mut() {
        member.attempt.add_time("commit", share);
        member.attempt.sent.extend(sent.iter().cloned());
    }
    let snapshot = snapshot.ok()?;
    members.first()?.attempt.reach(FaultPoint::Committed);
    Some(snapshot)
}
