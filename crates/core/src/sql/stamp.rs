//! The stamp: what a commit says about itself in DuckLake's `commit_extra_info`, so that state can be rebuilt.
//!
//! The JSON shape is a stored format: `{"pintail": 1, "entries": […]}`. A new shape gets a new number, and old samples
//! stay readable.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{AttemptId, LakeName, RunId, ScriptHash, SnapshotId, StepId, TableId};
use crate::partition::{PartitionKey, Window};

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
    /// `replace`, `merge`, `append`, `history`, `view`, `manual`, `adopt`, `create`.
    pub strategy: String,
    /// Rows deleted by the write.
    pub deleted: u64,
    /// Rows inserted by the write.
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
}
