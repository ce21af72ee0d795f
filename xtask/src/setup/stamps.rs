//! What was checked before: so that a second `setup` reads sizes and times, not 200 MB.
//!
//! The stamps are a cache. A lost, old or unreadable stamp file costs one more hashing, never a wrong answer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::hash;
use super::manifest::NativeFile;

/// What a checked file looked like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    sha256: String,
    size: u64,
    modified_nanos: u128,
}

/// The stamps of one `vendor/` folder, by the place of the file in it.
pub struct Stamps {
    vendor: PathBuf,
    known: BTreeMap<String, Stamp>,
}

impl Stamps {
    /// Reads the stamps of `vendor`; none when there is no readable file of them.
    pub fn load(vendor: &Path) -> Self {
        let known =
            fs::read(Self::file(vendor)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { vendor: vendor.to_path_buf(), known }
    }

    /// Returns whether `file` is in its place with the hash it should have; hashes it when its stamp does not say so.
    pub fn fits(&mut self, file: &NativeFile) -> anyhow::Result<bool> {
        let place = self.vendor.join(&file.to);
        if !place.is_file() {
            return Ok(false);
        }
        if self.known.get(&file.to) == Some(&Self::stamp_of(&place, file)?) {
            return Ok(true);
        }
        if hash::of_file(&place)? != file.sha256 {
            return Ok(false);
        }
        self.record(file)?;
        Ok(true)
    }

    /// Remembers that `file` was just checked.
    pub fn record(&mut self, file: &NativeFile) -> anyhow::Result<()> {
        let stamp = Self::stamp_of(&self.vendor.join(&file.to), file)?;
        self.known.insert(file.to.clone(), stamp);
        let path = Self::file(&self.vendor);
        let text = serde_json::to_string_pretty(&self.known).context("cannot write stamps as JSON")?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn stamp_of(place: &Path, file: &NativeFile) -> anyhow::Result<Stamp> {
        let metadata = fs::metadata(place).with_context(|| format!("cannot read {}", place.display()))?;
        let modified = metadata.modified().context("this file system keeps no modification times")?;
        let modified_nanos = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        Ok(Stamp { sha256: file.sha256.clone(), size: metadata.len(), modified_nanos })
    }

    fn file(vendor: &Path) -> PathBuf {
        vendor.join(".setup-stamps.json")
    }
}
