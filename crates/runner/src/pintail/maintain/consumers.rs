//! The consumers of a lake: who still holds what it has not read, who was silent too long, and who reads which table.

use std::time::Duration;

use pintail_core::id::{SnapshotId, TableId};
use pintail_core::retention::{Hold, KnownConsumer};
use pintail_engine::guard::{ConsumerProgress, Guard, Pin, PinKind};
use pintail_engine::{EngineError, Session, lake};
use pintail_streams::cursors::{Cursor, cursors};

use super::{Frozen, counting};
use crate::pintail::{Pintail, RunnerError};

/// Where a consumer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it says of itself.
    pub progress: ConsumerProgress,
    /// How long ago it said so.
    pub silent: Duration,
    /// Whether everything that it has not read stays.
    pub holds: bool,
    /// The table that it reads, where its cursor is in this lake.
    pub source: Option<TableId>,
    /// Whether no other consumer that holds is further behind: what expiry waits for.
    pub binds: bool,
}

impl Pintail {
    /// Returns every hold on `guard`'s lake, those of pins and those of consumers, and where the consumers stand.
    pub(in crate::pintail) fn holds(
        &self,
        guard: &Guard,
        (session, alias): (&Session, &str),
        stale_after: Duration,
    ) -> Result<(Vec<Hold>, Vec<Standing>), RunnerError> {
        // Consumers first: one that reports between the two only holds more than it needs.
        let mut ours = self.runtime.block_on(guard.consumers()).map_err(EngineError::from)?;
        let cursors = cursors(session, alias)?;
        // A guard that was lost knows nothing of the cursors that the lake holds.
        ours.extend(
            cursors
                .iter()
                .filter(|cursor| ours.iter().all(|row| row.consumer != cursor.consumer))
                .map(|cursor| self.progress_of(cursor))
                .collect::<Vec<_>>(),
        );
        // What a row says beyond the newest snapshot is of another copy of the lake.
        let head = lake::head(session, alias)?;
        for row in ours.iter_mut().filter(|row| head < row.snapshot) {
            if let Some(cursor) = cursors.iter().find(|cursor| cursor.consumer == row.consumer) {
                row.snapshot = cursor.at;
            }
        }
        let foreign = self.runtime.block_on(guard.foreign_consumers()).map_err(EngineError::from)?;
        let pins = self.runtime.block_on(guard.pins()).map_err(EngineError::from)?;
        let now = (self.settings.now)().timestamp_micros();
        let mut standings = standings(ours.into_iter().chain(foreign).collect(), now, stale_after);
        for standing in &mut standings {
            let cursor = cursors.iter().find(|cursor| cursor.consumer == standing.progress.consumer);
            standing.source = cursor.and_then(|cursor| cursor.source);
        }
        let mut holds: Vec<Hold> = pins.iter().map(hold_of_pin).collect();
        holds.extend(standings.iter().filter(|standing| standing.holds).map(hold_of_consumer));
        Ok((holds, standings))
    }

    /// Returns what a cursor says of its consumer, with what this project's configuration says of one of that name.
    fn progress_of(&self, cursor: &Cursor) -> ConsumerProgress {
        let name = cursor.consumer.split('.').next().unwrap_or(&cursor.consumer);
        let spec = self.project.project.config.consumers.get(name).map(|consumer| &consumer.spec);
        let staleness = spec.and_then(|spec| spec.staleness);
        ConsumerProgress {
            required: spec.is_some_and(|spec| spec.required),
            stale_after_micros: staleness.map(|limit| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX)),
            ..ConsumerProgress::new(cursor.consumer.clone(), cursor.at, cursor.updated_micros)
        }
    }

    /// Stores which consumers the expiry that follows will pass, and says it.
    pub(super) fn note_passed(&self, guard: &Guard, frozen: &Frozen) -> Result<(), RunnerError> {
        let Some(last) = frozen.decision.expire.last() else { return Ok(()) };
        let now = (self.settings.now)().timestamp_micros();
        for standing in
            frozen.consumers.iter().filter(|standing| !standing.holds && standing.progress.snapshot <= *last)
        {
            let is_news =
                self.runtime.block_on(guard.note_passed(&standing.progress, now)).map_err(EngineError::from)?;
            if is_news {
                counting::count_passed(&standing.progress.consumer);
                tracing::warn!(
                    consumer = standing.progress.consumer,
                    "expiry passes a consumer that was silent too long"
                );
            }
        }
        Ok(())
    }

    /// Returns the consumers with the tables that they read, as far as their cursors say it.
    pub(super) fn known_consumers(
        (session, alias): (&Session, &str),
        standings: &[Standing],
    ) -> Result<Vec<KnownConsumer>, RunnerError> {
        let tables = lake::live_tables(session, alias)?;
        let known = |standing: &Standing| {
            let live = tables.iter().find(|live| Some(live.id) == standing.source);
            let source = live.map(|live| (live.schema.clone(), live.name.clone()));
            KnownConsumer { name: standing.progress.consumer.clone(), source, upto: standing.progress.snapshot }
        };
        Ok(standings.iter().map(known).collect())
    }
}

fn standings(consumers: Vec<ConsumerProgress>, now_micros: i64, stale_after: Duration) -> Vec<Standing> {
    let limit = i64::try_from(stale_after.as_micros()).unwrap_or(i64::MAX);
    let slowest = consumers.iter().filter(|row| row.holds_at(now_micros, limit)).map(|row| row.snapshot).min();
    let standing = |progress: ConsumerProgress| {
        let holds = progress.holds_at(now_micros, limit);
        let micros = now_micros.saturating_sub(progress.updated_micros);
        Standing {
            silent: Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
            binds: holds && Some(progress.snapshot) == slowest,
            holds,
            source: None,
            progress,
        }
    };
    consumers.into_iter().map(standing).collect()
}

fn hold_of_pin(pin: &Pin) -> Hold {
    let is_in_flight = pin.kind == PinKind::Process;
    let owner = if is_in_flight { format!("work in progress {}", pin.owner) } else { pin.owner.clone() };
    Hold { snapshot: pin.snapshot, owner, reason: pin.reason.clone(), is_in_flight }
}

/// A consumer reads the feed from its cursor on, so everything from there on stays, as for work in progress.
fn hold_of_consumer(standing: &Standing) -> Hold {
    let SnapshotId(snapshot) = standing.progress.snapshot;
    Hold {
        snapshot: standing.progress.snapshot,
        owner: format!("consumer {}", standing.progress.consumer),
        reason: format!("it has read up to snapshot {snapshot}"),
        is_in_flight: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(consumer: &str, snapshot: i64, updated: i64) -> ConsumerProgress {
        ConsumerProgress::new(consumer, SnapshotId(snapshot), updated)
    }

    #[test]
    fn the_slowest_that_still_holds_binds() {
        let second = 1_000_000;
        let consumers = vec![
            row("lost", 2, 0),
            ConsumerProgress { required: true, ..row("required", 5, 0) },
            row("quick", 9, 90 * second),
        ];
        let told: Vec<(String, bool, bool)> = standings(consumers, 100 * second, Duration::from_secs(60))
            .into_iter()
            .map(|standing| (standing.progress.consumer, standing.holds, standing.binds))
            .collect();
        let expected = [("lost", false, false), ("required", true, true), ("quick", true, false)];
        assert_eq!(told, expected.map(|(name, holds, binds)| (name.to_owned(), holds, binds)));
    }
}
