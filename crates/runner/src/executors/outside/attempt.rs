//! One attempt at a target outside lakes: its phases, its tries, and what the store learns of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::{AttemptId, LakeName, RunId, SnapshotId};
use pintail_core::partition::PartitionKey;
use pintail_core::schema::Schema;
use pintail_core::sql::stamp::StampEntry;
use pintail_core::write::{ErrorClass, Facts, Next, next_after_failure};
use pintail_engine::fault::FaultPoint;
use pintail_engine::session::SentStatement;
use pintail_store::{
    AfterFailure, FailureKind, FailureRecord, FailureRecorded, LakeVersion, LogLevel, LogLine, NewAttempt, PhaseTiming,
    RecordedStatement, SuccessKind, SuccessRecord, TestResult,
};

use super::{FileLease, Staged};
use crate::executors::duckdb::strategy_of;
use crate::executors::{RunContext, Slot, StepFailure, StepJob, StepOutcome};
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
    /// The place that counts the asset's versions.
    pub place: LakeName,
    /// The slot that does it.
    pub slot: usize,
    /// The attempt's id.
    pub id: AttemptId,
    /// The version of each place at which it reads.
    pub pins: BTreeMap<LakeName, SnapshotId>,
    /// What happened besides, for people.
    pub notes: Vec<String>,
    /// What the tests found.
    pub tests: Vec<TestResult>,
    /// What was sent.
    pub sent: Vec<SentStatement>,
    /// How long each phase took.
    pub phases: Vec<(&'static str, Duration)>,
    /// The right to write a file, held until the store knows.
    pub lease: Option<FileLease>,
    report_phase: &'a dyn Fn(&'static str),
}

/// A write that was looked up and found.
#[derive(Clone, Debug)]
pub struct Landed {
    /// Its number among the versions of its place.
    pub version: SnapshotId,
    /// What it said about itself.
    pub entry: StampEntry,
    /// The columns afterwards.
    pub schema: Option<Schema>,
}

/// How an attempt ended well.
#[derive(Clone, Debug)]
pub enum Ended {
    /// It is published.
    Landed(Box<Landed>),
    /// A newer run was there first.
    Superseded {
        /// Its version.
        version: SnapshotId,
        /// Its run.
        run: RunId,
    },
}

impl<'a> Attempt<'a> {
    /// Returns a new attempt, not yet known to the store.
    pub fn new(
        ctx: &'a RunContext,
        job: &'a StepJob,
        script: &'a CompiledScript,
        asset: &'a Asset,
        slot: usize,
        report_phase: &'a dyn Fn(&'static str),
    ) -> Self {
        Self {
            ctx,
            job,
            script,
            asset,
            place: asset.place(),
            slot,
            id: AttemptId(crate::new_id()),
            pins: job.pins.clone(),
            notes: Vec::new(),
            tests: Vec::new(),
            sent: Vec::new(),
            phases: Vec::new(),
            lease: None,
            report_phase,
        }
    }

    /// Tells the store that attempt `number` begins.
    pub fn begin(&mut self, number: u32) -> Result<(), StepFailure> {
        let begun = self.ctx.runtime.block_on(self.ctx.store.start_attempt(&NewAttempt {
            id: self.id.clone(),
            step: self.job.id.clone(),
            number,
            pins: self.pins.clone(),
            started: (self.ctx.now)(),
        }));
        begun.map_err(|error| StepFailure::store("record the attempt", &error))
    }

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

    /// Returns the partition.
    pub fn partition(&self) -> Option<&PartitionKey> {
        self.job.step.partition.as_ref()
    }

    /// Returns how the step writes.
    pub fn strategy(&self) -> WriteStrategy {
        strategy_of(self.script, &self.job.step)
    }

    /// Returns the stamp as far as it is known before writing.
    pub fn entry(&self) -> StampEntry {
        let memory = self.ctx.memory_of(self.asset);
        let reads = |place: &LakeName| *place == self.place || self.script.reads_place(place);
        let inputs = self.pins.iter().filter(|(place, _)| reads(place));
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
            inputs: inputs.map(|(place, pin)| (place.clone(), *pin)).collect(),
            files: self.script.prints_read(self.ctx),
            increment: None,
            restored: None,
            atomic: false,
        }
    }

    /// Tries until it lands, is superseded, or is given up; a stage is kept as long as it may be written.
    pub fn tries(
        &mut self,
        slot: &mut Slot,
        try_once: impl Fn(&mut Self, &mut Slot, &mut Option<Staged>) -> Result<Ended, StepFailure>,
    ) -> Result<Ended, StepFailure> {
        let mut staged: Option<Staged> = None;
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
            if failure.class == ErrorClass::Bug {
                // A fault of the engine may have left the instance unusable.
                slot.discard();
            }
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
                        staged.base = None;
                    }
                }
                Next::Restage => {
                    self.warn(format!("{}; staged again", failure.message));
                    staged = None;
                }
            }
            // A server that restarts needs longer than a lock that is taken.
            self.ctx.pause(Duration::from_millis(20 << tries.min(7)));
        }
    }

    /// Tells people now and keeps it in the run's log.
    pub fn warn(&mut self, text: String) {
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

    /// A step that was interrupted because its time was up has failed by its timeout, not by the user.
    pub fn with_timeout(&self, failure: StepFailure) -> StepFailure {
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

    /// Writes what became of the attempt into the store, and returns it for the run.
    pub fn remember(&mut self, ended: Result<Ended, StepFailure>, is_last: bool, started: Instant) -> StepOutcome {
        match ended {
            Ok(Ended::Landed(landed)) => self.remember_landed(*landed, started),
            Ok(Ended::Superseded { version, run }) => {
                let message = format!("run {run} has written a newer version meanwhile");
                let failure = StepFailure {
                    class: ErrorClass::Conflict,
                    ..StepFailure::user(Code::SUPERSEDED, "check the target", message)
                };
                self.remember_failure(&failure, true, started, FailureKind::Cancelled);
                StepOutcome::Superseded { snapshot: version, run }
            }
            Err(mut failure) => {
                if failure.committed.is_empty() {
                    failure.committed = self.committed_now();
                }
                let kind = match failure.class {
                    ErrorClass::Cancelled => FailureKind::Cancelled,
                    _ if failure.code == Code::TEST_FAILED => FailureKind::RolledBack,
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
            true => format!("{what} is as it was before this run; nothing of this step is published"),
            false => format!("nothing of this step is published; Pintail has not written {what} yet"),
        }
    }

    fn remember_landed(&mut self, landed: Landed, started: Instant) -> StepOutcome {
        let Landed { version, entry, schema } = landed;
        self.ctx.remember(self.asset, |memory| {
            memory.take_in(&entry);
            memory.schema = schema.clone().or_else(|| memory.schema.take());
        });
        let (deleted, inserted, rows) = (entry.deleted, entry.inserted, entry.rows);
        let finished = (self.ctx.now)();
        let record = SuccessRecord {
            kind: SuccessKind::Materialized,
            entry,
            version: Some(LakeVersion { lake: self.place.clone(), snapshot: version }),
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
                "published, but the store could not be written ({}); the next start heals it",
                crate::with_sources(&error)
            ));
        }
        self.add_time("remember", began.elapsed());
        self.reach(FaultPoint::Remembered);
        // The version of a file is a time, which pins nothing and tells people nothing.
        let snapshot = Some(version).filter(|_| self.asset.has_numbered_versions());
        StepOutcome::Materialized { snapshot, deleted, inserted, rows }
    }

    fn remember_failure(&mut self, failure: &StepFailure, is_last: bool, started: Instant, kind: FailureKind) {
        let finished = (self.ctx.now)();
        let record = FailureRecord {
            kind,
            entry: self.entry(),
            lake: Some(self.place.clone()),
            class: failure.store_class(),
            error: failure.recorded(),
            after: if is_last { AfterFailure::EndStep } else { AfterFailure::Retry },
            started: finished - started.elapsed(),
            finished,
            statements: self.recorded_statements(),
            tests: self.tests.clone(),
            timings: self.timings(),
        };
        match self.ctx.runtime.block_on(self.ctx.store.record_failure(&record)) {
            Ok(FailureRecorded::Recorded) => {}
            Ok(FailureRecorded::CommittedMeanwhile) => {
                self.notes.push("the write was published all the same, as another process has seen".to_owned());
            }
            Err(error) => {
                self.notes.push(format!("the failure could not be stored: {}", crate::with_sources(&error)));
            }
        }
    }

    fn recorded_statements(&self) -> Vec<RecordedStatement> {
        let recorded =
            |sent: &SentStatement| RecordedStatement { purpose: sent.purpose.clone(), sql: sent.sql.clone() };
        self.sent.iter().map(recorded).collect()
    }

    fn timings(&self) -> Vec<PhaseTiming> {
        let micros = |elapsed: Duration| u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let timing = |(phase, elapsed): &(&'static str, Duration)| PhaseTiming {
            phase: (*phase).to_owned(),
            micros: micros(*elapsed),
        };
        self.phases.iter().map(timing).collect()
    }
}
