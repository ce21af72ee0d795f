//! Object stores: scripts that read objects, and lakes whose data lie there.

use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Instance, InstanceOptions, ObjectStore, Session};
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::workspace::Environment;
use pintail_testkit::services::{ObjectPrefix, object_prefix};
use secrecy::SecretString;

use crate::harness::{Folder, planned, query, run};

const READER: &str = "//- pipelines/orders.sql
-- materialize ducklake://main/orders
SELECT * FROM read_csv('s3://raw/in/*.csv')
";

fn config(prefix: &ObjectPrefix, lake: &str) -> String {
    format!(
        "//- pintail.toml
{lake}
[object_store.raw]
url = \"{}\"
endpoint = \"{}\"
url_style = \"path\"
use_ssl = false
key = \"${{S3_KEY}}\"
secret = \"${{S3_SECRET}}\"
",
        prefix.url, prefix.endpoint
    )
}

fn environment(prefix: &ObjectPrefix) -> Environment {
    [("S3_KEY", prefix.key.as_str()), ("S3_SECRET", prefix.secret.as_str())].into_iter().collect()
}

/// Another program beside Pintail, which may write to the store.
fn other_program(prefix: &ObjectPrefix) -> (Instance, Session) {
    let vendor = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    let store = ObjectStore {
        name: "raw".to_owned(),
        url: prefix.url.clone(),
        endpoint: Some(prefix.endpoint.clone()),
        region: None,
        url_style: Some("path".to_owned()),
        use_ssl: Some(false),
        key: Some(SecretString::from(prefix.key.clone())),
        secret: Some(SecretString::from(prefix.secret.clone())),
    };
    let extensions = ExtensionFolders(vec![vendor]);
    let instance =
        Instance::open(InstanceOptions { extensions, object_stores: vec![store], ..InstanceOptions::default() })
            .unwrap();
    instance.reach(&prefix.url).unwrap();
    let session = instance.session().unwrap();
    (instance, session)
}

fn put(session: &Session, prefix: &ObjectPrefix, key: &str, rows: &str) {
    let sql = format!("COPY (SELECT * FROM range({rows}) AS t (id)) TO '{}/{key}' (FORMAT csv, HEADER)", prefix.url);
    session.batch("put an object", &sql).unwrap();
}

fn open(folder: &Folder, prefix: &ObjectPrefix) -> Pintail {
    folder.open_with(&environment(prefix))
}

#[test]
fn a_script_reads_the_objects_of_a_store_by_its_name_and_a_new_or_changed_one_makes_it_stale() {
    let prefix = object_prefix();
    let (_instance, session) = other_program(&prefix);
    put(&session, &prefix, "in/a.csv", "0, 3");
    let folder = Folder::new(&format!("{READER}{}", config(&prefix, "")));
    let pintail = open(&folder, &prefix);
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT sum(id) FROM orders", None), ["3"]);
    assert_eq!(planned(&pintail, &PlanRequest::default()), [""; 0], "nothing has changed");

    put(&session, &prefix, "in/b.csv", "100, 101");
    assert_eq!(planned(&pintail, &PlanRequest::default()).len(), 1, "an object came");
    run(&pintail, &PlanRequest::default()).assert_good();
    put(&session, &prefix, "in/b.csv", "1000, 1001");
    assert_eq!(planned(&pintail, &PlanRequest::default()).len(), 1, "an object has changed");
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT sum(id) FROM orders", None), ["1003"]);
    assert_eq!(planned(&open(&folder, &prefix), &PlanRequest::default()), [""; 0]);
}

#[test]
fn the_data_of_a_lake_lie_in_the_store_whose_url_is_their_prefix() {
    let prefix = object_prefix();
    let lake = format!("[lake.main]\ndata = \"{}/lake\"", prefix.url);
    let folder = Folder::new(&format!(
        "//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT 7 AS n\n{}",
        config(&prefix, &lake)
    ));
    let pintail = open(&folder, &prefix);
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT n FROM a", None), ["7"]);
    let (_instance, session) = other_program(&prefix);
    let sql = format!("SELECT count(*) FROM glob('{}/**/*.parquet')", prefix.url);
    let objects: i64 = session.one("count the objects", &sql, |row| row.get(0)).unwrap();
    assert!(0 < objects, "the rows lie there");
}

#[test]
fn case_u81_the_keys_of_a_store_never_reach_an_error_or_a_record() {
    let prefix = object_prefix();
    let folder = Folder::new(&format!("{READER}{}", config(&prefix, "")));
    let wrong = ObjectPrefix { secret: "canary-of-the-secret".to_owned(), ..prefix.clone() };
    let pintail = folder.open_with(&environment(&wrong));
    let told = match pintail.plan(&PlanRequest::default()) {
        Err(error) => pintail_runner::with_sources(&error),
        Ok((plan, seen)) => crate::harness::run_plan(&pintail, &plan, &seen).text(),
    };
    assert!(!told.contains("canary") && !told.contains(&prefix.key), "{told}");
    assert!(told.contains("403") || told.to_lowercase().contains("forbidden"), "{told}");
}

#[test]
fn data_in_no_store_and_an_unknown_store_are_told_with_what_there_is() {
    let prefix = object_prefix();
    let folder = Folder::new(&format!(
        "//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT 7 AS n\n{}",
        config(&prefix, "[lake.main]\ndata = \"s3://elsewhere/lake\"")
    ));
    let told = run(&open(&folder, &prefix), &PlanRequest::default());
    let failure = told.failure("a");
    assert_eq!(failure.code.as_str(), "P527");
    assert!(failure.message.starts_with("s3://elsewhere/lake/ lies in no object store"), "{}", failure.message);
    assert!(failure.message.contains("`raw`"), "{}", failure.message);

    let folder =
        Folder::new("//- pipelines/a.sql\n-- materialize ducklake://main/a\nFROM read_csv('s3://rwa/x.csv')\n");
    assert_eq!(folder.check(), ["Error P014 pipelines/a.sql:2 there is no object store `rwa`"]);
}
