//! A step by itself, from its lease to what is remembered: its attempts, and the tries inside one.

use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::plan::Content;
use pintail_core::write::{ErrorClass, Facts, Next, next_after_failure};
use pintail_engine::fault::FaultPoint;
use pintail_store::NewAttempt;

use super::attempt::{Attempt, Ended};
use super::staging::{self, Staged};
use super::{commit, increment, manual, stream, view};
use crate::executors::{RunContext, Slot, StepFailure, StepJob, StepOutcome, StepReport};

/// Does one step and says what became of it.
pub fn execute(
    ctx: &RunContext,
    slot: &mut Slot,
    job: &StepJob,
    report_phase: &dyn Fn(usize, &'static str),
) -> StepReport {
    if let (Some(script), Some(asset)) = (ctx.project.script(&job.step.name), &job.step.asset)
        && asset.lake().is_none()
    {
        return crate::executors::outside::execute(ctx, slot, job, script, asset, report_phase);
    }
    match Attempt::first(ctx, job, slot.number, report_phase) {
        Ok(mut attempt) => {
            let ended = attempt.begin().and_then(|()| attempt.write(slot, None));
            settle(attempt, ended, slot)
        }
        Err(failure) => unbegun(job, failure),
    }
}

/// Returns the report of a step that has no attempt.
pub fn unbegun(job: &StepJob, failure: StepFailure) -> StepReport {
    StepReport {
        index: job.index,
        outcome: StepOutcome::Failed(Box::new(failure)),
        tests: Vec::new(),
        notes: Vec::new(),
        phases: Vec::new(),
        elapsed: Duration::ZERO,
    }
}

/// Remembers how an attempt ended, and makes further ones as long as the script retries.
pub fn settle(mut attempt: Attempt<'_>, ended: Result<Ended, StepFailure>, slot: &mut Slot) -> StepReport {
    let mut ended = ended;
    loop {
        ended = ended.map_err(|failure| attempt.with_timeout(failure));
        let is_last = match &ended {
            Ok(_) => true,
            Err(failure) => !attempt.script.retries(failure.class, attempt.number) || attempt.is_stopped(),
        };
        let outcome = attempt.remember(ended, is_last);
        // Held until the store knows: whoever waits for it plans on what is remembered.
        attempt.lease = None;
        if is_last {
            return attempt.into_report(outcome);
        }
        wait(attempt.ctx, attempt.slot, attempt.script.retry_delay(attempt.number));
        attempt = attempt.next();
        ended = attempt.begin().and_then(|()| attempt.write(slot, None));
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

impl Attempt<'_> {
    /// Records the attempt and waits for its lease.
    pub fn begin(&mut self) -> Result<(), StepFailure> {
        self.record_beginning()?;
        self.phase("lease", Self::take_lease)?;
        self.reach(FaultPoint::Leased);
        Ok(())
    }

    /// Records the attempt in the store.
    pub fn record_beginning(&self) -> Result<(), StepFailure> {
        let begun = self.ctx.runtime.block_on(self.ctx.store.start_attempt(&NewAttempt {
            id: self.id.clone(),
            step: self.job.id.clone(),
            number: self.number,
            pins: self.pins.clone(),
            started: (self.ctx.now)(),
        }));
        begun.map_err(|error| StepFailure::store("record the attempt", &error)).map(|_| ())
    }

    /// Stages unless that was done, and writes, in a transaction of its own.
    pub fn write(&mut self, slot: &mut Slot, staged: Option<Staged>) -> Result<Ended, StepFailure> {
        // What a group has seen may have changed since; alone, the step looks for itself.
        self.is_absent = false;
        let ended = match self.strategy() {
            WriteStrategy::View => self.tries(slot, staged, view::try_once),
            WriteStrategy::Manual => manual::run(self, slot),
            _ => self.tries(slot, staged, |attempt, slot, staged| {
                // An older version that is brought back takes nothing new in.
                if staged.is_none()
                    && attempt.job.step.content == Content::Script
                    && let Some(ended) = increment::begin(attempt, slot)?
                {
                    return Ok(ended);
                }
                if staged.is_none()
                    && attempt.job.step.content == Content::Script
                    && let Some(ended) = stream::begin(attempt, slot)?
                {
                    return Ok(ended);
                }
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

    /// Tries until it lands, is superseded, or is given up.
    fn tries(
        &mut self,
        slot: &mut Slot,
        mut staged: Option<Staged>,
        try_once: impl Fn(&mut Self, &mut Slot, &mut Option<Staged>) -> Result<Ended, StepFailure>,
    ) -> Result<Ended, StepFailure> {
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
                // What has come is looked for again when somebody else has taken some of it.
                reads_target: self.reads_target() || self.stream.is_some(),
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
            if failure.class == ErrorClass::Transient && !self.lake.needs_keeper() {
                // The instance's connections to the server are broken, and it does not make new ones.
                staged = None;
                slot.discard();
            }
            // Jitter from the clock is enough: two writers of one lane never wait for the same moment twice.
            let jitter = u64::from((self.ctx.now)().timestamp_subsec_micros() % 20);
            let pause = match failure.class {
                // A server that restarts is away for seconds.
                ErrorClass::Transient => 50 << tries.min(7),
                _ => 5 * u64::from(tries),
            };
            self.ctx.pause(Duration::from_millis(pause + jitter));
        }
    }
}
