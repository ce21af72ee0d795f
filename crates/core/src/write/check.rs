//! The check inside the transaction: did anyone change what this write was prepared against?
//!
//! DuckLake does not notice two replaces of one slice when the second begins after the first committed, nor two writes
//! that delete nothing. So the first thing in every transaction is to read the commits since the write was prepared.

use crate::id::{AttemptId, RunId, SnapshotId, StepId, TableId};
use crate::partition::PartitionKey;
use crate::sql::changes::ChangeSet;
use crate::sql::stamp::StampEntry;

/// One commit that lies between preparing and writing.
#[derive(Clone, Debug)]
pub struct SeenCommit {
    /// Its snapshot.
    pub snapshot: SnapshotId,
    /// What it changed.
    pub changes: ChangeSet,
    /// What it says about itself, when it is ours.
    pub stamps: Vec<StampEntry>,
    /// Who says to have made it.
    pub author: Option<String>,
}

/// What is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct CheckFacts<'a> {
    /// This attempt.
    pub attempt: &'a AttemptId,
    /// Its step: an earlier attempt of it may have committed although its outcome was never read.
    pub step: &'a StepId,
    /// The canonical asset.
    pub asset: &'a str,
    /// The slice; `None` for the whole asset.
    pub partition: Option<&'a PartitionKey>,
    /// The target table's id; `None` when it did not exist.
    pub table_id: Option<TableId>,
    /// The target's schema.
    pub schema: &'a str,
    /// The target's name.
    pub table: &'a str,
    /// Whether the script reads its own target.
    pub reads_target: bool,
    /// The head when the lease was held: changes of other slices and of foreign writers count after it. For a script that
    /// reads its target, the snapshot that it has read: every change after it counts.
    pub base: SnapshotId,
}

/// What the commits mean for the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// Nobody was there.
    Clear,
    /// This very step has committed already; its outcome was unknown.
    Done {
        /// The snapshot that it made.
        snapshot: SnapshotId,
    },
    /// A newer run has written this slice; landing now would put older data over newer.
    Superseded {
        /// The newer commit.
        snapshot: SnapshotId,
        /// Its run.
        run: RunId,
    },
    /// The stage is based on a target that has changed since.
    Conflict {
        /// The commit in the way.
        snapshot: SnapshotId,
        /// Who made it: a run of ours, or a foreign author.
        by: String,
        /// Whether it was not Pintail.
        is_foreign: bool,
    },
}

/// Decides what `commits`, all those since the older of the run's pin and the base in order, mean for the write.
///
/// The commits before the base matter too: an earlier attempt of the step whose outcome was never read, and a run with
/// a newer pin, may lie among them.
pub fn check(facts: &CheckFacts<'_>, commits: &[SeenCommit]) -> Check {
    let is_own =
        |entry: &StampEntry| entry.attempt == *facts.attempt || (entry.step == *facts.step && entry.is_version());
    if let Some(commit) = commits.iter().find(|commit| commit.stamps.iter().any(is_own)) {
        return Check::Done { snapshot: commit.snapshot };
    }
    let mut conflict = None;
    for commit in commits {
        match judge(facts, commit) {
            Check::Clear => {}
            // A newer write of the slice says more than any conflict.
            superseded @ Check::Superseded { .. } => return superseded,
            other => conflict = conflict.or(Some(other)),
        }
    }
    conflict.unwrap_or(Check::Clear)
}

fn judge(facts: &CheckFacts<'_>, commit: &SeenCommit) -> Check {
    let conflict = |by: String, is_foreign| Check::Conflict { snapshot: commit.snapshot, by, is_foreign };
    let ours: Vec<&StampEntry> = commit.stamps.iter().filter(|entry| entry.asset == facts.asset).collect();
    if let Some(entry) = ours.iter().find(|entry| overlaps(facts.partition, entry.partition.as_ref())) {
        // Who reads the target must see the newer version and write on top of it; anyone else has nothing to add.
        return match facts.reads_target {
            true if commit.snapshot <= facts.base => Check::Clear,
            true => conflict(format!("run {}", entry.run), false),
            false if entry.is_version() => Check::Superseded { snapshot: commit.snapshot, run: entry.run.clone() },
            // A table that is made or taken over meanwhile has another shape than the one that was looked at.
            false if facts.base < commit.snapshot => conflict(format!("run {}", entry.run), false),
            false => Check::Clear,
        };
    }
    if commit.snapshot <= facts.base {
        return Check::Clear;
    }
    let touches = facts.table_id.is_some_and(|id| commit.changes.touches_table(id))
        || commit.changes.creates(facts.schema, facts.table);
    match (touches, ours.first()) {
        (false, _) => Check::Clear,
        (true, Some(_)) if !facts.reads_target && facts.table_id.is_some() => Check::Clear,
        (true, Some(entry)) => conflict(format!("run {}", entry.run), false),
        (true, None) => conflict(commit.author.clone().unwrap_or_else(|| "an unknown writer".to_owned()), true),
    }
}

/// Whether two slices share rows; the whole asset shares rows with every slice.
fn overlaps(one: Option<&PartitionKey>, other: Option<&PartitionKey>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::id::ScriptHash;

    fn entry(attempt: &str, partition: Option<&str>) -> StampEntry {
        StampEntry {
            attempt: AttemptId(attempt.to_owned()),
            run: RunId("other".to_owned()),
            step: StepId("s".to_owned()),
            asset: "ducklake://main/t".to_owned(),
            script: "t".to_owned(),
            table_id: None,
            generation: 0,
            partition: partition.map(|key| PartitionKey(key.to_owned())),
            window: None,
            increment: None,
            strategy: "replace".to_owned(),
            deleted: 0,
            inserted: 1,
            rows: None,
            schema_version: 1,
            script_hash: ScriptHash(String::new()),
            inputs: BTreeMap::new(),
            files: BTreeMap::new(),
            atomic: false,
            restored: None,
        }
    }

    fn commit(snapshot: i64, changes: &str, stamps: Vec<StampEntry>) -> SeenCommit {
        SeenCommit {
            snapshot: SnapshotId(snapshot),
            changes: ChangeSet::parse(changes),
            stamps,
            author: Some("bob".to_owned()),
        }
    }

    struct Case {
        partition: Option<&'static str>,
        reads_target: bool,
        table_id: Option<i64>,
    }

    impl Case {
        fn check(&self, commits: &[SeenCommit]) -> Check {
            let partition = self.partition.map(|key| PartitionKey(key.to_owned()));
            check(
                &CheckFacts {
                    attempt: &AttemptId("mine".to_owned()),
                    step: &StepId("mine".to_owned()),
                    asset: "ducklake://main/t",
                    partition: partition.as_ref(),
                    table_id: self.table_id.map(TableId),
                    schema: "main",
                    table: "t",
                    reads_target: self.reads_target,
                    base: SnapshotId(10),
                },
                commits,
            )
        }
    }

    const SLICE: Case = Case { partition: Some("2026-01-01"), reads_target: false, table_id: Some(7) };

    #[test]
    fn work_on_other_tables_is_clear() {
        assert_eq!(SLICE.check(&[commit(11, "inserted_into_table:8", vec![])]), Check::Clear);
        assert_eq!(SLICE.check(&[]), Check::Clear);
    }

    #[test]
    fn another_slice_of_ours_is_clear_unless_the_script_reads_its_target() {
        let sibling = commit(11, "inserted_into_table:7", vec![entry("a", Some("2026-01-02"))]);
        assert_eq!(SLICE.check(std::slice::from_ref(&sibling)), Check::Clear);
        let reader = Case { reads_target: true, ..SLICE };
        assert!(matches!(reader.check(&[sibling]), Check::Conflict { is_foreign: false, .. }));
    }

    #[test]
    fn a_newer_version_of_the_slice_supersedes_also_when_it_was_empty() {
        let newer = commit(11, "inserted_into_table:99", vec![entry("a", Some("2026-01-01"))]);
        assert!(matches!(SLICE.check(&[newer]), Check::Superseded { snapshot: SnapshotId(11), .. }));
    }

    #[test]
    fn a_version_between_the_pin_and_the_base_supersedes_but_a_foreign_change_there_does_not() {
        let before_base = commit(9, "inserted_into_table:7", vec![entry("a", Some("2026-01-01"))]);
        assert!(matches!(SLICE.check(&[before_base]), Check::Superseded { .. }));
        assert_eq!(SLICE.check(&[commit(9, "inserted_into_table:7", vec![])]), Check::Clear);
    }

    #[test]
    fn a_self_reader_stages_again_on_a_newer_version() {
        let reader = Case { partition: None, reads_target: true, table_id: Some(7) };
        let newer = commit(11, "inserted_into_table:7", vec![entry("a", None)]);
        assert!(matches!(reader.check(&[newer]), Check::Conflict { is_foreign: false, .. }));
    }

    #[test]
    fn what_a_self_reader_has_read_is_no_conflict() {
        let reader = Case { partition: None, reads_target: true, table_id: Some(7) };
        let read = commit(10, "inserted_into_table:7", vec![entry("a", None)]);
        assert_eq!(reader.check(&[read]), Check::Clear);
    }

    #[test]
    fn an_earlier_attempt_of_the_step_is_found_although_a_self_reader_has_read_its_commit() {
        let reader = Case { partition: None, reads_target: true, table_id: Some(7) };
        let mut own = entry("earlier", None);
        own.step = StepId("mine".to_owned());
        let own = commit(9, "inserted_into_table:7", vec![own]);
        assert_eq!(reader.check(&[own]), Check::Done { snapshot: SnapshotId(9) });
    }

    #[test]
    fn the_table_that_the_step_made_itself_is_not_taken_for_its_version() {
        let mut made = entry("other", Some("2026-01-01"));
        made.step = StepId("mine".to_owned());
        "create".clone_into(&mut made.strategy);
        let before = commit(9, r#"created_table:"main"."t""#, vec![made.clone()]);
        assert_eq!(SLICE.check(&[before]), Check::Clear);
        let after = commit(11, r#"created_table:"main"."t""#, vec![made]);
        assert!(matches!(SLICE.check(&[after]), Check::Conflict { is_foreign: false, .. }));
    }

    #[test]
    fn a_newer_version_says_more_than_a_foreign_change_before_it() {
        let foreign = commit(11, "inserted_into_table:7", vec![]);
        let newer = commit(12, "inserted_into_table:7", vec![entry("a", Some("2026-01-01"))]);
        assert!(matches!(SLICE.check(&[foreign, newer]), Check::Superseded { snapshot: SnapshotId(12), .. }));
    }

    #[test]
    fn a_write_of_the_whole_asset_and_one_of_a_slice_share_rows() {
        let whole = commit(11, "inserted_into_table:7", vec![entry("a", None)]);
        assert!(matches!(SLICE.check(&[whole]), Check::Superseded { .. }));
        let all = Case { partition: None, ..SLICE };
        let slice = commit(11, "inserted_into_table:7", vec![entry("a", Some("2026-01-01"))]);
        assert!(matches!(all.check(&[slice]), Check::Superseded { .. }));
    }

    #[test]
    fn a_foreign_writer_is_noticed() {
        let foreign = commit(11, "inserted_into_table:7", vec![]);
        assert_eq!(
            SLICE.check(&[foreign]),
            Check::Conflict { snapshot: SnapshotId(11), by: "bob".to_owned(), is_foreign: true }
        );
        let altered = commit(11, "altered_table:7", vec![]);
        assert!(matches!(SLICE.check(&[altered]), Check::Conflict { is_foreign: true, .. }));
    }

    #[test]
    fn a_table_made_meanwhile_is_a_conflict() {
        let fresh = Case { table_id: None, ..SLICE };
        let made = commit(11, r#"created_table:"main"."t""#, vec![entry("a", Some("2026-01-02"))]);
        assert!(matches!(fresh.check(&[made]), Check::Conflict { is_foreign: false, .. }));
    }

    #[test]
    fn our_own_commit_with_an_unknown_outcome_is_found() {
        let own = commit(11, "inserted_into_table:7", vec![entry("mine", Some("2026-01-01"))]);
        assert_eq!(SLICE.check(&[own]), Check::Done { snapshot: SnapshotId(11) });
    }
}
