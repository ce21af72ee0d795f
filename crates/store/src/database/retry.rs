//! Repeats what was lost with a connection.
//!
//! Invariant: only an operation that has written nothing is repeated: a read, or a transaction that is known to be
//! rolled back. Waiting for locks is not here: each backend waits by itself.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};

use crate::error::{ReadError, WriteError, is_lost};

/// An error that may say that the connection was lost.
pub(crate) trait MaybeLost {
    fn is_lost(&self) -> bool;
}

impl MaybeLost for sqlx::Error {
    fn is_lost(&self) -> bool {
        is_lost(self)
    }
}

impl MaybeLost for ReadError {
    fn is_lost(&self) -> bool {
        is_lost(&self.source)
    }
}

impl MaybeLost for WriteError {
    fn is_lost(&self) -> bool {
        matches!(self, WriteError::Database { source, .. } if is_lost(source))
    }
}

/// Repeats `operation` while it loses its connection, or its transaction to another one; about half a minute, in which a
/// server restarts.
pub(crate) async fn retry<T, E, F>(operation: impl FnMut() -> F) -> Result<T, E>
where
    E: MaybeLost,
    F: Future<Output = Result<T, E>>,
{
    operation.retry(schedule()).when(E::is_lost).await
}

/// Returns the pauses between two tries.
pub(super) fn schedule() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(25))
        .with_max_delay(Duration::from_secs(2))
        .with_factor(2.0)
        .with_jitter()
        .with_max_times(20)
}
