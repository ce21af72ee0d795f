//! Pins: named holds on snapshots, durable before the snapshot is attached.

use pintail_core::id::SnapshotId;

use super::{Guard, GuardError, OwnerId};

/// The id of one pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PinId(pub i64);

/// One pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Its id.
    pub id: PinId,
    /// The snapshot that it holds.
    pub snapshot: SnapshotId,
    /// Which process holds it.
    pub owner: OwnerId,
    /// Why.
    pub reason: String,
}

impl Guard {
    /// Holds `snapshot` until it is unpinned or this process dies.
    pub async fn pin(&self, snapshot: SnapshotId, reason: &str, now_micros: i64) -> Result<PinId, GuardError> {
        let id = sqlx::query_scalar(
            "INSERT INTO pin (snapshot, owner, reason, since_micros) VALUES (?, ?, ?, ?) RETURNING id",
        )
        .bind(snapshot.0)
        .bind(&self.owner().0)
        .bind(reason)
        .bind(now_micros)
        .fetch_one(&self.pool)
        .await
        .map_err(self.database("pin a snapshot"))?;
        Ok(PinId(id))
    }

    /// Lets go of a pin.
    pub async fn unpin(&self, id: PinId) -> Result<(), GuardError> {
        sqlx::query("DELETE FROM pin WHERE id = ?")
            .bind(id.0)
            .execute(&self.pool)
            .await
            .map_err(self.database("unpin a snapshot"))?;
        Ok(())
    }

    /// Returns the pins of living owners, and removes those of dead ones.
    pub async fn pins(&self) -> Result<Vec<Pin>, GuardError> {
        let rows: Vec<(i64, i64, String, String)> =
            sqlx::query_as("SELECT id, snapshot, owner, reason FROM pin ORDER BY id")
                .fetch_all(&self.pool)
                .await
                .map_err(self.database("list the pins"))?;
        let mut pins = Vec::new();
        for (id, snapshot, owner, reason) in rows {
            let owner = OwnerId(owner);
            if self.is_alive(&owner) {
                pins.push(Pin { id: PinId(id), snapshot: SnapshotId(snapshot), owner, reason });
            } else {
                self.unpin(PinId(id)).await?;
            }
        }
        Ok(pins)
    }
}
