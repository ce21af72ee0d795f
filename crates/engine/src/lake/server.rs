//! What is asked of a Postgres catalog's server beside DuckDB: whether the lake is there, and whether the server can take
//! what a run needs.

use sqlx::postgres::PgConnection;

use super::{Catalog, LakeLocation};
use crate::error::EngineError;
use crate::postgres::{self, PostgresLocation};

/// What one instance opens at most: for the write alias and the pinned one a connection each for what the transaction
/// reads and for what is scanned.
const PER_SLOT: u64 = 4;

/// The guard's three, the lane's one, and one for questions.
const PER_PROCESS: u64 = 5;

/// What a server says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its version, such as `15.18`.
    pub version: String,
    /// The connections that it takes, without those that it reserves.
    pub limit: u64,
    /// The connections that are in use, without the one that asked.
    pub used: u64,
}

impl LakeLocation {
    /// Returns what the catalog's server says about itself; `None` for a catalog without a server.
    pub fn server(&self) -> Result<Option<ServerFacts>, EngineError> {
        let Catalog::Postgres(location) = &self.catalog else { return Ok(None) };
        let place = location.clone();
        postgres::wait(async move {
            let mut connection = postgres::take(&place).await?;
            let facts = read_facts(&mut connection).await.map_err(|error| place.failed("ask the server", &error))?;
            postgres::put_back(&place, connection);
            Ok(Some(facts))
        })?
    }

    /// Fails when the catalog's server cannot take the connections that a run with `slots` slots needs.
    pub fn require_connections(&self, slots: u64) -> Result<(), EngineError> {
        let Some(server) = self.server()? else { return Ok(()) };
        let needed = slots * PER_SLOT + PER_PROCESS;
        let free = server.limit.saturating_sub(server.used);
        if needed <= free {
            return Ok(());
        }
        Err(EngineError::TooFewConnections { lake: self.name.to_string(), needed, slots, free, limit: server.limit })
    }
}

async fn read_facts(connection: &mut PgConnection) -> Result<ServerFacts, sqlx::Error> {
    let (version, limit, used): (String, i64, i64) = sqlx::query_as(
        "SELECT split_part(current_setting('server_version'), ' ', 1),
                current_setting('max_connections')::BIGINT - current_setting('superuser_reserved_connections')::BIGINT,
                (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())",
    )
    .fetch_one(connection)
    .await?;
    let number = |value: i64| u64::try_from(value).unwrap_or_default();
    Ok(ServerFacts { version, limit: number(limit), used: number(used) })
}

/// Returns whether the database at `location` holds a lake.
pub(super) fn holds_lake(location: &PostgresLocation) -> Result<bool, EngineError> {
    let place = location.clone();
    postgres::wait(async move {
        let mut connection = postgres::take(&place).await?;
        // The last table that DuckLake makes of a new catalog may come later: all are made in one transaction.
        let found = sqlx::query_scalar("SELECT to_regclass('public.ducklake_snapshot') IS NOT NULL")
            .fetch_one(&mut connection)
            .await
            .map_err(|error| place.failed("look for the lake", &error))?;
        postgres::put_back(&place, connection);
        Ok(found)
    })?
}
