//! A look at what held versions say, before and after expiry: upkeep must not change it.

use std::collections::BTreeMap;

use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::retention::Why;
use pintail_engine::{Session, lake};

use super::Frozen;
use crate::pintail::RunnerError;

/// How many held snapshots, and how many tables of each, are counted before and after.
const SAMPLED: (usize, usize) = (3, 10);

/// The rows of some tables at one snapshot.
pub struct Counted {
    at: SnapshotId,
    rows: BTreeMap<String, i64>,
}

fn count(session: &Session, relation: &str) -> Result<i64, RunnerError> {
    Ok(session
        .one("count the rows of a held version", &format!("SELECT count(*) FROM {relation}"), |row| row.get(0))?)
}

/// Fails when a count is another one now.
pub fn check_sample(lake: &LakeName, session: &Session, before: &[Counted]) -> Result<(), RunnerError> {
    for Counted { at, rows } in before {
        for (relation, expected) in rows {
            let found = count(session, relation)?;
            if found != *expected {
                let message = format!(
                    "upkeep of lake `{lake}` has changed what snapshot {at} says: {relation} had {expected} rows and has \
                     {found}; nothing more was deleted, please report it"
                );
                return Err(RunnerError::Damaged { message });
            }
        }
    }
    Ok(())
}

/// Counts tables at held snapshots; upkeep must not change what they say.
pub fn sample(alias: &str, session: &Session, frozen: &Frozen) -> Result<Vec<Counted>, RunnerError> {
    let is_old = |why: &Why| matches!(why, Why::Held(_) | Why::Head);
    let held = frozen.decision.kept.iter().filter(|kept| is_old(&kept.why)).map(|kept| kept.id);
    let mut counted = Vec::new();
    let tables = lake::list_tables(session, alias)?;
    let tables = || tables.iter().filter(|(_, _, _, is_view)| !is_view).take(SAMPLED.1);
    for at in held.rev().take(SAMPLED.0) {
        let mut rows = BTreeMap::new();
        for (schema, table, ..) in tables() {
            if lake::table_at(session, alias, schema, table, at)?.is_some() {
                let relation = lake::at_version(alias, schema, table, at);
                let count = count(session, &relation)?;
                rows.insert(relation, count);
            }
        }
        counted.push(Counted { at, rows });
    }
    Ok(counted)
}
