//! What upkeep tells of itself, for alerts: that rounds succeed, how old the oldest version is, who holds it.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use pintail_core::id::LakeName;
use pintail_core::retention::Snapshot;

use super::{Maintained, Standing};

const ROUNDS: &str = "pintail_maintain_rounds_total";
const EXPIRED: &str = "pintail_maintain_expired_snapshots_total";
const DELETED: &str = "pintail_maintain_deleted_files_total";
const MERGED: &str = "pintail_maintain_merged_files_total";
const LAST_SUCCESS: &str = "pintail_maintain_last_success_seconds";
const OLDEST_AGE: &str = "pintail_maintain_oldest_snapshot_age_seconds";
const SILENT: &str = "pintail_maintain_silent_consumers";
const BINDING: &str = "pintail_maintain_floor_binding";
const FAILED: &str = "pintail_maintain_failed_compactions_total";
const PASSED: &str = "pintail_maintain_passed_consumers_total";

/// Says what each of the metrics is, to the recorder that is installed.
pub fn describe() {
    describe_counter!(ROUNDS, "Rounds of upkeep that succeeded");
    describe_counter!(EXPIRED, "Snapshots that were expired");
    describe_counter!(DELETED, "Files that were deleted, those without an owner included");
    describe_counter!(MERGED, "Small files that were merged");
    describe_gauge!(LAST_SUCCESS, "When the last round succeeded, in seconds since 1970");
    describe_gauge!(OLDEST_AGE, "Age of the oldest snapshot that stays");
    describe_gauge!(SILENT, "Consumers that are silent for longer than their limit");
    describe_gauge!(BINDING, "1 for the consumer that expiry waits for");
    describe_counter!(FAILED, "Tables whose files could not be compacted");
    describe_counter!(PASSED, "Times that expiry passed a consumer that was silent too long");
}

/// Counts a round of one lake that has succeeded.
pub fn count(done: &Maintained, snapshots: &[Snapshot], now_micros: i64) {
    let lake = done.lake.as_ref().map_or_else(String::new, ToString::to_string);
    let seconds = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0)).as_secs_f64();
    let with = |name: &'static str, value: usize| counter!(name, "lake" => lake.clone()).increment(value as u64);
    with(ROUNDS, 1);
    with(EXPIRED, done.expired.len());
    with(DELETED, done.files_deleted + done.orphans_deleted);
    let merged = |table: &super::CompactedTable| table.merged.map_or(0, |merged| merged.files_before);
    let files: u64 = done.compacted.iter().map(merged).sum();
    counter!(MERGED, "lake" => lake.clone()).increment(files);
    gauge!(LAST_SUCCESS, "lake" => lake.clone()).set(seconds(now_micros));
    let oldest = snapshots.iter().find(|snapshot| done.expired.binary_search(&snapshot.id).is_err());
    let age = oldest.map_or(0, |snapshot| now_micros.saturating_sub(snapshot.at_micros));
    gauge!(OLDEST_AGE, "lake" => lake.clone()).set(seconds(age));
    let is_silent = |standing: &&Standing| !standing.holds;
    let silent = done.consumers.iter().filter(is_silent).count();
    gauge!(SILENT, "lake" => lake.clone()).set(silent as f64);
    for standing in &done.consumers {
        let consumer = standing.progress.consumer.clone();
        let binds = f64::from(u8::from(standing.binds));
        gauge!(BINDING, "lake" => lake.clone(), "consumer" => consumer).set(binds);
    }
}

/// Counts a table whose files could not be compacted.
pub fn count_failed_compaction(lake: &LakeName) {
    counter!(FAILED, "lake" => lake.to_string()).increment(1);
}

/// Counts a consumer that expiry passes for the first time.
pub fn count_passed(consumer: &str) {
    counter!(PASSED, "consumer" => consumer.to_owned()).increment(1);
}
