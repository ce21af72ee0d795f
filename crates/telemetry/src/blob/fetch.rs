//! The blob store as decoders ask it: many payloads at once, and what is wrong for good told from what may pass.

use futures_util::{StreamExt as _, stream};
use pintail_streams::ResolveError;
use tokio::runtime::Handle;

use super::{BlobError, Blobs};
use crate::decode::blobs::{self, Fetched};

/// So many objects are read at once.
const PARALLEL: usize = 16;

/// A larger payload is not decoded.
const LARGEST: usize = 50 << 20;

/// A store for a thread that is not one of tokio's.
#[derive(Clone, Debug)]
pub struct FetchedBlobs {
    blobs: Blobs,
    runtime: Handle,
}

impl FetchedBlobs {
    /// Returns `blobs`, read on `runtime`.
    pub fn new(blobs: Blobs, runtime: Handle) -> Self {
        Self { blobs, runtime }
    }

    async fn one(&self, key: &str) -> Result<Fetched, ResolveError> {
        match self.blobs.get(key).await {
            Ok(payload) if payload.len() <= LARGEST => Ok(Fetched::Payload(payload)),
            Ok(payload) => {
                let reason =
                    format!("the payload {key} has {} bytes, more than the {LARGEST} that are decoded", payload.len());
                Ok(Fetched::Unusable(reason))
            }
            Err(error @ (BlobError::Missing { .. } | BlobError::ForeignKey { .. } | BlobError::Seal { .. })) => {
                Ok(Fetched::Unusable(error.to_string()))
            }
            Err(error) => Err(ResolveError { what: format!("the blob `{key}`"), source: Box::new(error) }),
        }
    }
}

impl blobs::Blobs for FetchedBlobs {
    fn fetch(&self, keys: &[&str]) -> Result<Vec<Fetched>, ResolveError> {
        let fetched = stream::iter(keys.iter().map(|key| self.one(key))).buffered(PARALLEL);
        self.runtime.block_on(fetched.collect::<Vec<_>>()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyRing;
    use super::*;
    use crate::decode::blobs::Blobs as _;

    #[test]
    fn what_is_wrong_for_good_is_told_from_what_may_pass() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::in_folder(folder.path().to_owned(), 1, KeyRing::default());
        runtime.block_on(blobs.put("cloudevent/blobs/a/1", b"one")).unwrap();
        let fetched = FetchedBlobs::new(blobs, runtime.handle().clone());
        let keys = ["cloudevent/blobs/a/1", "cloudevent/blobs/a/2", "../x"];
        let answers = fetched.fetch(&keys).unwrap();
        assert_eq!(answers[0], Fetched::Payload(b"one".to_vec()));
        assert!(
            matches!(&answers[1], Fetched::Unusable(reason) if reason.contains("there is no object")),
            "{answers:?}"
        );
        assert!(matches!(&answers[2], Fetched::Unusable(reason) if reason.contains("is no key")), "{answers:?}");
        // A folder in an object's place cannot be read, which somebody may mend.
        std::fs::create_dir_all(folder.path().join("cloudevent/blobs/a/3")).unwrap();
        assert!(fetched.fetch(&["cloudevent/blobs/a/3"]).is_err());
    }
}
