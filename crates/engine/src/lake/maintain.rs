//! Upkeep of a lake: what expiry would destroy is kept first, then explicit snapshots go, then files that nobody shows.
//!
//! Invariant: snapshots are expired by a list of ids that is never empty, never by age and never by CHECKPOINT; the caller
//! holds the lane alone from its last look at the pins to the end of [`expire`]. DuckLake deletes the commit messages of
//! what it expires, so [`keep`] copies them into `_pintail.stamp` in a commit of its own, and when each table last changed
//! into `_pintail.last_change`. Compaction is not here.

use std::collections::{BTreeMap, BTreeSet};

use pintail_core::id::{AttemptId, SnapshotId};
use pintail_core::retention::FileSpan;
use pintail_core::sql::changes::ChangeSet;
use pintail_core::sql::{Literal, Relation, Statement};

use super::{Commit, OWN_SCHEMA, commits_between, metadata};
use crate::error::EngineError;
use crate::session::Session;
use crate::transaction::{CommitWords, WriteTransaction};

/// When a table last changed and was last dropped, among the snapshots that have gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastChange {
    /// The last snapshot that changed it.
    pub changed: Option<SnapshotId>,
    /// The last snapshot that dropped it without making another of its name.
    pub dropped: Option<SnapshotId>,
}

/// The last changes, by schema and name of the table.
pub type LastChangesByName = BTreeMap<(String, String), LastChange>;

fn stamp_table(alias: &str) -> Relation {
    Relation::in_catalog(alias, OWN_SCHEMA, "stamp")
}

fn last_change_table(alias: &str) -> Relation {
    Relation::in_catalog(alias, OWN_SCHEMA, "last_change")
}

/// Returns the files of the lake with the snapshots that show them, data and deletions.
pub fn file_spans(session: &Session, alias: &str) -> Result<Vec<FileSpan>, EngineError> {
    let part = |table: &str| {
        format!("SELECT begin_snapshot, end_snapshot, coalesce(file_size_bytes, 0) FROM {}.{table}", metadata(alias))
    };
    session.rows(
        "measure the files",
        &format!("{} UNION ALL {}", part("ducklake_data_file"), part("ducklake_delete_file")),
        |row| {
            Ok(FileSpan {
                begin: SnapshotId(row.get(0)?),
                end: row.get::<_, Option<i64>>(1)?.map(SnapshotId),
                bytes: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
            })
        },
    )
}

/// Copies what expiring `ids` would destroy, in one stamped commit, and returns its snapshot. What was copied before a
/// crash is not copied twice.
pub fn keep(
    session: &Session,
    alias: &str,
    ids: &[SnapshotId],
    changes: &LastChangesByName,
    at_micros: i64,
    attempt: &AttemptId,
) -> Result<SnapshotId, EngineError> {
    let transaction = WriteTransaction::begin(session, alias)?;
    for statement in make_tables(alias) {
        transaction.run(&statement)?;
    }
    transaction.run(&copy_stamps(alias, ids, at_micros))?;
    let mut merged = read_last_changes(session, alias)?;
    merge(&mut merged, changes);
    transaction
        .run(&Statement::new("forget the older last changes", format!("DELETE FROM {}", last_change_table(alias))))?;
    if !merged.is_empty() {
        transaction.run(&insert_last_changes(alias, &merged))?;
    }
    let message = format!("keep the stamps of {} snapshots that expire", ids.len());
    let extra_info = serde_json::json!({"pintail": 1, "entries": [], "maintenance": attempt.as_str()}).to_string();
    transaction.commit(&CommitWords { attempt, message: &message, extra_info: &extra_info }, || {})
}

fn make_tables(alias: &str) -> [Statement; 2] {
    [
        Statement::new(
            "make the table of kept stamps",
            format!(
                "CREATE TABLE IF NOT EXISTS {} (snapshot_id BIGINT, snapshot_time TIMESTAMPTZ, changes_made VARCHAR, \
                 author VARCHAR, message VARCHAR, extra_info VARCHAR, expired_at TIMESTAMPTZ)",
                stamp_table(alias)
            ),
        ),
        Statement::new(
            "make the table of last changes",
            format!(
                "CREATE TABLE IF NOT EXISTS {} (schema_name VARCHAR, table_name VARCHAR, changed BIGINT, dropped BIGINT)",
                last_change_table(alias)
            ),
        ),
    ]
}

fn copy_stamps(alias: &str, ids: &[SnapshotId], at_micros: i64) -> Statement {
    let sql = format!(
        "INSERT INTO {stamp} BY NAME
         SELECT snapshot_id, s.snapshot_time::TIMESTAMPTZ AS snapshot_time, c.changes_made, c.author,
                c.commit_message AS message, c.commit_extra_info AS extra_info,
                make_timestamptz({at_micros}::BIGINT) AS expired_at
         FROM {metadata}.ducklake_snapshot s LEFT JOIN {metadata}.ducklake_snapshot_changes c USING (snapshot_id)
         WHERE snapshot_id IN ({ids}) AND snapshot_id NOT IN (SELECT snapshot_id FROM {stamp})",
        stamp = stamp_table(alias),
        metadata = metadata(alias),
        ids = id_list(ids),
    );
    Statement::new("keep the stamps", sql)
}

fn insert_last_changes(alias: &str, changes: &LastChangesByName) -> Statement {
    let number = |id: Option<SnapshotId>| id.map_or_else(|| "NULL".to_owned(), |id| id.to_string());
    let rows: Vec<String> = changes
        .iter()
        .map(|((schema, table), last)| {
            format!(
                "({}, {}, {}, {})",
                Literal::new(schema),
                Literal::new(table),
                number(last.changed),
                number(last.dropped)
            )
        })
        .collect();
    Statement::new(
        "keep the last changes",
        format!("INSERT INTO {} VALUES\n{}", last_change_table(alias), rows.join(",\n")),
    )
}

/// Takes `newer` into `known`; the later snapshot of each wins.
fn merge(known: &mut LastChangesByName, newer: &LastChangesByName) {
    for (name, change) in newer {
        let last = known.entry(name.clone()).or_default();
        last.changed = last.changed.max(change.changed);
        last.dropped = last.dropped.max(change.dropped);
    }
}

fn id_list(ids: &[SnapshotId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Expires exactly `ids`. The caller holds the lane alone, and has looked at the pins since it entered.
pub fn expire(session: &Session, alias: &str, ids: &[SnapshotId]) -> Result<(), EngineError> {
    // An empty list is an error to DuckLake, and no list at all would mean another rule of expiry.
    if ids.is_empty() {
        return Ok(());
    }
    let sql = format!("CALL ducklake_expire_snapshots({}, versions => [{}])", Literal::new(alias), id_list(ids));
    session.batch("expire the snapshots", &sql)
}

/// Deletes the files that expiry has let go of before `before_micros`, and returns how many there were.
///
/// A SQLite catalog holds the moment as text, with a space where the extension's own text has a `T`: whatever was let go
/// on the day of the limit counts as older than it. So a limit is given only when that is true of the whole day.
pub fn clean_files(session: &Session, alias: &str, before_micros: i64) -> Result<usize, EngineError> {
    let safe = session.one(
        "look when files were let go",
        &format!(
            "WITH moment AS (SELECT make_timestamptz({before_micros}::BIGINT) AS before)
             SELECT epoch_us(CASE
               WHEN EXISTS (SELECT 1 FROM {metadata}.ducklake_files_scheduled_for_deletion f
                            WHERE moment.before <= f.schedule_start::TIMESTAMPTZ
                              AND f.schedule_start::TIMESTAMPTZ < date_trunc('day', moment.before) + INTERVAL 1 DAY)
               THEN date_trunc('day', moment.before) - INTERVAL 1 MICROSECOND
               ELSE moment.before END) FROM moment",
            metadata = metadata(alias)
        ),
        |row| row.get(0),
    )?;
    call_older_than(session, "delete files that no snapshot shows", "ducklake_cleanup_old_files", alias, safe)
}

/// Returns how many files no snapshot shows and are not deleted yet.
pub fn waiting_files(session: &Session, alias: &str) -> Result<u64, EngineError> {
    let sql = format!("SELECT count(*) FROM {}.ducklake_files_scheduled_for_deletion", metadata(alias));
    let count: i64 = session.one("count the files that wait to be deleted", &sql, |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Deletes the files older than `before_micros` that the catalog does not know, such as those of a writer that was
/// killed, and returns how many there were.
pub fn delete_orphans(session: &Session, alias: &str, before_micros: i64) -> Result<usize, EngineError> {
    call_older_than(session, "delete files without an owner", "ducklake_delete_orphaned_files", alias, before_micros)
}

fn call_older_than(
    session: &Session,
    purpose: &'static str,
    function: &str,
    alias: &str,
    before_micros: i64,
) -> Result<usize, EngineError> {
    // The argument must be a constant, not a call.
    let before =
        session.one(purpose, &format!("SELECT make_timestamptz({before_micros}::BIGINT)::VARCHAR"), |row| {
            row.get::<_, String>(0)
        })?;
    let sql = format!("CALL {function}({}, older_than => TIMESTAMPTZ {})", Literal::new(alias), Literal::new(before));
    Ok(session.rows(purpose, &sql, |_| Ok(()))?.len())
}

/// Returns the commits of expired snapshots after `after`, in order; none in a lake that was never maintained.
pub fn kept_commits(session: &Session, alias: &str, after: SnapshotId) -> Result<Vec<Commit>, EngineError> {
    if !is_maintained(session, alias)? {
        return Ok(Vec::new());
    }
    session.rows(
        "read the kept stamps",
        &format!(
            "SELECT snapshot_id, epoch_us(snapshot_time), changes_made, author, message, extra_info
             FROM {} WHERE {after} < snapshot_id ORDER BY snapshot_id",
            stamp_table(alias)
        ),
        |row| {
            Ok(Commit {
                snapshot: SnapshotId(row.get(0)?),
                at_micros: row.get(1)?,
                changes: ChangeSet::parse(&row.get::<_, Option<String>>(2)?.unwrap_or_default()),
                author: row.get(3)?,
                message: row.get(4)?,
                extra_info: row.get(5)?,
            })
        },
    )
}

/// Returns all commits with a snapshot in (`after`, `head`], in order: those that are there, and those that have expired.
pub fn commits_and_kept(
    session: &Session,
    alias: &str,
    after: SnapshotId,
    head: SnapshotId,
) -> Result<Vec<Commit>, EngineError> {
    let mut commits = commits_between(session, alias, after, Some(head))?;
    if i64::try_from(commits.len()).is_ok_and(|count| count == head.0 - after.0) {
        return Ok(commits);
    }
    let there: BTreeSet<SnapshotId> = commits.iter().map(|commit| commit.snapshot).collect();
    // A crash after the copy leaves a stamp in both places.
    let kept = kept_commits(session, alias, after)?;
    commits.extend(kept.into_iter().filter(|commit| commit.snapshot <= head && !there.contains(&commit.snapshot)));
    commits.sort_by_key(|commit| commit.snapshot);
    Ok(commits)
}

/// Returns when each table last changed among the snapshots that have gone.
pub fn last_changes(session: &Session, alias: &str) -> Result<LastChangesByName, EngineError> {
    if !is_maintained(session, alias)? {
        return Ok(LastChangesByName::new());
    }
    read_last_changes(session, alias)
}

fn read_last_changes(session: &Session, alias: &str) -> Result<LastChangesByName, EngineError> {
    let rows = session.rows(
        "read the last changes",
        &format!("SELECT schema_name, table_name, changed, dropped FROM {}", last_change_table(alias)),
        |row| {
            let id = |index: usize| row.get::<_, Option<i64>>(index).map(|id| id.map(SnapshotId));
            Ok(((row.get(0)?, row.get(1)?), LastChange { changed: id(2)?, dropped: id(3)? }))
        },
    )?;
    Ok(rows.into_iter().collect())
}

/// Returns when the snapshot `id` was expired, in microseconds since 1970 UTC, when that is known.
pub fn expired_at(session: &Session, alias: &str, id: SnapshotId) -> Result<Option<i64>, EngineError> {
    if !is_maintained(session, alias)? {
        return Ok(None);
    }
    let sql = format!("SELECT epoch_us(expired_at) FROM {} WHERE snapshot_id = {id}", stamp_table(alias));
    Ok(session.rows("ask when the snapshot went", &sql, |row| row.get(0))?.into_iter().next())
}

/// Whether anything was ever expired here by Pintail.
fn is_maintained(session: &Session, alias: &str) -> Result<bool, EngineError> {
    let sql = format!(
        "SELECT count(*) > 0 FROM {metadata}.ducklake_table t JOIN {metadata}.ducklake_schema s USING (schema_id)
         WHERE s.schema_name = {own} AND t.table_name = 'stamp' AND t.end_snapshot IS NULL",
        metadata = metadata(alias),
        own = Literal::new(OWN_SCHEMA)
    );
    session.one("ask whether the lake was maintained", &sql, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> (String, String) {
        ("main".to_owned(), table.to_owned())
    }

    #[test]
    fn the_later_change_of_a_table_wins_whichever_came_first() {
        let change = |changed: i64, dropped: Option<i64>| LastChange {
            changed: Some(SnapshotId(changed)),
            dropped: dropped.map(SnapshotId),
        };
        let mut known = LastChangesByName::from([(name("a"), change(5, None)), (name("b"), change(9, Some(9)))]);
        merge(&mut known, &LastChangesByName::from([(name("a"), change(7, Some(7))), (name("b"), change(3, None))]));
        assert_eq!(known[&name("a")], change(7, Some(7)));
        assert_eq!(known[&name("b")], change(9, Some(9)));
    }
}
