//! Backfill jobs: owners, states of partitions, and what a crash leaves.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use pintail_core::id::{PresenceId, ScriptName};
use pintail_core::partition::PartitionKey;
use pintail_core::plan::backfill::{Evidence, JobState, PartitionState, Ranges};
use pintail_store::{
    BackfillCounts, BackfillEnd, BackfillId, BackfillOptions, BackfillPartition, FailureRecorded, NewBackfill, Store,
};

use super::Backend;
use super::sample::*;

fn partition(key: &str) -> PartitionKey {
    PartitionKey(key.into())
}

fn owner(name: &str) -> PresenceId {
    PresenceId(name.into())
}

fn job(asset: &str) -> NewBackfill {
    NewBackfill {
        script: ScriptName(format!("shop/{asset}")),
        asset: Some(key(asset)),
        calendar: "daily UTC".into(),
        request: "--from 2026-06-01 --to 2026-07-01".into(),
        options: BackfillOptions { upstream: true, force: false, concurrency: Some(3) },
        ranges: Ranges::from_to(partition("2026-06-01"), partition("2026-06-30")),
        total: 30,
        owner: owner("process-1"),
        created: minute(1),
    }
}

fn at(key: &str, state: PartitionState) -> BackfillPartition {
    BackfillPartition { partition: partition(key), state, run: Some(run_id("r1")), error: None }
}

fn end(state: JobState) -> BackfillEnd {
    BackfillEnd { state, finished: minute(9), error: None }
}

async fn get(store: &Store, id: BackfillId) -> pintail_store::Backfill {
    store.backfill(id).await.unwrap().unwrap()
}

pub async fn jobs_are_numbered_in_their_project(backend: &impl Backend) {
    let store = backend.open().await;
    let other = store.for_project(pintail_core::id::ProjectName("cellar".into()));
    assert_eq!(store.begin_backfill(&job("orders")).await.unwrap(), BackfillId(1));
    assert_eq!(store.begin_backfill(&job("daily")).await.unwrap(), BackfillId(2));
    assert_eq!(other.begin_backfill(&job("orders")).await.unwrap(), BackfillId(1));
    let found = get(&store, BackfillId(1)).await;
    assert_eq!((found.job, found.state, found.is_stopping), (job("orders"), JobState::Running, false));
    let ids: Vec<i64> = store.list_backfills(10).await.unwrap().iter().map(|job| job.id.0).collect();
    assert_eq!(ids, [2, 1]);
    assert_eq!(store.backfill(BackfillId(3)).await.unwrap(), None);
    let running = store.running_backfills(&ScriptName("shop/daily".into())).await.unwrap();
    assert_eq!(running.iter().map(|job| job.id.0).collect::<Vec<_>>(), [2]);
}

pub async fn of_two_that_take_a_job_up_one_gets_it(backend: &impl Backend) {
    let stores = [backend.open().await, backend.open().await];
    let id = stores[0].begin_backfill(&job("orders")).await.unwrap();
    let seen = get(&stores[0], id).await;
    let (two, three) = (owner("process-2"), owner("process-3"));
    let (one, other) = tokio::join!(stores[0].claim_backfill(&seen, &two), stores[1].claim_backfill(&seen, &three));
    assert_ne!(one.unwrap(), other.unwrap());
    // The one that lost its job cannot end it.
    assert!(!stores[0].finish_backfill(id, &owner("process-1"), &end(JobState::Done)).await.unwrap());
    let now = get(&stores[0], id).await;
    assert!(stores[1].finish_backfill(id, &now.job.owner, &end(JobState::Cancelled)).await.unwrap());
    let ended = get(&stores[0], id).await;
    assert_eq!((ended.state, ended.finished), (JobState::Cancelled, Some(minute(9))));
    assert!(stores[0].claim_backfill(&ended, &owner("process-4")).await.unwrap());
    let again = get(&stores[0], id).await;
    assert_eq!((again.state, again.finished, again.job.owner), (JobState::Running, None, owner("process-4")));
}

pub async fn only_a_running_job_can_be_asked_to_stop(backend: &impl Backend) {
    let store = backend.open().await;
    let id = store.begin_backfill(&job("orders")).await.unwrap();
    assert!(store.stop_backfill(id).await.unwrap());
    assert!(get(&store, id).await.is_stopping);
    assert!(store.finish_backfill(id, &owner("process-1"), &end(JobState::Cancelled)).await.unwrap());
    assert!(!get(&store, id).await.is_stopping);
    assert!(!store.stop_backfill(id).await.unwrap());
}

pub async fn only_partitions_that_left_the_queue_have_rows(backend: &impl Backend) {
    use PartitionState::{Cancelled, Done, Failed, Queued, Running};
    let store = backend.open().await;
    let id = store.begin_backfill(&job("orders")).await.unwrap();
    assert_eq!(store.backfill_counts(id).await.unwrap(), BackfillCounts::default());
    let days = ["2026-06-01", "2026-06-02", "2026-06-03", "2026-06-04", "2026-06-05"];
    let running = days.map(|day| at(day, Running));
    store.record_backfill_partitions(id, &running, minute(2)).await.unwrap();
    let mut failed = at(days[2], Failed);
    failed.error = Some("column `price` not found".into());
    let ends = [at(days[0], Done), at(days[1], Done), failed.clone(), at(days[3], Cancelled), at(days[4], Queued)];
    store.record_backfill_partitions(id, &ends, minute(3)).await.unwrap();
    let counts = store.backfill_counts(id).await.unwrap();
    assert_eq!(counts, BackfillCounts { running: 0, done: 2, failed: 1, cancelled: 1 });
    assert_eq!((counts.open(30), counts.queued(30)), (27, 26));
    let keys: Vec<PartitionKey> = days.iter().map(|day| partition(day)).collect();
    let states = store.backfill_states(id, &keys[1..]).await.unwrap();
    let expected = [(keys[1].clone(), Done), (keys[2].clone(), Failed), (keys[3].clone(), Cancelled)];
    assert_eq!(states, BTreeMap::from(expected));
    assert_eq!(store.backfill_partitions_in(id, Failed, None, 10).await.unwrap(), [failed]);
    let next = store.backfill_partitions_in(id, Done, Some(&keys[0]), 10).await.unwrap();
    assert_eq!(next, [at(days[1], Done)]);
}

pub async fn what_a_crash_left_in_work_is_told_with_its_evidence(backend: &impl Backend) {
    let store = backend.open().await;
    let days = ["2026-06-01", "2026-06-02", "2026-06-03", "2026-06-04"];
    let id = store.begin_backfill(&job("orders")).await.unwrap();
    begin(&store, &[("s1", "orders", Some(days[0])), ("s2", "orders", Some(days[1])), ("s3", "daily", Some(days[2]))])
        .await;
    store.record_backfill_partitions(id, &days.map(|day| at(day, PartitionState::Running)), minute(2)).await.unwrap();
    write(&store, entry("a1", "s1", "orders", Some(days[0])), 5, 3).await;
    store.start_attempt(&new_attempt("a2", "s2", 1, 3)).await.unwrap();
    let recorded = store.record_failure(&failure(entry("a2", "s2", "orders", Some(days[1])), 4)).await.unwrap();
    assert_eq!(recorded, FailureRecorded::Recorded);
    // The same partition of another asset, and of this asset in another run, say nothing.
    write(&store, entry("a3", "s3", "daily", Some(days[2])), 6, 5).await;
    let mut foreign = entry("b1", "x1", "orders", Some(days[3]));
    foreign.run = run_id("r9");
    store.ingest_stamps(&main_lake(), &[stamp(foreign, 7, 6)], pintail_core::id::SnapshotId(7)).await.unwrap();

    let unsettled = store.unsettled_backfill_partitions(&get(&store, id).await).await.unwrap();
    let found: Vec<_> = unsettled.iter().map(|(part, evidence)| (part.partition.as_str(), *evidence)).collect();
    assert_eq!(
        found,
        [
            (days[0], Evidence::Committed),
            (days[1], Evidence::Failed),
            (days[2], Evidence::Nothing),
            (days[3], Evidence::Nothing)
        ]
    );
}

pub async fn durations_are_those_of_recorded_materializations(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "orders", None), ("s3", "orders", None)]).await;
    write(&store, entry("a1", "s1", "orders", None), 5, 3).await;
    store.start_attempt(&new_attempt("a2", "s2", 1, 3)).await.unwrap();
    let mut slow = success(entry("a2", "s2", "orders", None), 6, 9);
    slow.started = minute(4);
    store.record_success(&slow).await.unwrap();
    let rebuilt = stamp(entry("b1", "x1", "orders", None), 7, 10);
    store.ingest_stamps(&main_lake(), &[rebuilt], pintail_core::id::SnapshotId(7)).await.unwrap();
    let durations = store.past_durations(&key("orders"), 10).await.unwrap();
    assert_eq!(durations, [TimeDelta::minutes(5), TimeDelta::minutes(1)]);
    assert_eq!(store.past_durations(&key("orders"), 1).await.unwrap(), [TimeDelta::minutes(5)]);
}
