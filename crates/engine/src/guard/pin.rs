//! Pins: named holds on snapshots, durable before the snapshot is attached.
//!
//! A process's pin ends with the process; a durable one when somebody releases it, or at its end.

use std::time::{SystemTime, UNIX_EPOCH};

use pintail_core::id::SnapshotId;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteSynchronous;
use sqlx::{ConnectOptions as _, Connection as _};

use super::database::{Database, on_pool};
use super::{Guard, GuardError, Here};

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

/// A pin as it is stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct PinRow {
    pub(super) id: i64,
    snapshot: i64,
    owner: String,
    durable: i64,
    reason: String,
    since_micros: i64,
    expires_micros: Option<i64>,
}

impl PinRow {
    /// Writes the pin of a living process again after others may have taken the process for dead.
    pub(super) async fn write_back(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO pintail.snapshot_pin (id, snapshot, owner, durable, reason, since_micros)
             VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT (id) DO NOTHING",
        )
        .bind(self.id)
        .bind(self.snapshot)
        .bind(&self.owner)
        .bind(&self.reason)
        .bind(self.since_micros)
        .execute(connection)
        .await
        .map(|_| ())
    }
}

/// Inserts a row and returns its id.
macro_rules! insert {
    ($guard:expr, $row:expr, $executor:expr) => {{
        let sql = format!(
            "INSERT INTO {} (snapshot, owner, durable, reason, since_micros, expires_micros)
             VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            $guard.table("snapshot_pin")
        );
        sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(sql))
            .bind($row.snapshot)
            .bind(&$row.owner)
            .bind($row.durable)
            .bind(&$row.reason)
            .bind($row.since_micros)
            .bind($row.expires_micros)
            .fetch_one($executor)
            .await
    }};
}

impl Guard {
    /// Holds `snapshot` until it is unpinned or this process dies.
    pub async fn pin(&self, snapshot: SnapshotId, reason: &str, now_micros: i64) -> Result<PinId, GuardError> {
        let mut row = PinRow {
            id: 0,
            snapshot: snapshot.0,
            owner: self.owner().0.clone(),
            durable: 0,
            reason: reason.to_owned(),
            since_micros: now_micros,
            expires_micros: None,
        };
        // One whose answer was lost and that is written once more ends with the process like any other.
        let insert = || async { on_pool!(&self.database, |pool| insert!(self, row, pool)) };
        row.id = self.patiently(insert).await.map_err(self.database("pin a snapshot"))?;
        let id = PinId(row.id);
        if let Here::Session(session) = &self.here {
            session.note(row);
        }
        Ok(id)
    }

    /// Lets go of a pin of this process.
    pub async fn unpin(&self, id: PinId) -> Result<(), GuardError> {
        if let Here::Session(session) = &self.here {
            session.forget(id.0);
        }
        self.delete_pin(id, "durable = 0").await.map_err(self.database("unpin a snapshot"))?;
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
        let (owner, reason) = (owner.to_owned(), reason.to_owned());
        let row = PinRow { id: 0, snapshot: snapshot.0, owner, durable: 1, reason, since_micros, expires_micros };
        self.insert_durably(&row).await.map(PinId).map_err(self.database("hold a snapshot"))
    }

    async fn insert_durably(&self, row: &PinRow) -> Result<i64, sqlx::Error> {
        match &self.database {
            Database::Sqlite { options, .. } => {
                // Of its own, because the pool's connections do not wait for the disk.
                let mut connection = options.as_ref().clone().synchronous(SqliteSynchronous::Full).connect().await?;
                let id = insert!(self, row, &mut connection)?;
                connection.close().await?;
                Ok(id)
            }
            Database::Postgres { pool, .. } => {
                let mut tx = pool.begin_with("BEGIN; SET LOCAL synchronous_commit = on").await?;
                let id = insert!(self, row, &mut *tx)?;
                tx.commit().await?;
                Ok(id)
            }
        }
    }

    /// Lets go of a durable pin; returns whether there was one.
    pub async fn release_hold(&self, id: PinId) -> Result<bool, GuardError> {
        self.delete_pin(id, "durable = 1").await.map_err(self.database("release a snapshot"))
    }

    /// Deletes the pin `id` if `condition` holds, and returns whether there was one.
    async fn delete_pin(&self, id: PinId, condition: &str) -> Result<bool, sqlx::Error> {
        let sql = format!("DELETE FROM {} WHERE id = $1 AND {condition}", self.table("snapshot_pin"));
        let delete = || async {
            on_pool!(&self.database, |pool| {
                let deleted = sqlx::query(sqlx::AssertSqlSafe(sql.clone())).bind(id.0).execute(pool).await?;
                Ok(0 < deleted.rows_affected())
            })
        };
        self.patiently(delete).await
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
        self.forget_the_dead().await?;
        let table = self.table("snapshot_pin");
        let end = format!("DELETE FROM {table} WHERE durable = 1 AND expires_micros <= $1");
        let list = format!(
            "SELECT id, snapshot, owner, durable, reason, since_micros, expires_micros FROM {table} ORDER BY id"
        );
        let rows: Vec<PinRow> = on_pool!(&self.database, |pool| {
            sqlx::query(sqlx::AssertSqlSafe(end)).bind(now_micros).execute(pool).await.map_err(&failed)?;
            sqlx::query_as(sqlx::AssertSqlSafe(list)).fetch_all(pool).await.map_err(&failed)?
        });
        Ok(rows.into_iter().map(Pin::from).collect())
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
