//! `pintail lake health`: how a lake is doing, and what deserves attention. Only catalogs are read, no data.

use std::time::Duration;

use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::retention::TableFiles;
use pintail_engine::guard::PassedConsumer;
use pintail_engine::lake::{self, compact, maintain as upkeep};
use pintail_engine::{EngineError, LakeLocation};

use super::maintain::Standing;
use super::{Pintail, RunnerError};

/// From so many small files on, merging is worth a word.
const MANY_SMALL_FILES: u64 = 100;

/// How a lake is doing.
#[derive(Clone, Debug)]
pub struct Health {
    /// The lake.
    pub lake: LakeName,
    /// How many snapshots there are.
    pub snapshots: usize,
    /// The oldest one and its age.
    pub oldest: (SnapshotId, Duration),
    /// The newest one and its age.
    pub head: (SnapshotId, Duration),
    /// The files of each table that the head shows.
    pub tables: Vec<TableFiles>,
    /// Bytes of files that only older snapshots show.
    pub old_bytes: u64,
    /// Files that no snapshot shows and that are not deleted yet.
    pub waiting_files: u64,
    /// The consumers, where they stand, and how long the oldest commit that they have not read is there.
    pub consumers: Vec<(Standing, Option<Duration>)>,
    /// Consumers that expiry has passed, and that have not gone on since.
    pub passed: Vec<PassedConsumer>,
    /// What deserves attention, most urgent first.
    pub attention: Vec<String>,
}

impl Pintail {
    /// Returns how one lake, or each, is doing.
    pub fn lake_health(&self, lake: Option<&str>) -> Result<Vec<Health>, RunnerError> {
        self.lakes_named(lake)?.into_iter().map(|location| self.health_of(location)).collect()
    }

    fn health_of(&self, location: &LakeLocation) -> Result<Health, RunnerError> {
        let config = &self.project.project.config.maintain;
        let old = self.old_versions(location)?;
        let (session, alias) = (&old.session, old.alias());
        let guard = self.guard(location)?;
        let (_, standings) = self.holds(&guard, (session, &alias), config.stale)?;
        let mut passed = self.runtime.block_on(guard.passed_consumers()).map_err(EngineError::from)?;
        passed.retain(|passed| {
            let mut standings = standings.iter().map(|standing| &standing.progress);
            standings.any(|at| at.consumer == passed.consumer && at.snapshot.0 <= passed.snapshot_id)
        });
        let snapshots = lake::snapshots(session, &alias)?;
        let now = (self.settings.now)().timestamp_micros();
        let age = |at_micros: i64| Duration::from_micros(u64::try_from(now.saturating_sub(at_micros)).unwrap_or(0));
        let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else {
            return Err(location.missing().into());
        };
        let consumers = standings.into_iter().map(|standing| {
            let unread = snapshots.iter().find(|snapshot| standing.progress.snapshot < snapshot.id);
            let lag = unread.map(|snapshot| age(snapshot.at_micros));
            (standing, lag)
        });
        let spans = upkeep::file_spans(session, &alias)?;
        let old_bytes = spans.iter().filter(|span| span.end.is_some()).map(|span| span.bytes).sum();
        let mut health = Health {
            lake: location.name.clone(),
            snapshots: snapshots.len(),
            oldest: (first.id, age(first.at_micros)),
            head: (last.id, age(last.at_micros)),
            tables: compact::table_files(session, &alias, config.small_files.0)?,
            old_bytes,
            waiting_files: upkeep::waiting_files(session, &alias)?,
            consumers: consumers.collect(),
            passed,
            attention: Vec::new(),
        };
        health.attention = attention(&health, config.keep, config.every);
        Ok(health)
    }
}

fn attention(health: &Health, keep: Duration, every: Duration) -> Vec<String> {
    let text = crate::duration_text;
    let mut found: Vec<String> = health
        .passed
        .iter()
        .map(|passed| {
            format!(
                "expiry has passed consumer {}, which had read up to snapshot {}: what followed is lost to it, \
                 `pintail consume show {}` says what can be read again",
                passed.consumer, passed.snapshot_id, passed.consumer
            )
        })
        .collect();
    for (standing, _) in health.consumers.iter().filter(|(standing, _)| !standing.holds) {
        let name = &standing.progress.consumer;
        found.push(format!(
            "consumer {name} has been silent for {}: expiry does not wait for it",
            text(standing.silent)
        ));
    }
    // A round of upkeep may be late without being ill.
    if keep + every * 4 < health.oldest.1 && 1 < health.snapshots {
        let waits = health.consumers.iter().find(|(standing, _)| standing.binds);
        let why = waits.map_or("is `pintail maintain` run?".to_owned(), |(standing, _)| {
            format!("expiry waits for consumer {}, or `pintail maintain` is not run", standing.progress.consumer)
        });
        found.push(format!("the oldest snapshot is {} old, and {} are kept: {why}", text(health.oldest.1), text(keep)));
    }
    for table in &health.tables {
        if MANY_SMALL_FILES <= table.mergeable {
            let average = table.mergeable_bytes / table.mergeable.max(1);
            found.push(format!(
                "{}.{} has {} small files of {average} bytes each; `pintail maintain` merges them",
                table.schema, table.table, table.mergeable
            ));
        }
    }
    found
}
