//! Ownership of a consumer, or of one of its shards: a lease in the lake's guard with a token that only grows.
//!
//! Invariant: the lease keeps two processes from doing the same work; that they cannot both commit is the cursor's doing,
//! which takes the token of whoever wrote last. An owner that died loses its lease at once.

use pintail_core::id::RunId;
use pintail_engine::EngineError;
use pintail_engine::guard::{Lease, LeaseAnswer, LeaseHolder, LeaseKey, StandingGuard};

/// A lease that this process holds; given back when it is dropped.
#[derive(Debug)]
pub struct Ownership {
    guard: StandingGuard,
    lease: Lease,
}

/// Who has it instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process id, on its own machine.
    pub process: u32,
    /// Since when, in microseconds since 1970 UTC.
    pub since_micros: i64,
}

impl Holder {
    fn of(holder: LeaseHolder) -> Self {
        Self { process: holder.process, since_micros: holder.since_micros }
    }
}

/// Returns what the lease of the consumer `full_name` is about.
fn asset_of(full_name: &str) -> String {
    format!("consumer {full_name}")
}

/// Returns who has the consumer `full_name`, if somebody has.
pub fn owner_of(guard: &StandingGuard, full_name: &str) -> Result<Option<Holder>, EngineError> {
    let asset = asset_of(full_name);
    let holder = guard.ask(|guard| async move { guard.holder_of(&asset).await })?;
    Ok(holder.map(Holder::of))
}

impl Ownership {
    /// Asks for the consumer `full_name`.
    pub fn ask(guard: &StandingGuard, full_name: &str, now_micros: i64) -> Result<Result<Self, Holder>, EngineError> {
        let key = LeaseKey { asset: asset_of(full_name), partition: None };
        let run = RunId(uuid::Uuid::now_v7().to_string());
        let answer = guard.ask(|guard| async move { guard.try_lease(&key, &run, now_micros).await })?;
        Ok(match answer {
            LeaseAnswer::Granted(lease) => Ok(Self { guard: guard.clone(), lease }),
            LeaseAnswer::Held(holder) => Err(Holder::of(holder)),
        })
    }

    /// Returns the fencing token.
    pub fn token(&self) -> i64 {
        self.lease.token
    }

    /// Returns whether the lease is still this process's.
    pub fn holds(&self) -> Result<bool, EngineError> {
        let lease = self.lease.clone();
        self.guard.ask(|guard| async move { guard.holds(&lease).await })
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        let lease = self.lease.clone();
        if let Err(error) = self.guard.ask(|guard| async move { guard.release(&lease).await }) {
            tracing::warn!(%error, "a consumer's lease was not given back; it ends with this process");
        }
    }
}
