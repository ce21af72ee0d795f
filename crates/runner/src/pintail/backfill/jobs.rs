//! The jobs as the store has them: which there are, whether their processes live, and how one is stopped.

use pintail_core::id::{PresenceId, ScriptName};
use pintail_core::partition::TimeSpec;
use pintail_core::plan::backfill::{JobState, PartitionState, Refusal};
use pintail_engine::guard::OwnerId;
use pintail_store::{Backfill, BackfillCounts, BackfillEnd, BackfillId, BackfillPartition};

use super::super::{Pintail, RunnerError};
use super::BackfillPlan;
use super::plan::usage;

/// A job with where its partitions stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillInfo {
    /// The job.
    pub backfill: Backfill,
    /// Where its partitions stand.
    pub counts: BackfillCounts,
    /// Whether its process has died before its end.
    pub is_interrupted: bool,
}

/// What became of a wish to stop a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelledBackfill {
    /// Its process was asked, and stops at the next moment.
    Asked,
    /// Its process was dead; it is cancelled now.
    Cancelled,
    /// It had ended before.
    HadEnded(JobState),
}

impl Pintail {
    /// Returns the newest jobs, newest first.
    pub fn backfills(&self, limit: u32) -> Result<Vec<BackfillInfo>, RunnerError> {
        let jobs = self.runtime.block_on(self.store.list_backfills(limit))?;
        jobs.into_iter().map(|job| self.backfill_info(job)).collect()
    }

    /// Returns a job.
    pub fn backfill(&self, id: BackfillId) -> Result<BackfillInfo, RunnerError> {
        self.backfill_info(self.stored_backfill(id)?)
    }

    /// Returns the first partitions of a job in a state.
    pub fn backfill_partitions_in(
        &self,
        id: BackfillId,
        state: PartitionState,
        limit: u32,
    ) -> Result<Vec<BackfillPartition>, RunnerError> {
        Ok(self.runtime.block_on(self.store.backfill_partitions_in(id, state, None, limit))?)
    }

    /// Stops a job: its living process is asked to, a dead one's job is closed. What is done stays; it can be resumed.
    pub fn cancel_backfill(&self, id: BackfillId) -> Result<CancelledBackfill, RunnerError> {
        let seen = self.stored_backfill(id)?;
        if seen.state != JobState::Running {
            return Ok(CancelledBackfill::HadEnded(seen.state));
        }
        if self.is_process_alive(&seen.job.owner)? {
            self.runtime.block_on(self.store.stop_backfill(id))?;
            return Ok(CancelledBackfill::Asked);
        }
        let owner = self.presence()?;
        if !self.runtime.block_on(self.store.claim_backfill(&seen, &owner))? {
            // Somebody took it up just now; that process is asked.
            self.runtime.block_on(self.store.stop_backfill(id))?;
            return Ok(CancelledBackfill::Asked);
        }
        self.settle_job(&seen)?;
        let end = BackfillEnd { state: JobState::Cancelled, finished: (self.settings.now)(), error: None };
        self.runtime.block_on(self.store.finish_backfill(id, &owner, &end))?;
        Ok(CancelledBackfill::Cancelled)
    }

    pub(super) fn stored_backfill(&self, id: BackfillId) -> Result<Backfill, RunnerError> {
        let found = self.runtime.block_on(self.store.backfill(id))?;
        found.ok_or_else(|| RunnerError::NotFound {
            message: format!("there is no backfill {id}; `pintail backfill list` lists them"),
        })
    }

    fn backfill_info(&self, backfill: Backfill) -> Result<BackfillInfo, RunnerError> {
        let counts = self.runtime.block_on(self.store.backfill_counts(backfill.id))?;
        let is_interrupted = backfill.state == JobState::Running && !self.is_process_alive(&backfill.job.owner)?;
        Ok(BackfillInfo { backfill, counts, is_interrupted })
    }

    /// Returns the jobs of `script` whose process died.
    pub(super) fn interrupted_backfills(&self, script: &ScriptName) -> Result<Vec<BackfillId>, RunnerError> {
        let running = self.runtime.block_on(self.store.running_backfills(script))?;
        let mut interrupted = Vec::new();
        for job in running {
            if !self.is_process_alive(&job.job.owner)? {
                interrupted.push(job.id);
            }
        }
        Ok(interrupted)
    }

    /// Refuses a job of which another process has partitions in hand. Two that begin at the same moment pass; then the
    /// slices' leases make one wait for the other.
    pub(super) fn refuse_overlap(&self, plan: &BackfillPlan) -> Result<(), RunnerError> {
        let script = self.find_script(plan.script.as_str())?;
        let Some(spec) = script.time_spec() else { return Ok(()) };
        for other in self.runtime.block_on(self.store.running_backfills(&plan.script))? {
            let is_same_calendar = other.job.calendar == plan.calendar;
            if is_same_calendar && self.is_process_alive(&other.job.owner)? && overlap(plan, &other, spec)? {
                return Err(RunnerError::Usage {
                    message: format!(
                        "backfill {} makes some of the same partitions of `{}` right now; `pintail backfill show {}` \
                         shows it, `pintail backfill cancel {}` stops it",
                        other.id, plan.script, other.id, other.id
                    ),
                });
            }
        }
        Ok(())
    }

    pub(super) fn refused(&self, backfill: &Backfill, refusal: Refusal, counts: BackfillCounts) -> RunnerError {
        let id = backfill.id;
        let next = match refusal {
            Refusal::UnderWay => format!("; `pintail backfill cancel {id}` stops it"),
            Refusal::NothingLeft if 0 < counts.failed => {
                format!(", but {} failed; `pintail backfill retry {id}` does them again", counts.failed)
            }
            Refusal::NothingFailed if 0 < counts.open(backfill.job.total) => {
                format!("; `pintail backfill resume {id}` does what is left")
            }
            Refusal::NothingLeft | Refusal::NothingFailed => String::new(),
        };
        RunnerError::Usage { message: format!("backfill {id}: {refusal}{next}") }
    }

    /// Returns the name under which this process lives in the lakes' guards.
    pub(super) fn presence(&self) -> Result<PresenceId, RunnerError> {
        let Some(lake) = self.lakes.values().next() else { return Ok(PresenceId(String::new())) };
        Ok(PresenceId(self.guard(lake)?.owner().to_string()))
    }

    pub(super) fn is_process_alive(&self, owner: &PresenceId) -> Result<bool, RunnerError> {
        self.is_owner_alive(&OwnerId(owner.0.clone()))
    }
}

fn overlap(plan: &BackfillPlan, other: &Backfill, spec: &TimeSpec) -> Result<bool, RunnerError> {
    plan.ranges.overlaps(&other.job.ranges, spec).map_err(usage)
}
