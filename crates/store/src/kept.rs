//! What retention must keep for the sake of past runs: the snapshots that they read and made.
//!
//! Invariant: nothing is left out. Every attempt that ended in the asked-for time counts, a failed one too, since it is
//! what somebody will want to look into; beyond that the last successful runs of each asset count, however old.

use chrono::{DateTime, Utc};
use pintail_core::id::{LakeName, RunId, SnapshotId};

use crate::database::{Row, query};
use crate::encoding::{Fields, micros};
use crate::error::{ReadContext, ReadError};
use crate::materialization::AssetKey;
use crate::open::Store;
use crate::run::Pins;

/// The snapshots that one run needs for one asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptInputs {
    /// The asset that was written.
    pub asset: AssetKey,
    /// The run that wrote it.
    pub run: RunId,
    /// The lake of the asset; `None` outside lakes.
    pub lake: Option<LakeName>,
    /// The snapshot of the version that the run made or confirmed; `None` outside lakes and of a failure.
    pub snapshot: Option<SnapshotId>,
    /// What it read.
    pub inputs: Pins,
    /// When the last attempt with these inputs ended.
    pub finished: DateTime<Utc>,
}

impl Store {
    /// Returns what the last `keep_runs` successful runs of each asset read and made, and what everything did that
    /// finished at or after `since`; by asset, newest first.
    pub async fn kept_inputs(&self, keep_runs: u32, since: DateTime<Utc>) -> Result<Vec<KeptInputs>, ReadError> {
        let sql = "
            WITH good AS (
                SELECT asset, run, max(finished) AS ended FROM materialization
                WHERE project = $1 AND status IN ('materialized', 'unchanged')
                GROUP BY asset, run
            ), ranked AS (
                SELECT asset, run, row_number() OVER (PARTITION BY asset ORDER BY ended DESC, run DESC) AS place
                FROM good
            )
            SELECT made.asset, made.run, made.lake, made.snapshot, made.inputs, max(made.finished) AS finished
            FROM materialization AS made
            LEFT JOIN ranked ON ranked.asset = made.asset AND ranked.run = made.run
                AND made.status IN ('materialized', 'unchanged')
            WHERE made.project = $1 AND (ranked.place <= $2 OR $3 <= made.finished)
            GROUP BY made.asset, made.run, made.lake, made.snapshot, made.inputs
            ORDER BY made.asset, max(made.finished) DESC, made.run DESC, made.snapshot";
        let query = query(sql).bind(self.project_text()).bind(keep_runs).bind(micros(since));
        let rows = query.read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(KeptInputs::from_row).collect())
            .reading(|| "what past runs need".to_owned())
    }
}

impl KeptInputs {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            asset: AssetKey::from_stored(row.text("asset")?),
            run: RunId(row.text("run")?),
            lake: row.optional_text("lake")?.map(LakeName),
            snapshot: row.optional_integer("snapshot")?.map(SnapshotId),
            inputs: row.json("inputs")?,
            finished: row.time("finished")?,
        })
    }
}
