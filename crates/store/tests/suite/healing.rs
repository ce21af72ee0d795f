//! Taking in the lake's stamps: after a crash between commit and record, and after the store was lost.

use expect_test::expect;
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_store::{FailureRecorded, Ingested, LakeVersion, Origin, RunEnd, RunStatus, SchemaVersion};

use super::Backend;
use super::sample::*;

const NOTHING: Ingested = Ingested { materializations: 0, healed_attempts: 0 };

pub async fn a_commit_that_was_not_recorded_is_healed_once(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    store.mark_committing(&attempt_id("a1")).await.unwrap();
    // Here the process dies after the lake's COMMIT.
    let stamps = [stamp(entry("a1", "s1", "orders", None), 5, 3)];
    let healed = store.ingest_stamps(&main_lake(), &stamps, SnapshotId(6)).await.unwrap();
    assert_eq!(healed, Ingested { materializations: 1, healed_attempts: 1 });
    assert_eq!(store.ingest_stamps(&main_lake(), &stamps, SnapshotId(6)).await.unwrap(), NOTHING);

    assert_eq!(slices(&store).await, "orders materialized@5 attempt=a1\n");
    assert_eq!(waiting(&store).await, "orders@5 a1\n");
    assert_eq!(store.lake_cursor(&main_lake()).await.unwrap(), Some(SnapshotId(6)));
    let detail = store.show_run(&run_id("r1")).await.unwrap().unwrap();
    let step = &detail.steps[0].step;
    assert_eq!((step.rows, step.snapshot, step.finished), (Some(3), Some(SnapshotId(5)), Some(minute(3))));
    assert_eq!(steps(&store).await, "s1 materialized: a1 committed\n");
    let row = store.materialization_of(&attempt_id("a1")).await.unwrap().unwrap();
    assert_eq!((row.origin, row.started, row.finished), (Origin::Rebuilt, minute(3), minute(3)));
}

pub async fn stamps_of_attempts_that_the_store_never_knew_are_not_announced(backend: &impl Backend) {
    let store = backend.open().await;
    let stamps = [stamp(entry("a1", "s1", "orders", Some("2026-06-19")), 5, 3)];
    let ingested = store.ingest_stamps(&main_lake(), &stamps, SnapshotId(5)).await.unwrap();
    assert_eq!(ingested, Ingested { materializations: 1, healed_attempts: 0 });
    assert_eq!(slices(&store).await, "orders [2026-06-19] materialized@5 attempt=a1\n");
    assert_eq!(waiting(&store).await, "");
}

pub async fn a_stamp_wins_over_a_recorded_failure(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let lost = failure(entry("a1", "s1", "orders", None), 2);
    assert_eq!(store.record_failure(&lost).await.unwrap(), FailureRecorded::Recorded);
    let stamps = [stamp(entry("a1", "s1", "orders", None), 5, 3)];
    let healed = store.ingest_stamps(&main_lake(), &stamps, SnapshotId(5)).await.unwrap();
    assert_eq!(healed, Ingested { materializations: 1, healed_attempts: 1 });
    assert_eq!(slices(&store).await, "orders materialized@5 attempt=a1\n");
    assert_eq!(steps(&store).await, "s1 materialized: a1 committed\n");
    assert_eq!(waiting(&store).await, "orders@5 a1\n");
    let row = store.materialization_of(&attempt_id("a1")).await.unwrap().unwrap();
    assert_eq!((row.deleted, row.inserted, row.error), (1, 3, None));
}

pub async fn a_failure_after_the_proof_changes_nothing(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    store.mark_committing(&attempt_id("a1")).await.unwrap();
    let stamps = [stamp(entry("a1", "s1", "orders", None), 5, 3)];
    store.ingest_stamps(&main_lake(), &stamps, SnapshotId(5)).await.unwrap();
    let late = failure(entry("a1", "s1", "orders", None), 4);
    assert_eq!(store.record_failure(&late).await.unwrap(), FailureRecorded::CommittedMeanwhile);
    assert_eq!(slices(&store).await, "orders materialized@5 attempt=a1\n");
    assert_eq!(steps(&store).await, "s1 materialized: a1 committed\n");
}

pub async fn the_recorder_completes_a_row_that_was_healed_meanwhile(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    store.mark_committing(&attempt_id("a1")).await.unwrap();
    let stamps = [stamp(entry("a1", "s1", "orders", None), 5, 3)];
    store.ingest_stamps(&main_lake(), &stamps, SnapshotId(5)).await.unwrap();
    store.record_success(&success(entry("a1", "s1", "orders", None), 5, 4)).await.unwrap();
    let row = store.materialization_of(&attempt_id("a1")).await.unwrap().unwrap();
    assert_eq!((row.origin, row.finished, row.inserted), (Origin::Recorded, minute(4), 3));
    assert_eq!(waiting(&store).await, "orders@5 a1\n");
    let attempt = store.attempt(&attempt_id("a1")).await.unwrap().unwrap();
    assert_eq!(attempt.statements.len(), 1);
}

pub async fn a_running_attempt_is_left_to_its_process(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let stamps = [stamp(entry("a1", "s1", "orders", None), 5, 3)];
    let ingested = store.ingest_stamps(&main_lake(), &stamps, SnapshotId(5)).await.unwrap();
    assert_eq!(ingested, Ingested { materializations: 1, healed_attempts: 0 });
    assert_eq!(steps(&store).await, "s1 running: a1 running\n");
}

pub async fn a_crashed_run_ends_proven_attempts_as_committed(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "daily", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    store.start_attempt(&new_attempt("a2", "s2", 1, 1)).await.unwrap();
    let stamps = [stamp(entry("a1", "s1", "orders", None), 5, 3)];
    store.ingest_stamps(&main_lake(), &stamps, SnapshotId(5)).await.unwrap();
    let crash = RunEnd { status: RunStatus::Crashed, finished: minute(9), error: Some("process ended".into()) };
    store.finish_run(&run_id("r1"), &crash).await.unwrap();
    expect![[r#"
        s1 materialized: a1 committed
        s2 failed: a2 failed
    "#]]
    .assert_eq(&steps(&store).await);
    assert_eq!(waiting(&store).await, "orders@5 a1\n");
}

pub async fn several_commits_of_one_attempt_are_summed_up(backend: &impl Backend) {
    let store = backend.open().await;
    let mut create = entry("a1", "s1", "orders", None);
    (create.strategy, create.deleted, create.inserted) = ("create".into(), 0, 0);
    (create.rows, create.table_id) = (Some(0), None);
    let stamps = [
        stamp(entry("a1", "s1", "orders", None), 6, 4),
        stamp(create, 5, 3),
        stamp(entry("a1", "s1", "orders", None), 7, 5),
    ];
    // Taken in together or one by one, out of order or twice: the sum is the same.
    store.ingest_stamps(&main_lake(), &stamps[..2], SnapshotId(6)).await.unwrap();
    store.ingest_stamps(&main_lake(), &stamps, SnapshotId(7)).await.unwrap();
    let row = store.materialization_of(&attempt_id("a1")).await.unwrap().unwrap();
    assert_eq!((row.snapshot, row.deleted, row.inserted), (Some(SnapshotId(7)), 2, 6));
    assert_eq!((row.strategy.as_str(), row.rows), ("replace", Some(3)));
    let one_by_one = store.state_fingerprint(&main_lake()).await.unwrap();
    store.rebuild_lake_state(&main_lake(), &stamps, SnapshotId(7)).await.unwrap();
    assert_eq!(store.state_fingerprint(&main_lake()).await.unwrap(), one_by_one);
}

/// Three versions of two slices, a failure after them, and the stamps of the versions.
async fn lived_in(store: &pintail_store::Store) -> Vec<pintail_store::LakeStamp> {
    let day = Some("2026-06-19");
    begin(store, &[("s1", "orders", day), ("s2", "daily", None), ("s3", "orders", day), ("s4", "daily", None)]).await;
    let entries =
        [entry("a1", "s1", "orders", day), entry("a2", "s2", "daily", None), entry("a3", "s3", "orders", day)];
    let mut stamps = Vec::new();
    for (snapshot, entry) in (5..).zip(entries) {
        write(store, entry.clone(), snapshot, snapshot).await;
        stamps.push(stamp(entry, snapshot, snapshot));
    }
    store.start_attempt(&new_attempt("a4", "s4", 1, 8)).await.unwrap();
    let recorded = store.record_failure(&failure(entry("a4", "s4", "daily", None), 9)).await.unwrap();
    assert_eq!(recorded, FailureRecorded::Recorded);
    stamps
}

pub async fn a_rebuilt_state_equals_the_old_one(backend: &impl Backend) {
    let store = backend.open().await;
    let stamps = lived_in(&store).await;
    let lived = slices(&store).await;
    expect![[r#"
        daily materialized@6 attempt=a2 failed=a4
        orders [2026-06-19] materialized@7 attempt=a3
    "#]]
    .assert_eq(&lived);
    let fingerprint = store.state_fingerprint(&main_lake()).await.unwrap();
    let rebuilt = store.rebuild_lake_state(&main_lake(), &stamps, SnapshotId(7)).await.unwrap();
    assert_eq!(rebuilt, Ingested { materializations: 3, healed_attempts: 0 });
    assert_eq!(store.state_fingerprint(&main_lake()).await.unwrap(), fingerprint);
    assert_eq!(slices(&store).await, lived);
    expect![[r#"
        ducklake://main/daily snapshot=6 generation=1 rows=3 deleted=1 inserted=3 strategy=replace schema=1 script=shop/daily hash=5f0c run=r1 step=s2 attempt=a2 inputs={"main":4} files={"volume://project/orders.csv":"1:200:17"}
        ducklake://main/orders [2026-06-19] 2026-06-19T00:00:00+00:00..2026-06-20T00:00:00+00:00 snapshot=7 generation=1 rows=3 deleted=1 inserted=3 strategy=replace schema=1 script=shop/orders hash=5f0c run=r1 step=s3 attempt=a3 inputs={"main":4} files={"volume://project/orders.csv":"1:200:17"}
    "#]]
    .assert_eq(&fingerprint);
}

pub async fn a_rebuild_announces_nothing(backend: &impl Backend) {
    let store = backend.open().await;
    let stamps = lived_in(&store).await;
    let row = store.undelivered(1).await.unwrap().remove(0);
    store.mark_delivered(row.id, minute(9)).await.unwrap();
    let before = waiting(&store).await;
    store.rebuild_lake_state(&main_lake(), &stamps, SnapshotId(7)).await.unwrap();
    assert_eq!(waiting(&store).await, before);
    assert_eq!(before, "daily@6 a2\norders [2026-06-19]@7 a3\n");
}

pub async fn forgetting_a_lake_keeps_failures_other_lakes_and_other_assets(backend: &impl Backend) {
    let store = backend.open().await;
    let stamps = lived_in(&store).await;
    store.ingest_stamps(&main_lake(), &stamps, SnapshotId(7)).await.unwrap();
    let version =
        SchemaVersion { version: 1, from_snapshot: Some(SnapshotId(5)), schema: columns(&[("id", "BIGINT")]) };
    store.record_schema_if_changed(&table("orders"), &version).await.unwrap();
    let archive = LakeName("archive".into());
    let kept = Asset::Lake { lake: archive.clone(), schema: "main".into(), table: "kept".into() };
    let mut elsewhere = entry("b1", "x1", "kept", None);
    elsewhere.asset = kept.to_string();
    store.ingest_stamps(&archive, &[stamp(elsewhere, 2, 1)], SnapshotId(2)).await.unwrap();
    store.record_schema_if_changed(&kept, &version).await.unwrap();

    store.forget_lake_state(&main_lake()).await.unwrap();
    expect![[r#"
        ducklake://archive/kept materialized@2 attempt=b1
        daily none failed=a4
    "#]]
    .assert_eq(&slices(&store).await);
    assert_eq!(store.schema_versions(&key("orders")).await.unwrap(), []);
    assert_eq!(store.schema_versions(&pintail_store::AssetKey::from(&kept)).await.unwrap(), [version]);
    assert_eq!(store.lake_cursor(&main_lake()).await.unwrap(), None);
    assert_eq!(store.lake_cursor(&archive).await.unwrap(), Some(SnapshotId(2)));
    assert_eq!(store.list_runs(10).await.unwrap().len(), 1);
}

pub async fn a_cursor_never_moves_back(backend: &impl Backend) {
    let store = backend.open().await;
    store.ingest_stamps(&main_lake(), &[], SnapshotId(7)).await.unwrap();
    store.ingest_stamps(&main_lake(), &[], SnapshotId(6)).await.unwrap();
    assert_eq!(store.lake_cursor(&main_lake()).await.unwrap(), Some(SnapshotId(7)));
    let version = LakeVersion { lake: main_lake(), snapshot: SnapshotId(7) };
    assert_eq!(store.lake_cursor(&version.lake).await.unwrap(), Some(version.snapshot));
}
