//! The holds that an owner keeps as one set: what its past runs read, so that nobody's upkeep takes it away.
//!
//! Invariant: the set changes in one transaction, so that whoever looks sees the old one or the new one.

use std::collections::BTreeMap;

use pintail_core::id::SnapshotId;
use sqlx::sqlite::SqliteSynchronous;
use sqlx::{ConnectOptions as _, Connection as _};

use super::{Guard, GuardError};

impl Guard {
    /// Makes `wanted`, snapshots with their reasons, the durable pins of `owner`; what it held besides is let go.
    pub async fn keep_exactly(
        &self,
        owner: &str,
        wanted: &BTreeMap<SnapshotId, String>,
        now_micros: i64,
    ) -> Result<(), GuardError> {
        let failed = self.database("renew the pins of past runs");
        // Of its own, because the pool's connections do not wait for the disk.
        let options = self.options.clone().synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await.map_err(&failed)?;
        let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.map_err(&failed)?;
        let held: Vec<(i64, i64)> =
            sqlx::query_as("SELECT id, snapshot FROM snapshot_pin WHERE durable = 1 AND owner = $1")
                .bind(owner)
                .fetch_all(&mut *tx)
                .await
                .map_err(&failed)?;
        for (id, snapshot) in &held {
            if !wanted.contains_key(&SnapshotId(*snapshot)) {
                let delete = sqlx::query("DELETE FROM snapshot_pin WHERE id = $1").bind(id);
                delete.execute(&mut *tx).await.map_err(&failed)?;
            }
        }
        for (snapshot, reason) in wanted {
            if held.iter().any(|(_, held)| *held == snapshot.0) {
                continue;
            }
            sqlx::query(
                "INSERT INTO snapshot_pin (snapshot, owner, durable, reason, since_micros) VALUES ($1, $2, 1, $3, $4)",
            )
            .bind(snapshot.0)
            .bind(owner)
            .bind(reason)
            .bind(now_micros)
            .execute(&mut *tx)
            .await
            .map_err(&failed)?;
        }
        tx.commit().await.map_err(&failed)?;
        connection.close().await.map_err(&failed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pintail_core::id::SnapshotId;

    use crate::guard::Guard;
    use crate::guard::tests::lake;

    #[tokio::test]
    async fn a_set_of_holds_is_renewed_as_a_whole_and_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let guard = Guard::open(&lake(folder.path())).await.unwrap();
        guard.hold(SnapshotId(1), "anna", "the audit", 0, None).await.unwrap();
        let set = |ids: &[i64]| ids.iter().map(|id| (SnapshotId(*id), format!("run {id}"))).collect::<BTreeMap<_, _>>();
        guard.keep_exactly("shop", &set(&[1, 2]), 5).await.unwrap();
        let first = guard.pins().await.unwrap();
        guard.keep_exactly("shop", &set(&[2, 3]), 6).await.unwrap();
        let second = guard.pins().await.unwrap();
        let seen: Vec<(&str, i64, i64)> =
            second.iter().map(|pin| (pin.owner.as_str(), pin.snapshot.0, pin.since_micros)).collect();
        assert_eq!(seen, [("anna", 1, 0), ("shop", 2, 5), ("shop", 3, 6)]);
        assert_eq!(first[2].id, second[1].id, "what stays is not written again");
        guard.keep_exactly("shop", &set(&[]), 7).await.unwrap();
        assert_eq!(guard.pins().await.unwrap().len(), 1);
    }
}
