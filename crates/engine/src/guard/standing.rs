//! The guard for code that is not asynchronous: the same guard, asked on the engine's own runtime.
//!
//! What it does is the guard's; here is only the waiting. It may be used from anywhere, also from asynchronous code, where
//! it blocks the thread.

use std::sync::Arc;

use super::{Guard, GuardError};
use crate::error::EngineError;
use crate::lake::LakeLocation;
use crate::postgres;

/// A guard that stands open for as long as the value, or a clone of it, lives.
#[derive(Clone, Debug)]
pub struct StandingGuard(Arc<Guard>);

impl StandingGuard {
    /// Opens the guard of `lake` and announces this process.
    pub fn open(lake: &LakeLocation) -> Result<Self, EngineError> {
        let lake = lake.clone();
        let guard = postgres::wait(async move { Guard::open(&lake).await })??;
        Ok(Self(Arc::new(guard)))
    }

    /// Asks the guard and waits for its answer.
    pub fn ask<T, F>(&self, question: impl FnOnce(Arc<Guard>) -> F) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, GuardError>> + Send + 'static,
    {
        Ok(postgres::wait(question(self.0.clone()))??)
    }
}
