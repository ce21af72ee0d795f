//! Scaffolds: every one checks clean.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{check, run};

const LANGUAGES: [&str; 5] = ["duckdb", "postgres", "python", "typescript", "bash"];
const OUTPUTS: [&str; 5] = ["ducklake", "datatable", "s3_parquet", "s3_object", "none"];

#[test]
fn every_scaffold_checks_clean() {
    let project = Project::empty();
    run(&project, "init").expect_ok();
    project.write(
        "pintail.toml",
        "[datatable.main]\nurl = \"postgres://app@127.0.0.1/app\"\n[object_store.raw]\nurl = \"s3://bucket\"\n",
    );
    for language in LANGUAGES {
        for output in OUTPUTS {
            if language == "postgres" && !matches!(output, "datatable" | "none") {
                run(&project, &format!("new {language} {output} made/{language}_{output}")).expect_code(2);
                continue;
            }
            run(&project, &format!("new {language} {output} made/{language}_{output}")).expect_ok();
            if output != "none" {
                run(&project, &format!("new {language} {output} made/{language}_{output}_p --partitioned")).expect_ok();
            }
        }
    }
    for (language, output) in
        [("duckdb", "ducklake"), ("postgres", "datatable"), ("python", "ducklake"), ("typescript", "ducklake")]
    {
        run(&project, &format!("new {language} {output} keyed_{language} --key a,b")).expect_ok();
    }
    check(
        &project,
        "check --strict",
        expect![[r#"
            exit code 0
            --- stdout
            checked 44 scripts and 1 test file: no mistakes found
            --- stderr
            info[P126]: this version does not run scripts of this language yet (29 times; `check -v` shows where)
            info[P133]: a script that writes nothing does not run (2 times; `check -v` shows where)
        "#]],
    );
}

#[test]
fn every_setting_of_the_new_configuration_can_be_taken_as_it_is() {
    let project = Project::empty();
    run(&project, "init").expect_ok();
    let config = std::fs::read_to_string(project.place("pintail.toml")).unwrap();
    let is_setting = |line: &&str| line.starts_with('[') || line.contains(" = ");
    let settings: Vec<&str> = config.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_setting).collect();
    for section in ["[ingest]", "[consumer.decode]", "[maintain]"] {
        assert!(settings.contains(&section), "{config}");
    }
    project.write("pintail.toml", &settings.join("\n"));
    run(&project, "check --strict").expect_ok();
}

#[test]
fn duckdb_scaffolds_for_the_lake_run() {
    let project = Project::empty();
    run(&project, "init").expect_ok();
    run(&project, "new duckdb ducklake days --partitioned").expect_ok();
    run(&project, "new duckdb ducklake customers --key customer_id").expect_ok();
    let outcome = run(&project, "run --json").expect_ok();
    assert!(outcome.stdout.contains("\"materialized\":3"), "{outcome}");
}

#[test]
fn what_cannot_be_is_refused() {
    let project = Project::empty();
    run(&project, "init").expect_ok();
    check(
        &project,
        "new duckdb ducklake ../x",
        expect![[r#"
        exit code 2
        --- stderr
        error: `../x` cannot be the name of a script
        hint: letters, digits, `_` and `-`, with `/` between folders, and no ending
    "#]],
    );
    check(
        &project,
        "new bash ducklake x --key id",
        expect![[r#"
        exit code 2
        --- stderr
        error: `--key` needs a script whose rows Pintail writes
        hint: such as `pintail new duckdb ducklake <name> --key id`
    "#]],
    );
    check(
        &project,
        "new duckdb none x --partitioned",
        expect![[r#"
        exit code 2
        --- stderr
        error: `--partitioned` needs a script that writes something
    "#]],
    );
    check(
        &project,
        "new duckdb ducklake example",
        expect![[r#"
        exit code 2
        --- stderr
        error: pipelines/example.sql exists; nothing was written
    "#]],
    );
}
