//! Upkeep of a lake: what nobody needs goes, what somebody needs stays, and nothing that was known is forgotten.

use std::time::Duration;

use pintail_core::id::{LakeName, SnapshotId};
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::Guard;
use pintail_runner::Pintail;
use pintail_runner::pintail::{DiffRequest, MaintainRequest, Maintained, PlanRequest, ReplayRequest};

use crate::harness::{Folder, force, foreign, planned, query, run, upkeep};
use crate::processes::{Pause, Work, open};

const CHAIN: &str = "//- pintail.toml
[run]
keep_runs = 0
keep_days = 0
//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT v FROM read_csv('data/in.csv')
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT max(v) AS v FROM a
//- data/in.csv
v
0
";

/// A chain of two scripts, run `versions` times.
fn chain(versions: u32) -> Folder {
    let folder = Folder::new(CHAIN);
    for version in 1..=versions {
        folder.write(&format!("//- data/in.csv\nv\n{version}\n"));
        run(&folder.open(), &PlanRequest::default()).assert_good();
    }
    folder
}

fn maintain(pintail: &Pintail) -> Maintained {
    pintail.maintain(&upkeep()).unwrap().remove(0)
}

/// The snapshots that are there.
fn there(pintail: &Pintail) -> Vec<i64> {
    let rows = query(pintail, "SELECT snapshot_id FROM lake.snapshots() ORDER BY 1", None);
    rows.iter().map(|id| id.parse().unwrap()).collect()
}

fn snapshot_of(pintail: &Pintail, table: &str, newest: usize) -> SnapshotId {
    pintail.history(&pintail.parse_asset(table).unwrap(), 100).unwrap()[newest].snapshot.unwrap()
}

fn fingerprint(pintail: &Pintail) -> String {
    pintail.block_on(pintail.store().state_fingerprint(&LakeName("main".to_owned()))).unwrap()
}

#[test]
fn all_but_the_head_goes_and_plans_and_state_stay_as_they_were() {
    let folder = chain(3);
    let pintail = folder.open();
    let remembered = fingerprint(&pintail);
    let count = there(&pintail).len();
    let done = maintain(&pintail);
    assert_eq!((done.expired.len(), done.kept), (count - 1, 1));
    // The head of before has its hold no more than the commit that kept the stamps has.
    assert_eq!(there(&pintail).len(), 2);
    assert_eq!(query(&pintail, "FROM b", None), ["3"]);

    let pintail = folder.open();
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new(), "nothing became due");
    let rebuilt = pintail.rebuild_state().unwrap();
    assert_eq!((fingerprint(&pintail), rebuilt[0].unknown.len()), (remembered, 0));
    assert_eq!(pintail.history(&pintail.parse_asset("a").unwrap(), 10).unwrap().len(), 3);
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new(), "nothing became due");
}

#[test]
fn an_input_that_changed_before_the_expiry_is_still_news() {
    let folder = chain(2);
    let pintail = folder.open();
    folder.write("//- data/in.csv\nv\n7\n");
    run(&folder.open(), &crate::harness::only("a")).assert_good();
    assert_eq!(planned(&pintail, &PlanRequest::default()), ["b: ducklake://main/a changed"]);
    foreign(&pintail, "CREATE TABLE other AS SELECT 1 AS x");
    maintain(&pintail);
    maintain(&folder.open());
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), ["b: ducklake://main/a changed"]);
}

#[test]
fn a_table_that_was_dropped_before_the_expiry_is_missing_not_fresh() {
    let folder = chain(1);
    let pintail = folder.open();
    foreign(&pintail, "DROP TABLE b");
    foreign(&pintail, "CREATE TABLE other AS SELECT 1 AS x");
    maintain(&pintail);
    maintain(&folder.open());
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), ["b: never written"]);
}

#[test]
fn a_pin_keeps_its_snapshot_and_no_other_until_it_goes() {
    let folder = chain(4);
    let pintail = folder.open();
    let old = snapshot_of(&pintail, "a", 2);
    let (pin, snapshot) = pintail.pin("main", &old.to_string(), "anna", "the audit", None).unwrap();
    assert_eq!(snapshot, old);
    let done = maintain(&pintail);
    assert_eq!(done.held.len(), 1);
    assert_eq!((done.held[0].owner.as_str(), done.held[0].snapshots.as_slice()), ("anna", [old].as_slice()));
    assert!(0 < done.held[0].bytes && done.checked == 2);
    assert_eq!(there(&pintail).len(), 3, "the pinned one, the old head, and the commit of the stamps");
    assert_eq!(query(&pintail, "SELECT v FROM a", Some(old)), ["2"]);
    let pins = pintail.pins(None).unwrap();
    assert!(pins.iter().any(|info| info.pin.owner == "anna" && info.is_there && 0 < info.bytes));

    assert_eq!(pintail.unpin("main", pin.0).unwrap().reason, "the audit");
    maintain(&pintail);
    assert!(!there(&pintail).contains(&old.0));
    let gone = pintail.pin("main", &old.to_string(), "anna", "again", None).unwrap_err().to_string();
    assert!(gone.starts_with(&format!("snapshot {old} of lake `main` is gone: it was expired at 20")), "{gone}");
    assert!(pintail.pins(None).unwrap().iter().all(|info| info.pin.reason != "again"), "a pin in vain is taken back");
    let missing = pintail.unpin("main", 999).unwrap_err().to_string();
    assert_eq!(missing, "lake `main` has no pin 999; `pintail pins main` lists them");
}

#[test]
fn a_pin_ends_with_its_time() {
    let folder = chain(2);
    let pintail = folder.open();
    let old = snapshot_of(&pintail, "a", 1);
    pintail.pin("main", &old.to_string(), "anna", "briefly", Some(Duration::ZERO)).unwrap();
    maintain(&pintail);
    assert!(!there(&pintail).contains(&old.0));
}

#[test]
fn the_runs_that_the_configuration_keeps_can_be_replayed_and_older_ones_say_what_is_gone() {
    let folder = chain(3);
    folder.write(&CHAIN.replace("keep_runs = 0", "keep_runs = 2").replace("data/in.csv\nv\n0", "data/old.csv\nv\n0"));
    let pintail = folder.open();
    let runs: Vec<String> = pintail.runs(3).unwrap().iter().map(|run| run.id.to_string()).collect();
    maintain(&pintail);
    let replay = |run: &String| {
        let request = ReplayRequest { run: run.clone(), step: Some("b".to_owned()), into: None, limit: 5 };
        pintail.replay(&request).map(|replayed| replayed.is_proven())
    };
    assert!(replay(&runs[0]).unwrap() && replay(&runs[1]).unwrap());
    let gone = replay(&runs[2]).unwrap_err().to_string();
    assert!(gone.starts_with("`b` cannot be computed again: snapshot "), "{gone}");
    assert!(gone.contains(" is gone: it was expired at ") && gone.contains("`keep_runs`"), "{gone}");
    let held = pintail.pins(None).unwrap();
    assert!(held.iter().all(|info| info.pin.owner.starts_with("project ")), "{held:?}");
    let refused = pintail.unpin("main", held[0].pin.id.0).unwrap_err().to_string();
    assert!(refused.contains("keeps what past runs of this project read"), "{refused}");
}

#[test]
fn the_upkeep_of_another_project_respects_what_this_one_keeps() {
    let folder = chain(1);
    folder.write(&CHAIN.replace("keep_runs = 0", "keep_runs = 1").replace("data/in.csv\nv\n0", "data/in.csv\nv\n8"));
    run(&folder.open(), &PlanRequest::default()).assert_good();
    let mine = snapshot_of(&folder.open(), "a", 0);
    let other = Folder::new(&format!(
        "//- pintail.toml
[lake.main]
catalog = \"sqlite:{0}/.pintail/main.sqlite\"
data = \"{0}/.pintail/data/main\"
[run]
keep_runs = 0
keep_days = 0
//- pipelines/z.sql
-- materialize ducklake://main/z
SELECT 1 AS z
",
        folder.path().display()
    ));
    let theirs = other.open();
    run(&theirs, &PlanRequest::default()).assert_good();
    assert!(!maintain(&theirs).expired.is_empty());
    assert!(there(&folder.open()).contains(&mine.0));
    let replayed = folder.open().replay(&ReplayRequest { run: "last".to_owned(), ..ReplayRequest::default() }).unwrap();
    assert!(replayed.is_proven());
}

#[test]
fn nothing_at_or_above_the_pin_of_a_running_step_goes() {
    let folder = chain(2);
    let pause = Pause::at("staged");
    let mut process = Work::run().force().faults(pause.fault()).start(folder.path());
    process.reaches(&pause.reached());
    let pintail = folder.open();
    let pinned = there(&pintail);
    foreign(&pintail, "CREATE TABLE other AS SELECT 1 AS x");
    foreign(&pintail, "INSERT INTO other VALUES (2)");
    let done = maintain(&pintail);
    let now = there(&pintail);
    let head = *pinned.last().unwrap();
    assert!(done.expired.iter().all(|id| id.0 < head), "{done:?}");
    assert!(now.contains(&head) && now.contains(&(head + 1)), "{now:?}");
    assert!(done.held.iter().any(|held| held.owner.starts_with("work in progress")), "{done:?}");
    pause.release();
    process.done();
    assert_eq!(query(&folder.open(), "FROM b", None), ["2"]);
}

#[test]
fn a_plan_whose_snapshot_expired_before_the_run_says_so() {
    let folder = chain(1);
    let pintail = folder.open();
    let (plan, seen) = pintail.plan(&crate::harness::forced()).unwrap();
    foreign(&pintail, "CREATE TABLE other AS SELECT 1 AS x");
    maintain(&folder.open());
    let error = pintail.run(&plan, &seen, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("of lake `main` is gone: it was expired at "), "{error}");
    run(&folder.open(), &crate::harness::forced()).assert_good();
}

#[test]
fn a_dry_run_and_the_age_limit_take_nothing() {
    let folder = chain(2);
    let pintail = folder.open();
    let before = there(&pintail);
    let dry = pintail.maintain(&MaintainRequest { dry_run: true, ..upkeep() }).unwrap().remove(0);
    assert_eq!(dry.expired.len(), before.len() - 1);
    assert!(0 < dry.bytes_freed);
    let young = pintail.maintain(&MaintainRequest { keep: Duration::from_secs(3_600), ..upkeep() }).unwrap().remove(0);
    assert_eq!((young.expired.len(), young.young), (0, before.len() - 1));
    assert_eq!(there(&pintail), before, "nothing to expire is no commit either");
}

#[test]
fn files_go_only_when_their_time_is_over() {
    let folder = chain(3);
    let pintail = folder.open();
    let files = || std::fs::read_dir(folder.path().join(".pintail/data/main/main/a")).unwrap().count();
    assert_eq!(files(), 3, "one for each version");
    let patient = MaintainRequest { grace: Duration::from_secs(3_600), ..upkeep() };
    let done = pintail.maintain(&patient).unwrap().remove(0);
    assert!(!done.expired.is_empty() && done.files_deleted == 0);
    assert_eq!(files(), 3, "a file went that was let go a moment ago");
    let orphan = folder.path().join(".pintail/data/main/main/a/ducklake-of-a-writer.parquet");
    std::fs::write(&orphan, "").unwrap();
    let done = maintain(&pintail);
    assert!(orphan.exists() && done.orphans_deleted == 0, "a file of somebody who may still write it");
    assert!(0 < done.files_deleted, "{done:?}");
    assert_eq!(files(), 2, "the newest version and the other writer's");
    assert_eq!(query(&pintail, "FROM b", None), ["3"]);
}

#[test]
fn one_upkeep_at_a_time() {
    let folder = chain(2);
    let pause = Pause::at("kept");
    let mut process = Work::run().maintain().faults(pause.fault()).start(folder.path());
    process.reaches(&pause.reached());
    let pintail = folder.open();
    let done = maintain(&pintail);
    assert!(done.is_led_elsewhere && done.expired.is_empty());
    pause.release();
    process.done();
    assert!(!maintain(&pintail).is_led_elsewhere);
}

#[test]
fn a_pin_that_is_given_during_the_upkeep_is_respected() {
    let folder = chain(3);
    let pause = Pause::at("kept");
    let mut process = Work::run().maintain().faults(pause.fault()).start(folder.path());
    process.reaches(&pause.reached());
    let pintail = folder.open();
    let old = snapshot_of(&pintail, "a", 1);
    pintail.pin("main", &old.to_string(), "anna", "just in time", None).unwrap();
    pause.release();
    process.done();
    assert_eq!(query(&folder.open(), "SELECT v FROM a", Some(old)), ["2"]);
}

#[test]
fn an_upkeep_that_is_killed_between_any_two_steps_loses_nothing() {
    let folder = chain(1);
    foreign(&folder.open(), "CREATE TABLE appended AS SELECT 0 AS i");
    for (version, point) in (2..).zip(FaultPoint::UPKEEP) {
        foreign(&folder.open(), &format!("INSERT INTO appended VALUES ({version})"));
        folder.write(&format!("//- data/in.csv\nv\n{version}\n"));
        run(&folder.open(), &PlanRequest::default()).assert_good();
        let before = fingerprint(&folder.open());
        Work::run().maintain().faults(format!("{}=kill", point.name())).start(folder.path()).killed();
        let pintail = open(folder.path(), "");
        assert_eq!(query(&pintail, "FROM b", None), [version.to_string()], "killed at {point:?}");
        assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new(), "killed at {point:?}");
        pintail.rebuild_state().unwrap();
        assert_eq!(fingerprint(&pintail), before, "killed at {point:?}");
        let versions = pintail.history(&pintail.parse_asset("a").unwrap(), 100).unwrap().len();
        assert_eq!(versions, usize::try_from(version).unwrap(), "killed at {point:?}");
        assert!(!maintain(&pintail).is_led_elsewhere, "killed at {point:?}");
        assert_eq!(
            query(&pintail, "SELECT count(*) FROM appended", None),
            [version.to_string()],
            "killed at {point:?}"
        );
        pintail.rebuild_state().unwrap();
        assert_eq!(fingerprint(&pintail), before, "killed at {point:?}");
    }
    let lake = folder.open().lakes().values().next().unwrap().clone();
    let pintail = folder.open();
    let guard = pintail.block_on(Guard::open(&lake)).unwrap();
    assert_eq!(pintail.block_on(guard.pins()).unwrap(), []);
}

#[test]
fn case_e35_held_versions_say_the_same_after_the_upkeep() {
    let folder = chain(5);
    let pintail = folder.open();
    let held: Vec<SnapshotId> = [1, 3].map(|newest| snapshot_of(&pintail, "a", newest)).to_vec();
    for at in &held {
        pintail.pin("main", &at.to_string(), "anna", "the audit", None).unwrap();
    }
    let contents =
        || held.iter().map(|at| query(&pintail, "SELECT count(*), sum(v) FROM a", Some(*at))).collect::<Vec<_>>();
    let before = contents();
    let done = maintain(&pintail);
    assert_eq!(done.checked, 3, "two pins and the head");
    maintain(&pintail);
    assert_eq!(contents(), before);
}

#[test]
fn on_local_files_a_version_that_says_something_else_stops_the_upkeep_before_files_are_deleted() {
    let folder = chain(4);
    let pintail = folder.open();
    let old = snapshot_of(&pintail, "a", 2);
    pintail.pin("main", &old.to_string(), "anna", "the audit", None).unwrap();
    let files = || std::fs::read_dir(folder.path().join(".pintail/data/main/main/a")).unwrap().count();
    let before = files();
    let pause = Pause::at("expired");
    let mut process = Work::run().maintain().faults(pause.fault()).start(folder.path());
    process.reaches(&pause.reached());
    // The pinned version shows the newest file instead of its own: as many rows, and others.
    let metadata = format!("__ducklake_metadata_{}", pintail.lakes().values().next().unwrap().write_alias());
    let newest = format!(
        "SELECT path FROM {metadata}.ducklake_data_file WHERE begin_snapshot = {}",
        snapshot_of(&pintail, "a", 0)
    );
    foreign(
        &pintail,
        &format!("UPDATE {metadata}.ducklake_data_file SET path = ({newest}) WHERE begin_snapshot = {old}"),
    );
    pause.release();
    let told = process.done().join("\n");
    assert!(told.starts_with("expiry of lake `main` has changed what snapshot"), "{told}");
    assert!(told.contains("has other contents in its 1 rows. Nothing is merged, expired or deleted"), "{told}");
    assert_eq!(files(), before);
    // The next one finds nothing changed by itself, and would delete what the version can be mended with.
    let again = pintail.maintain(&upkeep()).unwrap_err().to_string();
    assert_eq!(again, told);
    assert_eq!(files(), before);
    let pin: i64 = told.split("pintail unpin main ").nth(1).unwrap().split('`').next().unwrap().parse().unwrap();
    assert_eq!(pintail.unpin("main", pin).unwrap().snapshot, old);
    maintain(&pintail);
    assert!(files() < before);
}

#[test]
fn case_e31_a_reader_of_an_old_version_keeps_its_files_and_those_that_went_while_it_read() {
    let folder = chain(4);
    let pintail = folder.open();
    let old = snapshot_of(&pintail, "a", 2);
    let lake = pintail.lakes().values().next().unwrap();
    let guard = pintail.block_on(Guard::open(lake)).unwrap();
    let since = chrono::Utc::now().timestamp_micros();
    let pin = pintail.block_on(guard.pin(old, "a long read", since)).unwrap();
    let done = maintain(&pintail);
    assert!(!done.expired.is_empty() && done.expired.iter().all(|id| id.0 < old.0), "{done:?}");
    assert_eq!(query(&pintail, "SELECT v FROM a", Some(old)), ["2"]);
    // Whoever has read since then may have found the files of what has gone.
    assert_eq!((maintain(&pintail).files_deleted, done.files_deleted), (0, 0));
    pintail.block_on(guard.unpin(pin)).unwrap();
    let done = maintain(&pintail);
    assert!(done.expired.contains(&old) && 0 < done.files_deleted, "{done:?}");
}

#[test]
fn a_comparison_over_an_expired_gap_looks_at_the_rows() {
    let folder = chain(3);
    let pintail = folder.open();
    let old = snapshot_of(&pintail, "a", 1);
    pintail.pin("main", &old.to_string(), "anna", "the audit", None).unwrap();
    folder.write("//- data/in.csv\nv\n2\n");
    run(&pintail, &force("a")).assert_good();
    maintain(&pintail);
    let request = DiffRequest { asset: "a".to_owned(), from: old.to_string(), limit: 5, ..DiffRequest::default() };
    let found = pintail.diff(&request).unwrap();
    assert!(found.is_empty());
    assert_eq!(found.rows.compared, pintail_runner::pintail::Compared::ByFingerprint);
}

#[test]
fn on_local_files_no_file_goes_while_a_table_cannot_be_read() {
    let folder = chain(3);
    let pintail = folder.open();
    let table = folder.path().join(".pintail/data/main/main/a");
    let files = || -> Vec<std::path::PathBuf> {
        std::fs::read_dir(&table).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let live = query(&pintail, "SELECT data_file FROM ducklake_list_files('lake', 'a')", None).remove(0);
    std::fs::remove_file(&live).unwrap();
    let refused = pintail.maintain(&upkeep()).unwrap_err().to_string();
    assert!(refused.contains(&live) && refused.contains("nothing was done"), "{refused}");
    assert_eq!(files().len(), 2, "those that no snapshot shows are still there");
}

#[test]
fn on_local_files_a_lost_file_of_a_held_version_does_not_end_the_upkeep_of_others() {
    let folder = chain(3);
    let pintail = folder.open();
    let held = snapshot_of(&pintail, "a", 2);
    pintail.pin("main", &held.to_string(), "anna", "the audit", None).unwrap();
    let files = |version: &str| {
        query(&pintail, &format!("SELECT data_file FROM ducklake_list_files('lake', 'a'{version})"), None)
    };
    let lost = files(&format!(", snapshot_version => {held}")).remove(0);
    assert!(!files("").contains(&lost));
    std::fs::remove_file(&lost).unwrap();
    let between = snapshot_of(&pintail, "a", 1);
    let done = maintain(&pintail);
    assert!(done.expired.contains(&between), "{done:?}");
    assert!(there(&pintail).contains(&held.0));
}
