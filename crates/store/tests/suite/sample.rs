//! Sample records: one run `r1` with small steps, times as minutes of one day.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, LakeName, PresenceId, RunId, ScriptHash, ScriptName, SnapshotId, StepId, TableId};
use pintail_core::partition::{PartitionKey, Window};
use pintail_core::schema::{Column, Schema};
use pintail_core::sql::stamp::StampEntry;
use pintail_store::{
    AfterFailure, AssetKey, ErrorClass, FailureKind, FailureRecord, LakeStamp, LakeVersion, NewAttempt, NewRun,
    NewStep, Pins, RecordedError, RecordedStatement, SliceState, Store, SuccessKind, SuccessRecord, TestResult,
    TestSeverity, TestStatus,
};

pub fn minute(minute: i64) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 6, 19, 0, 0, 0).unwrap() + TimeDelta::minutes(minute)
}

pub fn main_lake() -> LakeName {
    LakeName("main".into())
}

pub fn table(name: &str) -> Asset {
    Asset::Lake { lake: main_lake(), schema: "main".into(), table: name.into() }
}

pub fn key(name: &str) -> AssetKey {
    AssetKey::from(&table(name))
}

pub fn attempt_id(id: &str) -> AttemptId {
    AttemptId(id.into())
}

pub fn step_id(id: &str) -> StepId {
    StepId(id.into())
}

pub fn run_id(id: &str) -> RunId {
    RunId(id.into())
}

pub fn pins(snapshot: i64) -> Pins {
    BTreeMap::from([(main_lake(), SnapshotId(snapshot))])
}

pub fn new_run(id: &str, started: i64) -> NewRun {
    NewRun {
        id: run_id(id),
        command: vec!["pintail".into(), "run".into()],
        triggered_by: "manual".into(),
        pins: pins(4),
        owner: PresenceId("process-1".into()),
        started: minute(started),
    }
}

pub fn new_step(id: &str, position: u32, asset: &str, partition: Option<&str>) -> NewStep {
    NewStep {
        id: step_id(id),
        position,
        script: ScriptName(format!("shop/{asset}")),
        asset: Some(table(asset)),
        partition: partition.map(|key| PartitionKey(key.into())),
        reason: "never materialized".into(),
    }
}

pub fn new_attempt(id: &str, step: &str, number: u32, started: i64) -> NewAttempt {
    NewAttempt { id: attempt_id(id), step: step_id(step), number, pins: pins(4), started: minute(started) }
}

/// The entry of attempt `attempt` in step `step`: three rows replace one.
pub fn entry(attempt: &str, step: &str, asset: &str, partition: Option<&str>) -> StampEntry {
    StampEntry {
        attempt: attempt_id(attempt),
        run: run_id("r1"),
        step: step_id(step),
        asset: table(asset).to_string(),
        script: format!("shop/{asset}"),
        table_id: Some(TableId(7)),
        generation: 1,
        partition: partition.map(|key| PartitionKey(key.into())),
        window: partition.map(|_| Window { start: minute(0), end: minute(24 * 60) }),
        increment: None,
        strategy: "replace".into(),
        deleted: 1,
        inserted: 3,
        rows: Some(3),
        schema_version: 1,
        script_hash: ScriptHash("5f0c".into()),
        inputs: pins(4),
        files: BTreeMap::from([("volume://project/orders.csv".into(), "1:200:17".into())]),
        atomic: false,
        restored: None,
    }
}

pub fn success(entry: StampEntry, snapshot: i64, finished: i64) -> SuccessRecord {
    SuccessRecord {
        kind: SuccessKind::Materialized,
        entry,
        version: Some(LakeVersion { lake: main_lake(), snapshot: SnapshotId(snapshot) }),
        schema: None,
        started: minute(finished - 1),
        finished: minute(finished),
        statements: vec![RecordedStatement { purpose: "insert the rows".into(), sql: "INSERT …".into() }],
        tests: Vec::new(),
        timings: Vec::new(),
    }
}

pub fn failure(entry: StampEntry, finished: i64) -> FailureRecord {
    FailureRecord {
        kind: FailureKind::Failed,
        entry,
        lake: Some(main_lake()),
        class: ErrorClass::User,
        error: recorded_error("column `price` not found"),
        after: AfterFailure::EndStep,
        started: minute(finished - 1),
        finished: minute(finished),
        statements: Vec::new(),
        tests: Vec::new(),
        timings: Vec::new(),
    }
}

pub fn recorded_error(message: &str) -> RecordedError {
    RecordedError {
        stage: "stage".into(),
        message: message.into(),
        statement: Some("stage the select".into()),
        committed: "nothing".into(),
        next: None,
    }
}

pub fn stamp(entry: StampEntry, snapshot: i64, at: i64) -> LakeStamp {
    LakeStamp { snapshot: SnapshotId(snapshot), at: minute(at), entry }
}

pub fn test_result(attempt: &str, step: &str, failures: u64) -> TestResult {
    TestResult {
        step: step_id(step),
        attempt: attempt_id(attempt),
        name: "unique order_id".into(),
        severity: TestSeverity::Error,
        status: if failures == 0 { TestStatus::Passed } else { TestStatus::Failed },
        failures: Some(failures),
        nulls_ignored: Some(2),
        sample_rows: (0..failures).map(|n| serde_json::json!({ "order_id": n })).collect(),
        sql: "SELECT order_id …".into(),
        duration: TimeDelta::microseconds(1500),
    }
}

pub fn columns(columns: &[(&str, &str)]) -> Schema {
    let column = |(name, data_type): &(&str, &str)| Column { name: (*name).into(), data_type: (*data_type).into() };
    Schema { columns: columns.iter().map(column).collect() }
}

/// Begins run `r1` with one step for each (step, asset, partition).
pub async fn begin(store: &Store, steps: &[(&str, &str, Option<&str>)]) {
    store.begin_run(&new_run("r1", 0)).await.unwrap();
    let steps: Vec<NewStep> =
        (0..).zip(steps).map(|(at, (id, asset, partition))| new_step(id, at, asset, *partition)).collect();
    store.insert_steps(&run_id("r1"), &steps).await.unwrap();
}

/// Records that `attempt` of `step` wrote `asset` in `snapshot`.
pub async fn write(store: &Store, entry: StampEntry, snapshot: i64, minute: i64) {
    store.start_attempt(&new_attempt(entry.attempt.as_str(), entry.step.as_str(), 1, minute - 1)).await.unwrap();
    store.record_success(&success(entry, snapshot, minute)).await.unwrap();
}

/// One line for each slice: `orders [p] materialized@7 attempt=a1 failed=a2`.
pub fn summary(slices: &[SliceState]) -> String {
    let line = |slice: &SliceState| {
        let name = slice.asset.as_str().trim_start_matches("ducklake://main/");
        let partition = slice.partition.as_ref().map(|key| format!(" [{key}]")).unwrap_or_default();
        let current = slice.current.as_ref().map_or(" none".into(), |version| {
            let snapshot = version.snapshot.map(|snapshot| format!("@{snapshot}")).unwrap_or_default();
            format!(" {}{snapshot} attempt={}", version.status, version.attempt)
        });
        let failure = slice.failure.as_ref().map(|failure| format!(" {}={}", failure.status, failure.attempt));
        format!("{name}{partition}{current}{}\n", failure.unwrap_or_default())
    };
    slices.iter().map(line).collect()
}

pub async fn slices(store: &Store) -> String {
    summary(&store.current_slices(None).await.unwrap())
}

/// One line for each waiting outbox row: `orders [p]@7 a1`.
pub async fn waiting(store: &Store) -> String {
    let rows = store.undelivered(100).await.unwrap();
    let line = |row: &pintail_store::OutboxRow| {
        let name = row.asset.as_str().trim_start_matches("ducklake://main/");
        let partition = row.partition.as_ref().map(|key| format!(" [{key}]")).unwrap_or_default();
        let snapshot = row.snapshot.map(|snapshot| format!("@{snapshot}")).unwrap_or_default();
        format!("{name}{partition}{snapshot} {}\n", row.attempt)
    };
    rows.iter().map(line).collect()
}

/// One line for each step of `r1`: `s1 failed: a1 failed, a2 committed`.
pub async fn steps(store: &Store) -> String {
    let run = store.show_run(&run_id("r1")).await.unwrap().unwrap();
    let line = |detail: &pintail_store::StepDetail| {
        let attempts: Vec<String> =
            detail.attempts.iter().map(|attempt| format!(" {} {}", attempt.id, attempt.status)).collect();
        format!("{} {}:{}\n", detail.step.id, detail.step.status, attempts.join(","))
    };
    run.steps.iter().map(line).collect()
}
