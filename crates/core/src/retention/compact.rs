//! Which tables are worth compacting, how much at once, and where it is allowed.
//!
//! Invariant: rewriting is not safe for a consumer of the change feed, so a table with a consumer, or with one that nobody
//! knows, is never rewritten. Merging is safe for everybody who reads, but for one thing: merged files forget which row an
//! update changed, so that who has not read the update yet would see another row come. How files are merged is the engine's.

use std::time::Duration;

use crate::id::SnapshotId;

/// The files of one table that the head shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFiles {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// All files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows, deleted ones included.
    pub records: u64,
    /// Rows that are deleted.
    pub deleted: u64,
    /// Small files that have another small one in their partition.
    pub mergeable: u64,
    /// The bytes of those.
    pub mergeable_bytes: u64,
    /// The partitions that they are in.
    pub merge_groups: u64,
    /// Files with deleted rows.
    pub with_deletes: u64,
}

/// How many files one merge writes at most: it begins small and doubles while memory suffices.
///
/// A merge holds what it writes while it sorts, so the ceiling is what half of the memory holds of files of the target
/// size, or of all there is to merge when that is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    next: u64,
    ceiling: u64,
}

/// The first merge of a table writes no more files than this, unless a sixteenth of the ceiling is more.
const FIRST: u64 = 8;

/// No merge writes more files than this, so that the lane is free again soon.
const MOST: u64 = 1_000;

impl Ramp {
    /// Returns the ramp for a table with these files.
    pub fn new(files: &TableFiles, memory_bytes: u64, target_bytes: u64) -> Self {
        let groups = files.merge_groups.max(1);
        let per_file = (files.mergeable_bytes / groups).clamp(1, target_bytes.max(1));
        let ceiling = (memory_bytes / 2 / per_file).clamp(1, MOST);
        Self { next: FIRST.max(ceiling / 16).min(ceiling), ceiling }
    }

    /// Returns how many files the next merge may write.
    pub fn next(self) -> u64 {
        self.next
    }

    /// Returns the ramp after a merge that worked and took so long: writers of the table wait for as long.
    #[must_use]
    pub fn after_success(self, took: Duration) -> Self {
        let next = if took < LONG { (self.next * 2).min(self.ceiling) } else { (self.next / 2).max(1) };
        Self { next, ..self }
    }

    /// Returns the ramp after a merge that ran out of memory; `None` when a single file is too much.
    #[must_use]
    pub fn after_out_of_memory(self) -> Option<Self> {
        let half = self.next / 2;
        (0 < half).then_some(Self { next: half, ceiling: half })
    }
}

/// A merge that takes this long is followed by a smaller one.
const LONG: Duration = Duration::from_secs(2);

/// Why a table with many deleted rows is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteRefused {
    /// This consumer reads its change feed.
    Consumed(String),
    /// Somebody consumes this lake, and nobody here knows which of its tables.
    UnknownSource(String),
}

/// A consumer of a lake and the table that it reads, where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownConsumer {
    /// Its name.
    pub name: String,
    /// Schema and table; `None` for a consumer of another program.
    pub source: Option<(String, String)>,
    /// The last snapshot that it has read.
    pub upto: SnapshotId,
}

impl KnownConsumer {
    /// Returns whether it reads the table of `files`; one that nobody knows may.
    fn may_read(&self, files: &TableFiles) -> bool {
        self.source.as_ref().is_none_or(|(schema, table)| {
            schema.eq_ignore_ascii_case(&files.schema) && table.eq_ignore_ascii_case(&files.table)
        })
    }
}

/// Returns the consumer that is furthest behind among those of a table's change feed, and what it has not read of `changing`:
/// the snapshots that both deleted and inserted rows of the table. Where one of them updated rows, no file is merged before
/// it is read.
pub fn unread_changes(
    files: &TableFiles,
    consumers: &[KnownConsumer],
    changing: &[SnapshotId],
) -> Option<(String, Vec<SnapshotId>)> {
    let last = consumers.iter().filter(|consumer| consumer.may_read(files)).min_by_key(|consumer| consumer.upto)?;
    let unread: Vec<SnapshotId> = changing.iter().copied().filter(|snapshot| last.upto < *snapshot).collect();
    (!unread.is_empty()).then(|| (last.name.clone(), unread))
}

/// Returns whether at least the part `threshold` of a table's rows is deleted, and it may be rewritten.
pub fn may_rewrite(files: &TableFiles, consumers: &[KnownConsumer], threshold: f64) -> Result<bool, RewriteRefused> {
    if files.records == 0 || (files.deleted as f64) < files.records as f64 * threshold {
        return Ok(false);
    }
    match consumers.iter().find(|consumer| consumer.may_read(files)) {
        None => Ok(true),
        Some(consumer) if consumer.source.is_none() => Err(RewriteRefused::UnknownSource(consumer.name.clone())),
        Some(consumer) => Err(RewriteRefused::Consumed(consumer.name.clone())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{KnownConsumer, Ramp, RewriteRefused, TableFiles, may_rewrite, unread_changes};
    use crate::id::SnapshotId;

    const MB: u64 = 1_000_000;

    fn files(groups: u64, bytes: u64) -> TableFiles {
        TableFiles { merge_groups: groups, mergeable_bytes: bytes, ..TableFiles::default() }
    }

    #[test]
    fn merges_double_until_half_of_the_memory_is_used() {
        let mut ramp = Ramp::new(&files(100, 100 * 50 * MB), 2_000 * MB, 512 * MB);
        let mut seen = vec![ramp.next()];
        for _ in 0..3 {
            ramp = ramp.after_success(Duration::ZERO);
            seen.push(ramp.next());
        }
        assert_eq!(seen, [8, 16, 20, 20]);
    }

    #[test]
    fn a_merge_that_keeps_writers_waiting_is_followed_by_smaller_ones() {
        let mut ramp = Ramp::new(&files(100, 100 * MB), 2_000 * MB, 512 * MB);
        let mut seen = Vec::new();
        for seconds in [1, 1, 2, 9, 1, 60, 60, 60, 60, 60] {
            ramp = ramp.after_success(Duration::from_secs(seconds));
            seen.push(ramp.next());
        }
        assert_eq!(seen, [124, 248, 124, 62, 124, 62, 31, 15, 7, 3]);
    }

    #[test]
    fn out_of_memory_halves_for_good_and_ends_at_one() {
        let ramp = Ramp::new(&files(10, 10 * MB), 20 * MB, 512 * MB).after_out_of_memory().unwrap();
        assert_eq!((ramp.next(), ramp.after_success(Duration::ZERO).next()), (4, 4));
        let one = ramp.after_out_of_memory().and_then(Ramp::after_out_of_memory).unwrap();
        assert_eq!((one.next(), one.after_out_of_memory()), (1, None));
    }

    #[test]
    fn a_table_that_is_larger_than_the_memory_is_merged_one_file_at_a_time() {
        assert_eq!(Ramp::new(&files(1, 9_000 * MB), 100 * MB, 512 * MB).next(), 1);
        assert_eq!(Ramp::new(&TableFiles::default(), 100 * MB, 512 * MB).next(), 62, "small files need little");
    }

    #[test]
    fn a_table_that_somebody_consumes_is_not_rewritten() {
        let heavy = TableFiles { schema: "main".into(), table: "T".into(), records: 10, deleted: 6, ..files(0, 0) };
        let consumer = |source: Option<(&str, &str)>| KnownConsumer {
            name: "c".into(),
            source: source.map(|(schema, table)| (schema.into(), table.into())),
            upto: SnapshotId(0),
        };
        let ask = |consumers: &[KnownConsumer], threshold| may_rewrite(&heavy, consumers, threshold);
        assert_eq!(ask(&[], 0.5), Ok(true));
        assert_eq!(ask(&[], 0.7), Ok(false));
        assert_eq!(ask(&[consumer(Some(("main", "u")))], 0.5), Ok(true));
        assert_eq!(ask(&[consumer(Some(("MAIN", "t")))], 0.5), Err(RewriteRefused::Consumed("c".into())));
        assert_eq!(ask(&[consumer(None)], 0.5), Err(RewriteRefused::UnknownSource("c".into())));
        assert_eq!(ask(&[consumer(None)], 0.7), Ok(false), "nothing to refuse");
    }

    #[test]
    fn changes_are_unread_while_the_slowest_consumer_of_the_table_is_behind_them() {
        let files = TableFiles { schema: "main".into(), table: "t".into(), ..files(1, MB) };
        let consumer = |name: &str, table: Option<&str>, upto| KnownConsumer {
            name: name.into(),
            source: table.map(|table| ("main".into(), table.into())),
            upto: SnapshotId(upto),
        };
        let ask = |consumers: &[KnownConsumer]| {
            let found = unread_changes(&files, consumers, &[SnapshotId(5), SnapshotId(7)]);
            found.map(|(name, unread)| (name, unread.iter().map(|snapshot| snapshot.0).collect::<Vec<_>>()))
        };
        let (other, fast, slow) =
            (consumer("other", Some("u"), 1), consumer("fast", Some("T"), 7), consumer("slow", Some("t"), 5));
        assert_eq!(ask(&[]), None);
        assert_eq!(ask(&[other.clone(), fast.clone()]), None);
        assert_eq!(ask(&[other, fast, slow]), Some(("slow".into(), vec![7])));
        assert_eq!(ask(&[consumer("foreign", None, 4)]), Some(("foreign".into(), vec![5, 7])));
    }
}
