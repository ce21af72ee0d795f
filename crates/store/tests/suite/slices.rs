//! The current version of a slice.

use expect_test::expect;
use pintail_core::id::{ProjectName, SnapshotId};
use pintail_store::{FailureRecorded, SuccessKind};

use super::Backend;
use super::sample::*;

async fn fail(store: &pintail_store::Store, attempt: &str, step: &str, asset: &str, at: i64) {
    store.start_attempt(&new_attempt(attempt, step, 1, at - 1)).await.unwrap();
    let recorded = store.record_failure(&failure(entry(attempt, step, asset, None), at)).await.unwrap();
    assert_eq!(recorded, FailureRecorded::Recorded);
}

pub async fn a_failure_never_downgrades_a_version(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "orders", None), ("s3", "orders", None)]).await;
    write(&store, entry("a1", "s1", "orders", None), 5, 3).await;
    fail(&store, "a2", "s2", "orders", 4).await;
    fail(&store, "a3", "s3", "orders", 6).await;
    assert_eq!(slices(&store).await, "orders materialized@5 attempt=a1 failed=a3\n");
}

pub async fn a_failure_is_hidden_by_a_later_version(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "orders", None)]).await;
    fail(&store, "a1", "s1", "orders", 2).await;
    write(&store, entry("a2", "s2", "orders", None), 5, 4).await;
    assert_eq!(slices(&store).await, "orders materialized@5 attempt=a2\n");
}

pub async fn the_newest_snapshot_is_current_whatever_order_rows_came_in(backend: &impl Backend) {
    let store = backend.open().await;
    let days = [("s1", "orders", Some("2026-06-19")), ("s2", "orders", Some("2026-06-19"))];
    begin(&store, &[days[0], days[1], ("s3", "orders", Some("2026-06-20"))]).await;
    write(&store, entry("a1", "s1", "orders", Some("2026-06-19")), 9, 4).await;
    write(&store, entry("a2", "s2", "orders", Some("2026-06-19")), 8, 5).await;
    write(&store, entry("a3", "s3", "orders", Some("2026-06-20")), 7, 6).await;
    expect![[r#"
        orders [2026-06-19] materialized@9 attempt=a1
        orders [2026-06-20] materialized@7 attempt=a3
    "#]]
    .assert_eq(&slices(&store).await);
}

pub async fn an_unchanged_slice_keeps_its_version_with_newer_inputs(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "orders", None)]).await;
    write(&store, entry("a1", "s1", "orders", None), 5, 3).await;
    store.start_attempt(&new_attempt("a2", "s2", 1, 4)).await.unwrap();
    let mut confirmed = success(entry("a2", "s2", "orders", None), 5, 6);
    confirmed.kind = SuccessKind::Unchanged;
    confirmed.entry.inputs = pins(8);
    store.record_success(&confirmed).await.unwrap();
    let slices = store.current_slices(None).await.unwrap();
    assert_eq!(summary(&slices), "orders unchanged@5 attempt=a2\n");
    assert_eq!(slices[0].current.as_ref().unwrap().inputs, pins(8));
}

async fn roll_back(store: &pintail_store::Store, attempt: &str, step: &str, to: i64, at: i64) {
    let whole = entry(attempt, step, "orders", None);
    let back = pintail_core::sql::stamp::StampEntry { restored: Some(SnapshotId(to)), ..whole };
    write(store, back, at, at).await;
}

pub async fn a_rollback_of_the_whole_table_makes_its_slices_what_they_were(backend: &impl Backend) {
    let store = backend.open().await;
    let (one, two) = (Some("2026-06-19"), Some("2026-06-20"));
    let steps = [("s1", one), ("s2", two), ("s3", one), ("s4", None), ("s5", two), ("s6", None)];
    begin(&store, &steps.map(|(step, partition)| (step, "orders", partition))).await;
    write(&store, entry("a1", "s1", "orders", one), 5, 1).await;
    write(&store, entry("a2", "s2", "orders", two), 6, 2).await;
    write(&store, entry("a3", "s3", "orders", one), 7, 3).await;
    let whole = "orders materialized@8 attempt=a4\n";
    roll_back(&store, "a4", "s4", 5, 8).await;
    assert_eq!(slices(&store).await, format!("{whole}orders [2026-06-19] materialized@5 attempt=a1\n"));
    write(&store, entry("a5", "s5", "orders", two), 9, 9).await;
    // Back to a version before the first rollback: what that one took away is there again, what came after it is not.
    roll_back(&store, "a6", "s6", 6, 10).await;
    expect![[r#"
        orders materialized@10 attempt=a6
        orders [2026-06-19] materialized@5 attempt=a1
        orders [2026-06-20] materialized@6 attempt=a2
    "#]]
    .assert_eq(&slices(&store).await);
}

pub async fn a_slice_that_only_failed_is_visible(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    fail(&store, "a1", "s1", "orders", 2).await;
    assert_eq!(slices(&store).await, "orders none failed=a1\n");
}

pub async fn history_is_newest_first_with_failures(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "orders", None), ("s3", "orders", None)]).await;
    write(&store, entry("a1", "s1", "orders", None), 5, 3).await;
    fail(&store, "a2", "s2", "orders", 4).await;
    write(&store, entry("a3", "s3", "orders", None), 6, 5).await;
    let history = store.asset_history(&key("orders"), 2).await.unwrap();
    let attempts: Vec<_> = history.iter().map(|row| (row.attempt.as_str(), row.snapshot)).collect();
    assert_eq!(attempts, [("a3", Some(SnapshotId(6))), ("a2", None)]);
}

pub async fn a_hundred_thousand_assets_can_be_asked_for(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "t7", None), ("s2", "orders", None)]).await;
    write(&store, entry("a1", "s1", "t7", None), 5, 3).await;
    write(&store, entry("a2", "s2", "orders", None), 6, 4).await;
    let assets: Vec<_> = (0..100_000).map(|n| table(&format!("t{n}"))).collect();
    let slices = store.current_slices(Some(&assets)).await.unwrap();
    assert_eq!(summary(&slices), "t7 materialized@5 attempt=a1\n");
    assert_eq!(store.current_slices(Some(&[])).await.unwrap(), []);
}

pub async fn projects_do_not_see_each_other(backend: &impl Backend) {
    let store = backend.open().await;
    let other = store.for_project(ProjectName("cellar".into()));
    for (store, snapshot) in [(&store, 5), (&other, 6)] {
        begin(store, &[("s1", "orders", None)]).await;
        write(store, entry("a1", "s1", "orders", None), snapshot, 3).await;
        store.ingest_stamps(&main_lake(), &[], SnapshotId(snapshot)).await.unwrap();
    }
    other.forget_lake_state(&main_lake()).await.unwrap();
    assert_eq!(slices(&store).await, "orders materialized@5 attempt=a1\n");
    assert_eq!(slices(&other).await, "");
    assert_eq!(waiting(&other).await, "orders@6 a1\n");
    assert_eq!(store.lake_cursor(&main_lake()).await.unwrap(), Some(SnapshotId(5)));
    assert_eq!(store.list_runs(10).await.unwrap().len(), 1);
}
