//! The way in: what arrived is made durable, large payloads first.
//!
//! Invariant: when [`Intake::accept`] returns, every record is in the log on disk, and what its payloads point to is in
//! the blob store. Who sent it is not known here.

use crate::blob::{BlobError, Blobs};
use crate::log::{AppendError, Log, LogPosition, Record};

/// Why nothing was accepted; all of it may be sent again.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// The log did not take it.
    #[error(transparent)]
    Log(#[from] AppendError),
    /// A large payload could not be stored.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// The log, and the store of large payloads before it.
#[derive(Clone, Debug)]
pub struct Intake {
    log: Log,
    blobs: Option<Blobs>,
}

impl Intake {
    /// Returns the way into `log`; without `blobs` payloads of every size go into it.
    pub fn new(log: Log, blobs: Option<Blobs>) -> Self {
        Self { log, blobs }
    }

    /// Makes `records` durable, all or none.
    pub async fn accept(&self, mut records: Vec<Record>) -> Result<LogPosition, IntakeError> {
        if let Some(blobs) = &self.blobs {
            // Otherwise every try against a full log would store its payloads.
            self.log.check_room()?;
            for record in &mut records {
                if let Record::Event(arrival) = record {
                    blobs.move_out(arrival).await?;
                }
            }
        }
        Ok(self.log.append(&records).await?)
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.log
    }
}
