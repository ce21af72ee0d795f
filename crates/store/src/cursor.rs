//! Table `lake_cursor`: the last snapshot of each lake whose stamps the store has taken in.
//!
//! Invariant: a cursor moves forward only, in the transaction that took the stamps in.

use pintail_core::id::{LakeName, SnapshotId};

use crate::database::{Tx, query};
use crate::encoding::Fields;
use crate::error::{ReadContext, ReadError};
use crate::open::Store;

impl Store {
    /// Returns the last snapshot of `lake` whose stamps were taken in; `None` before the first time.
    pub async fn lake_cursor(&self, lake: &LakeName) -> Result<Option<SnapshotId>, ReadError> {
        let sql = "SELECT snapshot FROM lake_cursor WHERE project = $1 AND lake = $2";
        let row = query(sql).bind(self.project_text()).bind(lake.as_str()).read_optional(self.database()).await;
        row.and_then(|row| row.map(|row| row.integer("snapshot").map(SnapshotId)).transpose())
            .reading(|| format!("the cursor of lake {lake}"))
    }

    pub(crate) async fn advance_cursor(
        &self,
        tx: &mut Tx,
        lake: &LakeName,
        upto: SnapshotId,
    ) -> Result<(), sqlx::Error> {
        let sql = "
            INSERT INTO lake_cursor (project, lake, snapshot) VALUES ($1, $2, $3)
            ON CONFLICT (project, lake) DO UPDATE SET snapshot = excluded.snapshot
            WHERE lake_cursor.snapshot < excluded.snapshot";
        query(sql).bind(self.project_text()).bind(lake.as_str()).bind(upto.0).execute(tx).await?;
        Ok(())
    }
}
