//! How many bytes snapshots hold: the files that are no longer of the head and that some of them still show.

use crate::id::SnapshotId;

/// A file of the lake with the snapshots that show it: `[begin, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSpan {
    /// The snapshot that added it.
    pub begin: SnapshotId,
    /// The snapshot that took it away; `None` while the head shows it.
    pub end: Option<SnapshotId>,
    /// Its size.
    pub bytes: u64,
}

impl FileSpan {
    /// Whether one of `snapshots`, in order, shows the file.
    fn is_shown_by(&self, snapshots: &[SnapshotId]) -> bool {
        let first = snapshots.partition_point(|snapshot| *snapshot < self.begin);
        snapshots.get(first).is_some_and(|snapshot| self.end.is_none_or(|end| *snapshot < end))
    }
}

/// Returns the bytes that would be free once the head no longer shows them, were it not for `snapshots`, in order.
pub fn bytes_held(files: &[FileSpan], snapshots: &[SnapshotId]) -> u64 {
    let is_old = |file: &&FileSpan| file.end.is_some();
    files.iter().filter(is_old).filter(|file| file.is_shown_by(snapshots)).map(|file| file.bytes).sum()
}

/// Returns the bytes that are free once only `kept`, in order, are left.
pub fn bytes_freed(files: &[FileSpan], kept: &[SnapshotId]) -> u64 {
    let is_old = |file: &&FileSpan| file.end.is_some();
    files.iter().filter(is_old).filter(|file| !file.is_shown_by(kept)).map(|file| file.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(begin: i64, end: Option<i64>, bytes: u64) -> FileSpan {
        FileSpan { begin: SnapshotId(begin), end: end.map(SnapshotId), bytes }
    }

    #[test]
    fn a_file_is_held_by_whoever_shows_it_and_freed_when_nobody_does() {
        let files = [file(1, Some(3), 10), file(3, Some(5), 100), file(2, None, 1_000)];
        let at = |ids: &[i64]| ids.iter().copied().map(SnapshotId).collect::<Vec<_>>();
        assert_eq!(bytes_held(&files, &at(&[2])), 10);
        assert_eq!(bytes_held(&files, &at(&[0, 3])), 100);
        assert_eq!(bytes_held(&files, &at(&[0, 5, 9])), 0);
        assert_eq!(bytes_freed(&files, &at(&[9])), 110);
        assert_eq!(bytes_freed(&files, &at(&[4, 9])), 10);
    }
}
