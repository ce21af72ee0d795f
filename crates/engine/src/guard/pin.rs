//! Pins: named holds on snapshots, durable before the snapshot is attached.
//!
//! A process's pin ends with the process; a durable one when somebody releases it, or at its end.

use std::time::{SystemTime, UNIX_EPOCH};

use pintail_core::id::SnapshotId;
use sqlx::sqlite::SqliteSynchronous;
use sqlx::{ConnectOptions as _, Connection as _};

use super::{Guard, GuardError, OwnerId};

/// The id of one pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PinId(pub i64);

/// How long a pin lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinKind {
    /// As long as the process that holds it.
    Process,
    /// Until it is released, or until its end.
    Durable {
        /// Its end, in microseconds since 1970 UTC.
        expires_micros: Option<i64>,
    },
}

/// One pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Its id.
    pub id: PinId,
    /// The snapshot that it holds.
    pub snapshot: SnapshotId,
    /// How long it lasts.
    pub kind: PinKind,
    /// Who holds it: a process's id in the guard, or the name that a durable pin was given.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// Since when, in microseconds since 1970 UTC.
    pub since_micros: i64,
}

#[derive(sqlx::FromRow)]
struct PinRow {
    id: i64,
    snapshot: i64,
    owner: String,
    durable: i64,
    reason: String,
    since_micros: i64,
    expires_micros: Option<i64>,
}

const INSERT: &str = "INSERT INTO snapshot_pin (snapshot, owner, durable, reason, since_micros, expires_micros)
                      VALUES ($1, $2, $3, $4, $5, $6) RETURNING id";

impl Guard {
    /// Holds `snapshot` until it is unpinned or this process dies.
    pub async fn pin(&self, snapshot: SnapshotId, reason: &str, now_micros: i64) -> Result<PinId, GuardError> {
        let id = sqlx::query_scalar(INSERT)
            .bind(snapshot.0)
            .bind(&self.owner().0)
            .bind(0_i64)
            .bind(reason)
            .bind(now_micros)
            .bind(None::<i64>)
            .fetch_one(&self.pool)
            .await
            .map_err(self.database("pin a snapshot"))?;
        Ok(PinId(id))
    }

    /// Lets go of a pin of this process.
    pub async fn unpin(&self, id: PinId) -> Result<(), GuardError> {
        sqlx::query("DELETE FROM snapshot_pin WHERE id = $1 AND durable = 0")
            .bind(id.0)
            .execute(&self.pool)
            .await
            .map_err(self.database("unpin a snapshot"))?;
        Ok(())
    }

    /// Holds `snapshot` for `owner` until it is released or `expires_micros` has come, whatever becomes of this process
    /// and this machine's power.
    pub async fn hold(
        &self,
        snapshot: SnapshotId,
        owner: &str,
        reason: &str,
        since_micros: i64,
        expires_micros: Option<i64>,
    ) -> Result<PinId, GuardError> {
        let failed = self.database("hold a snapshot");
        // Of its own, because the pool's connections do not wait for the disk.
        let options = self.options.clone().synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await.map_err(&failed)?;
        let id = sqlx::query_scalar(INSERT)
            .bind(snapshot.0)
            .bind(owner)
            .bind(1_i64)
            .bind(reason)
            .bind(since_micros)
            .bind(expires_micros)
            .fetch_one(&mut connection)
            .await
            .map_err(&failed)?;
        connection.close().await.map_err(&failed)?;
        Ok(PinId(id))
    }

    /// Lets go of a durable pin; returns whether there was one.
    pub async fn release_hold(&self, id: PinId) -> Result<bool, GuardError> {
        let gone = sqlx::query("DELETE FROM snapshot_pin WHERE id = $1 AND durable = 1")
            .bind(id.0)
            .execute(&self.pool)
            .await
            .map_err(self.database("release a snapshot"))?;
        Ok(0 < gone.rows_affected())
    }

    /// Returns the pins that hold now, oldest first, and removes those of dead processes and those that have ended.
    pub async fn pins(&self) -> Result<Vec<Pin>, GuardError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.pins_at(i64::try_from(now.as_micros()).unwrap_or(i64::MAX)).await
    }

    /// Returns the pins that hold at `now_micros`, oldest first, and removes those of dead processes and those that have
    /// ended by then.
    pub async fn pins_at(&self, now_micros: i64) -> Result<Vec<Pin>, GuardError> {
        let failed = self.database("list the pins");
        let rows: Vec<PinRow> = sqlx::query_as(
            "SELECT id, snapshot, owner, durable, reason, since_micros, expires_micros FROM snapshot_pin ORDER BY id",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(&failed)?;
        let mut pins = Vec::new();
        for row in rows {
            let is_held = match row.durable != 0 {
                true => row.expires_micros.is_none_or(|end| now_micros < end),
                false => self.is_alive(&OwnerId(row.owner.clone())),
            };
            if is_held {
                pins.push(row.into());
                continue;
            }
            let delete = sqlx::query("DELETE FROM snapshot_pin WHERE id = $1").bind(row.id);
            delete.execute(&self.pool).await.map_err(&failed)?;
        }
        Ok(pins)
    }
}

impl From<PinRow> for Pin {
    fn from(row: PinRow) -> Self {
        let kind = match row.durable != 0 {
            true => PinKind::Durable { expires_micros: row.expires_micros },
            false => PinKind::Process,
        };
        Self {
            id: PinId(row.id),
            snapshot: SnapshotId(row.snapshot),
            kind,
            owner: row.owner,
            reason: row.reason,
            since_micros: row.since_micros,
        }
    }
}

#[cfg(test)]
mod tests {
    use pintail_core::id::SnapshotId;

    use super::{Pin, PinId, PinKind};
    use crate::guard::Guard;
    use crate::guard::tests::lake;

    fn seen(pins: &[Pin]) -> Vec<(PinId, i64, PinKind)> {
        pins.iter().map(|pin| (pin.id, pin.snapshot.0, pin.kind)).collect()
    }

    #[tokio::test]
    async fn a_durable_pin_outlives_its_process_and_ends_when_it_says_or_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(folder.path());
        let first = Guard::open(&lake).await.unwrap();
        first.pin(SnapshotId(1), "a run", 5).await.unwrap();
        let ever = first.hold(SnapshotId(2), "anna", "the audit", 6, None).await.unwrap();
        let until = first.hold(SnapshotId(3), "ben", "a report", 7, Some(100)).await.unwrap();
        drop(first);
        let second = Guard::open(&lake).await.unwrap();
        let pins = second.pins_at(99).await.unwrap();
        let (open, ending) =
            (PinKind::Durable { expires_micros: None }, PinKind::Durable { expires_micros: Some(100) });
        assert_eq!(seen(&pins), [(ever, 2, open), (until, 3, ending)]);
        assert_eq!((pins[0].owner.as_str(), pins[0].reason.as_str(), pins[0].since_micros), ("anna", "the audit", 6));
        assert_eq!(seen(&second.pins_at(100).await.unwrap()), [(ever, 2, open)]);
        assert!(!second.release_hold(until).await.unwrap(), "it has ended before");
        assert!(second.release_hold(ever).await.unwrap());
        assert_eq!(second.pins().await.unwrap(), []);
    }

    #[tokio::test]
    async fn neither_way_of_letting_go_takes_a_pin_of_the_other_kind() {
        let folder = tempfile::tempdir().unwrap();
        let guard = Guard::open(&lake(folder.path())).await.unwrap();
        let process = guard.pin(SnapshotId(1), "a run", 0).await.unwrap();
        let durable = guard.hold(SnapshotId(1), "anna", "the audit", 0, None).await.unwrap();
        guard.unpin(durable).await.unwrap();
        assert!(!guard.release_hold(process).await.unwrap());
        assert_eq!(guard.pins().await.unwrap().len(), 2);
    }
}
