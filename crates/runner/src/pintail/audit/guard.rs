//! What the guard says (pins, progress, leases) against what the lake says (snapshots, cursors).

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::retention::Snapshot;
use pintail_core::stream::{Kinds, Touch, touch};
use pintail_engine::guard::{ConsumerProgress, Guard, HeldLease, Pin, PinKind};
use pintail_engine::lake::{self, Commit};
use pintail_engine::{EngineError, Session};
use pintail_streams::audit::{PositionRow, position_rows};
use pintail_streams::cursors::{Cursor, cursors};

use super::positions::positions;
use super::{CLOCKS_DIFFER, Check, Finding};
use crate::pintail::{Pintail, RunnerError};

/// A consumer tells the guard within this time after its commit.
const TELLS_WITHIN: i64 = 60_000_000;

impl Pintail {
    /// Returns what is wrong with pins, consumers, leases and positions.
    pub(super) fn guard_findings(
        &self,
        guard: &Guard,
        (session, alias): (&Session, &str),
    ) -> Result<Vec<Finding>, RunnerError> {
        let now = (self.settings.now)().timestamp_micros();
        let pins = self.runtime.block_on(guard.pins()).map_err(EngineError::from)?;
        let ours = self.runtime.block_on(guard.consumers()).map_err(EngineError::from)?;
        let foreign = self.runtime.block_on(guard.foreign_consumers()).map_err(EngineError::from)?;
        // Positions before leases: who takes one over afterwards has a greater token than any that wrote.
        let (cursors, positions_found) = (cursors(session, alias)?, position_rows(session, alias)?);
        let (leases, last_token) = self.runtime.block_on(guard.leases()).map_err(EngineError::from)?;
        let snapshots = lake::snapshots(session, alias)?;

        let mut findings: Vec<Finding> = pins.iter().filter_map(|pin| lost_pin(pin, &snapshots)).collect();
        findings.extend(ours.iter().chain(&foreign).filter_map(|consumer| misplaced(consumer, &snapshots)));
        findings.extend(ours.iter().filter_map(|consumer| without_cursor(consumer, &cursors)));
        for cursor in &cursors {
            let progress = ours.iter().find(|row| row.consumer == cursor.consumer);
            let unread = match (progress, cursor.source) {
                (Some(progress), Some(source)) if cursor.at < progress.snapshot => {
                    let between = lake::commits_between(session, alias, cursor.at, Some(progress.snapshot))?;
                    rows_between(&between, source)
                }
                _ => 0,
            };
            findings.extend(disagreement(cursor, progress, unread, now));
        }
        findings.extend(positions(&positions_found, now));
        findings.extend(tokens(&leases, last_token, &positions_found, now));
        Ok(findings)
    }
}

fn lost_pin(pin: &Pin, snapshots: &[Snapshot]) -> Option<Finding> {
    let is_there = snapshots.iter().any(|snapshot| snapshot.id == pin.snapshot);
    // Work in progress may have pinned what came after the snapshots were listed.
    let is_newer = snapshots.last().is_some_and(|last| last.id < pin.snapshot);
    if is_there || (is_newer && pin.kind == PinKind::Process) {
        return None;
    }
    Some(Finding {
        check: Check::Pins.word(),
        place: format!("pin {}", pin.id.0),
        message: format!(
            "snapshot {}, which {} holds ({}), is not there; `pintail unpin` lets the pin go",
            pin.snapshot, pin.owner, pin.reason
        ),
    })
}

fn misplaced(consumer: &ConsumerProgress, snapshots: &[Snapshot]) -> Option<Finding> {
    let (first, last) = (snapshots.first()?.id, snapshots.last()?.id);
    let at = consumer.snapshot;
    let message = if last < at {
        format!("it has read up to snapshot {at}, and the newest is {last}: the lake was made anew, or taken back")
    } else if at < first {
        format!(
            "it has read up to snapshot {at}, and the oldest that is left is {first}: what lies between is lost to it"
        )
    } else {
        return None;
    };
    Some(Finding { check: Check::Consumers.word(), place: consumer.consumer.clone(), message })
}

fn consumer_finding(consumer: &str, message: String) -> Finding {
    Finding { check: Check::Consumers.word(), place: consumer.to_owned(), message }
}

/// A consumer of ours that the lake has no cursor of.
fn without_cursor(consumer: &ConsumerProgress, cursors: &[Cursor]) -> Option<Finding> {
    let has_cursor = cursors.iter().any(|cursor| cursor.consumer == consumer.consumer);
    let message = format!(
        "the guard knows that it has read up to snapshot {}, and the lake has no cursor of it: it never began, or the lake was \
         made anew or taken back; run it, or give up what it holds by `pintail consume remove {}`",
        consumer.snapshot, consumer.consumer
    );
    (!has_cursor).then(|| consumer_finding(&consumer.consumer, message))
}

/// Returns how many of `commits` brought rows into `source`.
fn rows_between(commits: &[Commit], source: TableId) -> usize {
    commits.iter().filter(|commit| touch(&commit.changes, source, Kinds::Inserts) == Touch::Rows).count()
}

/// What the guard says of a consumer against its cursor: it may be further where nothing was left to read.
fn disagreement(
    cursor: &Cursor,
    progress: Option<&ConsumerProgress>,
    unread: usize,
    now_micros: i64,
) -> Option<Finding> {
    let name = &cursor.consumer;
    let SnapshotId(at) = cursor.at;
    let told = match progress {
        None => {
            return Some(consumer_finding(
                name,
                format!(
                    "its cursor is at snapshot {at}, and the guard does not know it: the guard was lost; its next pass tells \
                     it"
                ),
            ));
        }
        Some(progress) => progress.snapshot,
    };
    if 0 < unread {
        return Some(consumer_finding(
            name,
            format!(
                "the guard says that it has read up to snapshot {told}, but its cursor is at {at}, and {unread} snapshots \
                 between them brought rows: expiry may take what it has not read; run it now, before `pintail maintain`"
            ),
        ));
    }
    let is_late = told < cursor.at && TELLS_WITHIN < now_micros.saturating_sub(cursor.updated_micros);
    is_late.then(|| {
        consumer_finding(
            name,
            format!(
                "the guard says that it has read up to snapshot {told}, and its cursor is at {at}: expiry waits for what was \
                 read; its next pass tells it"
            ),
        )
    })
}

/// Leases and fencing tokens: they only grow, and whoever wrote last had the greatest.
fn tokens(leases: &[HeldLease], last_token: i64, positions: &[PositionRow], now_micros: i64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |place: String, message: String| {
        findings.push(Finding { check: Check::Leases.word(), place, message });
    };
    for (index, lease) in leases.iter().enumerate() {
        let place = || lease.partition.as_ref().map_or(lease.asset.clone(), |key| format!("{} {key}", lease.asset));
        let (token, process) = (lease.token, lease.process);
        if last_token < token {
            add(
                place(),
                format!(
                    "process {process} holds it with token {token}, and the guard has given {last_token} at most: its count \
                     was set back, and who comes next may be refused; end that process and start it again"
                ),
            );
        }
        if now_micros.saturating_add(CLOCKS_DIFFER) < lease.since_micros {
            add(
                place(),
                format!(
                    "process {process} took it at {}, which is yet to come: the clocks of the machines differ, and times of \
                     silence and of retention with them; set them by NTP",
                    crate::time_text(lease.since_micros)
                ),
            );
        }
        let overlaps = |other: &&HeldLease| {
            let both = [&lease.partition, &other.partition];
            other.asset == lease.asset
                && (both.contains(&&None) || lease.partition == other.partition)
                && other.owner != lease.owner
        };
        for other in leases[index + 1..].iter().filter(overlaps) {
            add(
                place(),
                format!(
                    "it has two owners, process {process} with token {token} and process {} with token {}: only the later can \
                     commit; end the other",
                    other.process, other.token
                ),
            );
        }
    }
    for position in positions {
        let consumer = position.consumer.as_ref().map(|name| format!("consumer {name}"));
        let owner = leases.iter().find(|lease| Some(&lease.asset) == consumer.as_ref());
        let (place, wrote) = (consumer.unwrap_or_else(|| position.table.clone()), position.token);
        if let Some(owner) = owner.filter(|owner| owner.token < wrote) {
            add(
                place,
                format!(
                    "process {} holds it with token {}, and token {wrote} has written since: it was overtaken, and each of its \
                     commits is refused; end it and start it again",
                    owner.process, owner.token
                ),
            );
        } else if last_token < wrote {
            add(
                place,
                format!(
                    "token {wrote} has written it, and the guard has given {last_token} at most: the guard was lost or set \
                     back; whoever opens it next raises the count"
                ),
            );
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use pintail_streams::audit::Written;

    use super::*;

    #[test]
    fn a_consumer_outside_the_snapshots_is_told() {
        let snapshots = [3, 4, 9].map(|id| Snapshot { id: SnapshotId(id), at_micros: 0 });
        let told =
            |at| misplaced(&ConsumerProgress::new("c", SnapshotId(at), 0), &snapshots).map(|found| found.message);
        assert_eq!((told(3), told(5), told(9)), (None, None, None));
        assert!(told(2).unwrap().contains("the oldest that is left is 3"));
        assert!(told(10).unwrap().contains("the newest is 9"));
    }

    fn lease(asset: &str, partition: Option<&str>, token: i64, owner: &str) -> HeldLease {
        HeldLease {
            asset: asset.to_owned(),
            partition: partition.map(str::to_owned),
            token,
            owner: owner.to_owned(),
            process: token * 10,
            since_micros: 0,
        }
    }

    fn position(table: &str, token: i64) -> PositionRow {
        PositionRow {
            table: table.to_owned(),
            consumer: table.strip_prefix("cursor_").map(str::to_owned),
            rows: 1,
            at: Some("1".to_owned()),
            token,
            updated_micros: 0,
            written: Written::Gone,
        }
    }

    fn told(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(|found| format!("{}: {}", found.place, found.message)).collect()
    }

    #[test]
    fn leases_and_tokens_are_told_when_they_cannot_be() {
        let good = [lease("a", Some("1"), 1, "p"), lease("a", Some("2"), 2, "q"), lease("consumer c", None, 3, "p")];
        assert_eq!(told(&tokens(&good, 3, &[position("cursor_c", 3), position("position_log", 0)], 0)), [""; 0]);

        let doubled = [lease("a", None, 1, "p"), lease("a", Some("2"), 2, "q"), lease("a", Some("2"), 3, "q")];
        let found = tokens(&doubled, 9, &[], 0);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            told(&found)[0].starts_with("a: it has two owners, process 10 with token 1 and process 20 with token 2")
        );

        let future = HeldLease { since_micros: 200_000_000, ..lease("a", Some("d"), 1, "p") };
        assert!(
            told(&tokens(std::slice::from_ref(&future), 1, &[], 0))[0]
                .starts_with("a d: process 10 took it at 1970-01-01 00:03:20 UTC, which is yet to come")
        );
        assert_eq!(tokens(&[future], 1, &[], 150_000_000), []);

        let set_back = tokens(&[lease("a", None, 8, "p")], 7, &[], 0);
        assert!(
            told(&set_back)[0].starts_with("a: process 80 holds it with token 8, and the guard has given 7 at most")
        );

        let overtaken = tokens(&[lease("consumer c", None, 4, "p")], 9, &[position("cursor_c", 5)], 0);
        assert!(
            told(&overtaken)[0]
                .starts_with("consumer c: process 40 holds it with token 4, and token 5 has written since")
        );
        let lost = tokens(&[], 4, &[position("cursor_c", 5)], 0);
        assert!(told(&lost)[0].starts_with("consumer c: token 5 has written it, and the guard has given 4 at most"));
    }

    #[test]
    fn the_guard_may_be_further_than_a_cursor_only_where_nothing_was_left_to_read() {
        let minute = 60_000_000;
        let cursor =
            Cursor { consumer: "c".to_owned(), at: SnapshotId(5), source: Some(TableId(1)), updated_micros: 0 };
        let row = |at| ConsumerProgress::new("c", SnapshotId(at), 0);
        let found = |at: Option<i64>, unread, now| {
            disagreement(&cursor, at.map(row).as_ref(), unread, now).map(|found| found.message)
        };
        assert_eq!(
            [found(Some(5), 0, 9 * minute), found(Some(9), 0, 9 * minute), found(Some(4), 0, minute)],
            [None, None, None]
        );
        assert!(
            found(Some(9), 2, 0).unwrap().contains("its cursor is at 5, and 2 snapshots between them brought rows")
        );
        assert!(found(Some(4), 0, 2 * minute).unwrap().contains("expiry waits for what was read"));
        assert!(found(None, 0, 0).unwrap().contains("the guard does not know it"));
        assert_eq!(without_cursor(&row(5), std::slice::from_ref(&cursor)), None);
        assert!(without_cursor(&row(5), &[]).unwrap().message.contains("the lake has no cursor of it"));
    }
}
