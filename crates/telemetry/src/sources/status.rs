//! Whether a source reaches its broker: for `/ready`, for metrics, and once in words at each change.

use std::error::Error;

use tokio::sync::watch;

use super::SourceError;

/// How a source is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// It has not reached its broker yet.
    #[default]
    Connecting,
    /// Its broker answers.
    Up,
    /// Its broker is away or refuses.
    Away,
    /// Its broker answers, and what it brings cannot land.
    Waiting,
}

/// What others may know of a source; clones are the same one.
#[derive(Clone, Debug)]
pub struct SourceStatus {
    name: &'static str,
    reach: watch::Sender<Reach>,
}

impl SourceStatus {
    /// Returns the status of the source `name`, which has reached nothing yet.
    pub fn new(name: &'static str) -> Self {
        let status = Self { name, reach: watch::Sender::default() };
        status.count();
        status
    }

    /// Returns how the source is called.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns how it is doing.
    pub fn reach(&self) -> Reach {
        *self.reach.borrow()
    }

    /// Says that the broker answers, which may be long before anything lands.
    pub(super) fn reached(&self) {
        match self.reach() {
            Reach::Connecting => self.set(Reach::Up),
            Reach::Away => {
                self.set(Reach::Up);
                tracing::warn!(source = self.name, "the source is back");
            }
            // What waits for the lake says so itself when it has landed.
            Reach::Up | Reach::Waiting => {}
        }
    }

    /// Says that what was brought has landed, if there was anything.
    pub(super) fn landed(&self) {
        if self.reach() == Reach::Waiting {
            self.set(Reach::Up);
            tracing::warn!(source = self.name, "what the source brings lands again");
        }
    }

    /// Says why a step has failed; it is told once, until something changes.
    pub(super) fn failed(&self, error: &SourceError) {
        let (now, told) = match error {
            SourceError::Broker { .. } => {
                (Reach::Away, "the source is away; it is tried again, and nothing else waits for it")
            }
            _ => (Reach::Waiting, "what the source brings cannot land; it is tried again"),
        };
        let (error, before) = (error as &dyn Error, self.reach());
        self.set(now);
        match before == now {
            true => tracing::debug!(error, source = self.name, "{told}"),
            false => tracing::warn!(error, source = self.name, "{told}"),
        }
    }

    /// Says how the source is doing.
    pub fn set(&self, reach: Reach) {
        self.reach.send_replace(reach);
        self.count();
    }

    fn count(&self) {
        let is_up = matches!(self.reach(), Reach::Up | Reach::Waiting);
        metrics::gauge!("pintail_ingest_source_up", "source" => self.name).set(f64::from(u8::from(is_up)));
    }
}
