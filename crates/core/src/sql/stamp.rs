//! The stamp: what a commit says about itself in DuckLake's `commit_extra_info`, so that state can be rebuilt.
//!
//! The JSON shape is a stored format: `{"pintail": 1, "entries": […]}`. A new shape gets a new number, and old samples
//! stay readable. Invariant: text that is not ours is `None`, never an error; text that says it is ours and cannot be
//! read is an error, never `None`, because a lost stamp is a lost materialization.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{AttemptId, LakeName, RunId, ScriptHash, SnapshotId, StepId, TableId};
use crate::partition::{Increment, PartitionKey, Window};

/// One slice that a commit wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StampEntry {
    /// The attempt; looked up to prove the commit.
    pub attempt: AttemptId,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepId,
    /// The canonical asset.
    pub asset: String,
    /// The script, by name.
    pub script: String,
    /// The table's id, unknown (`None`) in the commit that creates the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_id: Option<TableId>,
    /// How often the table was made anew.
    pub generation: u32,
    /// The partition; `None` for an unpartitioned asset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionKey>,
    /// The partition's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// What an increment consumed, for `partitioned dynamic key=<column>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub increment: Option<Increment>,
    /// `replace`, `merge`, `append`, `history`, `view`, `manual`, [`StampEntry::ROLLBACK`], or a word of [`StampEntry::NO_VERSION`].
    pub strategy: String,
    /// Rows deleted by the write; of a history, versions whose end it has set or moved.
    pub deleted: u64,
    /// Rows inserted by the write; of a history, versions that it has begun.
    pub inserted: u64,
    /// Rows in the slice after the write; `None` when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The schema version of the asset (counts changes of shape).
    pub schema_version: u32,
    /// The script text's hash.
    pub script_hash: ScriptHash,
    /// Pinned inputs: lake -> snapshot.
    pub inputs: BTreeMap<LakeName, SnapshotId>,
    /// Local files that were read: asset -> fingerprint of names, sizes and times.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Whether the commit is that of an atomic run, whose later steps have read what its earlier ones wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomic: bool,
    /// The snapshot whose content a rollback wrote again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<SnapshotId>,
}

impl StampEntry {
    /// The strategies of commits that make no version of their slice: `create` and `adopt` prepare a table, `part` is a
    /// commit of a manual script that has more to come, `retire` deletes old slices.
    pub const NO_VERSION: [&'static str; 4] = ["create", "adopt", "part", Self::RETIRE];

    /// The strategy of a commit that deleted the slices which ended before the end of its window: they are as if they had
    /// never been written, and what reads them stays as it is.
    pub const RETIRE: &'static str = "retire";

    /// Says of an atomic run that its steps have read `lake` as its commit `snapshot` left it. Where another commit came
    /// between, they have read less than that, and the pin stays.
    pub fn settle_inputs(&mut self, lake: &LakeName, snapshot: SnapshotId) {
        if let Some(pin) = self.inputs.get_mut(lake)
            && self.atomic
            && pin.0 + 1 == snapshot.0
        {
            *pin = snapshot;
        }
    }
    /// The strategy of a commit that wrote the content of an older snapshot again.
    pub const ROLLBACK: &'static str = "rollback";

    /// Returns whether the commit made a version of its slice.
    pub fn is_version(&self) -> bool {
        !Self::NO_VERSION.contains(&self.strategy.as_str())
    }
}

/// The number of the shape that is written.
const FORMAT: u64 = 1;

/// A commit's text that says it is Pintail's and cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
    /// A shape of a later version.
    #[error("the stamp has format {found}, this version reads format {FORMAT}")]
    NewerFormat {
        /// The format found.
        found: u64,
    },
    /// The number is there, and the rest is not as it must be.
    #[error("the stamp is damaged")]
    Damaged(#[source] serde_json::Error),
}

#[derive(Serialize)]
struct WrittenStamp<'a> {
    pintail: u64,
    entries: &'a [StampEntry],
}

#[derive(Deserialize)]
struct StoredEntries {
    entries: Vec<StampEntry>,
}

/// Returns the `commit_extra_info` of a commit that wrote `entries`.
pub fn to_extra_info(entries: &[StampEntry]) -> String {
    serde_json::to_string(&WrittenStamp { pintail: FORMAT, entries }).expect("keys are text and values are plain")
}

/// Reads a commit's `commit_extra_info`: `None` when it is not Pintail's. Fields of later versions are skipped.
pub fn from_extra_info(text: &str) -> Result<Option<Vec<StampEntry>>, StampError> {
    let value: serde_json::Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) if text.trim_start().starts_with("{\"pintail\":") => return Err(StampError::Damaged(error)),
        Err(_) => return Ok(None),
    };
    let Some(format) = value.get("pintail") else { return Ok(None) };
    match format.as_u64() {
        Some(FORMAT) => {}
        Some(found) => return Err(StampError::NewerFormat { found }),
        None => return Ok(None),
    }
    let stored: StoredEntries = serde_json::from_value(value).map_err(StampError::Damaged)?;
    Ok(Some(stored.entries))
}

/// Returns the commit message that people read in the lake's history, such as
/// `replace ducklake://main/orders [2026-01-02]: 10 rows in, 8 out (run 0198…)`.
pub fn commit_message(entry: &StampEntry) -> String {
    let partition = entry.partition.as_ref().map(|key| format!(" [{key}]")).unwrap_or_default();
    let restored = entry.restored.map(|snapshot| format!(" to snapshot {snapshot}")).unwrap_or_default();
    format!(
        "{} {}{partition}{restored}: {} in, {} out (run {})",
        entry.strategy,
        entry.asset,
        rows(entry.inserted),
        entry.deleted,
        entry.run
    )
}

/// Returns the commit message of several entries, such as
/// `3 writes: replace ducklake://main/a; append ducklake://main/b [2026-01-02]; … (run 0198…)`.
pub fn group_message(entries: &[StampEntry]) -> String {
    const NAMED: usize = 4;
    let [first, _, ..] = entries else { return entries.first().map(commit_message).unwrap_or_default() };
    let named: Vec<String> = entries
        .iter()
        .take(NAMED)
        .map(|entry| {
            let partition = entry.partition.as_ref().map(|key| format!(" [{key}]")).unwrap_or_default();
            format!("{} {}{partition}", entry.strategy, entry.asset)
        })
        .collect();
    let rest = if NAMED < entries.len() { "; …" } else { "" };
    format!("{} writes: {}{rest} (run {})", entries.len(), named.join("; "), first.run)
}

fn rows(count: u64) -> String {
    if count == 1 { "1 row".to_owned() } else { format!("{count} rows") }
}

#[cfg(test)]
mod tests {
    use chrono::{TimeZone, Utc};
    use expect_test::expect;

    use super::*;

    const SAMPLE: &str = include_str!("stamp/sample_1.json");

    fn entry() -> StampEntry {
        StampEntry {
            attempt: AttemptId("0198c1a2-attempt".into()),
            run: RunId("0198c1a2-run".into()),
            step: StepId("0198c1a2-step".into()),
            asset: "ducklake://main/orders".into(),
            script: "orders/orders".into(),
            table_id: Some(TableId(7)),
            generation: 1,
            partition: Some(PartitionKey("2026-01-02".into())),
            window: Some(Window {
                start: Utc.with_ymd_and_hms(2026, 1, 2, 5, 0, 0).unwrap(),
                end: Utc.with_ymd_and_hms(2026, 1, 3, 5, 0, 0).unwrap(),
            }),
            increment: None,
            strategy: "replace".into(),
            deleted: 8,
            inserted: 10,
            rows: Some(10),
            schema_version: 2,
            script_hash: ScriptHash("ab12".into()),
            inputs: BTreeMap::from([(LakeName("main".into()), SnapshotId(41))]),
            files: BTreeMap::from([("volume://project/data/x.csv".into(), "1:2:3".into())]),
            atomic: false,
            restored: None,
        }
    }

    #[test]
    fn the_stored_sample_is_what_is_written_and_read() {
        let whole =
            StampEntry { table_id: None, partition: None, window: None, rows: None, files: BTreeMap::new(), ..entry() };
        let entries = [entry(), whole];
        assert_eq!(to_extra_info(&entries), SAMPLE.trim_end());
        assert_eq!(from_extra_info(SAMPLE).unwrap().unwrap(), entries);
    }

    #[test]
    fn other_peoples_text_is_not_ours() {
        for text in ["", "null", "a note", "{", r#"{"run":"x"}"#, r#"["pintail"]"#, "{\"pintail\":\"yes\"}"] {
            assert!(matches!(from_extra_info(text), Ok(None)), "{text}");
        }
    }

    #[test]
    fn fields_of_later_versions_are_skipped() {
        let text = SAMPLE.replace("\"step\"", "\"mood\":\"good\",\"step\"");
        assert_eq!(from_extra_info(&text).unwrap().unwrap().len(), 2);
    }

    #[test]
    fn a_stamp_of_ours_that_cannot_be_read_is_an_error() {
        for text in [r#"{"pintail":1}"#, r#"{"pintail":1,"entries":[{}]}"#, r#"{"pintail":1,"entries":["#] {
            assert!(matches!(from_extra_info(text), Err(StampError::Damaged(_))), "{text}");
        }
        assert!(matches!(from_extra_info(r#"{"pintail":2}"#), Err(StampError::NewerFormat { found: 2 })));
    }

    #[test]
    fn people_read_what_happened() {
        expect!["replace ducklake://main/orders [2026-01-02]: 10 rows in, 8 out (run 0198c1a2-run)"]
            .assert_eq(&commit_message(&entry()));
        let whole = StampEntry { partition: None, inserted: 1, strategy: "append".into(), deleted: 0, ..entry() };
        expect!["append ducklake://main/orders: 1 row in, 0 out (run 0198c1a2-run)"].assert_eq(&commit_message(&whole));
        let back = StampEntry { strategy: "rollback".into(), restored: Some(SnapshotId(5)), ..whole };
        expect!["rollback ducklake://main/orders to snapshot 5: 1 row in, 0 out (run 0198c1a2-run)"]
            .assert_eq(&commit_message(&back));
    }
}
