//! What upkeep tells of itself, for alerts: that rounds succeed, how old the oldest version is, who holds it.

use std::time::Duration;

use metrics::{counter, gauge};
use pintail_core::id::LakeName;
use pintail_core::retention::Snapshot;

use super::{Maintained, Standing};

/// Counts a round of one lake that has succeeded.
pub fn count(done: &Maintained, snapshots: &[Snapshot], now_micros: i64) {
    let lake = done.lake.as_ref().map_or_else(String::new, ToString::to_string);
    let seconds = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0)).as_secs_f64();
    let with = |name: &'static str, value: usize| counter!(name, "lake" => lake.clone()).increment(value as u64);
    with("pintail_maintain_rounds_total", 1);
    with("pintail_maintain_expired_snapshots_total", done.expired.len());
    with("pintail_maintain_deleted_files_total", done.files_deleted + done.orphans_deleted);
    let merged = |table: &super::CompactedTable| table.merged.map_or(0, |merged| merged.files_before);
    let files: u64 = done.compacted.iter().map(merged).sum();
    counter!("pintail_maintain_merged_files_total", "lake" => lake.clone()).increment(files);
    gauge!("pintail_maintain_last_success_seconds", "lake" => lake.clone()).set(seconds(now_micros));
    let oldest = snapshots.iter().find(|snapshot| done.expired.binary_search(&snapshot.id).is_err());
    let age = oldest.map_or(0, |snapshot| now_micros.saturating_sub(snapshot.at_micros));
    gauge!("pintail_maintain_oldest_snapshot_age_seconds", "lake" => lake.clone()).set(seconds(age));
    let is_silent = |standing: &&Standing| !standing.holds;
    let silent = done.consumers.iter().filter(is_silent).count();
    gauge!("pintail_maintain_silent_consumers", "lake" => lake.clone()).set(silent as f64);
    for standing in &done.consumers {
        let consumer = standing.progress.consumer.clone();
        let binds = f64::from(u8::from(standing.binds));
        gauge!("pintail_maintain_floor_binding", "lake" => lake.clone(), "consumer" => consumer).set(binds);
    }
}

/// Counts a table whose files could not be compacted.
pub fn count_failed_compaction(lake: &LakeName) {
    counter!("pintail_maintain_failed_compactions_total", "lake" => lake.to_string()).increment(1);
}

/// Counts a consumer that expiry passes for the first time.
pub fn count_passed(consumer: &str) {
    counter!("pintail_maintain_passed_consumers_total", "consumer" => consumer.to_owned()).increment(1);
}
