//! What only a Postgres catalog has: a server that goes away, roles, connections, and a database that somebody makes.

use std::sync::mpsc;

use pintail_engine::EngineError;
use pintail_runner::RunnerError;
use pintail_runner::executors::StepOutcome;
use pintail_runner::pintail::{BackfillRange, PlanRequest};
use pintail_runner::run::RunEvent;
use pintail_runner::workspace::Catalog;
use pintail_testkit::services::{database, private_postgres};
use secrecy::SecretString;

use crate::harness::{Folder, query, run};

const DAYS: &str = "//- pintail.toml
[run]
slots = 2
//- pipelines/d.sql
-- materialize ducklake://main/d
-- partitioned daily by=day start=2026-01-01
SELECT CAST($partition AS DATE) AS day, n FROM range(10) AS t (n)
";

fn days(to: &str) -> PlanRequest {
    let backfill = BackfillRange {
        script: "d".to_owned(),
        from: Some("2026-01-01".to_owned()),
        to: Some(to.to_owned()),
        ..BackfillRange::default()
    };
    PlanRequest { backfill: Some(backfill), ..PlanRequest::default() }
}

#[test]
fn case_u85_the_server_restarts_in_the_middle_of_a_run_and_every_slice_is_there_once() {
    let mut server = private_postgres();
    let folder = Folder::on_postgres(DAYS, server.database());
    let pintail = folder.open();
    let (plan, seen) = pintail.plan(&days("2026-01-13")).unwrap();
    assert_eq!(plan.steps.len(), 12);
    let (tell, told) = mpsc::channel();
    // Beside the run, so that it falls into whatever the slots are doing.
    let restarter = std::thread::spawn(move || {
        for _ in 0..3 {
            if told.recv().is_err() {
                break;
            }
            server.kill();
            server.resume().unwrap();
        }
        server
    });
    let (mut ended, mut failures) = (0, Vec::new());
    let summary = pintail
        .run(&plan, &seen, &mut |event| {
            if let RunEvent::StepFinished { report, .. } = event {
                ended += 1;
                if let Some(StepOutcome::Failed(failure)) = report.map(|report| report.outcome) {
                    failures.push(format!("{}: {}", failure.stage, failure.message));
                }
                if ended % 3 == 1 {
                    // Nobody listens after the third.
                    let _ = tell.send(());
                }
            }
        })
        .unwrap();
    drop(tell);
    let _server = restarter.join().unwrap();
    assert_eq!((summary.failed, failures), (0, vec![]));
    assert_eq!(query(&pintail, "SELECT count(*), count(DISTINCT (day, n)) FROM d", None), ["120|120"]);
    let next = run(&folder.open(), &days("2026-01-13"));
    assert_eq!(next.text(), "", "the store knows all of it");
}

#[test]
fn a_missing_database_is_told_with_the_command_that_makes_it() {
    let server = database();
    let folder = Folder::on_postgres(DAYS, database());
    let pintail = folder.open_changed(false, |project| {
        for lake in project.config.lakes.values_mut() {
            let connection = server.connection_without_password().replace(&server.name, "no such one");
            let connection = connection.replace("dbname=no such one", "dbname='no such one'");
            lake.catalog = Catalog::Postgres { connection, password: Some(SecretString::from(server.password())) };
        }
    });
    let error = pintail.plan(&PlanRequest::default()).unwrap_err();
    let RunnerError::Engine(EngineError::DatabaseMissing { database, command }) = &error else {
        panic!("{error}");
    };
    assert_eq!(database, "no such one");
    assert!(command.starts_with("createdb -h 127.0.0.1 -p ") && command.ends_with(" 'no such one'"), "{command}");
}

#[test]
fn a_reader_with_a_role_that_only_reads_can_ask_everything_and_run_nothing() {
    let folder = Folder::on_postgres(DAYS, database());
    run(&folder.open(), &days("2026-01-03")).assert_good();
    let role = format!("reader_{}", folder.database_sql("SELECT current_database()"));
    folder.database_sql(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'r e''ad'; GRANT USAGE ON SCHEMA public, pintail TO {role};
         GRANT SELECT ON ALL TABLES IN SCHEMA public, pintail TO {role}"
    ));
    let as_reader = |project: &mut pintail_runner::workspace::Project| {
        for lake in project.config.lakes.values_mut() {
            let Catalog::Postgres { connection, .. } = &lake.catalog else { panic!("it lies on Postgres") };
            let connection = connection.replace("user=postgres", &format!("user={role}"));
            lake.reader =
                Some(Catalog::Postgres { connection, password: Some(SecretString::from("r e'ad".to_owned())) });
        }
    };
    let reader = folder.open_changed(true, as_reader);
    assert_eq!(query(&reader, "SELECT count(*) FROM d", None), ["20"]);
    assert_eq!(reader.preview("d", None, 5).unwrap().row_count(), 5);
    let asset = reader.parse_asset("d").unwrap();
    assert_eq!(reader.history(&asset, 10).unwrap().len(), 2);
    assert!(reader.table(&asset).unwrap().is_some());
    // The same project opened to run goes by the catalog, not by its reader.
    let writer = folder.open_changed(false, as_reader);
    run(&writer, &days("2026-01-04")).assert_good();
    drop((reader, writer));
    folder.database_sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn a_run_that_needs_more_connections_than_the_server_has_says_so_before_it_begins() {
    let folder = Folder::on_postgres(&DAYS.replace("slots = 2", "slots = 200"), database());
    let pintail = folder.open();
    let (plan, seen) = pintail.plan(&days("2026-01-03")).unwrap();
    let error = pintail.run(&plan, &seen, &mut |_| {}).unwrap_err();
    let RunnerError::Engine(EngineError::TooFewConnections { needed, slots, free, limit, .. }) = &error else {
        panic!("{error}");
    };
    assert_eq!((*needed, *slots), (805, 200));
    assert!(free <= limit && *limit < 300, "{error}");
}

#[test]
fn the_database_refuses_another_program_that_expires_a_pinned_snapshot() {
    let folder = Folder::on_postgres(DAYS, database());
    let pintail = folder.open();
    run(&pintail, &days("2026-01-03")).assert_good();
    let lake = pintail.lakes().values().next().unwrap().clone();
    let guard = pintail.block_on(pintail_engine::guard::Guard::open(&lake)).unwrap();
    // The inputs of past runs are pinned as well, and this one is older than they.
    let pinned = pintail_core::id::SnapshotId(0);
    pintail.block_on(guard.hold(pinned, "anna", "the audit", 0, None)).unwrap();
    let expire = "CALL ducklake_expire_snapshots('_pt_w_main', older_than => now() + INTERVAL 1 DAY)";
    let refused = crate::harness::foreign_result(&pintail, expire).unwrap_err().to_string();
    assert!(refused.contains("is pinned by anna (the audit)"), "{refused}");
    assert_eq!(query(&pintail, "SELECT count(*) FROM d", None), ["20"]);
}
