//! The right to write one file, held from before staging until the store knows.
//!
//! A file has no place of its own for leases, so the guard of the default lake keeps them: whoever shares that lake
//! shares them. Object stores have no lock that a dead process would lose.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pintail_core::diagnostic::Code;
use pintail_engine::EngineError;
use pintail_engine::guard::{Guard, Lease, LeaseAnswer, LeaseKey};
use tokio::runtime::Handle;

use super::Attempt;
use crate::executors::StepFailure;

/// A lease, given back when dropped: also when the step panics.
pub struct FileLease {
    guard: Arc<Guard>,
    runtime: Handle,
    lease: Lease,
}

impl Drop for FileLease {
    fn drop(&mut self) {
        if let Err(error) = self.runtime.block_on(self.guard.release(&self.lease)) {
            // The lease dies with this process at the latest.
            tracing::warn!(%error, "the lease could not be released");
        }
    }
}

impl FileLease {
    /// Waits until nobody else writes the attempt's file.
    pub fn take(attempt: &Attempt<'_>) -> Result<Self, StepFailure> {
        let default = &attempt.ctx.project.default_lake;
        let guard = attempt.ctx.guards.get(default).ok_or_else(|| {
            StepFailure::user(Code::UNKNOWN_LAKE, "take the lease", format!("there is no lake `{default}`"))
        })?;
        let key = LeaseKey { asset: attempt.asset.to_string(), partition: attempt.partition().cloned() };
        let runtime = attempt.ctx.runtime.clone();
        let started = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            let now = (attempt.ctx.now)().timestamp_micros();
            match runtime.block_on(guard.try_lease(&key, &attempt.ctx.run, now)).map_err(EngineError::from)? {
                LeaseAnswer::Granted(lease) => return Ok(Self { guard: guard.clone(), runtime, lease }),
                LeaseAnswer::Held(holder) => {
                    attempt.go_on("wait for the lease")?;
                    if attempt.ctx.faults.patience() <= started.elapsed() {
                        let since = crate::time_text(holder.since_micros);
                        let message = format!(
                            "run {} (process {}) has been writing {} since {since}",
                            holder.run, holder.process, attempt.asset
                        );
                        return Err(StepFailure::user(Code::LEASE_HELD, "take the lease", message)
                            .with_help("wait until that run has ended, or stop that process"));
                    }
                    attempt.ctx.pause(pause);
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
            }
        }
    }
}
