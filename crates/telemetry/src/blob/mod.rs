//! The blob store: payloads that are too large for a row, as objects of a folder or of S3.
//!
//! Invariant: an object is whole or not there. In a folder it is written under a temporary name, synced, renamed, and the
//! folder is synced; in S3 it is one PUT. It is written before the row that names it, so a crash leaves at most an object that
//! no row names. A key is made of an event and its payload and of nothing else, so that an event that comes again, since its
//! sender got no answer, is written over the object that it has already, also by another process on another machine; another
//! event or payload never has the same one.

mod fetch;
mod local;
mod seal;

use std::path::PathBuf;
use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};

use sha2::{Digest as _, Sha256};

pub use fetch::FetchedBlobs;
pub use seal::{KeyRing, SealError};

use crate::cloudevents::{EventTime, Payload};
use crate::log::Arrival;

/// Where the keys of objects begin.
pub const PREFIX: &str = "cloudevent/blobs";

/// A payload that could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The folder failed.
    #[error("could not {operation} {}", .path.display())]
    File {
        /// `write`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The object store failed.
    #[error("could not {operation} the object {key}")]
    Store {
        /// `write`.
        operation: &'static str,
        /// The object.
        key: String,
        /// Why.
        #[source]
        source: object_store::Error,
    },
    /// There is no object of that key.
    #[error("there is no object {key} in the blob store")]
    Missing {
        /// The key.
        key: String,
    },
    /// The key is not one of ours.
    #[error("`{key}` is no key of the blob store: it must begin with `{PREFIX}/` and have no `..`")]
    ForeignKey {
        /// The key.
        key: String,
    },
    /// It could not be sealed or opened.
    #[error("object {key}: {source}")]
    Seal {
        /// The object.
        key: String,
        /// Why.
        #[source]
        source: SealError,
    },
}

/// A store of payloads.
#[derive(Clone, Debug)]
pub struct Blobs {
    place: Place,
    /// Larger payloads than this go out, in bytes.
    threshold: usize,
    keys: KeyRing,
}

#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    Store { store: Arc<dyn ObjectStore>, prefix: String },
}

impl Blobs {
    /// Returns the store in `folder`.
    pub fn in_folder(folder: PathBuf, threshold: usize, keys: KeyRing) -> Self {
        Self { place: Place::Folder(folder), threshold, keys }
    }

    /// Returns the store under `prefix` of an object store.
    pub fn in_store(store: Arc<dyn ObjectStore>, prefix: &str, threshold: usize, keys: KeyRing) -> Self {
        let prefix = prefix.trim_matches('/').to_owned();
        Self { place: Place::Store { store, prefix }, threshold, keys }
    }

    /// Moves the payload of `arrival` out when it is larger than the threshold; the event then names its object.
    pub async fn move_out(&self, arrival: &mut Arrival) -> Result<(), BlobError> {
        // The text of a payload is never shorter than its bytes.
        if arrival.event.data.text_length() <= self.threshold {
            return Ok(());
        }
        let Some(bytes) = arrival.event.data.bytes().filter(|bytes| self.threshold < bytes.len()) else {
            return Ok(());
        };
        let key = self.key(arrival, &bytes);
        self.put(&key, &bytes).await?;
        metrics::counter!("pintail_ingest_blobs_total").increment(1);
        arrival.event.data = Payload::Stored { key };
        Ok(())
    }

    /// Returns `cloudevent/blobs/<subject>/<year>/<month>/<day>/<uuid>`, the same one for the same event and payload.
    fn key(&self, arrival: &Arrival, payload: &[u8]) -> String {
        let time = arrival.event.time.unwrap_or(EventTime::from_micros(arrival.received_micros)).whole_seconds();
        let day = time[..10].replace('-', "/");
        let subject = arrival.event.subject.as_deref().unwrap_or("none");
        let identity = arrival.event.identity();
        let mut hash = Sha256::new();
        hash.update(self.keys.naming());
        hash.update((identity.len() as u64).to_le_bytes());
        hash.update(identity);
        hash.update(payload);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
        format!("{PREFIX}/{}/{day}/{id}", folder_name(subject))
    }

    /// Writes an object, sealed when there is a key to seal with.
    pub async fn put(&self, key: &str, bytes: &[u8]) -> Result<(), BlobError> {
        check_key(key)?;
        let sealed = self.keys.seal(key, bytes);
        let content = sealed.map_err(|source| BlobError::Seal { key: key.to_owned(), source })?;
        match &self.place {
            Place::Folder(folder) => {
                let path = folder.join(key);
                let written = tokio::task::spawn_blocking(move || local::write(&path, &content)).await;
                written.expect("writing a file does not panic")
            }
            Place::Store { store, prefix } => {
                let put = store.put(&object(prefix, key), content.into()).await;
                put.map(|_| ()).map_err(|source| failed("write", key, source))
            }
        }
    }

    /// Reads an object, whether or not it is sealed.
    pub async fn get(&self, key: &str) -> Result<Vec<u8>, BlobError> {
        check_key(key)?;
        let missing = || BlobError::Missing { key: key.to_owned() };
        let content = match &self.place {
            Place::Folder(folder) => {
                let path = folder.join(key);
                let read = tokio::task::spawn_blocking(move || local::read(&path)).await;
                read.expect("reading a file does not panic")?.ok_or_else(missing)?
            }
            Place::Store { store, prefix } => match store.get(&object(prefix, key)).await {
                Err(object_store::Error::NotFound { .. }) => return Err(missing()),
                got => {
                    let bytes = got.map_err(|source| failed("read", key, source))?.bytes().await;
                    bytes.map_err(|source| failed("read", key, source))?.to_vec()
                }
            },
        };
        self.keys.open(key, content).map_err(|source| BlobError::Seal { key: key.to_owned(), source })
    }
}

/// Returns `subject` as the name of one folder: what a file system or a URL reads as something else is a `_`.
fn folder_name(subject: &str) -> String {
    const LONGEST: usize = 120;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | ',');
    let name: String = subject.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect();
    match name.trim_matches('.').is_empty() {
        true => "_".to_owned(),
        false => name,
    }
}

/// A key comes from a row, and must not lead anywhere else.
fn check_key(key: &str) -> Result<(), BlobError> {
    let rest = key.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/'));
    let is_ours = rest.is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")));
    match is_ours {
        true => Ok(()),
        false => Err(BlobError::ForeignKey { key: key.to_owned() }),
    }
}

fn object(prefix: &str, key: &str) -> Key {
    match prefix {
        "" => Key::from(key),
        prefix => Key::from(format!("{prefix}/{key}")),
    }
}

fn failed(operation: &'static str, key: &str, source: object_store::Error) -> BlobError {
    BlobError::Store { operation, key: key.to_owned(), source }
}

#[cfg(test)]
mod tests;
