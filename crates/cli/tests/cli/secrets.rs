//! No secret of the configuration reaches anything that a command says or keeps.

use std::fs;
use std::path::Path;

use expect_test::expect;
use pintail_testkit::{Outcome, Project, pintail};

/// What every secret holds in the clear.
const CANARY: &str = "canary";

const SECRETS: [(&str, &str); 6] = [
    ("S3_KEY", "canary-key"),
    ("S3_SECRET", "canary'secret/+"),
    ("APP_URL", "postgres://app:canary-app@127.0.0.1:1/app"),
    ("KAFKA_PASSWORD", "canary-kafka"),
    ("API_TOKEN", "canary-token"),
    ("PG_PASSWORD", "canary pg"),
];

/// Every section that holds a secret, and scripts that make the engine repeat one in its errors.
const PROJECT: &str = r#"
//- /pintail.toml
[object_store.raw]
url = "s3://bucket/prefix"
key = "${S3_KEY}"
secret = "${S3_SECRET}"
[datatable.app]
url = "${APP_URL}"
[kafka]
password = "${KAFKA_PASSWORD}"
[vars]
token = "${API_TOKEN}"
[profile.team.lake.main]
catalog = "postgres:host=127.0.0.1 port=1 dbname=lake user=pintail"
password = "${PG_PASSWORD}"
//- /pipelines/good.sql
-- materialize ducklake://main/good
-- test expression "n <> $token"

SELECT length($token)::VARCHAR AS n
//- /pipelines/cast.sql
-- materialize ducklake://main/cast

SELECT ('not a number: ' || $token)::INTEGER AS n
//- /pipelines/said.sql
-- materialize ducklake://main/said

SELECT error('the token is ' || $token) AS n
//- /pipelines/url.sql
-- materialize ducklake://main/url

FROM read_csv('postgres://app:' || $token || '@127.0.0.1:1/app')
//- /pipelines/manual.sql
-- materialize manual ducklake://main/manual

CREATE TABLE manual (n INTEGER);
INSERT INTO manual SELECT ('not a number: ' || $token)::INTEGER
"#;

fn run(project: &Project, line: &str) -> Outcome {
    let command = SECRETS.iter().fold(pintail(project), |command, (name, value)| command.env(name, value));
    command.words(line).run()
}

#[test]
fn no_secret_reaches_an_output_the_store_or_the_guard() {
    let project = Project::new(PROJECT);
    let ran = run(&project, "run -vv");
    assert_eq!(ran.code, Some(1), "{ran}");
    for line in [
        "check -v",
        "check --json",
        "plan",
        "plan --sql --force",
        "plan --sql --force --json",
        "run --json -vv",
        "list --json",
        "graph --json",
        "history",
        "history good --json",
        "show last",
        "show last --sql",
        "show last --sql --json",
        "show good --json",
        "show manual",
        "preview cast",
        "preview said --json",
        "query FROM(SELECT(getvariable('token')))",
        "test",
        "test --json",
        "doctor",
        "doctor --json",
        "state rebuild",
        "--profile team check -v",
        "--profile team doctor",
        "--profile team plan",
    ] {
        let outcome = run(&project, line);
        let said = format!("{}{outcome}", outcome.raw_stdout);
        assert!(!said.contains(CANARY), "pintail {line}\n{said}");
    }
    assert!(!ran.to_string().contains(CANARY), "{ran}");
    assert_eq!(files_with_canary(&project.place(".pintail")), Vec::<String>::new());
}

#[test]
fn a_secret_in_an_error_of_the_engine_is_masked_where_it_stood() {
    let project = Project::new(PROJECT);
    let failed = run(&project, "run --select cast");
    expect![[r#"
        exit code 1
        --- stdout
        run <id> failed: 1 failed in <time>
        --- stderr
        failed        cast  (<time>)
        error: cast: Conversion error: Could not convert string 'not a number: ***' to INT32
         --> pipelines/cast.sql:3:36
          |
        3 | SELECT ('not a number: ' || $token)::INTEGER AS n
          |                                    ^
          |
          = note: failed to stage the query
          = note: committed now: nothing of this step is committed; Pintail has not written ducklake://main/cast yet
        hint: `pintail show last` has the errors, the failing rows and the log
    "#]]
    .assert_eq(&failed.to_string());
}

/// Returns the files below `folder` that hold a secret in the clear.
fn files_with_canary(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the project has run") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            found.extend(files_with_canary(&path));
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes())) {
            found.push(path.display().to_string());
        }
    }
    found
}
