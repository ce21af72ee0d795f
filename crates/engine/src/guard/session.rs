//! Presence on Postgres: an advisory lock that one dedicated connection holds for as long as the process lives.
//!
//! The server frees it when the connection ends, so a killed process is dead at once. A lost connection is noticed by a
//! beat every few seconds, which announces the process again and writes back the pins that others may have taken for a
//! dead process's; its leases are checked by whoever uses them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};
use tokio::task::JoinHandle;

use super::pin::PinRow;
use super::{GuardError, OwnerId};
use crate::postgres::PostgresLocation;

/// How often the connection is looked after: more often than anything on the way closes a silent one.
const BEAT: Duration = Duration::from_secs(5);

/// The server looks after the connections of machines that have vanished.
const KEEP_ALIVE: &str = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// This process's presence in a guard on Postgres.
#[derive(Debug)]
pub(super) struct Session {
    owner: OwnerId,
    held: Arc<Mutex<BTreeMap<i64, PinRow>>>,
    beat: JoinHandle<()>,
}

impl Session {
    /// Announces this process.
    pub(super) async fn announce(location: &PostgresLocation) -> Result<Self, GuardError> {
        let owner = OwnerId(uuid::Uuid::now_v7().to_string());
        let connection = announced(location, &owner).await?;
        let held: Arc<Mutex<BTreeMap<i64, PinRow>>> = Arc::default();
        let beat = tokio::spawn(keep_announced(location.clone(), owner.clone(), held.clone(), connection));
        Ok(Self { owner, held, beat })
    }

    pub(super) fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// Notes a pin of this process, to be written again when the connection was lost.
    pub(super) fn note(&self, pin: PinRow) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(pin.id, pin);
    }

    /// Forgets a pin of this process.
    pub(super) fn forget(&self, id: i64) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The connection goes with the task, and the lock with the connection.
        self.beat.abort();
    }
}

/// Opens a connection that holds the lock of `owner`.
async fn announced(location: &PostgresLocation, owner: &OwnerId) -> Result<PgConnection, GuardError> {
    let mut connection = location.connect().await.map_err(Box::new)?;
    take_lock(&mut connection, owner)
        .await
        .map_err(|error| Box::new(location.failed("announce this process", &error)))?;
    Ok(connection)
}

async fn take_lock(connection: &mut PgConnection, owner: &OwnerId) -> Result<(), sqlx::Error> {
    connection.execute(KEEP_ALIVE).await?;
    sqlx::query("SELECT pg_advisory_lock(hashtextextended($1, 0))").bind(&owner.0).execute(&mut *connection).await?;
    sqlx::query(
        "INSERT INTO pintail.owner (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET announced = clock_timestamp()",
    )
    .bind(&owner.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Looks after `connection` until it is told to end.
async fn keep_announced(
    location: PostgresLocation,
    owner: OwnerId,
    held: Arc<Mutex<BTreeMap<i64, PinRow>>>,
    mut connection: PgConnection,
) {
    loop {
        tokio::time::sleep(BEAT).await;
        let answered = tokio::time::timeout(BEAT * 2, connection.ping()).await;
        if matches!(answered, Ok(Ok(()))) {
            continue;
        }
        tracing::warn!(%location, "the connection that shows that this process lives was lost; it is made again");
        let mut pause = Duration::from_millis(200);
        loop {
            let pins: Vec<PinRow> = held.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
            match again(&location, &owner, &pins).await {
                Ok(made) => {
                    connection = made;
                    break;
                }
                Err(error) => tracing::warn!(%error, "this process could not be announced again yet"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(BEAT);
        }
    }
}

async fn again(location: &PostgresLocation, owner: &OwnerId, pins: &[PinRow]) -> Result<PgConnection, GuardError> {
    let mut connection = announced(location, owner).await?;
    for pin in pins {
        pin.write_back(&mut connection)
            .await
            .map_err(|error| Box::new(location.failed("write a pin again", &error)))?;
    }
    Ok(connection)
}
