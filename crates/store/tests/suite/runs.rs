//! Runs, steps, attempts and logs.

use chrono::TimeDelta;
use expect_test::expect;
use pintail_core::id::SnapshotId;
use pintail_store::{
    AttemptEnd, AttemptStatus, ErrorClass, LogLevel, LogLine, PhaseTiming, RunEnd, RunStatus, StepEnd, StepStatus,
    WriteError,
};

use super::Backend;
use super::sample::*;

fn end(status: RunStatus) -> RunEnd {
    RunEnd { status, finished: minute(50), error: None }
}

fn step_end(status: StepStatus) -> StepEnd {
    StepEnd {
        status,
        finished: minute(9),
        rows: Some(3),
        snapshot: Some(SnapshotId(4)),
        timings: vec![PhaseTiming { phase: "stage".into(), micros: 1200 }],
        error: None,
    }
}

fn attempt_end(status: AttemptStatus) -> AttemptEnd {
    AttemptEnd { status, finished: minute(9), error_class: None, error: None, statements: Vec::new() }
}

pub async fn a_run_is_read_back_with_steps_attempts_and_tests(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", Some("2026-06-19")), ("s2", "daily", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    let mut record = success(entry("a1", "s1", "orders", Some("2026-06-19")), 5, 3);
    record.timings = vec![PhaseTiming { phase: "stage".into(), micros: 1200 }];
    record.tests = vec![test_result("a1", "s1", 0)];
    store.record_success(&record).await.unwrap();
    store.finish_step(&step_id("s2"), &step_end(StepStatus::UpToDate)).await.unwrap();
    let finished = RunEnd { error: Some("one test warned".into()), ..end(RunStatus::Succeeded) };
    store.finish_run(&run_id("r1"), &finished).await.unwrap();

    let detail = store.show_run(&run_id("r1")).await.unwrap().unwrap();
    assert_eq!(detail.run.status, RunStatus::Succeeded);
    assert_eq!(detail.run.command, ["pintail", "run"]);
    assert_eq!(detail.run.pins, pins(4));
    assert_eq!((detail.run.started, detail.run.finished), (minute(0), Some(minute(50))));
    assert_eq!(detail.run.error.as_deref(), Some("one test warned"));
    let [first, second] = detail.steps.as_slice() else { panic!("{detail:#?}") };
    assert_eq!((first.step.status, first.step.rows), (StepStatus::Materialized, Some(3)));
    assert_eq!((first.step.snapshot, first.step.started), (Some(SnapshotId(5)), Some(minute(1))));
    assert_eq!(first.step.partition.as_ref().unwrap().as_str(), "2026-06-19");
    assert_eq!(first.step.timings, record.timings);
    assert_eq!(first.tests, record.tests);
    let [attempt] = first.attempts.as_slice() else { panic!("{first:#?}") };
    assert_eq!((attempt.status, attempt.finished), (AttemptStatus::Committed, Some(minute(3))));
    assert_eq!(attempt.statements, record.statements);
    assert_eq!(attempt.pins, pins(4));
    assert_eq!((second.step.status, second.step.asset.as_ref()), (StepStatus::UpToDate, Some(&key("daily"))));
    assert!(second.attempts.is_empty() && second.tests.is_empty());
    assert_eq!(store.show_run(&run_id("r2")).await.unwrap(), None);
}

pub async fn a_thousand_steps_are_planned_at_once(backend: &impl Backend) {
    let store = backend.open().await;
    store.begin_run(&new_run("r1", 0)).await.unwrap();
    let steps: Vec<_> = (0..1000).map(|at| new_step(&format!("s{at}"), at, "orders", None)).collect();
    store.insert_steps(&run_id("r1"), &steps).await.unwrap();
    let stored = store.run_steps(&run_id("r1")).await.unwrap();
    assert!(stored.iter().map(|step| step.position).eq(0..1000));
    // A second plan of the same run is refused as a whole.
    let again = [new_step("s1000", 1000, "orders", None), new_step("s0", 1001, "orders", None)];
    store.insert_steps(&run_id("r1"), &again).await.unwrap_err();
    assert_eq!(store.run_steps(&run_id("r1")).await.unwrap().len(), 1000);
}

pub async fn runs_are_listed_newest_first(backend: &impl Backend) {
    let store = backend.open().await;
    for (id, started) in [("r1", 1), ("r3", 3), ("r2", 2)] {
        store.begin_run(&new_run(id, started)).await.unwrap();
    }
    let ids: Vec<_> = store.list_runs(2).await.unwrap().into_iter().map(|run| run.id.0).collect();
    assert_eq!(ids, ["r3", "r2"]);
}

pub async fn running_runs_tell_their_owner(backend: &impl Backend) {
    let store = backend.open().await;
    store.begin_run(&new_run("r1", 1)).await.unwrap();
    store.begin_run(&new_run("r2", 2)).await.unwrap();
    store.finish_run(&run_id("r1"), &end(RunStatus::Succeeded)).await.unwrap();
    let running = store.running_runs().await.unwrap();
    let [run] = running.as_slice() else { panic!("{running:#?}") };
    assert_eq!((run.id.as_str(), run.owner.as_str()), ("r2", "process-1"));
}

pub async fn a_run_ends_once(backend: &impl Backend) {
    let store = backend.open().await;
    store.begin_run(&new_run("r1", 1)).await.unwrap();
    store.finish_run(&run_id("r1"), &end(RunStatus::Cancelled)).await.unwrap();
    let error = store.finish_run(&run_id("r1"), &end(RunStatus::Succeeded)).await.unwrap_err();
    assert_eq!(error.to_string(), "finish run r1: it is unknown to the store or already finished");
    assert_eq!(error.class(), ErrorClass::Bug);
    assert_eq!(store.list_runs(1).await.unwrap()[0].status, RunStatus::Cancelled);
}

pub async fn a_run_with_open_steps_cannot_succeed(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "daily", None)]).await;
    let error = store.finish_run(&run_id("r1"), &end(RunStatus::Succeeded)).await.unwrap_err();
    assert!(matches!(error, WriteError::OpenSteps { open: 2, .. }), "{error}");
    assert_eq!(store.running_runs().await.unwrap().len(), 1);
}

pub async fn a_crashed_run_leaves_nothing_open(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "daily", None), ("s3", "weekly", None)]).await;
    write(&store, entry("a1", "s1", "orders", None), 5, 3).await;
    store.start_attempt(&new_attempt("a2", "s2", 1, 4)).await.unwrap();
    store.finish_run(&run_id("r1"), &end(RunStatus::Crashed)).await.unwrap();
    expect![[r#"
        s1 materialized: a1 committed
        s2 failed: a2 failed
        s3 skipped:
    "#]]
    .assert_eq(&steps(&store).await);
    let attempt = store.attempt(&attempt_id("a2")).await.unwrap().unwrap();
    assert_eq!(attempt.error.as_deref(), Some("the run ended as crashed"));
}

pub async fn a_cancelled_run_cancels_what_is_open(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None), ("s2", "daily", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 4)).await.unwrap();
    store.finish_run(&run_id("r1"), &end(RunStatus::Cancelled)).await.unwrap();
    expect![[r#"
        s1 cancelled: a1 cancelled
        s2 cancelled:
    "#]]
    .assert_eq(&steps(&store).await);
}

pub async fn an_ended_step_takes_no_new_attempt(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.finish_step(&step_id("s1"), &step_end(StepStatus::Skipped)).await.unwrap();
    let error = store.start_attempt(&new_attempt("a1", "s1", 1, 4)).await.unwrap_err();
    assert!(matches!(error, WriteError::NotOpen { .. }), "{error}");
    let error = store.finish_step(&step_id("s1"), &step_end(StepStatus::Failed)).await.unwrap_err();
    assert!(matches!(error, WriteError::NotOpen { .. }), "{error}");
    assert_eq!(steps(&store).await, "s1 skipped:\n");
}

pub async fn a_committed_attempt_cannot_fail(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 4)).await.unwrap();
    store.mark_committing(&attempt_id("a1")).await.unwrap();
    store.finish_attempt(&attempt_id("a1"), &attempt_end(AttemptStatus::Committed)).await.unwrap();
    let error = store.finish_attempt(&attempt_id("a1"), &attempt_end(AttemptStatus::Failed)).await.unwrap_err();
    assert!(matches!(error, WriteError::NotOpen { .. }), "{error}");
    store.mark_committing(&attempt_id("a1")).await.unwrap_err();
    assert_eq!(steps(&store).await, "s1 running: a1 committed\n");
}

pub async fn log_lines_keep_their_order(backend: &impl Backend) {
    let store = backend.open().await;
    begin(&store, &[("s1", "orders", None)]).await;
    let line = |seconds: i64, text: &str| LogLine {
        run: run_id("r1"),
        step: Some(step_id("s1")),
        attempt: None,
        at: minute(1) + TimeDelta::seconds(seconds),
        level: LogLevel::Info,
        text: text.into(),
    };
    let lines = [line(2, "first"), line(1, "second"), line(1, "third")];
    store.append_log(&lines[..1]).await.unwrap();
    store.append_log(&lines[1..]).await.unwrap();
    assert_eq!(store.run_log(&run_id("r1")).await.unwrap(), lines);
}
