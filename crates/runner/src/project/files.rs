//! What local files looked like when they were read, so that a change of them is noticed.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use pintail_core::asset::Asset;
use sha2::{Digest, Sha256};

use crate::workspace::Project;

/// Returns the fingerprint of the local files behind `asset`: names, sizes and times of change; `None` for an asset that
/// is not a local file. Files that are not there have a fingerprint too.
pub fn fingerprint(project: &Project, asset: &Asset) -> Option<String> {
    let Asset::Volume { volume, path } = asset else { return None };
    let folder = folder_of(project, volume)?;
    let mut digest = Sha256::new();
    for file in files(&folder, path) {
        let Ok(facts) = std::fs::metadata(&file) else { continue };
        let changed = facts.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        digest.update(file.strip_prefix(&folder).unwrap_or(&file).to_string_lossy().as_bytes());
        digest.update(facts.len().to_le_bytes());
        digest.update(changed.map_or(0, |time| time.as_nanos()).to_le_bytes());
    }
    Some(digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the folder of `volume`; the project's own is always there.
pub(super) fn folder_of(project: &Project, volume: &str) -> Option<PathBuf> {
    match volume {
        "project" => Some(project.root.clone()),
        name => project.config.volumes.get(name).map(|volume| volume.path.clone()),
    }
}

/// Returns the files that `pattern` names below `folder`, in order.
fn files(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    if !pattern.contains(['*', '?', '[', '{']) {
        return vec![folder.join(pattern)];
    }
    let Ok(glob) = GlobBuilder::new(pattern).literal_separator(true).build() else { return Vec::new() };
    let matcher = glob.compile_matcher();
    let fixed: PathBuf =
        Path::new(pattern).iter().take_while(|part| !part.to_string_lossy().contains(['*', '?', '[', '{'])).collect();
    let mut found: Vec<PathBuf> = ignore::WalkBuilder::new(folder.join(fixed))
        .standard_filters(false)
        .build()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path)
        .filter(|path| path.strip_prefix(folder).is_ok_and(|below| matcher.is_match(below)))
        .collect();
    found.sort();
    found
}
