//! Many tasks and several processes at one store: they wait, they do not fail, and nothing is lost or doubled.

use pintail_core::id::SnapshotId;
use pintail_store::{Ingested, LogLevel, LogLine, RunEnd, RunStatus, Store};
use tokio::task::JoinSet;

use super::Backend;
use super::sample::*;

const WORKERS: i64 = 12;
const WRITES: i64 = 5;

/// One worker: its own step, then attempts, logs and reads in a row.
async fn work(store: Store, worker: i64) {
    let asset = format!("t{worker}");
    for round in 0..WRITES {
        let (attempt, step) = (format!("a{worker}-{round}"), format!("s{worker}-{round}"));
        write(&store, entry(&attempt, &step, &asset, None), worker * 100 + round + 1, 3).await;
        let line = LogLine {
            run: run_id("r1"),
            step: None,
            attempt: Some(attempt_id(&attempt)),
            at: minute(3),
            level: LogLevel::Info,
            text: "written".into(),
        };
        store.append_log(&[line]).await.unwrap();
        let slices = store.current_slices(Some(&[table(&asset)])).await.unwrap();
        assert_eq!(slices[0].current.as_ref().unwrap().attempt.as_str(), attempt);
    }
}

pub async fn two_processes_with_many_workers_wait_and_lose_nothing(backend: &impl Backend) {
    let first = backend.open().await;
    let second = backend.open().await;
    first.begin_run(&new_run("r1", 0)).await.unwrap();
    let rounds = (0..WORKERS).flat_map(|worker| (0..WRITES).map(move |round| (worker, round)));
    let steps: Vec<_> = (0..)
        .zip(rounds)
        .map(|(at, (worker, round))| new_step(&format!("s{worker}-{round}"), at, &format!("t{worker}"), None))
        .collect();
    first.insert_steps(&run_id("r1"), &steps).await.unwrap();
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let store = if worker % 2 == 0 { first.clone() } else { second.clone() };
        workers.spawn(work(store, worker));
    }
    while let Some(finished) = workers.join_next().await {
        finished.unwrap();
    }
    let written = usize::try_from(WORKERS * WRITES).unwrap();
    assert_eq!(second.undelivered(1000).await.unwrap().len(), written);
    assert_eq!(second.run_log(&run_id("r1")).await.unwrap().len(), written);
    let end = RunEnd { status: RunStatus::Succeeded, finished: minute(9), error: None };
    second.finish_run(&run_id("r1"), &end).await.unwrap();
    let slices = first.current_slices(None).await.unwrap();
    let expected: Vec<_> = (0..WORKERS).map(|worker| Some(SnapshotId(worker * 100 + WRITES))).collect();
    let mut found: Vec<_> = slices.iter().map(|slice| slice.current.as_ref().unwrap().snapshot).collect();
    found.sort();
    assert_eq!(found, expected);
}

pub async fn two_processes_that_heal_at_once_announce_once(backend: &impl Backend) {
    let stores = [backend.open().await, backend.open().await];
    begin(&stores[0], &[("s1", "orders", None)]).await;
    stores[0].start_attempt(&new_attempt("a1", "s1", 1, 1)).await.unwrap();
    stores[0].mark_committing(&attempt_id("a1")).await.unwrap();
    let stamps = [stamp(entry("a1", "s1", "orders", None), 5, 3)];
    let lake = main_lake();
    let (one, two) = tokio::join!(
        stores[0].ingest_stamps(&lake, &stamps, SnapshotId(5)),
        stores[1].ingest_stamps(&lake, &stamps, SnapshotId(5)),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    let once = Ingested { materializations: 1, healed_attempts: 1 };
    assert!([(once, Ingested::default()), (Ingested::default(), once)].contains(&(one, two)), "{one:?} {two:?}");
    assert_eq!(waiting(&stores[1]).await, "orders@5 a1\n");
}

pub async fn of_two_deliverers_one_goes_on(backend: &impl Backend) {
    let stores = [backend.open().await, backend.open().await];
    begin(&stores[0], &[("s1", "orders", None)]).await;
    write(&stores[0], entry("a1", "s1", "orders", None), 5, 3).await;
    let id = stores[0].undelivered(1).await.unwrap()[0].id;
    let (one, two) = tokio::join!(stores[0].mark_delivered(id, minute(4)), stores[1].mark_delivered(id, minute(4)));
    assert_ne!(one.unwrap(), two.unwrap());
}
