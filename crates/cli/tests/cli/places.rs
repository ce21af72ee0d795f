//! Projects where people put them, and files as they come: odd folders, moved ones, shared lakes, other line ends.

use std::fs;

use expect_test::expect;
use pintail_testkit::{Outcome, Project, pintail};

use crate::{SHOP, check, run};

/// Runs `pintail` on the project in the folder `place` of `project`.
fn run_in(project: &Project, place: &str, line: &str) -> Outcome {
    pintail(project).arg("--project").arg(project.place(place)).words(line).run()
}

/// Returns the lines of stdout that tell of an asset's versions, without the heading.
fn versions(outcome: &Outcome) -> usize {
    outcome.stdout.lines().filter(|line| line.contains("materialized")).count()
}

#[test]
fn a_project_in_an_odd_folder_works_and_goes_on_after_it_was_moved() {
    let odd = "it's \"größer\" $HOME; a=b";
    let moved = "somewhere else/é";
    let project = Project::new(&SHOP.replace("//- /", &format!("//- /{odd}/")));
    run_in(&project, odd, "run").expect_ok();
    fs::create_dir_all(project.place("somewhere else")).unwrap();
    fs::rename(project.place(odd), project.place(moved)).unwrap();
    let plan = run_in(&project, moved, "plan").expect_ok();
    expect![[r#"
        nothing to do: 2 steps are up to date
    "#]]
    .assert_eq(&plan.stdout);
    run_in(&project, moved, "run --force").expect_ok();
    assert_eq!(versions(&run_in(&project, moved, "history orders").expect_ok()), 2);
    let old = run_in(&project, moved, "query --csv --at 2 FROM/**/orders").expect_ok();
    assert_eq!(old.raw_stdout.lines().count(), 4, "{old}");
}

#[test]
fn windows_line_ends_a_byte_order_mark_and_comments_at_the_end_change_nothing() {
    let project = Project::empty();
    let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    project.write("pintail.toml", &windows("[vars]\ncountry = \"DE\"\n"));
    project.write(
        "pipelines/sales.sql",
        &windows(
            "-- materialize ducklake://main/sales\n-- test unique id,k\n\n\
             SELECT * FROM (VALUES (1, 'a', 3), (1, 'b', 4), (2, 'a', 5)) t(id, k, v) -- done\n;\n-- the end\n/* ; */",
        ),
    );
    project.write(
        "pipelines/wide.sql",
        &windows(
            "-- materialize ducklake://main/wide key=id\n\n\
             PIVOT sales ON k IN ('a', 'b') USING sum(v) GROUP BY id -- last words",
        ),
    );
    run(&project, "check --strict").expect_ok();
    run(&project, "run").expect_ok();
    let wide = pintail(&project).words("query --csv").arg("FROM wide ORDER BY id").run().expect_ok();
    expect![[r#"
        id,a,b
        1,3,4
        2,5,
    "#]]
    .assert_eq(&wide.stdout);
    project.replace("pipelines/sales.sql", "unique id,k", "uniqe id,k");
    project.replace("pipelines/wide.sql", "sum(v)", "sum(v");
    let wrong = run(&project, "check --json").expect_code(3);
    let wrong: serde_json::Value = serde_json::from_str(&wrong.raw_stdout).unwrap();
    let places: Vec<String> = wrong["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            format!("{} {} {}:{}", found["code"], found["path"], found["start"]["line"], found["start"]["column"])
        })
        .collect();
    expect![[r#"
        "P108" "pipelines/sales.sql" 2:9
        "P212" "pipelines/wide.sql" 3:1
        "P201" "pipelines/wide.sql" 3:44"#]]
    .assert_eq(&places.join("\n"));
}

#[test]
fn two_projects_that_share_a_lake_see_each_others_tables_and_versions() {
    let config = "[lake.main]\ncatalog = \"sqlite:../lake/main.sqlite\"\ndata = \"../lake/data\"\n";
    let project = Project::empty();
    project.write("one/pintail.toml", config);
    project.write("two/pintail.toml", config);
    project.write("one/pipelines/a.sql", "-- materialize ducklake://main/a\nSELECT 1 AS n\n");
    project.write("two/pipelines/b.sql", "-- materialize ducklake://main/b\nSELECT n + 1 AS n FROM a\n");
    fs::create_dir_all(project.place("lake")).unwrap();
    run_in(&project, "one", "run").expect_ok();
    run_in(&project, "two", "run").expect_ok();
    assert_eq!(versions(&run_in(&project, "one", "history b").expect_ok()), 1);
    assert_eq!(versions(&run_in(&project, "two", "history a").expect_ok()), 1);
    run_in(&project, "one", "run --force").expect_ok();
    let plan = run_in(&project, "two", "plan").expect_ok();
    let expected = expect![[r#"
        #  script  strategy  why
        1  b       replace   ducklake://main/a changed

        1 step to do
    "#]];
    expected.assert_eq(&plan.stdout);
}

#[test]
fn a_renamed_script_has_nothing_to_do_and_a_deleted_one_leaves_its_table() {
    let project = Project::new(SHOP);
    run(&project, "run").expect_ok();
    fs::rename(project.place("pipelines/revenue.sql"), project.place("pipelines/sums.sql")).unwrap();
    check(
        &project,
        "plan",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: 2 steps are up to date
    "#]],
    );
    fs::remove_file(project.place("pipelines/sums.sql")).unwrap();
    check(
        &project,
        "plan",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: 1 step is up to date
    "#]],
    );
    check(
        &project,
        "show ducklake://main/revenue",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/revenue  (no script of this project writes it)

        columns
          customer  VARCHAR
          revenue   DECIMAL(18,2)

        now: 2 rows

        snapshot  when (UTC)           result        strategy  rows  inserted  deleted  columns  run
               3  <when>  materialized  replace      2         2        0  v1       <id>
    "#]],
    );
    run(&project, "query FROM/**/revenue").expect_ok();
}

#[test]
fn without_its_hidden_folder_a_project_is_as_before_its_first_run() {
    let project = Project::new(SHOP);
    run(&project, "run").expect_ok();
    fs::remove_dir_all(project.place(".pintail")).unwrap();
    assert_eq!(run(&project, "plan").expect_ok().stdout, run(&Project::new(SHOP), "plan").expect_ok().stdout);
    run(&project, "run").expect_ok();
}
