//! Writers that meet: in two processes at once, or one after the other although each believed to be alone.

use std::path::Path;

use pintail_core::asset::Asset;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Instance, InstanceOptions};
use pintail_runner::pintail::{BackfillRange, PlanRequest};
use pintail_runner::run::{RunEvent, StepState};
use pintail_store::LogLevel;

use crate::catalogs;
use crate::harness::{Folder, query, run};
use crate::processes::{Pause, Work, open};

const DAYS: &str = "//- pipelines/d.sql
-- partitioned daily
-- materialize ducklake://main/d
SELECT $partition AS day, i AS n FROM range(3) t(i)
";

const COUNTER: &str = "-- column n BIGINT
SELECT coalesce(max(n), 0) + 1 AS n FROM t
";

/// Takes every lease away, as if their holders had been taken for dead.
fn take_leases_away(folder: &Path) {
    if catalogs::on_postgres() {
        return catalogs::sql(folder, "DELETE FROM pintail.lease");
    }
    // A guard without its file begins anew.
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!(".pintail/main.sqlite.guard.sqlite{ending}")));
    }
}

/// Sends statements as somebody who is not Pintail does: no lease, no lane, no stamp.
fn write_foreign(folder: &Path, statements: &[&str]) {
    let extensions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    let options = InstanceOptions {
        extensions: ExtensionFolders(vec![extensions]),
        object_stores: catalogs::object_stores(folder),
        ..InstanceOptions::default()
    };
    let instance = Instance::open(options).unwrap();
    let session = instance.session().unwrap();
    let lake = catalogs::main_lake(folder);
    lake.attach_existing(&instance, &session).unwrap();
    session.batch("use the lake", &format!("USE {}", lake.write_alias())).unwrap();
    for statement in statements {
        session.batch("write from outside", statement).unwrap();
    }
}

/// Asserts that every step has landed or met a newer version.
fn assert_good(told: &[String]) {
    let is_good = |line: &String| line.ends_with(": Materialized") || line.ends_with(": Superseded");
    assert!(told.iter().all(|line| line.starts_with("note of ") || is_good(line)), "{told:?}");
}

fn forced() -> PlanRequest {
    PlanRequest { force: true, ..PlanRequest::default() }
}

#[test]
fn case_d21_fifty_fresh_slices_replaced_by_two_processes_at_once_have_every_row_once() {
    let folder = Folder::new(DAYS);
    let meeting = tempfile::tempdir().unwrap();
    let processes = [0, 1].map(|player| Work::run().days(50, meeting.path(), player, 2).start(folder.path()));
    for process in processes {
        assert_good(&process.done());
    }
    let wrong =
        "SELECT day, count(*), count(DISTINCT n) FROM d GROUP BY day HAVING count(*) <> 3 OR count(DISTINCT n) <> 3";
    assert_eq!(folder.query(wrong), Vec::<String>::new());
    assert_eq!(folder.query("SELECT count(*), count(DISTINCT day) FROM d"), ["150|50"]);
}

#[test]
fn the_older_of_two_stages_of_one_slice_never_lands() {
    for partitioned in ["", "-- partitioned daily\n"] {
        let folder = Folder::new(&format!(
            "//- data/in.csv\nv\nfirst\n//- pipelines/t.sql\n{partitioned}-- materialize ducklake://main/t\nSELECT v FROM read_csv('data/in.csv')\n"
        ));
        folder.run_all().assert_good();
        folder.write("//- data/in.csv\nv\nolder\n");
        let pause = Pause::at("staged");
        let mut older = Work::run().force().faults(pause.fault()).start(folder.path());
        older.reaches(&pause.reached());
        take_leases_away(folder.path());
        folder.write("//- data/in.csv\nv\nnewer\n");
        folder.run(&forced()).assert_good();
        pause.release();
        let told = older.done();
        assert!(told[0].ends_with(": Superseded"), "{told:?}");
        assert_eq!(folder.query("SELECT v FROM t"), ["newer"]);
        assert_eq!(folder.run_all().steps.len(), 0);
    }
}

#[test]
fn a_stage_of_an_older_pin_never_lands_although_it_is_made_later() {
    let folder = Folder::new(
        "//- data/in.csv\nv\nolder\n//- pipelines/u.sql
-- materialize ducklake://main/u
SELECT v FROM read_csv('data/in.csv')
//- pipelines/t.sql
-- materialize ducklake://main/t
SELECT v FROM u
",
    );
    folder.run_all().assert_good();
    let select = |name: &str| PlanRequest { select: Some(name.to_owned()), ..forced() };
    let pause = Pause::at("leased");
    let older = open(folder.path(), &pause.fault());
    std::thread::scope(|scope| {
        let older = scope.spawn(|| run(&older, &select("t")));
        crate::processes::wait_for("the lease of the older run", || pause.reached().exists());
        take_leases_away(folder.path());
        folder.write("//- data/in.csv\nv\nnewer\n");
        folder.run_all().assert_good();
        pause.release();
        let told = older.join().unwrap();
        assert_eq!(told.step("t").state, StepState::Superseded, "{}", told.text());
    });
    assert_eq!(folder.query("SELECT v FROM t"), ["newer"]);
}

#[test]
fn two_processes_that_increment_their_own_table_make_two_increments() {
    for (strategy, expected) in [("", "2|1|2"), (" append", "2|2|1")] {
        let folder =
            Folder::new(&format!("//- pipelines/t.sql\n-- materialize ducklake://main/t{strategy}\n{COUNTER}"));
        let meeting = tempfile::tempdir().unwrap();
        let processes = [0, 1].map(|player| Work::run().force().meet(meeting.path(), player, 2).start(folder.path()));
        for process in processes {
            let told = process.done();
            assert!(told[0].ends_with(": Materialized"), "{told:?}");
        }
        assert_eq!(folder.query("SELECT max(n), count(*), min(n) FROM t"), [expected]);
        let history = open(folder.path(), "").history(&Asset::parse("ducklake://main/t").unwrap(), 10).unwrap();
        let counts = history.iter().filter(|version| version.strategy != "create").map(|version| version.rows);
        let stored = folder.query("SELECT count(*) FROM t")[0].parse().unwrap();
        assert_eq!(counts.max().unwrap(), Some(stored));
    }
}

#[test]
fn a_self_reader_whose_lease_was_taken_reads_the_newer_version_again() {
    let folder = Folder::new(&format!("//- pipelines/t.sql\n-- materialize ducklake://main/t\n{COUNTER}"));
    folder.run_all().assert_good();
    let pause = Pause::at("staged");
    let mut older = Work::run().force().faults(pause.fault()).start(folder.path());
    older.reaches(&pause.reached());
    take_leases_away(folder.path());
    folder.run(&forced()).assert_good();
    pause.release();
    let told = older.done();
    assert!(told[0].ends_with(": Materialized"), "{told:?}");
    assert!(told.iter().any(|line| line.contains("staged again")), "{told:?}");
    assert_eq!(folder.query("SELECT n FROM t"), ["3"]);
}

/// What each strategy makes of a foreign row: replaced, kept, kept.
const FOREIGN: [(&str, &str); 3] = [("", "1|new"), (" key=k", "1|new,9|foreign"), (" append", "1|old,1|new,9|foreign")];

#[test]
fn a_foreign_writer_between_stage_and_commit_is_noticed_told_and_stored() {
    for (strategy, expected) in FOREIGN {
        // Between stage and BEGIN the check finds it; inside the transaction DuckLake itself does.
        let points: &[&str] = if strategy.is_empty() { &["staged", "written"] } else { &["staged"] };
        for point in points.iter().copied() {
            let folder = Folder::new(&format!(
                "//- data/in.csv\nk,v\n1,old\n//- pipelines/t.sql\n-- materialize ducklake://main/t{strategy}\nSELECT k, v FROM read_csv('data/in.csv')\n"
            ));
            folder.run_all().assert_good();
            folder.write("//- data/in.csv\nk,v\n1,new\n");
            let pause = Pause::at(point);
            let pintail = open(folder.path(), &pause.fault());
            let told = std::thread::scope(|scope| {
                let told = scope.spawn(|| run(&pintail, &PlanRequest::default()));
                crate::processes::wait_for("the pause", || pause.reached().exists());
                write_foreign(folder.path(), &["INSERT INTO t VALUES (9, 'foreign')"]);
                pause.release();
                told.join().unwrap()
            });
            told.assert_good();
            let note = "an unknown writer, not Pintail, changed ducklake://main/t meanwhile";
            let expects = |text: &str| point == "written" || text.contains(note);
            assert!(told.step("t").notes.iter().any(|text| expects(text)), "{point}: {:?}", told.step("t").notes);
            let log = pintail.block_on(pintail.store().run_log(&told.summary.run)).unwrap();
            assert!(log.iter().any(|line| line.level == LogLevel::Warning && expects(&line.text)), "{point}: {log:?}");
            assert_eq!(query(&pintail, "SELECT k, v FROM t ORDER BY k, v DESC", None).join(","), expected);
            // Nobody counted the foreign row, so only a replace knows how many rows there are.
            assert_eq!(told.step("t").rows, (strategy.is_empty()).then_some(1), "{strategy}");
        }
    }
}

#[test]
fn a_table_that_a_foreign_writer_makes_meanwhile_is_not_taken_over() {
    let folder = Folder::new(
        "//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 1 AS n\n//- pipelines/u.sql\n-- materialize ducklake://main/u\nSELECT 1 AS n\n",
    );
    folder.run(&PlanRequest { select: Some("u".to_owned()), ..PlanRequest::default() }).assert_good();
    let pause = Pause::at("staged");
    let pintail = open(folder.path(), &pause.fault());
    let told = std::thread::scope(|scope| {
        let told = scope.spawn(|| run(&pintail, &PlanRequest::default()));
        crate::processes::wait_for("the pause", || pause.reached().exists());
        write_foreign(folder.path(), &["CREATE TABLE t AS SELECT 42 AS n"]);
        pause.release();
        told.join().unwrap()
    });
    assert_eq!(told.failure("t").message, "ducklake://main/t exists, but Pintail has not made it");
    assert_eq!(folder.query("SELECT n FROM t"), ["42"]);
}

#[test]
fn case_d22_a_backfill_in_two_processes_at_once_writes_every_slice_once() {
    let folder = Folder::new(DAYS);
    let meeting = tempfile::tempdir().unwrap();
    let processes = [0, 1].map(|player| {
        let work = Work::run().meet(meeting.path(), player, 2).backfill("d", "2026-01-01", "2026-01-31");
        work.start(folder.path())
    });
    for process in processes {
        assert_good(&process.done());
    }
    assert_eq!(folder.query("SELECT count(*), count(DISTINCT day), count(DISTINCT (day, n)) FROM d"), ["90|30|90"]);
    let versions = open(folder.path(), "").history(&Asset::parse("ducklake://main/d").unwrap(), 100).unwrap();
    assert_eq!(versions.len(), 30, "a slice was written twice");
}

#[test]
fn case_d29_on_sqlite_four_processes_make_one_lake_and_forty_tables_at_once_and_lose_none() {
    let folders: Vec<Folder> = (0..4)
        .map(|player| {
            let scripts: String = (0..10)
                .map(|n| format!("//- pipelines/t{player}_{n}.sql\n-- materialize ducklake://main/t{player}_{n}\nSELECT {n} AS n\n"))
                .collect();
            Folder::new(&scripts)
        })
        .collect();
    let lake = tempfile::tempdir().unwrap();
    for folder in &folders {
        folder.write(&format!(
            "//- pintail.toml\n[lake.main]\ncatalog = \"sqlite:{0}/main.sqlite\"\ndata = \"{0}/data\"\n",
            lake.path().display()
        ));
    }
    let meeting = tempfile::tempdir().unwrap();
    let processes: Vec<_> = (0..)
        .zip(&folders)
        .map(|(player, folder)| Work::run().meet(meeting.path(), player, 4).start(folder.path()))
        .collect();
    for process in processes {
        let told = process.done();
        assert_eq!(told.iter().filter(|line| line.ends_with(": Materialized")).count(), 10, "{told:?}");
    }
    let count = "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake' AND schema_name = 'main'";
    assert_eq!(folders[0].query(count), ["40"]);
    assert_eq!(folders[0].query("SELECT n FROM t3_9"), ["9"]);
}

#[test]
fn two_first_runs_of_one_project_at_once_make_one_lake_and_one_version() {
    let folder = Folder::new("//- pipelines/t.sql\n-- materialize ducklake://main/t append\nSELECT 1 AS n\n");
    let meeting = tempfile::tempdir().unwrap();
    let processes = [0, 1].map(|player| Work::run().meet(meeting.path(), player, 2).start(folder.path()));
    for process in processes {
        process.done();
    }
    assert_eq!(folder.query("SELECT count(*) FROM t"), ["1"]);
    let runs = open(folder.path(), "").runs(10).unwrap();
    let ends: Vec<&str> = runs.iter().map(|run| run.status.as_str()).collect();
    assert_eq!(ends, ["succeeded", "succeeded"]);
}

#[test]
fn on_sqlite_a_lake_that_is_reached_by_a_link_has_one_lock_and_one_guard() {
    let lake = tempfile::tempdir().unwrap();
    let real = lake.path().join("real");
    let link = lake.path().join("link");
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    // Before the lake exists, and after.
    for name in ["a", "b"] {
        let folder = Folder::new(&format!(
            "//- pintail.toml\n[lake.main]\ncatalog = \"sqlite:{0}/main.sqlite\"\ndata = \"{0}/data\"\n\
             //- pipelines/{name}.sql\n-- materialize ducklake://main/{name}\nSELECT 1 AS n\n",
            link.display()
        ));
        let pintail = folder.open();
        let catalog = pintail.lakes().values().next().unwrap().catalog_file().unwrap().to_owned();
        assert_eq!(catalog, real.canonicalize().unwrap().join("main.sqlite"));
        folder.run_all().assert_good();
    }
}

#[test]
fn a_foreign_change_of_shape_between_two_slices_of_one_run_is_noticed() {
    // Steps with a time limit commit one by one.
    let days = DAYS.replacen("-- partitioned", "-- timeout 10m\n-- partitioned", 1);
    let folder = Folder::new(&format!("//- pintail.toml\n[run]\nslots = 1\n{days}"));
    let pintail = folder.open();
    let days = BackfillRange {
        script: "d".to_owned(),
        from: Some("2026-01-01".to_owned()),
        to: Some("2026-01-05".to_owned()),
        ..BackfillRange::default()
    };
    let (plan, seen) = pintail.plan(&PlanRequest { backfill: Some(days), ..PlanRequest::default() }).unwrap();
    let mut states = Vec::new();
    // The next step begins only after this has returned.
    pintail
        .run(&plan, &seen, &mut |event| {
            if let RunEvent::StepFinished { state, .. } = event {
                states.push(state);
                if states.len() == 3 {
                    write_foreign(folder.path(), &["ALTER TABLE d ADD COLUMN extra INTEGER"]);
                }
            }
        })
        .unwrap();
    let good = StepState::Materialized;
    assert_eq!(states, [good, good, good, StepState::Failed]);
    assert_eq!(folder.query("SELECT count(DISTINCT day) FROM d"), ["3"]);
}

#[test]
fn a_table_that_a_foreign_writer_makes_meanwhile_is_not_taken_over_by_a_group() {
    let folder = Folder::new(
        "//- pintail.toml\n[run]\nslots = 1\n//- pipelines/t0.sql\n-- materialize ducklake://main/t0\nSELECT 1 AS n\n\
         //- pipelines/t1.sql\n-- materialize ducklake://main/t1\nSELECT 1 AS n\n\
         //- pipelines/u.sql\n-- materialize ducklake://main/u\nSELECT 1 AS n\n",
    );
    folder.run(&PlanRequest { select: Some("u".to_owned()), ..PlanRequest::default() }).assert_good();
    let pause = Pause::at("staged");
    let pintail = open(folder.path(), &pause.fault());
    let told = std::thread::scope(|scope| {
        let told = scope.spawn(|| run(&pintail, &PlanRequest::default()));
        crate::processes::wait_for("the pause", || pause.reached().exists());
        write_foreign(folder.path(), &["CREATE TABLE t0 AS SELECT 42 AS n"]);
        pause.release();
        told.join().unwrap()
    });
    assert_eq!(told.failure("t0").message, "ducklake://main/t0 exists, but Pintail has not made it");
    assert_eq!(told.step("t1").state, StepState::Materialized, "{}", told.text());
    assert_eq!(folder.query("SELECT n FROM t0"), ["42"]);
}
