//! What a success and a failure leave behind.

use expect_test::expect;
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_store::{
    AfterFailure, AssetKey, ErrorClass, FailureKind, FailureRecorded, MAX_SAMPLE_ROWS, MaterializationStatus, Origin,
    SchemaVersion, SuccessKind, WriteError,
};

use super::Backend;
use super::sample::*;

pub async fn a_success_is_recorded_with_everything_that_belongs_to_it(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", Some("2026-06-19"))]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let schema = columns(&[("order_id", "BIGINT"), ("price", "DECIMAL(10,2)")]);
    let mut record = success(entry("a1", "s1", "orders", Some("2026-06-19")), 5, 3);
    record.schema = Some(schema.clone());
    record.tests = vec![test_result("a1", "s1", 0)];
    store.record_success(&record).await.unwrap();

    let written = store.materialization_of(&attempt_id("a1")).await.unwrap().unwrap();
    assert_eq!((written.status, written.origin), (MaterializationStatus::Materialized, Origin::Recorded));
    assert_eq!((written.asset, written.partition), (key("orders"), record.entry.partition.clone()));
    assert_eq!((written.lake, written.snapshot), (Some(main_lake()), Some(SnapshotId(5))));
    assert_eq!((written.rows, written.deleted, written.inserted), (Some(3), 1, 3));
    assert_eq!((written.window, written.table_id), (record.entry.window, record.entry.table_id));
    assert_eq!((written.inputs, written.files), (record.entry.inputs.clone(), record.entry.files.clone()));
    assert_eq!((written.started, written.finished), (minute(2), minute(3)));
    let version = SchemaVersion { version: 1, from_snapshot: Some(SnapshotId(5)), schema };
    assert_eq!(store.schema_versions(&key("orders")).await.unwrap(), [version]);
    assert_eq!(waiting(&store).await, "orders [2026-06-19]@5 a1\n");
    assert_eq!(steps(&store).await, "s1 materialized: a1 committed\n");
}

pub async fn a_success_recorded_twice_is_recorded_once(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let mut record = success(entry("a1", "s1", "orders", None), 5, 3);
    record.tests = vec![test_result("a1", "s1", 0)];
    store.record_success(&record).await.unwrap();
    let once = store.asset_history(&key("orders"), 10).await.unwrap();
    store.record_success(&record).await.unwrap();
    assert_eq!(store.asset_history(&key("orders"), 10).await.unwrap(), once);
    assert_eq!(waiting(&store).await, "orders@5 a1\n");
    let detail = store.show_run(&run_id("r1")).await.unwrap().unwrap();
    assert_eq!(detail.steps[0].tests, record.tests);
}

pub async fn a_success_of_an_unknown_attempt_writes_nothing(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    let error = store.record_success(&success(entry("a1", "s1", "orders", None), 5, 3)).await.unwrap_err();
    assert!(matches!(error, WriteError::NotOpen { .. }), "{error}");
    assert_eq!(slices(&store).await + &waiting(&store).await, "");
    assert_eq!(steps(&store).await, "s1 planned:\n");
}

pub async fn an_unchanged_slice_tells_nobody(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let mut record = success(entry("a1", "s1", "orders", None), 5, 3);
    record.kind = SuccessKind::Unchanged;
    store.record_success(&record).await.unwrap();
    assert_eq!(waiting(&store).await, "");
    assert_eq!(slices(&store).await, "orders unchanged@5 attempt=a1\n");
    assert_eq!(steps(&store).await, "s1 unchanged: a1 committed\n");
}

pub async fn a_failure_that_is_retried_keeps_the_step_running(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let mut record = failure(entry("a1", "s1", "orders", None), 2);
    record.after = AfterFailure::Retry;
    record.class = ErrorClass::Transient;
    assert_eq!(store.record_failure(&record).await.unwrap(), FailureRecorded::Recorded);
    assert_eq!(store.record_failure(&record).await.unwrap(), FailureRecorded::Recorded);
    assert_eq!(steps(&store).await, "s1 running: a1 failed\n");
    store.start_attempt(&new_attempt("a2", "s1", 2, 3)).await.unwrap();
    let mut last = failure(entry("a2", "s1", "orders", None), 4);
    last.kind = FailureKind::RolledBack;
    last.tests = vec![test_result("a2", "s1", 2)];
    assert_eq!(store.record_failure(&last).await.unwrap(), FailureRecorded::Recorded);

    assert_eq!(steps(&store).await, "s1 failed: a1 failed, a2 failed\n");
    let detail = store.show_run(&run_id("r1")).await.unwrap().unwrap();
    assert_eq!(detail.steps[0].step.error.as_ref(), Some(&last.error));
    assert_eq!(detail.steps[0].attempts[0].error_class, Some(ErrorClass::Transient));
    assert_eq!(detail.steps[0].tests, last.tests);
    let written = store.materialization_of(&attempt_id("a2")).await.unwrap().unwrap();
    assert_eq!((written.status, written.snapshot), (MaterializationStatus::RolledBack, None));
    assert_eq!((written.rows, written.deleted, written.inserted), (None, 0, 0));
    assert_eq!(written.error, Some(last.error));
    assert_eq!(waiting(&store).await, "");
}

pub async fn a_cancelled_attempt_leaves_no_materialization(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let mut record = failure(entry("a1", "s1", "orders", None), 2);
    record.kind = FailureKind::Cancelled;
    assert_eq!(store.record_failure(&record).await.unwrap(), FailureRecorded::Recorded);
    assert_eq!(steps(&store).await, "s1 cancelled: a1 cancelled\n");
    assert_eq!(slices(&store).await, "");
}

pub async fn sample_rows_are_bounded(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let mut record = failure(entry("a1", "s1", "orders", None), 2);
    record.tests = vec![test_result("a1", "s1", 500)];
    assert_eq!(store.record_failure(&record).await.unwrap(), FailureRecorded::Recorded);
    let detail = store.show_run(&run_id("r1")).await.unwrap().unwrap();
    let test = &detail.steps[0].tests[0];
    assert_eq!((test.failures, test.sample_rows.len()), (Some(500), MAX_SAMPLE_ROWS));
    assert_eq!(test.sample_rows[99], serde_json::json!({ "order_id": 99 }));
}

pub async fn schema_versions_are_kept_when_they_differ(backend: &impl Backend) {
    let store = backend.open().await;
    let seen = |version: u32, snapshot: i64, types: &[(&str, &str)]| SchemaVersion {
        version,
        from_snapshot: Some(SnapshotId(snapshot)),
        schema: columns(types),
    };
    let first = seen(1, 3, &[("id", "INTEGER")]);
    let same = seen(2, 4, &[("id", "INTEGER")]);
    let wider = seen(2, 5, &[("id", "BIGINT")]);
    let reordered = seen(3, 6, &[("name", "VARCHAR"), ("id", "BIGINT")]);
    let orders = table("orders");
    assert!(store.record_schema_if_changed(&orders, &first).await.unwrap());
    assert!(!store.record_schema_if_changed(&orders, &first).await.unwrap());
    assert!(!store.record_schema_if_changed(&orders, &same).await.unwrap());
    assert!(store.record_schema_if_changed(&orders, &wider).await.unwrap());
    assert!(store.record_schema_if_changed(&orders, &reordered).await.unwrap());
    assert_eq!(store.schema_versions(&key("orders")).await.unwrap(), [first, wider, reordered]);
    assert_eq!(store.schema_versions(&key("other")).await.unwrap(), []);
}

pub async fn an_outbox_row_is_delivered_once(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "daily", None)]).await;
    write(&store, entry("a1", "s1", "orders", None), 5, 3).await;
    write(&store, entry("a2", "s2", "daily", None), 6, 4).await;
    let row = store.undelivered(1).await.unwrap().remove(0);
    assert!(store.mark_delivered(row.id, minute(5)).await.unwrap());
    assert!(!store.mark_delivered(row.id, minute(6)).await.unwrap());
    assert_eq!(waiting(&store).await, "daily@6 a2\n");
    // Recorded again, it stays delivered.
    store.record_success(&success(entry("a1", "s1", "orders", None), 5, 3)).await.unwrap();
    assert_eq!(waiting(&store).await, "daily@6 a2\n");
}

pub async fn assets_outside_lakes_have_no_snapshot(backend: &impl Backend) {
    let store = backend.open().await;
    let customers = Asset::Datatable { database: "app".into(), schema: "public".into(), table: "customers".into() };
    begin(&store, &[("s1", "customers", None), ("s2", "customers", None)]).await;
    for (attempt, step, finished) in [("a1", "s1", 3), ("a2", "s2", 4)] {
        store.start_attempt(&new_attempt(attempt, step, 1, 1)).await.unwrap();
        let mut record = success(entry(attempt, step, "customers", None), 5, finished);
        record.entry.asset = customers.to_string();
        record.version = None;
        store.record_success(&record).await.unwrap();
    }
    let slices = store.current_slices(Some(std::slice::from_ref(&customers))).await.unwrap();
    expect![[r#"
        datatable://app/customers materialized attempt=a2
    "#]]
    .assert_eq(&summary(&slices));
    assert_eq!(slices[0].asset, AssetKey::from(&customers));
    assert_eq!(store.state_fingerprint(&LakeName("app".into())).await.unwrap(), "");
}
