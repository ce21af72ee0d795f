//! A look at what versions say, before and after files are compacted and snapshots expire: upkeep must not change it.
//!
//! Looked at are the newest version, the oldest that stays, and some that are held, of each some tables, those whose files
//! are compacted first. Small tables are compared by their contents, others by their number of rows: upkeep should not read
//! the lake to save it from itself. `pintail audit` reads everything.

use std::collections::{BTreeMap, BTreeSet};

use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::retention::{Kept, TableFiles, Why};
use pintail_engine::{EngineError, Session, lake};

use crate::pintail::RunnerError;

/// How many held snapshots are looked at, besides the newest and the oldest, and how many tables of each.
const SAMPLED: (usize, usize) = (2, 10);

/// Up to so many bytes and files of the newest version, a table is compared by its contents.
const READ: (u64, u64) = (32_000_000, 100);

/// What some versions say.
pub struct Sample {
    lake: LakeName,
    versions: BTreeMap<SnapshotId, Vec<Said>>,
}

/// A version that says something else than before.
pub struct Difference {
    /// The version.
    pub at: SnapshotId,
    /// What it said and says.
    pub words: String,
}

/// What one table says at one version.
struct Said {
    /// The table at its version, as it stands after FROM.
    relation: String,
    by: By,
    found: Fingerprint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Contents,
    Rows,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fingerprint {
    rows: i64,
    /// A sum over the rows, whatever their order.
    contents: Option<String>,
}

impl Sample {
    /// Looks at some of the versions that are `kept`, and of each at some of `tables`, the first of them first.
    pub fn take(
        lake_name: &LakeName,
        (session, alias): (&Session, &str),
        kept: &[Kept],
        tables: &[&TableFiles],
    ) -> Result<Self, RunnerError> {
        lake::read_old_versions(session)?;
        let mut versions = BTreeMap::new();
        for at in versions_of(kept) {
            let there = lake::tables_at(session, alias, at)?;
            let is_there = |files: &&&TableFiles| there.iter().any(|(s, t)| (s, t) == (&files.schema, &files.table));
            let looked_at = tables.iter().take(SAMPLED.1).filter(is_there);
            let said: Result<Vec<Said>, RunnerError> =
                looked_at.map(|files| look((session, alias), files, at)).collect();
            match said {
                // Upkeep must not end for ever with a version of which a file was lost; `audit` tells of it.
                Err(RunnerError::Engine(error)) if is_about_a_file(&error) => {
                    tracing::warn!(%at, %error, "a version that cannot be read is compared with nothing");
                }
                said => drop(versions.insert(at, said?)),
            }
        }
        Ok(Self { lake: lake_name.clone(), versions })
    }

    /// Returns how many versions were looked at.
    pub fn versions(&self) -> usize {
        self.versions.len()
    }

    /// Returns what is said otherwise now, after `what`.
    pub fn check(&self, session: &Session, what: &str) -> Result<Option<Difference>, RunnerError> {
        for (at, said) in &self.versions {
            for Said { relation, by, found } in said {
                let now = fingerprint(session, relation, *by)?;
                if now == *found {
                    continue;
                }
                let difference = match now.rows == found.rows {
                    true => format!("has other contents in its {} rows", now.rows),
                    false => format!("had {} rows and has {}", found.rows, now.rows),
                };
                let words = format!(
                    "{what} of lake `{}` has changed what snapshot {at} says: {relation} {difference}",
                    self.lake
                );
                return Ok(Some(Difference { at: *at, words }));
            }
        }
        Ok(None)
    }
}

fn is_about_a_file(error: &EngineError) -> bool {
    error.failure().is_some_and(|failure| failure.message.is_missing_file())
}

fn look((session, alias): (&Session, &str), files: &TableFiles, at: SnapshotId) -> Result<Said, RunnerError> {
    let name = (files.schema.as_str(), files.table.as_str());
    let relation = lake::at_version(alias, name.0, name.1, at);
    let is_small = files.bytes <= READ.0 && files.files <= READ.1;
    if is_small {
        let found = fingerprint(session, &relation, By::Contents)?;
        return Ok(Said { relation, by: By::Contents, found });
    }
    // What the catalog says now is held against what the files hold afterwards, when they are fewer.
    let found = match lake::rows_known_at(session, alias, name, at)? {
        Some(rows) => Fingerprint { rows, contents: None },
        None => fingerprint(session, &relation, By::Rows)?,
    };
    Ok(Said { relation, by: By::Rows, found })
}

fn versions_of(kept: &[Kept]) -> BTreeSet<SnapshotId> {
    let held = kept.iter().rev().filter(|kept| matches!(kept.why, Why::Held(_))).take(SAMPLED.0);
    kept.first().into_iter().chain(kept.last()).chain(held).map(|kept| kept.id).collect()
}

fn fingerprint(session: &Session, relation: &str, by: By) -> Result<Fingerprint, RunnerError> {
    let contents = match by {
        By::Contents => "coalesce(sum(hash(_pt_row)::HUGEINT), 0)::VARCHAR",
        By::Rows => "NULL::VARCHAR",
    };
    // A count may be answered by the catalog; a sum reads each file.
    let sql = format!("SELECT coalesce(sum(1), 0)::BIGINT, {contents} FROM (SELECT * FROM {relation}) AS _pt_row");
    Ok(session.one("look at a version", &sql, |row| Ok(Fingerprint { rows: row.get(0)?, contents: row.get(1)? }))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_the_oldest_and_the_newest_held_versions_are_looked_at() {
        let kept = |id: i64, why: Why| Kept { id: SnapshotId(id), why };
        let all = [
            kept(1, Why::Held(vec![0])),
            kept(3, Why::Held(vec![0])),
            kept(5, Why::Held(vec![0])),
            kept(6, Why::Held(vec![0])),
            kept(7, Why::Young),
            kept(9, Why::Head),
        ];
        assert_eq!(versions_of(&all).into_iter().map(|id| id.0).collect::<Vec<_>>(), [1, 5, 6, 9]);
        assert_eq!(versions_of(&[kept(4, Why::Head)]).len(), 1);
        assert!(versions_of(&[]).is_empty());
    }
}
