//! What upkeep, health and audit say.

use expect_test::expect;
use pintail_testkit::{Project, pintail};

const PROJECT: &str = r#"
//- /pintail.toml
[run]
keep_runs = 0
keep_days = 0
//- /pipelines/days.sql
-- partitioned daily start=2020-01-01
-- retention 100d
-- materialize ducklake://main/days
SELECT $partition AS day, i FROM range(3) t(i)
//- /pipelines/total.sql
-- materialize ducklake://main/total
SELECT 1 AS n
"#;

fn text(project: &Project, words: &str) -> String {
    let outcome = pintail(project).words(words).run().to_string();
    let age = regex::Regex::new(r"\d+(\.\d+)? (ms|s|min)( \d+ s)? old").expect("it is one");
    let bytes = regex::Regex::new(r"\d+(\.\d+)? (B|kB|MB)").expect("it is one");
    let text = age.replace_all(&outcome, "<age> old").into_owned();
    bytes.replace_all(&text, "<bytes>").into_owned()
}

#[test]
fn slices_whose_time_is_over_files_and_consumers_are_told() {
    let project = Project::new(PROJECT);
    pintail(&project).words("run --select total").run().expect_ok();
    pintail(&project).words("run --select days --partition 2020-01-01").run().expect_ok();
    expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/days: 1 slice (2020-01-01) would go: their time is over
        lake main: 0 snapshots would go, 4 stay (3 young)
    "#]]
    .assert_eq(&text(&project, "maintain --dry-run"));
    expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/days: 1 slice (2020-01-01) went with 3 rows: their time is over
        lake main: 4 snapshots went, 1 stay (0 young); <bytes> of files are free then
    "#]]
    .assert_eq(&text(&project, "maintain --keep 0s"));
    expect![[r#"
        exit code 0
        --- stdout
        lake main: 2 snapshots, 4 (<time> old) to 5 (<time> old)
        19 files, <bytes>; <bytes> more only for older snapshots; 1 file still to be deleted

        table                files   bytes  small, to merge  rows  deleted
        main.total               1   <bytes>                0     1        0
        _pintail, 18 tables     18  <bytes>                0    38        0

        nothing deserves attention
    "#]]
    .assert_eq(&text(&project, "lake health"));
    expect![[r#"
        exit code 0
        --- stdout
        lake main at snapshot 5: clean (files, rows, stamps, pins, consumers, decoded)
    "#]]
    .assert_eq(&text(&project, "audit"));
}
