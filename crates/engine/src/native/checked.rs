//! Which extension files have passed DuckDB's signature check already.
//!
//! The check reads the whole file, 20 to 40 MB, at every load: half of the time in which a lake opens. A file that passed
//! is remembered by what the file system says of it, in this process and, where its folder can be written, in a file
//! beside it; whatever changes the file changes that. Who may write that folder may replace the library, too.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static PASSED: Mutex<BTreeSet<(PathBuf, String)>> = Mutex::new(BTreeSet::new());

/// Returns whether the file at `path` passed the check as it is now.
pub(crate) fn has_passed(path: &Path) -> bool {
    let Some(facts) = facts(path) else { return false };
    let entry = (path.to_owned(), facts);
    let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    if passed.contains(&entry) {
        return true;
    }
    let is_noted = fs::read_to_string(note(path)).is_ok_and(|text| text == entry.1);
    if is_noted {
        passed.insert(entry);
    }
    is_noted
}

/// Remembers that the file at `path` has just passed the check.
pub(crate) fn remember(path: &Path) {
    let Some(facts) = facts(path) else { return };
    // Where the folder is not ours to write, the next process checks again.
    let _ = fs::write(note(path), &facts);
    PASSED.lock().unwrap_or_else(PoisonError::into_inner).insert((path.to_owned(), facts));
}

/// What the file system says of the file: any write, copy or replacement changes it.
fn facts(path: &Path) -> Option<String> {
    let data = fs::metadata(path).ok()?;
    Some(format!(
        "{} bytes, inode {} of {}, written {}.{:09}, changed {}.{:09}\n",
        data.len(),
        data.ino(),
        data.dev(),
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec()
    ))
}

fn note(path: &Path) -> PathBuf {
    path.with_extension("duckdb_extension.checked")
}

#[cfg(test)]
mod tests {
    use super::{has_passed, note, remember};

    #[test]
    fn a_file_that_changed_or_was_copied_is_checked_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.duckdb_extension");
        std::fs::write(&file, "one").unwrap();
        assert!(!has_passed(&file));
        remember(&file);
        assert!(has_passed(&file));
        let copy = folder.path().join("b.duckdb_extension");
        std::fs::copy(&file, &copy).unwrap();
        std::fs::copy(note(&file), note(&copy)).unwrap();
        assert!(!has_passed(&copy));
        std::fs::write(&file, "two").unwrap();
        assert!(!has_passed(&file));
    }
}
