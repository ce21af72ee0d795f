//! Leaders: at most one process at a time does a job of a lake that nobody else may do meanwhile, such as its upkeep.
//!
//! Leadership is a lock that the kernel frees when its holder dies, so there is no time limit to wait for.

use std::fs::{File, OpenOptions, TryLockError};

use super::{Guard, GuardError};

/// The right to do one job alone; given back when it is dropped.
#[derive(Debug)]
pub struct Leader {
    _file: File,
}

impl Guard {
    /// Asks to lead the job `name`; `None` when another process leads it. `name` is of letters, digits and dashes.
    pub async fn try_leader(&self, name: &str) -> Result<Option<Leader>, GuardError> {
        debug_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "`{name}` is part of a file's name");
        let path = self.presence.folder().join(format!("leader.{name}"));
        let failed = |operation| {
            let path = path.clone();
            move |source| GuardError::Presence { operation, path, source }
        };
        // The file stays: one that is removed while somebody else opens it would let two lead.
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(failed("open the leader's lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Leader { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(failed("take the leader's lock")(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::guard::Guard;
    use crate::guard::tests::lake;

    #[tokio::test]
    async fn one_leads_each_job_until_it_gives_up() {
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(folder.path());
        let (here, there) = (Guard::open(&lake).await.unwrap(), Guard::open(&lake).await.unwrap());
        let leader = here.try_leader("upkeep").await.unwrap();
        assert!(leader.is_some());
        assert!(there.try_leader("upkeep").await.unwrap().is_none());
        assert!(there.try_leader("another-job").await.unwrap().is_some());
        drop(leader);
        assert!(there.try_leader("upkeep").await.unwrap().is_some());
    }
}
