//! What a replay and retention ask: the texts of scripts, and the snapshots that past runs need.

use pintail_core::id::ScriptHash;
use pintail_store::{FailureRecorded, KeptInputs, ScriptText, Store};

use super::Backend;
use super::sample::*;

fn script(hash: &str, path: &str) -> ScriptText {
    ScriptText { hash: ScriptHash(hash.into()), path: path.into(), text: format!("-- {hash}\nSELECT 'ä' AS x;\n") }
}

pub async fn a_text_is_found_by_its_hash_and_stored_once(backend: &impl Backend) {
    let store = backend.open().await;
    store.remember_scripts(&[script("aa", "pipelines/a.sql"), script("bb", "pipelines/b.sql")]).await.unwrap();
    // The same text in another file, and again: the first stays.
    store.remember_scripts(&[script("aa", "pipelines/copy.sql"), script("aa", "pipelines/a.sql")]).await.unwrap();
    let found = store.script_text(&ScriptHash("aa".into())).await.unwrap();
    assert_eq!(found, Some(script("aa", "pipelines/a.sql")));
    assert_eq!(store.script_text(&ScriptHash("cc".into())).await.unwrap(), None);
}

/// Runs `r1` to `r<count>` that each write `asset` in minute 10, 20, …, with snapshots 11, 21, … and inputs 10, 20, ….
async fn runs_of(store: &Store, asset: &str, count: i64) {
    for run in 1..=count {
        let id = format!("{asset}-r{run}");
        store.begin_run(&new_run(&id, run * 10 - 3)).await.unwrap();
        store.insert_steps(&run_id(&id), &[new_step(&format!("{id}-s"), 0, asset, None)]).await.unwrap();
        let mut entry = entry(&format!("{id}-a"), &format!("{id}-s"), asset, None);
        (entry.run, entry.inputs) = (run_id(&id), pins(run * 10));
        write(store, entry, run * 10 + 1, run * 10).await;
    }
}

fn lines(kept: &[KeptInputs]) -> String {
    let line = |kept: &KeptInputs| {
        let own = kept.snapshot.map_or("none".into(), |snapshot| snapshot.to_string());
        let inputs: Vec<String> = kept.inputs.iter().map(|(lake, snapshot)| format!("{lake}@{snapshot}")).collect();
        format!("{} own={own} {}\n", kept.run, inputs.join(","))
    };
    kept.iter().map(line).collect()
}

pub async fn the_last_runs_of_each_asset_are_kept_however_old(backend: &impl Backend) {
    let store = backend.open().await;
    runs_of(&store, "orders", 4).await;
    runs_of(&store, "daily", 1).await;
    let kept = store.kept_inputs(2, minute(1000)).await.unwrap();
    assert_eq!(lines(&kept), "daily-r1 own=11 main@10\norders-r4 own=41 main@40\norders-r3 own=31 main@30\n",);
    assert_eq!(kept[0].asset, key("daily"));
    assert_eq!(kept[0].finished, minute(10));
    assert_eq!(store.kept_inputs(0, minute(1000)).await.unwrap(), []);
}

pub async fn everything_that_finished_lately_is_kept_failures_too(backend: &impl Backend) {
    let store = backend.open().await;
    runs_of(&store, "orders", 3).await;
    begin(&store, &[("s1", "orders", None)]).await;
    store.start_attempt(&new_attempt("a1", "s1", 1, 40)).await.unwrap();
    let recorded = store.record_failure(&failure(entry("a1", "s1", "orders", None), 41)).await.unwrap();
    assert_eq!(recorded, FailureRecorded::Recorded);
    let kept = store.kept_inputs(0, minute(20)).await.unwrap();
    assert_eq!(lines(&kept), "r1 own=none main@4\norders-r3 own=31 main@30\norders-r2 own=21 main@20\n",);
    // A failed run takes no place of a successful one.
    let kept = store.kept_inputs(1, minute(1000)).await.unwrap();
    assert_eq!(lines(&kept), "orders-r3 own=31 main@30\n");
}

pub async fn the_partitions_of_one_run_count_as_one(backend: &impl Backend) {
    let store = backend.open().await;
    let days = ["2026-06-18", "2026-06-19", "2026-06-20"];
    begin(&store, &[("s1", "orders", Some(days[0])), ("s2", "orders", Some(days[1])), ("s3", "orders", Some(days[2]))])
        .await;
    for (number, day) in (1..).zip(days) {
        write(&store, entry(&format!("a{number}"), &format!("s{number}"), "orders", Some(day)), 4 + number, number)
            .await;
    }
    let kept = store.kept_inputs(1, minute(1000)).await.unwrap();
    assert_eq!(lines(&kept), "r1 own=7 main@4\nr1 own=6 main@4\nr1 own=5 main@4\n");
}
