//! Files as targets, under volumes and in a real S3 server: published whole or not at all.

use std::path::PathBuf;

use pintail_core::diagnostic::Code;
use pintail_core::id::LakeName;
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;
use pintail_testkit::services::object_prefix;

use crate::harness::{Folder, at, force, planned, run};
use crate::processes::{Pause, Work, open};

const POINTS: [&str; 6] = ["staged", "checked", "written", "stamped", "committed", "remembered"];

fn files(folder: &Folder, below: &str) -> Vec<String> {
    let root = folder.path().join(below);
    let mut found: Vec<PathBuf> = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().filter_map(Result::ok) {
            match entry.path().is_dir() {
                true => open.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    let mut names: Vec<String> =
        found.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect();
    names.sort();
    names
}

fn assert_store_agrees(pintail: &Pintail, place: &str) {
    let place = LakeName(place.to_owned());
    let remembered = pintail.block_on(pintail.store().state_fingerprint(&place)).unwrap();
    assert!(!remembered.is_empty());
    pintail.rebuild_state().unwrap();
    assert_eq!(pintail.block_on(pintail.store().state_fingerprint(&place)).unwrap(), remembered);
}

#[test]
fn a_file_under_a_volume_is_written_read_and_rebuilt() {
    let folder = Folder::new(
        "//- pipelines/out.sql\n-- materialize volume://project/out/orders.parquet\nSELECT 1 AS n\n//- pipelines/back.sql\n-- materialize ducklake://main/back\nSELECT n FROM 'out/orders.parquet'\n",
    );
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT n FROM back"), ["1"]);
    assert_eq!(folder.run_all().steps.len(), 0);
    folder.write("//- pipelines/out.sql\n-- materialize volume://project/out/orders.parquet\nSELECT 2 AS n\n");
    assert_eq!(folder.run_all().assert_good().steps.len(), 2);
    assert_eq!(folder.query("SELECT n FROM back"), ["2"]);
    assert_eq!(files(&folder, "out"), ["orders.parquet"]);
    assert_store_agrees(&folder.open(), "volume://project");
}

#[test]
fn partitions_are_hive_keys_that_read_back_as_they_were() {
    let folder = Folder::new(
        "//- pipelines/out.sql\n-- partitioned hourly tz=Europe/Berlin start=2026-01-01\n-- materialize volume://project/out/hour={partition}/part.parquet\nSELECT $partition AS hour_text\n",
    );
    folder.run(&at("2026-01-01T09+0100")).assert_good();
    assert_eq!(files(&folder, "out"), ["hour=2026-01-01T09%2B0100/part.parquet"]);
    let read = "SELECT hour = hour_text FROM read_parquet('out/*/part.parquet', hive_partitioning => true, hive_types => {'hour': VARCHAR})";
    assert_eq!(folder.query(read), ["true"]);
    assert_store_agrees(&folder.open(), "volume://project");
}

#[test]
fn a_lost_file_is_missing_and_is_written_anew() {
    let folder = Folder::new(
        "//- pipelines/out.sql\n-- partitioned daily start=2026-01-01\n-- materialize volume://project/out/day={partition}/p.parquet\nSELECT 1 AS n\n",
    );
    for day in ["2026-01-01", "2026-01-02"] {
        folder.run(&at(day)).assert_good();
    }
    std::fs::remove_file(folder.path().join("out/day=2026-01-01/p.parquet")).unwrap();
    assert_eq!(planned(&folder.open(), &at("2026-01-01")), ["out 2026-01-01: never written"]);
    assert_eq!(planned(&folder.open(), &at("2026-01-02")), Vec::<String>::new());
    folder.run(&at("2026-01-01")).assert_good();
    assert_eq!(files(&folder, "out").len(), 2);
}

#[test]
fn a_failed_test_or_guard_leaves_the_old_file() {
    let script = |options: &str, query: &str| {
        format!(
            "//- pipelines/out.sql\n-- materialize volume://project/out/t.parquet{options}\n-- test unique n\n{query}\n"
        )
    };
    let folder = Folder::new(&script("", "SELECT 1 AS n"));
    folder.run_all().assert_good();
    let before = std::fs::read(folder.path().join("out/t.parquet")).unwrap();
    folder.write(&script("", "SELECT 1 AS n FROM range(2)"));
    assert_eq!(folder.run_all().failure("out").code, Code::TEST_FAILED);
    folder.write(&script("", "SELECT 1 AS n WHERE false"));
    assert_eq!(folder.run_all().failure("out").code, Code::EMPTY_REPLACE);
    folder.write(&script("", "SELECT 1 AS other_name, 1 AS n"));
    assert_eq!(folder.run_all().failure("out").code, Code::SCHEMA_CHANGED);
    assert_eq!(std::fs::read(folder.path().join("out/t.parquet")).unwrap(), before);
    assert_eq!(files(&folder, "out"), ["t.parquet"]);
    folder.write(&script(" allow_empty", "SELECT 1 AS n WHERE false"));
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT count(*) FROM 'out/t.parquet'"), ["0"]);
}

#[test]
fn a_file_of_somebody_else_is_not_overwritten() {
    let folder = Folder::new(
        "//- pipelines/out.sql\n-- materialize volume://project/out/t.parquet\nSELECT 1 AS n\n//- out/t.parquet\ntheirs\n",
    );
    assert_eq!(folder.run_all().failure("out").code, Code::TARGET_NOT_OURS);
    assert_eq!(std::fs::read_to_string(folder.path().join("out/t.parquet")).unwrap(), "theirs\n");
}

#[test]
fn a_process_killed_at_any_point_leaves_the_old_file_or_the_new_one() {
    let script =
        |n: usize| format!("//- pipelines/out.sql\n-- materialize volume://project/out/t.parquet\nSELECT {n} AS n\n");
    let folder = Folder::new(&script(0));
    Work::run().start(folder.path()).done();
    for (n, point) in POINTS.iter().enumerate() {
        folder.write(&script(n + 1));
        Work::run().faults(format!("{point}=kill")).start(folder.path()).killed();
        let is_published = matches!(*point, "committed" | "remembered");
        let there = if is_published { n + 1 } else { n };
        assert_eq!(folder.query("SELECT n FROM 'out/t.parquet'"), [there.to_string()], "killed at {point}");
        let told = run(&open(folder.path(), ""), &PlanRequest::default());
        assert_eq!(told.steps.len(), usize::from(!is_published), "killed at {point}: {}", told.text());
        told.assert_good();
        assert_eq!(folder.query("SELECT n FROM 'out/t.parquet'"), [(n + 1).to_string()], "killed at {point}");
        assert_eq!(files(&folder, "out"), ["t.parquet"], "killed at {point}: something is left behind");
    }
    assert_store_agrees(&open(folder.path(), ""), "volume://project");
}

#[test]
fn two_processes_write_one_file_one_after_the_other() {
    let folder = Folder::new("//- pipelines/out.sql\n-- materialize volume://project/out/t.parquet\nSELECT 1 AS n\n");
    let pause = Pause::at("written");
    let mut slow = Work::run().faults(pause.fault()).start(folder.path());
    slow.reaches(&pause.reached());
    let told = Work::run().force().faults("patience=200").start(folder.path()).done();
    assert!(told[0].contains("has been writing"), "{told:?}");
    pause.release();
    assert_eq!(slow.done(), ["out: Materialized"]);
}

#[test]
fn what_a_file_cannot_be_is_said_at_its_place() {
    let folder = Folder::new(
        "//- pipelines/a.sql\n-- materialize volume://project/a.csv\nSELECT 1 AS n\n//- pipelines/b.sql\n-- materialize volume://project/b.parquet key=n\nSELECT 1 AS n\n//- pipelines/c.sql\n-- partitioned daily\n-- materialize volume://project/c.parquet\nSELECT 1 AS n\n//- pipelines/d.sql\n-- materialize s3://nowhere/d.parquet\nSELECT 1 AS n\n//- pipelines/e.sql\n-- materialize manual volume://project/e.parquet\nSELECT 1 AS n\n",
    );
    expect_test::expect![[r#"
        Error P548 pipelines/a.sql:1 only Parquet files are written
        Error P548 pipelines/b.sql:1 `key=` does not apply: a file is always written whole
        Error P548 pipelines/c.sql:2 every partition would write the same file
        Warning P549 pipelines/d.sql:1 there is no object store `nowhere`"#]]
    .assert_eq(&folder.check().join("\n"));
}

/// A project with the object store `raw` under a prefix of its own.
fn store(files: &str) -> Folder {
    let prefix = object_prefix();
    let folder = Folder::new(&format!(
        "//- pintail.toml\n[object_store.raw]\nurl = \"{}\"\nendpoint = \"{}\"\nuse_ssl = false\nurl_style = \"path\"\nregion = \"us-east-1\"\nkey = \"${{S3_KEY}}\"\nsecret = \"${{S3_SECRET}}\"\n//- test.env\nS3_KEY={}\nS3_SECRET={}\n",
        prefix.url, prefix.endpoint, prefix.key, prefix.secret
    ));
    folder.write(files);
    folder
}

#[test]
fn an_object_is_published_replaced_and_rebuilt_from_itself() {
    let script = |n: usize| format!("//- pipelines/out.sql\n-- materialize s3://raw/a/t.parquet\nSELECT {n} AS n\n");
    let folder = store(&script(1));
    let told = folder.run_all();
    assert_eq!(told.assert_good().step("out").rows, Some(1));
    assert_eq!(folder.run_all().steps.len(), 0);
    folder.write(&script(2));
    assert_eq!(folder.run_all().assert_good().step("out").changed, (1, 1));
    folder.run(&force("out")).assert_good();
    assert_store_agrees(&folder.open(), "s3://raw");
}

#[test]
fn objects_of_partitions_have_hive_keys_and_are_found_by_a_rebuild() {
    let folder = store(
        "//- pipelines/out.sql\n-- partitioned hourly tz=Europe/Berlin start=2026-01-01\n-- materialize s3:///h/hour={partition}/p.parquet\nSELECT 1 AS n\n",
    );
    for hour in ["2026-01-01T09+0100", "2026-01-01T10+0100"] {
        folder.run(&at(hour)).assert_good();
    }
    assert_store_agrees(&folder.open(), "s3://");
}

#[test]
fn a_kill_between_the_steps_leaves_a_whole_object() {
    let script = |n: usize| format!("//- pipelines/out.sql\n-- materialize s3://raw/t.parquet\nSELECT {n} AS n\n");
    let folder = store(&script(0));
    Work::run().start(folder.path()).done();
    for (n, point) in POINTS.iter().enumerate() {
        folder.write(&script(n + 1));
        Work::run().faults(format!("{point}=kill")).start(folder.path()).killed();
        let is_published = matches!(*point, "committed" | "remembered");
        let told = run(&open(folder.path(), ""), &PlanRequest::default());
        assert_eq!(told.steps.len(), usize::from(!is_published), "killed at {point}: {}", told.text());
        told.assert_good();
    }
    assert_eq!(files(&folder, ".pintail/tmp/objects"), Vec::<String>::new());
    assert_store_agrees(&open(folder.path(), ""), "s3://raw");
}

#[test]
fn a_lake_an_object_and_a_lake_are_one_chain_in_one_run() {
    let script = |n: usize| {
        format!(
            "//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT {n} AS n\n//- pipelines/b.sql\n-- materialize s3://raw/b.parquet\nSELECT n + 1 AS n FROM a\n//- pipelines/c.sql\n-- materialize ducklake://main/c\nSELECT n + 1 AS n FROM read_parquet('s3://raw/*.parquet')\n"
        )
    };
    let folder = store(&script(1));
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT n FROM c"), ["3"]);
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), Vec::<String>::new());
    folder.write(&script(10));
    assert_eq!(folder.run_all().assert_good().steps.len(), 3);
    assert_eq!(folder.query("SELECT n FROM c"), ["12"]);
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), Vec::<String>::new());
    // Of another size, because the store tells times to the second.
    folder.write("//- pipelines/b.sql\n-- materialize s3://raw/b.parquet\nSELECT (n + i)::INTEGER AS n FROM a, range(1, 500) r(i)\n");
    folder.run(&force("b")).assert_good();
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), ["c: s3://raw/*.parquet changed"]);
}
