//! A step from its lease to what is remembered: attempts, and the tries inside one.

use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::{AttemptId, LakeName, SnapshotId};
use pintail_core::partition::PartitionKey;
use pintail_core::plan::Step;
use pintail_core::schema::Schema;
use pintail_core::sql::stamp::StampEntry;
use pintail_core::write::{ErrorClass, Facts, Next, next_after_failure};
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::{Guard, Lease, LeaseAnswer, LeaseKey};
use pintail_engine::lake::{self, Concern, TableFacts};
use pintail_engine::lane::{Lane, LanePass};
use pintail_engine::session::SentStatement;
use pintail_engine::{EngineError, LakeLocation, Session};
use pintail_store::{
    AfterFailure, FailureKind, FailureRecord, LakeVersion, LogLevel, LogLine, NewAttempt, PhaseTiming,
    RecordedStatement, SuccessKind, SuccessRecord, TestResult,
};

use super::{commit, manual, staging, view};
use crate::executors::{RunContext, Slot, StepFailure, StepJob, StepOutcome, StepReport};
use crate::project::CompiledScript;

/// What one attempt works with.
pub struct Attempt<'a> {
    /// The run.
    pub ctx: &'a RunContext,
    /// The step.
    pub job: &'a StepJob,
    /// Its script.
    pub script: &'a CompiledScript,
    /// What it writes.
    pub asset: &'a Asset,
    /// The target's schema and table.
    pub table: (&'a str, &'a str),
    /// The lake of the target.
    pub lake: &'a LakeLocation,
    /// The lake's guard.
    pub guard: &'a Guard,
    /// The slot that does it.
    pub slot: usize,
    /// The attempt's id.
    pub id: AttemptId,
    /// The snapshot of each lake at which it reads; moved when a self-reader must see a newer version.
    pub pins: std::collections::BTreeMap<LakeName, SnapshotId>,
    /// What happened besides, for people.
    pub notes: Vec<String>,
    /// What the tests found.
    pub tests: Vec<TestResult>,
    /// What was sent.
    pub sent: Vec<SentStatement>,
    /// How long each phase took.
    pub phases: Vec<(&'static str, Duration)>,
    report_phase: &'a dyn Fn(&'static str),
}

/// A lease, given back when dropped: also when the step panics.
struct HeldLease<'a> {
    guard: &'a Guard,
    runtime: tokio::runtime::Handle,
    lease: Lease,
}

impl Drop for HeldLease<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.runtime.block_on(self.guard.release(&self.lease)) {
            // The lease dies with this process at the latest.
            tracing::warn!(%error, "the lease could not be released");
        }
    }
}

/// A commit that the look-up has proved.
#[derive(Clone, Debug)]
pub struct Landed {
    /// Its snapshot.
    pub snapshot: SnapshotId,
    /// What it said about itself.
    pub entry: StampEntry,
    /// The columns afterwards.
    pub schema: Option<Schema>,
}

/// How an attempt ended well.
#[derive(Clone, Debug)]
pub enum Ended {
    /// It committed.
    Landed(Box<Landed>),
    /// A newer run was there first.
    Superseded {
        /// Its snapshot.
        snapshot: SnapshotId,
        /// Its run.
        run: pintail_core::id::RunId,
    },
}

impl Attempt<'_> {
    /// Runs `work` as the phase `name`.
    pub fn phase<T>(&mut self, name: &'static str, work: impl FnOnce(&mut Self) -> T) -> T {
        (self.report_phase)(name);
        let started = Instant::now();
        let value = work(self);
        self.add_time(name, started.elapsed());
        value
    }

    fn add_time(&mut self, name: &'static str, elapsed: Duration) {
        match self.phases.iter_mut().find(|(phase, _)| *phase == name) {
            Some((_, total)) => *total += elapsed,
            None => self.phases.push((name, elapsed)),
        }
    }

    /// Marks a point of the protocol for tests.
    pub fn reach(&self, point: FaultPoint) {
        self.ctx.faults.reach(point);
    }

    /// Fails when the user has stopped the run or the step's time is up.
    pub fn go_on(&self, stage: &'static str) -> Result<(), StepFailure> {
        match self.is_stopped() {
            true => Err(StepFailure::cancelled(stage)),
            false => Ok(()),
        }
    }

    /// Returns whether the user has stopped the run or the step's time is up.
    pub fn is_stopped(&self) -> bool {
        self.ctx.cancel.is_set() || self.ctx.cancel.is_late(self.slot)
    }

    /// Enters the lake's lane; who waits there for another process can be stopped.
    pub fn enter<'l>(&self, lane: &'l Lane) -> Result<LanePass<'l>, StepFailure> {
        Ok(lane.enter_within(self.ctx.faults.patience(), &|| self.is_stopped())?)
    }

    /// Returns the target as the catalog describes it, having taken in what was committed to it since the run was planned.
    ///
    /// A table whose shape nobody has changed since this run described it is not described again: that costs as much as
    /// writing a small slice.
    pub fn target_table(&self, session: &Session, head: SnapshotId) -> Result<Option<TableFacts>, StepFailure> {
        if let Some((known, _)) = self.ctx.memory_of(self.asset).table {
            self.catch_up(session, Some(&known))?;
            if let Some(facts) = self.ctx.memory_of(self.asset).described_table() {
                return Ok(Some(facts.clone()));
            }
        }
        let (schema, table) = self.table;
        let facts = lake::table_facts(session, &self.lake.write_alias(), schema, table)?;
        self.catch_up(session, facts.as_ref())?;
        self.ctx.remember(self.asset, |memory| memory.table = facts.clone().map(|facts| (facts, head)));
        Ok(facts)
    }

    /// Takes in what was committed to the target since the run was planned: what is remembered of it was read then. A
    /// foreign change makes the numbers of rows unknown, and a table that a foreign writer made is not ours. Each commit
    /// is taken in once in a run.
    fn catch_up(&self, session: &Session, table: Option<&TableFacts>) -> Result<(), StepFailure> {
        let planned = self.job.pins.get(&self.lake.name).copied().unwrap_or(SnapshotId(0));
        let after = self.ctx.memory_of(self.asset).caught_up.map_or(planned, |seen| seen.max(planned));
        let asset = self.asset.to_string();
        for commit in lake::commits_concerning(session, &self.lake.write_alias(), after, &self.concern(table))? {
            let is_made = commit.changes.creates(self.table.0, self.table.1);
            let touches = is_made || table.is_some_and(|table| commit.changes.touches_table(table.id));
            let changes_shape =
                is_made || table.is_none_or(|table| touches && !commit.changes.changes_only_rows(table.id));
            let stamps = commit::seen(&commit).stamps;
            let ours: Vec<&StampEntry> = stamps.iter().filter(|entry| entry.asset == asset).collect();
            self.ctx.remember(self.asset, |memory| {
                memory.caught_up = memory.caught_up.max(Some(commit.snapshot));
                if changes_shape {
                    memory.shape_changed = memory.shape_changed.max(Some(commit.snapshot));
                }
                match (ours.is_empty(), touches) {
                    (true, true) => memory.take_in_foreign(is_made),
                    (true, false) => {}
                    (false, _) => ours.iter().for_each(|entry| memory.take_in(entry)),
                }
            });
        }
        Ok(())
    }

    /// Returns what a commit must be about to matter to this write.
    pub fn concern(&self, table: Option<&TableFacts>) -> Concern {
        Concern {
            asset: self.asset.to_string(),
            name: (self.table.0.to_owned(), self.table.1.to_owned()),
            table: table.map(|table| table.id),
            slice: None,
        }
    }

    /// Returns the partition.
    pub fn partition(&self) -> Option<&PartitionKey> {
        self.job.step.partition.as_ref()
    }

    /// Returns how the step writes.
    pub fn strategy(&self) -> WriteStrategy {
        strategy_of(self.script, &self.job.step)
    }

    /// Returns the stamp of the attempt as far as it is known before writing.
    pub fn entry(&self) -> StampEntry {
        let memory = self.ctx.memory_of(self.asset);
        StampEntry {
            attempt: self.id.clone(),
            run: self.ctx.run.clone(),
            step: self.job.id.clone(),
            asset: self.asset.to_string(),
            script: self.script.name().to_string(),
            table_id: None,
            generation: memory.generation,
            partition: self.partition().cloned(),
            window: self.job.step.window,
            strategy: self.script.strategy_word().to_owned(),
            deleted: 0,
            inserted: 0,
            rows: None,
            schema_version: memory.schema_version,
            script_hash: self.script.hash().clone(),
            inputs: self.inputs(),
            files: self.script.prints_read(self.ctx),
        }
    }

    /// Returns the pins of the places that the script reads, and of its own.
    fn inputs(&self) -> std::collections::BTreeMap<LakeName, SnapshotId> {
        self.pins
            .iter()
            .filter(|(place, _)| **place == self.lake.name || self.script.reads_place(place))
            .map(|(place, pin)| (place.clone(), *pin))
            .collect()
    }
}

/// Returns how a step writes: as declared, but a full refresh writes merge and append anew.
pub fn strategy_of(script: &CompiledScript, step: &Step) -> WriteStrategy {
    match script.strategy() {
        WriteStrategy::Merge { .. } | WriteStrategy::Append if step.full_refresh => WriteStrategy::Replace,
        declared => declared,
    }
}

/// Does one step and says what became of it.
pub fn execute(ctx: &RunContext, slot: &mut Slot, job: &StepJob, report_phase: &dyn Fn(&'static str)) -> StepReport {
    let started = Instant::now();
    let script = ctx.project.script(&job.step.name);
    let (Some(script), Some(asset)) = (script, &job.step.asset) else {
        let failure = StepFailure::user(Code::ENGINE_ERROR, "find the script", "the step has no script or no target");
        return report(job, started, StepOutcome::Failed(Box::new(failure)));
    };
    let Asset::Lake { lake: lake_name, schema, table } = asset else {
        return crate::executors::outside::execute(ctx, slot, job, script, asset, report_phase);
    };
    let (Some(lake), Some(guard)) = (ctx.lakes.get(lake_name), ctx.guards.get(lake_name)) else {
        let failure = StepFailure::user(Code::UNKNOWN_LAKE, "find the lake", format!("there is no lake `{lake_name}`"));
        return report(job, started, StepOutcome::Failed(Box::new(failure)));
    };
    let mut number = 1;
    loop {
        let mut attempt = Attempt {
            ctx,
            job,
            script,
            asset,
            table: (schema, table),
            lake,
            guard,
            slot: slot.number,
            id: AttemptId(crate::new_id()),
            pins: job.pins.clone(),
            notes: Vec::new(),
            tests: Vec::new(),
            sent: Vec::new(),
            phases: Vec::new(),
            report_phase,
        };
        let mut lease = None;
        let ended = attempt.run(slot, number, &mut lease).map_err(|failure| attempt.with_timeout(failure));
        let is_last = match &ended {
            Ok(_) => true,
            Err(failure) => !script.retries(failure.class, number) || attempt.is_stopped(),
        };
        let outcome = attempt.remember(ended, is_last, started);
        // Held until the store knows: whoever waits for it plans on what is remembered.
        drop(lease);
        if is_last {
            return StepReport {
                index: job.index,
                outcome,
                tests: attempt.tests,
                notes: attempt.notes,
                phases: attempt.phases,
                elapsed: started.elapsed(),
            };
        }
        wait(ctx, slot.number, script.retry_delay(number));
        number += 1;
    }
}

/// Waits before the next attempt, unless the step is stopped.
fn wait(ctx: &RunContext, slot: usize, delay: Duration) {
    let until = Instant::now() + delay;
    while !ctx.cancel.is_set() && !ctx.cancel.is_late(slot) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        ctx.pause(left.min(Duration::from_millis(50)));
    }
}

fn report(job: &StepJob, started: Instant, outcome: StepOutcome) -> StepReport {
    StepReport {
        index: job.index,
        outcome,
        tests: Vec::new(),
        notes: Vec::new(),
        phases: Vec::new(),
        elapsed: started.elapsed(),
    }
}

impl<'a> Attempt<'a> {
    fn run(&mut self, slot: &mut Slot, number: u32, held: &mut Option<HeldLease<'a>>) -> Result<Ended, StepFailure> {
        let now = (self.ctx.now)();
        let begun = self.ctx.runtime.block_on(self.ctx.store.start_attempt(&NewAttempt {
            id: self.id.clone(),
            step: self.job.id.clone(),
            number,
            pins: self.pins.clone(),
            started: now,
        }));
        begun.map_err(|error| StepFailure::store("record the attempt", &error))?;
        let lease = self.phase("lease", Self::take_lease)?;
        *held = Some(HeldLease { guard: self.guard, runtime: self.ctx.runtime.clone(), lease });
        self.reach(FaultPoint::Leased);
        let ended = match self.strategy() {
            WriteStrategy::View => self.tries(slot, view::try_once),
            WriteStrategy::Manual => manual::run(self, slot),
            _ => self.tries(slot, |attempt, slot, staged| {
                staging::stage_if_needed(attempt, slot, staged)?;
                commit::write(attempt, staged.as_mut().expect("it was staged just now"))
            }),
        };
        if let Err(failure) = &ended
            && failure.class == ErrorClass::Bug
        {
            // A fault of the engine may have left the instance unusable.
            slot.discard();
        }
        ended
    }

    /// A step that was interrupted because its time was up has failed by its timeout, not by the user.
    fn with_timeout(&self, failure: StepFailure) -> StepFailure {
        let declared = self.script.header.timeout.as_ref();
        let (Some(timeout), false) = (declared, self.ctx.cancel.is_set()) else { return failure };
        if failure.class != ErrorClass::Cancelled || !self.ctx.cancel.is_late(self.slot) {
            return failure;
        }
        let message = format!("the step took longer than its timeout of {}", crate::duration_text(timeout.value));
        StepFailure::user(Code::TIMEOUT, failure.stage, message)
            .with_help("give it more time (`timeout 30m`), or make the query read less")
            .at(timeout.span)
    }

    /// Tries until it lands, is superseded, or is given up.
    fn tries(
        &mut self,
        slot: &mut Slot,
        try_once: impl Fn(&mut Self, &mut Slot, &mut Option<staging::Staged>) -> Result<Ended, StepFailure>,
    ) -> Result<Ended, StepFailure> {
        let mut staged: Option<staging::Staged> = None;
        let mut tries = 0;
        let begun = Instant::now();
        loop {
            tries += 1;
            let outcome = try_once(self, slot, &mut staged);
            if let Some(staged) = &staged {
                self.sent.extend(staged.session.take_sent());
            }
            let failure = match outcome {
                Ok(ended) => return Ok(ended),
                Err(failure) => failure,
            };
            let facts = Facts {
                class: failure.class,
                reads_target: self.script.reads_target(),
                staged: staged.is_some(),
                tries,
                is_out_of_patience: self.ctx.faults.patience() <= begun.elapsed(),
            };
            match next_after_failure(facts) {
                Next::Stop => return Err(failure),
                _ if self.is_stopped() => return Err(StepFailure::cancelled(failure.stage)),
                Next::Rewrite => {
                    self.warn(format!("{}; written again", failure.message));
                    if let (Some(staged), ErrorClass::Conflict) = (&mut staged, failure.class) {
                        // Only a conflict tells what has changed, so only after one may the base move over it.
                        staged.base = None;
                    }
                }
                Next::Restage => {
                    self.warn(format!("{}; staged again", failure.message));
                    staged = None;
                }
            }
            // Jitter from the clock is enough: two writers of one lane never wait for the same moment twice.
            let jitter = u64::from((self.ctx.now)().timestamp_subsec_micros() % 20);
            self.ctx.pause(Duration::from_millis(5 * u64::from(tries) + jitter));
        }
    }

    /// Tells people now and keeps it in the run's log.
    fn warn(&mut self, text: String) {
        let line = LogLine {
            run: self.ctx.run.clone(),
            step: Some(self.job.id.clone()),
            attempt: Some(self.id.clone()),
            at: (self.ctx.now)(),
            level: LogLevel::Warning,
            text: text.clone(),
        };
        if let Err(error) = self.ctx.runtime.block_on(self.ctx.store.append_log(&[line])) {
            tracing::warn!(%error, "a warning could not be stored");
        }
        self.notes.push(text);
    }

    fn take_lease(&mut self) -> Result<Lease, StepFailure> {
        let takes_whole = self.script.reads_target()
            || matches!(self.script.strategy(), WriteStrategy::Manual | WriteStrategy::View)
            || self.job.step.partition.is_none();
        let partition = if takes_whole { None } else { self.partition().cloned() };
        let key = LeaseKey { asset: self.asset.to_string(), partition };
        let started = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            let now = (self.ctx.now)().timestamp_micros();
            let answer = self.ctx.runtime.block_on(self.guard.try_lease(&key, &self.ctx.run, now));
            match answer {
                Ok(LeaseAnswer::Granted(lease)) => return Ok(lease),
                Ok(LeaseAnswer::Held(holder)) => {
                    self.go_on("wait for the lease")?;
                    if self.ctx.faults.patience() <= started.elapsed() {
                        let message = format!(
                            "run {} (process {}) has been writing {} since {}",
                            holder.run,
                            holder.process,
                            self.asset,
                            crate::time_text(holder.since_micros)
                        );
                        return Err(StepFailure::user(Code::LEASE_HELD, "take the lease", message)
                            .with_help("wait until that run has ended, or stop that process"));
                    }
                    self.ctx.pause(pause);
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                Err(error) => return Err(EngineError::from(error).into()),
            }
        }
    }

    /// Writes what became of the attempt into the store, and returns it for the run.
    fn remember(&mut self, ended: Result<Ended, StepFailure>, is_last: bool, started: Instant) -> StepOutcome {
        match ended {
            Ok(Ended::Landed(landed)) => self.remember_landed(*landed, started),
            Ok(Ended::Superseded { snapshot, run }) => {
                let failure = StepFailure {
                    class: ErrorClass::Conflict,
                    ..StepFailure::user(
                        Code::SUPERSEDED,
                        "check the target",
                        format!("run {run} has written a newer version meanwhile (snapshot {snapshot})"),
                    )
                };
                self.remember_failure(&failure, true, started, FailureKind::Cancelled);
                StepOutcome::Superseded { snapshot, run }
            }
            Err(mut failure) => {
                if failure.committed.is_empty() {
                    failure.committed = self.committed_now();
                }
                let kind = match failure.class {
                    ErrorClass::Cancelled => FailureKind::Cancelled,
                    // The tests of a manual script run after it has published.
                    _ if failure.code == Code::TEST_FAILED && self.strategy() != WriteStrategy::Manual => {
                        FailureKind::RolledBack
                    }
                    _ => FailureKind::Failed,
                };
                self.remember_failure(&failure, is_last, started, kind);
                StepOutcome::Failed(Box::new(failure))
            }
        }
    }

    /// Says what is live now that this attempt has left nothing.
    fn committed_now(&self) -> String {
        let what = match self.partition() {
            Some(partition) => format!("{} {partition}", self.asset),
            None => self.asset.to_string(),
        };
        match self.ctx.memory_of(self.asset).is_ours {
            true => format!("{what} is as it was before this run; nothing of this step is committed"),
            false => format!("nothing of this step is committed; Pintail has not written {what} yet"),
        }
    }

    fn remember_landed(&mut self, landed: Landed, started: Instant) -> StepOutcome {
        let Landed { snapshot, entry, schema } = landed;
        self.ctx.remember(self.asset, |memory| {
            memory.take_in(&entry);
            memory.schema = schema.clone().or_else(|| memory.schema.take());
        });
        let (deleted, inserted, rows) = (entry.deleted, entry.inserted, entry.rows);
        let finished = (self.ctx.now)();
        let record = SuccessRecord {
            kind: SuccessKind::Materialized,
            entry,
            version: Some(LakeVersion { lake: self.lake.name.clone(), snapshot }),
            schema,
            started: finished - started.elapsed(),
            finished,
            statements: self.recorded_statements(),
            tests: self.tests.clone(),
            timings: self.timings(),
        };
        let began = Instant::now();
        if let Err(error) = self.ctx.runtime.block_on(self.ctx.store.record_success(&record)) {
            self.notes.push(format!(
                "committed at snapshot {snapshot}, but the store could not be written ({}); the next start heals it",
                crate::with_sources(&error)
            ));
        }
        self.add_time("remember", began.elapsed());
        self.reach(FaultPoint::Remembered);
        StepOutcome::Materialized { snapshot: Some(snapshot), deleted, inserted, rows }
    }

    fn remember_failure(&mut self, failure: &StepFailure, is_last: bool, started: Instant, kind: FailureKind) {
        let finished = (self.ctx.now)();
        let record = FailureRecord {
            kind,
            entry: self.entry(),
            lake: Some(self.lake.name.clone()),
            class: failure.store_class(),
            error: failure.recorded(),
            after: if is_last { AfterFailure::EndStep } else { AfterFailure::Retry },
            started: finished - started.elapsed(),
            finished,
            statements: self.recorded_statements(),
            tests: self.tests.clone(),
            timings: self.timings(),
        };
        if let Err(error) = self.ctx.runtime.block_on(self.ctx.store.record_failure(&record)) {
            self.notes.push(format!("the failure could not be stored: {}", crate::with_sources(&error)));
        }
    }

    fn recorded_statements(&self) -> Vec<RecordedStatement> {
        self.sent
            .iter()
            .map(|sent| RecordedStatement { purpose: sent.purpose.clone(), sql: sent.sql.clone() })
            .collect()
    }

    fn timings(&self) -> Vec<PhaseTiming> {
        let micros = |elapsed: Duration| u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.phases
            .iter()
            .map(|(phase, elapsed)| PhaseTiming { phase: (*phase).to_owned(), micros: micros(*elapsed) })
            .collect()
    }
}
