//! One job from its beginning, or from where it was, to its end.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use pintail_core::id::{PresenceId, ScriptName};
use pintail_core::plan::backfill::{Claim, JobEnd, JobState, Mode, PartitionState, after_window, claim, settle};
use pintail_store::{AssetKey, Backfill, BackfillCounts, BackfillEnd, BackfillId, BackfillPartition, NewBackfill};

use super::super::{Pintail, RunnerError};
use super::BackfillPlan;
use super::plan::{calendar_text, usage};
use super::window::Windows;
use crate::run::RunEvent;
use crate::with_sources;

/// How often a job looks whether somebody has asked it to stop.
const WATCH: Duration = Duration::from_millis(500);

/// How many failed partitions a summary names.
const NAMED_FAILURES: u32 = 10;

/// One thing that happened in a job.
#[derive(Clone, Debug)]
pub enum BackfillEvent {
    /// It began, or goes on.
    Started {
        /// The job.
        id: BackfillId,
        /// The script whose partitions they are; what is upstream of it has steps, but no partitions of the job.
        script: ScriptName,
        /// Its partitions.
        total: u64,
        /// Those of them that this process does not come to: they had ended before.
        ended: u64,
    },
    /// Partitions of the next window were found up to date, and are done.
    UpToDate {
        /// How many.
        partitions: u64,
    },
    /// Something happened in the run of a window.
    Run(RunEvent),
}

/// How a job stands when its process leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillSummary {
    /// The job.
    pub id: BackfillId,
    /// How it ended.
    pub state: JobState,
    /// Its partitions.
    pub total: u64,
    /// Where they stand.
    pub counts: BackfillCounts,
    /// Why it ended before its partitions did.
    pub reason: Option<String>,
    /// The first partitions that failed.
    pub failures: Vec<BackfillPartition>,
    /// How long this process was at it.
    pub elapsed: Duration,
}

/// A job that this process owns.
pub(super) struct Owned {
    pub(super) backfill: Backfill,
    pub(super) mode: Mode,
    pub(super) owner: PresenceId,
}

impl Pintail {
    /// Begins the job that `plan` describes, and does it. A job that fails is a summary, not an error.
    pub fn start_backfill(
        &self,
        plan: &BackfillPlan,
        tell: &mut dyn FnMut(BackfillEvent),
    ) -> Result<BackfillSummary, RunnerError> {
        self.refuse_overlap(plan)?;
        let owner = self.presence()?;
        let job = NewBackfill {
            script: plan.script.clone(),
            asset: plan.asset.as_ref().map(AssetKey::from),
            calendar: plan.calendar.clone(),
            request: plan.request.clone(),
            options: plan.options,
            ranges: plan.ranges.clone(),
            total: plan.total,
            owner: owner.clone(),
            created: (self.settings.now)(),
        };
        let id = self.runtime.block_on(self.store.begin_backfill(&job))?;
        self.do_job(Owned { backfill: self.stored_backfill(id)?, mode: Mode::Resume, owner }, tell)
    }

    /// Goes on with a job where it was: what has not ended is done.
    pub fn resume_backfill(
        &self,
        id: BackfillId,
        tell: &mut dyn FnMut(BackfillEvent),
    ) -> Result<BackfillSummary, RunnerError> {
        self.take_up(id, Mode::Resume, tell)
    }

    /// Does the partitions of a job that have failed once more, and no others.
    pub fn retry_backfill(
        &self,
        id: BackfillId,
        tell: &mut dyn FnMut(BackfillEvent),
    ) -> Result<BackfillSummary, RunnerError> {
        self.take_up(id, Mode::Retry, tell)
    }

    fn take_up(
        &self,
        id: BackfillId,
        mode: Mode,
        tell: &mut dyn FnMut(BackfillEvent),
    ) -> Result<BackfillSummary, RunnerError> {
        let seen = self.stored_backfill(id)?;
        self.check_calendar(&seen)?;
        let counts = self.runtime.block_on(self.store.backfill_counts(id))?;
        let is_alive = self.is_process_alive(&seen.job.owner)?;
        if let Claim::Refuse(refusal) = claim(seen.state, is_alive, mode, counts.open(seen.job.total), counts.failed) {
            return Err(self.refused(&seen, refusal, counts));
        }
        let owner = self.presence()?;
        if !self.runtime.block_on(self.store.claim_backfill(&seen, &owner))? {
            return Err(RunnerError::Usage {
                message: format!("backfill {id} was taken up by another process just now"),
            });
        }
        let owned = Owned { backfill: self.stored_backfill(id)?, mode, owner };
        let settled = self.settle_job(&owned.backfill);
        if let Err(error) = settled {
            self.leave(&owned, &error);
            return Err(error);
        }
        self.do_job(owned, tell)
    }

    /// Settles the partitions that a dead owner left in work, by the lake's stamps, which are taken in first.
    pub(super) fn settle_job(&self, backfill: &Backfill) -> Result<(), RunnerError> {
        self.observe([])?;
        let unsettled = self.runtime.block_on(self.store.unsettled_backfill_partitions(backfill))?;
        let settled: Vec<BackfillPartition> = unsettled
            .into_iter()
            .map(|(partition, evidence)| BackfillPartition { state: settle(evidence), ..partition })
            .collect();
        let now = (self.settings.now)();
        self.runtime.block_on(self.store.record_backfill_partitions(backfill.id, &settled, now))?;
        Ok(())
    }

    fn check_calendar(&self, backfill: &Backfill) -> Result<(), RunnerError> {
        let job = &backfill.job;
        let script = self.find_script(job.script.as_str())?;
        let now = script.time_spec().map_or_else(|| "not partitioned by time".to_owned(), calendar_text);
        if now == job.calendar {
            return Ok(());
        }
        Err(RunnerError::Usage {
            message: format!(
                "`{}` is {now} and was {} when backfill {} began, so its partitions are other ones; begin a new one: \
                 `pintail backfill {} --missing`",
                job.script, job.calendar, backfill.id, job.script
            ),
        })
    }

    /// Does the windows of a job until none is left, the user stops, or nothing goes well.
    fn do_job(&self, owned: Owned, tell: &mut dyn FnMut(BackfillEvent)) -> Result<BackfillSummary, RunnerError> {
        let begun = Instant::now();
        let id = owned.backfill.id;
        let counts = self.runtime.block_on(self.store.backfill_counts(id))?;
        let total = owned.backfill.job.total;
        let ended = match owned.mode {
            Mode::Resume => total - counts.open(total),
            Mode::Retry => total.saturating_sub(counts.failed),
        };
        tell(BackfillEvent::Started { id, script: owned.backfill.job.script.clone(), total, ended });
        let done = thread::scope(|scope| {
            let (_ends_the_watch, ended) = mpsc::channel::<()>();
            scope.spawn(move || self.watch(id, &ended));
            self.do_windows(&owned, tell)
        });
        match done {
            Ok((end, reason)) => self.end_job(&owned, end, reason, begun),
            Err(error) => {
                self.leave(&owned, &error);
                Err(error)
            }
        }
    }

    /// Stops the job when somebody asks for it from elsewhere; ends when the job does.
    fn watch(&self, id: BackfillId, ended: &mpsc::Receiver<()>) {
        while ended.recv_timeout(WATCH) == Err(mpsc::RecvTimeoutError::Timeout) {
            match self.runtime.block_on(self.store.backfill(id)) {
                Ok(Some(job)) if job.is_stopping => self.cancel.cancel(),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "could not look whether the backfill is to stop"),
            }
        }
    }

    fn do_windows(
        &self,
        owned: &Owned,
        tell: &mut dyn FnMut(BackfillEvent),
    ) -> Result<(JobEnd, Option<String>), RunnerError> {
        let script = self.find_script(owned.backfill.job.script.as_str())?;
        let spec = script
            .time_spec()
            .ok_or_else(|| RunnerError::Usage { message: format!("`{}` has no partitions", script.name()) })?;
        let mut windows = Windows::of(owned, spec).map_err(usage)?;
        loop {
            if self.cancel.is_set() {
                return Ok((JobEnd::Cancelled, None));
            }
            let keys = windows.next(self)?;
            if keys.is_empty() {
                return Ok((JobEnd::GoOn, None));
            }
            let tally = self.do_window(owned, &keys, tell)?;
            match after_window(tally, self.cancel.is_set()) {
                JobEnd::GoOn => {}
                JobEnd::Cancelled => return Ok((JobEnd::Cancelled, None)),
                JobEnd::Hopeless => {
                    let reason = format!("all of the last {} failed, so the rest was left", keys.len());
                    let is_left = !windows.next(self)?.is_empty();
                    return Ok((JobEnd::Hopeless, is_left.then_some(reason)));
                }
            }
        }
    }

    fn end_job(
        &self,
        owned: &Owned,
        end: JobEnd,
        reason: Option<String>,
        begun: Instant,
    ) -> Result<BackfillSummary, RunnerError> {
        let (id, total) = (owned.backfill.id, owned.backfill.job.total);
        let counts = self.runtime.block_on(self.store.backfill_counts(id))?;
        let state = JobState::at_end(end, counts.open(total), counts.failed);
        let ended = BackfillEnd { state, finished: (self.settings.now)(), error: reason.clone() };
        self.runtime.block_on(self.store.finish_backfill(id, &owned.owner, &ended))?;
        let failed = self.store.backfill_partitions_in(id, PartitionState::Failed, None, NAMED_FAILURES);
        let failures = self.runtime.block_on(failed)?;
        Ok(BackfillSummary { id, state, total, counts, reason, failures, elapsed: begun.elapsed() })
    }

    /// Leaves a job that cannot go on; it can be resumed. When even that cannot be stored, the next process finds its
    /// owner dead.
    fn leave(&self, owned: &Owned, error: &RunnerError) {
        let end = BackfillEnd {
            state: JobState::Cancelled,
            finished: (self.settings.now)(),
            error: Some(self.redactor.redact(&with_sources(error))),
        };
        if let Err(error) = self.runtime.block_on(self.store.finish_backfill(owned.backfill.id, &owned.owner, &end)) {
            tracing::warn!(%error, "the end of a backfill could not be stored");
        }
    }
}
