//! What a person sees of steps that change nothing, and of a history.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{check, run};

/// A table that compares first, a history of it, and a report that is due only after them. One slot, so that steps end
/// in their order.
fn project() -> Project {
    let project = Project::empty();
    project.write("pintail.toml", "[run]\nslots = 1\n");
    project.write("data/plans.csv", "id,plan\n1,free\n2,pro\n");
    project.write(
        "pipelines/plans.sql",
        "-- materialize ducklake://main/plans if_changed\nSELECT * FROM read_csv('data/plans.csv')\n",
    );
    project.write(
        "pipelines/plans_history.sql",
        "-- materialize history ducklake://main/plans_history key=id\nSELECT * FROM plans\n",
    );
    project.write("pipelines/report.sql", "-- materialize ducklake://main/report\nSELECT count(*) AS n FROM plans\n");
    project
}

#[test]
fn a_run_says_what_did_not_change_and_what_therefore_did_not_run() {
    let project = project();
    check(
        &project,
        "run",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 3 materialized in <time>
        --- stderr
        materialized  plans          2 rows, snapshot 2 (<time>)
        materialized  plans_history  2 rows, snapshot 3 (<time>)
        materialized  report         1 row, snapshot 4 (<time>)
    "#]],
    );
    project.write("data/plans.csv", "id,plan\n2,pro\n1,free\n");
    check(
        &project,
        "run",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 3 unchanged in <time>
        --- stderr
        unchanged     plans          2 rows, snapshot 2 (<time>)
        unchanged     plans_history  nothing before it has changed anything
        unchanged     report         nothing before it has changed anything
    "#]],
    );
    check(
        &project,
        "run --select plans_history --force",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 1 unchanged in <time>
        --- stderr
        unchanged     plans_history  2 rows, snapshot 3 (<time>)
    "#]],
    );
    check(
        &project,
        "history plans_history",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/plans_history

        snapshot  when (UTC)           result        strategy  rows  inserted  deleted  columns  run
               3  <when>  unchanged     history      2         0        0  v1       <id>
               3  <when>  materialized  history      2         2        0  v1       <id>
    "#]],
    );
    check(
        &project,
        "show last",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded
          command   run --select plans_history --force
          started   <when> UTC
          time      <time>
          reads     main at 4

        script         partition  result     rows  snapshot  attempts  why     time
        plans_history  -          unchanged     2         3         1  forced  <time>

        plans_history
          phases: lease <time>, pin <time>, stage <time>, guard <time>, test <time>, compare <time>
    "#]],
    );
    check(
        &project,
        "run",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: 3 steps are up to date
    "#]],
    );
}

#[test]
fn a_history_says_how_many_versions_began_and_ended() {
    let project = project();
    run(&project, "run").expect_ok();
    project.write("data/plans.csv", "id,plan\n1,pro\n2,pro\n3,free\n");
    check(
        &project,
        "run",
        expect![[r#"
        exit code 0
        --- stdout
        run <id> succeeded: 3 materialized in <time>
        --- stderr
        materialized  plans          3 rows, 2 inserted, 1 deleted, snapshot 5 (<time>)
        materialized  plans_history  4 rows, 2 begun, 1 ended, snapshot 6 (<time>)
        materialized  report         1 row, 1 deleted, snapshot 7 (<time>)
    "#]],
    );
    check(
        &project,
        "run --full-refresh",
        expect![[r#"
        exit code 2
        --- stderr
        error: `plans_history` keeps history, which a full refresh would lose; leave it out: `--exclude 'plans_history'`, or drop the table by hand when its history is not wanted any more
    "#]],
    );
}

#[test]
fn machines_are_told_of_unchanged_steps() {
    let project = project();
    run(&project, "run").expect_ok();
    check(
        &project,
        "run --select plans --force --json",
        expect![[r#"
            exit code 0
            --- stdout
            {"event":"started","run":"<id>","steps":[{"step":1,"script":"plans","asset":"ducklake://main/plans","partition":null,"window":null,"strategy":"replace","reason":"forced","after":[]}]}
            {"event":"step_started","step":1}
            {"event":"step_phase","step":1,"phase":"lease"}
            {"event":"step_phase","step":1,"phase":"pin"}
            {"event":"step_phase","step":1,"phase":"stage"}
            {"event":"step_phase","step":1,"phase":"guard"}
            {"event":"step_phase","step":1,"phase":"test"}
            {"event":"step_phase","step":1,"phase":"compare"}
            {"event":"step_phase","step":1,"phase":"test"}
            {"event":"step_finished","step":1,"script":"plans","asset":"ducklake://main/plans","partition":null,"window":null,"strategy":"replace","reason":"forced","after":[],"state":"unchanged","snapshot":2,"rows":2,"tests":[],"notes":[],"seconds":<seconds>,"phases":[{"phase":"lease","seconds":<seconds>},{"phase":"pin","seconds":<seconds>},{"phase":"stage","seconds":<seconds>},{"phase":"guard","seconds":<seconds>},{"phase":"test","seconds":<seconds>},{"phase":"compare","seconds":<seconds>},{"phase":"remember","seconds":<seconds>}]}
            {"event":"finished","run":"<id>","status":"succeeded","materialized":0,"unchanged":1,"superseded":0,"rolled_back":0,"failed":0,"skipped":0,"stopped":0,"up_to_date":0,"unrecorded":null,"seconds":<seconds>}
        "#]],
    );
}
