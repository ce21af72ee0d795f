//! A profile that defers to another: it writes schemas of its own and reads what it has not built from the other.

use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, foreign, only, planned, query, run};

const SCRIPTS: &str = "
//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT n, 'prod' AS made_by FROM raw
//- pipelines/b.sql
-- materialize ducklake://main/b
-- test relationships n -> ducklake://main/a.n
SELECT n, made_by FROM a
//- pipelines/c.sql
-- materialize ducklake://main/c
SELECT count(*) AS rows, max(made_by) AS made_by FROM b
";

/// One lake for both profiles.
fn shared() -> Folder {
    Folder::new(&format!("//- pintail.toml\n[profile.prod]\n[profile.dev]\ndefer = \"prod\"\n{SCRIPTS}"))
}

/// A lake for each profile.
fn apart() -> Folder {
    Folder::new(&format!(
        "//- pintail.toml
[profile.prod]
[profile.dev]
defer = \"prod\"
[profile.dev.lake.main]
catalog = \"sqlite:dev/main.sqlite\"
data = \"dev/data\"
{SCRIPTS}"
    ))
}

fn built_by_prod(folder: &Folder) -> Pintail {
    let prod = folder.open_as("prod");
    foreign(&prod, "CREATE TABLE raw AS SELECT 1 AS n");
    run(&prod, &PlanRequest::default()).assert_good();
    prod
}

fn deferred(pintail: &Pintail, request: &PlanRequest) -> Vec<String> {
    let (plan, _) = pintail.plan(request).unwrap();
    plan.deferred.iter().map(|read| format!("{} {} {}", read.script, read.profile, read.asset)).collect()
}

/// Changes the text of `a`, as somebody does who works on it.
fn edit(folder: &Folder) {
    folder.write("//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT n, 'dev' AS made_by FROM raw\n");
}

#[test]
fn what_dev_has_not_built_is_read_from_prod_and_prod_is_never_written() {
    let folder = shared();
    let prod = built_by_prod(&folder);
    edit(&folder);
    let dev = folder.open_as("dev");
    assert_eq!(deferred(&dev, &only("c")), ["c prod ducklake://main/b"]);
    run(&dev, &only("c")).assert_good();
    assert_eq!(query(&dev, "FROM main_dev.c", None), ["1|prod"]);
    // `a` is built, and what read prod's is stale.
    run(&dev, &only("a")).assert_good();
    assert_eq!(deferred(&dev, &only("b")), Vec::<String>::new());
    run(&dev, &only("b+")).assert_good();
    assert_eq!(query(&dev, "FROM main_dev.b", None), ["1|dev"]);
    assert_eq!(query(&dev, "FROM main_dev.c", None), ["1|dev"]);
    assert_eq!(planned(&dev, &PlanRequest::default()), Vec::<String>::new());
    assert_eq!(query(&prod, "FROM main.b", None), ["1|prod"]);
    assert_eq!(query(&prod, "SELECT count(*) FROM main.c", None), ["1"]);
}

#[test]
fn a_whole_run_reads_its_own_tables() {
    let folder = shared();
    built_by_prod(&folder);
    edit(&folder);
    let dev = folder.open_as("dev");
    assert_eq!(deferred(&dev, &PlanRequest::default()), Vec::<String>::new());
    run(&dev, &PlanRequest::default()).assert_good();
    assert_eq!(query(&dev, "FROM main_dev.c", None), ["1|dev"]);
    assert_eq!(query(&dev, "FROM main.c", None), ["1|prod"]);
}

#[test]
fn another_lake_is_read_at_its_own_snapshot() {
    let folder = apart();
    let prod = built_by_prod(&folder);
    edit(&folder);
    let dev = folder.open_as("dev");
    assert_eq!(deferred(&dev, &only("b")), ["b prod ducklake://main/a"]);
    run(&dev, &only("b")).assert_good();
    assert_eq!(query(&dev, "FROM main_dev.b", None), ["1|prod"]);
    assert_eq!(planned(&dev, &only("b")), Vec::<String>::new());
    // A change in prod makes what reads it stale here.
    foreign(&prod, "INSERT INTO raw VALUES (2)");
    run(&folder.open_as("prod"), &only("a")).assert_good();
    assert!(planned(&dev, &only("b"))[0].ends_with("a changed"));
    run(&dev, &only("a")).assert_good();
    run(&dev, &only("b")).assert_good();
    assert_eq!(query(&dev, "SELECT count(*), max(made_by) FROM main_dev.b", None), ["2|dev"]);
    assert_eq!(query(&prod, "SELECT count(*), max(made_by) FROM b", None), ["1|prod"]);
}

#[test]
fn the_store_and_the_names_keep_the_profiles_apart() {
    let folder = shared();
    let prod = built_by_prod(&folder);
    let dev = folder.open_as("dev");
    assert_eq!(dev.parse_asset("ducklake://main/a").unwrap().to_string(), "ducklake://main/main_dev.a");
    assert_eq!(dev.select(Some("ducklake://main/a"), None).unwrap().len(), 1);
    assert_eq!(dev.runs(10).unwrap().len(), 0);
    run(&dev, &only("c")).assert_good();
    assert_eq!(dev.runs(10).unwrap().len(), 1);
    assert_eq!(prod.runs(10).unwrap().len(), 1);
    let history = dev.history(&dev.parse_asset("c").unwrap(), 10).unwrap();
    assert_eq!(history.len(), 1);
}

#[test]
fn a_manual_script_writes_its_own_schema_or_does_not_run() {
    let folder = Folder::new(
        "//- pintail.toml
[profile.prod]
[profile.dev]
defer = \"prod\"
//- pipelines/good.sql
-- materialize manual ducklake://main/good
CREATE TABLE IF NOT EXISTS good (n INTEGER);
DELETE FROM good;
INSERT INTO good VALUES (1);
//- pipelines/bad.sql
-- materialize manual ducklake://main/bad
CREATE TABLE IF NOT EXISTS bad (n INTEGER);
DELETE FROM good_by_others;
",
    );
    let prod = folder.open_as("prod");
    foreign(&prod, "CREATE TABLE good_by_others AS SELECT 1 AS n");
    run(&prod, &only("good")).assert_good();
    foreign(&prod, "INSERT INTO good VALUES (2)");
    let dev = folder.open_as("dev");
    run(&dev, &only("good")).assert_good();
    assert_eq!(query(&dev, "SELECT count(*) FROM main_dev.good", None), ["1"]);
    assert_eq!(query(&dev, "SELECT count(*) FROM main.good", None), ["2"]);
    let (plan, _) = dev.plan(&only("bad")).unwrap();
    assert!(plan.steps.is_empty());
    assert!(format!("{:?}", plan.hints).contains("which no script of the project declares"), "{:?}", plan.hints);
}

#[test]
fn a_target_outside_lakes_is_left_out() {
    let folder = shared();
    folder.write(
        "//- pipelines/out.sql
-- materialize volume://project/out.parquet
SELECT 1 AS n
",
    );
    let (plan, _) = folder.open_as("dev").plan(&only("out")).unwrap();
    assert!(plan.steps.is_empty() && format!("{:?}", plan.hints).contains("would be its own"), "{:?}", plan.hints);
}

#[test]
fn the_current_rows_of_a_history_go_with_the_history() {
    let folder = shared();
    folder.write(
        "//- pipelines/h.sql
-- materialize history ducklake://main/h key=n
SELECT n, 'prod' AS made_by FROM raw
//- pipelines/now.sql
-- materialize ducklake://main/now
SELECT made_by FROM h_current
",
    );
    built_by_prod(&folder);
    let dev = folder.open_as("dev");
    run(&dev, &only("now")).assert_good();
    assert_eq!(query(&dev, "FROM main_dev.now", None), ["prod"]);
    folder.write(
        "//- pipelines/h.sql\n-- materialize history ducklake://main/h key=n\nSELECT n, 'dev' AS made_by FROM raw\n",
    );
    let dev = folder.open_as("dev");
    run(&dev, &only("h+")).assert_good();
    assert_eq!(query(&dev, "FROM main_dev.now", None), ["dev"]);
}

#[test]
fn a_suffix_may_be_chosen_and_must_keep_the_profiles_apart() {
    let folder = shared();
    folder.write("//- pintail.toml\n[profile.prod]\n[profile.dev]\ndefer = \"prod\"\nschema_suffix = \"_ann\"\n");
    built_by_prod(&folder);
    let dev = folder.open_as("dev");
    run(&dev, &only("c")).assert_good();
    assert_eq!(query(&dev, "FROM main_ann.c", None), ["1|prod"]);
    folder.write("//- pintail.toml\n[profile.prod]\n[profile.dev]\ndefer = \"prod\"\nschema_suffix = \"\"\n");
    let project = pintail_runner::workspace::load_project(folder.path(), Some("dev"), &Default::default());
    let messages: Vec<&str> = project.diagnostics.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(messages, ["without a suffix, `dev` would write the tables of `prod`"]);
}
