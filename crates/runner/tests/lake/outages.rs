//! A Postgres server that goes away at every point of the protocol, answers that are lost although the commit is stored,
//! and processes that sleep until others have taken their place.

use pintail_engine::fault::FaultPoint;
use pintail_testkit::services::{database, private_postgres};

use crate::crashes::assert_store_agrees_with_lake;
use crate::harness::{Folder, forced, foreign};
use crate::processes::{Pause, Process, Work, wait_for};

/// Replace, merge and append of one input, in steps that commit one by one.
const PROJECT: &str = "//- pintail.toml
[run]
slots = 1
//- data/in.csv
v
0
//- pipelines/appended.sql
-- timeout 10m
-- materialize ducklake://main/appended append
SELECT i AS k, v FROM read_csv('data/in.csv'), range(3) t(i)
//- pipelines/merged.sql
-- timeout 10m
-- materialize ducklake://main/merged key=k
SELECT k, v FROM appended WHERE v = (SELECT max(v) FROM appended)
";

fn write_version(folder: &Folder, version: usize) {
    folder.write(&format!("//- data/in.csv\nv\n{version}\n"));
}

/// Every version was appended once and whole, and the merge holds the newest.
fn assert_versions(folder: &Folder, newest: usize, when: &str) {
    let appended = folder.query("SELECT v, count(*), count(DISTINCT k) FROM appended GROUP BY v ORDER BY v");
    let expected: Vec<String> = (0..=newest).map(|version| format!("{version}|3|3")).collect();
    assert_eq!(appended, expected, "{when}");
    assert_eq!(folder.query("SELECT DISTINCT v FROM merged"), [newest.to_string()], "{when}");
}

#[test]
fn a_server_that_crashes_at_any_point_of_the_protocol_costs_no_row_and_doubles_none() {
    let mut server = private_postgres();
    let folder = Folder::on_postgres(PROJECT, server.database());
    folder.run_all().assert_good();
    for (version, point) in (1..).zip(FaultPoint::ALL) {
        write_version(&folder, version);
        let pause = Pause::at(point.name());
        let mut process = Work::run().faults(pause.fault()).start(folder.path());
        process.reaches(&pause.reached());
        server.kill();
        server.resume().unwrap();
        pause.release();
        let told = process.done();
        let landed = told.iter().filter(|line| line.ends_with(": Materialized")).count();
        let failures: Vec<&String> = told.iter().filter(|line| line.contains(": Failed: ")).collect();
        // Who could not go on says that the server was away, and nothing of the kind of an internal error.
        let names_the_server =
            |line: &&&String| ["connection", "server", "Postgres"].iter().any(|word| line.contains(word));
        assert!(failures.iter().all(|line| names_the_server(&line)), "{point:?}: {told:?}");
        assert!(landed == 2 || !failures.is_empty(), "{point:?}: {told:?}");
        let is_in_between = matches!(point, FaultPoint::Checked | FaultPoint::Written | FaultPoint::Stamped);
        if is_in_between && failures.is_empty() {
            let said = told.iter().any(|line| line.starts_with("note of ") && line.contains(" again"));
            assert!(said, "{point:?}: what happened is not told: {told:?}");
        }
        let next = folder.run_all();
        next.assert_good();
        assert_versions(&folder, version, &format!("{point:?}: {told:?}, then {}", next.text()));
    }
    assert_store_agrees_with_lake(&folder);
}

/// DuckLake keeps the files of a compaction whose COMMIT got no answer, so nothing of it has to be taken back.
#[test]
fn a_compaction_that_is_stored_although_its_answer_is_lost_has_landed() {
    let server = private_postgres();
    let folder = Folder::on_postgres(PROJECT, server.database());
    folder.run_all().assert_good();
    let landed = |kind: &str, told: &str| {
        let pause = Pause::at("compacted");
        let mut process = Work::run().maintain().faults(pause.fault()).start(folder.path());
        process.reaches(&pause.reached());
        folder.lose_the_answer_of_a_commit(|| pause.release());
        assert_eq!(process.done(), [told]);
        let stored = format!("SELECT count(*) FROM ducklake_snapshot_changes WHERE changes_made LIKE '{kind}:%'");
        assert_eq!(folder.database_sql(&stored), "1", "{told}");
        assert_eq!(folder.open().audit(None, &|_, _| Vec::new()).unwrap().remove(0).findings, [], "{told}");
    };
    foreign(&folder.open(), "CREATE TABLE small AS SELECT 0 AS i");
    for i in 1..4 {
        foreign(&folder.open(), &format!("INSERT INTO small VALUES ({i})"));
    }
    landed("merge_adjacent", "small: Some(Compacted { files_before: 4, files_after: 1 }) None None");
    assert_eq!(folder.query("SELECT i FROM small ORDER BY i"), ["0", "1", "2", "3"]);
    foreign(&folder.open(), "CREATE TABLE heavy AS SELECT i FROM range(4) t(i)");
    foreign(&folder.open(), "DELETE FROM heavy WHERE i < 3");
    landed("rewrite_delete", "heavy: None Some(Compacted { files_before: 1, files_after: 1 }) None");
    assert_eq!(folder.query("SELECT i FROM heavy"), ["3"]);
}

/// DuckLake removes the files of a COMMIT that got no answer, also when it was stored: it is taken back, and done again.
#[test]
fn a_commit_that_is_stored_although_its_answer_and_its_files_are_lost_is_taken_back_and_done_again() {
    let server = private_postgres();
    let folder = Folder::on_postgres(PROJECT, server.database());
    folder.run_all().assert_good();
    write_version(&folder, 1);
    let pause = Pause::at("stamped");
    let mut process = Work::run().faults(pause.fault()).start(folder.path());
    process.reaches(&pause.reached());
    folder.lose_the_answer_of_a_commit(|| pause.release());
    let told = process.done();
    assert!(told.iter().any(|line| line.starts_with("appended: Materialized")), "{told:?}");
    let stamped = "SELECT count(*) FROM ducklake_snapshot_changes WHERE commit_extra_info LIKE '%main/appended%'";
    assert_eq!(folder.database_sql(stamped), "2", "the first run and this one: {told:?}");
    let taken_back = "SELECT count(*) FROM ducklake_snapshot_changes WHERE commit_message LIKE 'taken back:%'";
    assert_eq!(folder.database_sql(taken_back), "1", "{told:?}");
    assert_versions(&folder, 1, &format!("{told:?}"));
    assert_store_agrees_with_lake(&folder);
    let audit = folder.open().audit(None, &|_, _| Vec::new()).unwrap().remove(0);
    assert_eq!(audit.findings, [], "{told:?}");
    // What comes after it finds a lake as if it had never been.
    write_version(&folder, 2);
    folder.run_all().assert_good();
    assert_versions(&folder, 2, &format!("{told:?}"));
}

/// Lets `process` sleep, and cuts every connection that it has: to everybody else it is dead.
fn bury(folder: &Folder, process: &Process) {
    process.signal("STOP");
    folder.database_sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    wait_for("its connections to be gone", || {
        let others =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        folder.database_sql(others) == "0"
    });
}

#[test]
fn a_process_that_wakes_after_another_took_its_lease_never_lands() {
    for strategy in ["", " append", " key=k"] {
        let folder = Folder::on_postgres(
            &format!(
                "//- data/in.csv\nv\nfirst\n//- pipelines/t.sql\n-- materialize ducklake://main/t{strategy}\n\
                 SELECT v AS k, v FROM read_csv('data/in.csv')\n"
            ),
            database(),
        );
        folder.run_all().assert_good();
        for point in ["leased", "staged", "checked", "written", "stamped"] {
            let before = folder.query("SELECT v FROM t ORDER BY v");
            folder.write("//- data/in.csv\nv\nolder\n");
            let pause = Pause::at(point);
            let mut zombie = Work::run().force().faults(pause.fault()).start(folder.path());
            zombie.reaches(&pause.reached());
            bury(&folder, &zombie);
            let newer = format!("newer than at {point}");
            folder.write(&format!("//- data/in.csv\nv\n{newer}\n"));
            folder.run(&forced()).assert_good();
            let after = folder.query("SELECT v FROM t ORDER BY v");
            assert!(after.contains(&newer) && before != after, "{after:?}");
            pause.release();
            zombie.signal("CONT");
            let told = zombie.done();
            let is_refused = |line: &String| line.ends_with(": Superseded") || line.contains(": Failed: ");
            assert!(told.iter().any(is_refused), "{strategy} {point}: {told:?}");
            assert_eq!(folder.query("SELECT v FROM t ORDER BY v"), after, "{strategy} {point}: {told:?}");
            assert_eq!(folder.run_all().text(), "", "{strategy} {point}");
        }
        assert_store_agrees_with_lake(&folder);
    }
}

#[test]
fn two_sleepers_wake_at_once_and_neither_lands() {
    let folder = Folder::on_postgres(
        "//- data/in.csv\nv\nfirst\n//- pipelines/t.sql\n-- materialize ducklake://main/t append\n\
         SELECT v FROM read_csv('data/in.csv')\n",
        database(),
    );
    folder.run_all().assert_good();
    let mut sleepers = Vec::new();
    for _ in 0..2 {
        let pause = Pause::at("staged");
        let mut sleeper = Work::run().force().faults(pause.fault()).start(folder.path());
        sleeper.reaches(&pause.reached());
        bury(&folder, &sleeper);
        sleepers.push((sleeper, pause));
    }
    folder.write("//- data/in.csv\nv\nnewest\n");
    folder.run(&forced()).assert_good();
    for (sleeper, pause) in &sleepers {
        pause.release();
        sleeper.signal("CONT");
    }
    for (sleeper, _) in sleepers {
        let told = sleeper.done();
        assert!(told[0].ends_with(": Superseded") || told.iter().any(|line| line.contains(": Failed: ")), "{told:?}");
    }
    assert_eq!(folder.query("SELECT v FROM t ORDER BY v"), ["first", "newest"]);
    assert_store_agrees_with_lake(&folder);
}
