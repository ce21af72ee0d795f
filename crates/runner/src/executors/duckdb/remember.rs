//! What becomes of an attempt: in the run's memory, in the store, and in the step's report.

use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::write::ErrorClass;
use pintail_engine::fault::FaultPoint;
use pintail_store::{
    AfterFailure, FailureKind, FailureRecord, LakeVersion, LogLevel, LogLine, PhaseTiming, RecordedStatement,
    SuccessKind, SuccessRecord,
};

use super::attempt::{Attempt, Ended, Landed};
use super::unchanged;
use crate::executors::{StepFailure, StepOutcome, StepReport};

impl Attempt<'_> {
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

    /// Returns the step's report.
    pub fn into_report(self, outcome: StepOutcome) -> StepReport {
        StepReport {
            index: self.job.index,
            outcome,
            tests: self.tests,
            notes: self.notes,
            phases: self.phases,
            elapsed: self.begun.elapsed(),
        }
    }

    /// Writes what became of the attempt into the store, and returns it for the run.
    pub fn remember(&mut self, ended: Result<Ended, StepFailure>, is_last: bool) -> StepOutcome {
        match ended {
            Ok(Ended::Landed(landed)) => self.remember_landed(*landed),
            Ok(Ended::Unchanged(confirmed)) => unchanged::remember(self, *confirmed),
            Ok(Ended::Superseded { snapshot, run }) => {
                let failure = StepFailure {
                    class: ErrorClass::Conflict,
                    ..StepFailure::user(
                        Code::SUPERSEDED,
                        "check the target",
                        format!("run {run} has written a newer version meanwhile (snapshot {snapshot})"),
                    )
                };
                self.remember_failure(&failure, true, FailureKind::Cancelled);
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
                self.remember_failure(&failure, is_last, kind);
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

    fn remember_landed(&mut self, landed: Landed) -> StepOutcome {
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
            started: finished - self.started.elapsed(),
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

    fn remember_failure(&mut self, failure: &StepFailure, is_last: bool, kind: FailureKind) {
        let finished = (self.ctx.now)();
        let record = FailureRecord {
            kind,
            entry: self.entry(),
            lake: Some(self.lake.name.clone()),
            class: failure.store_class(),
            error: failure.recorded(),
            after: if is_last { AfterFailure::EndStep } else { AfterFailure::Retry },
            started: finished - self.started.elapsed(),
            finished,
            statements: self.recorded_statements(),
            tests: self.tests.clone(),
            timings: self.timings(),
        };
        if let Err(error) = self.ctx.runtime.block_on(self.ctx.store.record_failure(&record)) {
            self.notes.push(format!("the failure could not be stored: {}", crate::with_sources(&error)));
        }
    }

    pub(super) fn recorded_statements(&self) -> Vec<RecordedStatement> {
        self.sent
            .iter()
            .map(|sent| RecordedStatement { purpose: sent.purpose.clone(), sql: sent.sql.clone() })
            .collect()
    }

    pub(super) fn timings(&self) -> Vec<PhaseTiming> {
        let micros = |elapsed: Duration| u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.phases
            .iter()
            .map(|(phase, elapsed)| PhaseTiming { phase: (*phase).to_owned(), micros: micros(*elapsed) })
            .collect()
    }
}
