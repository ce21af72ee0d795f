//! Presence: a locked file per process, so that anyone can see at once whether an owner still lives.
//!
//! The kernel frees the lock when the process dies, also by SIGKILL; process ids and heartbeats are not needed for that.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::GuardError;

/// The identity of one process in a guard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnerId(pub String);

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// This process's presence, and the view of others'.
#[derive(Debug)]
pub struct Presence {
    folder: PathBuf,
    owner: OwnerId,
    file: File,
}

impl Presence {
    /// Announces this process in `folder`.
    pub fn announce(folder: &Path) -> Result<Self, GuardError> {
        let failed = |operation, path: &Path| {
            let path = path.to_owned();
            move |source| GuardError::Presence { operation, path, source }
        };
        fs::create_dir_all(folder).map_err(failed("create the folder", folder))?;
        let owner = OwnerId(uuid::Uuid::now_v7().to_string());
        let path = folder.join(&owner.0);
        let file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&path)
            .map_err(failed("create the presence file", &path))?;
        file.lock().map_err(failed("lock the presence file", &path))?;
        Ok(Self { folder: folder.to_owned(), owner, file })
    }

    /// Returns this process's identity.
    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// Returns the folder of the presence files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether `owner` lives. A dead owner's file is removed on the way.
    pub fn is_alive(&self, owner: &OwnerId) -> bool {
        if *owner == self.owner {
            return true;
        }
        is_locked(&self.folder.join(&owner.0))
    }
}

/// Returns whether the owner of the presence file at `path` lives. A dead owner's file is removed on the way.
pub(super) fn is_locked(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return false };
    match file.try_lock() {
        Ok(()) => {
            // Nobody else can announce under this id again, so a failed removal only leaves an empty file.
            let _ = fs::remove_file(path);
            false
        }
        Err(TryLockError::WouldBlock) => true,
        // An unreadable lock is taken for a living owner: waiting is safe, stealing is not.
        Err(TryLockError::Error(_)) => true,
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(&self.owner.0));
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::{OwnerId, Presence};

    #[test]
    fn the_living_are_seen_and_the_dead_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let here = Presence::announce(folder.path()).unwrap();
        let there = Presence::announce(folder.path()).unwrap();
        let gone = there.owner().clone();
        assert!(here.is_alive(here.owner()));
        assert!(here.is_alive(&gone));
        drop(there);
        assert!(!here.is_alive(&gone));
        assert!(!here.is_alive(&OwnerId("never-there".to_owned())));
    }

    #[test]
    fn a_file_left_by_a_killed_process_is_dead_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let here = Presence::announce(folder.path()).unwrap();
        let left = folder.path().join("left-behind");
        std::fs::write(&left, "").unwrap();
        assert!(!here.is_alive(&OwnerId("left-behind".to_owned())));
        assert!(!left.exists());
    }
}
