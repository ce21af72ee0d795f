//! The lease of a step: the right to stage and write its slice, or the whole asset.

use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_engine::EngineError;
use pintail_engine::guard::{Guard, Lease, LeaseAnswer, LeaseHolder, LeaseKey};

use super::attempt::Attempt;
use crate::executors::StepFailure;

/// A lease, given back when dropped: also when the step panics.
pub struct HeldLease<'a> {
    guard: &'a Guard,
    runtime: tokio::runtime::Handle,
    lease: Lease,
}

impl HeldLease<'_> {
    /// Returns the fencing token, greater than those of all leases before.
    pub fn token(&self) -> i64 {
        self.lease.token
    }
}

impl Drop for HeldLease<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.runtime.block_on(self.guard.release(&self.lease)) {
            // The lease dies with this process at the latest.
            tracing::warn!(%error, "the lease could not be released");
        }
    }
}

impl Attempt<'_> {
    /// Waits for the lease.
    pub fn take_lease(&mut self) -> Result<(), StepFailure> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(2);
        while let Some(holder) = self.try_lease()? {
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
        Ok(())
    }

    /// Returns what the step must be alone with.
    pub fn lease_key(&self) -> LeaseKey {
        let takes_whole = self.script.reads_target()
            || matches!(self.script.strategy(), WriteStrategy::Manual | WriteStrategy::View)
            || self.job.step.partition.is_none();
        let partition = if takes_whole { None } else { self.partition().cloned() };
        LeaseKey { asset: self.asset.to_string(), partition }
    }

    /// Takes the lease unless somebody has it, who is returned.
    pub fn try_lease(&mut self) -> Result<Option<LeaseHolder>, StepFailure> {
        let key = self.lease_key();
        let now = (self.ctx.now)().timestamp_micros();
        let answer = self.ctx.runtime.block_on(self.guard.try_lease(&key, &self.ctx.run, now));
        match answer.map_err(EngineError::from)? {
            LeaseAnswer::Granted(lease) => {
                self.lease = Some(HeldLease { guard: self.guard, runtime: self.ctx.runtime.clone(), lease });
                Ok(None)
            }
            LeaseAnswer::Held(holder) => Ok(Some(holder)),
        }
    }
}
