//! Backfill jobs: what they say, and how people look after them.

use expect_test::expect;
use pintail_testkit::{Project, pintail};

use crate::{check, run};

/// Fails on every second day; one slot, so that the partitions are made in their order, and a timeout, so that each has a
/// commit of its own however fast they are staged.
const SOME_FAIL: &str = "
//- /pintail.toml
[run]
slots = 1
//- /pipelines/d.sql
-- partitioned daily by=ts start=2026-01-01
-- materialize ducklake://main/d
-- timeout 10m

SELECT $partition_start AS ts, CASE WHEN day($partition_start) % 2 = 0 THEN error('a bad day') ELSE '1' END AS n
";

#[test]
fn there_is_no_job_yet() {
    let project = Project::new(SOME_FAIL);
    check(
        &project,
        "backfill list",
        expect![[r#"
        exit code 0
        --- stdout
        there was no backfill yet
    "#]],
    );
    check(
        &project,
        "backfill show last",
        expect![[r#"
        exit code 2
        --- stderr
        error: there was no backfill yet
    "#]],
    );
    check(
        &project,
        "backfill resume 7",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no backfill 7; `pintail backfill list` lists them
    "#]],
    );
    check(
        &project,
        "backfill cancel seven",
        expect![[r#"
        exit code 2
        --- stderr
        error: `seven` is no job: expected its number, or `last`
        hint: `pintail backfill list` lists the jobs
    "#]],
    );
    check(
        &project,
        "backfill",
        expect![[r#"
        exit code 2
        --- stderr
        error: the following required arguments were not provided:
          <SCRIPT>

        Usage: pintail backfill <SCRIPT>

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn a_job_that_failed_is_shown_and_retried() {
    let project = Project::new(SOME_FAIL);
    check(
        &project,
        "backfill d --from 2026-01-01 --to 2026-01-06",
        expect![[r#"
            exit code 1
            --- stdout
            backfill 1 failed: 3 done, 2 failed in <time>
            --- stderr
            5 partitions to make
            materialized  d 2026-01-01  1 row, snapshot 2 (<time>)
            failed        d 2026-01-02  (<time>)
            materialized  d 2026-01-03  1 row, snapshot 3 (<time>)
            failed        d 2026-01-04  (<time>)
            materialized  d 2026-01-05  1 row, snapshot 4 (<time>)
            error: d 2026-01-02: Invalid Input error: a bad day
             --> pipelines/d.sql:5:1
              |
            5 | SELECT $partition_start AS ts, CASE WHEN day($partition_start) % 2 = 0 THEN error('a bad day') ELSE '1' END AS n
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: failed to stage the query
              = note: committed now: ducklake://main/d 2026-01-02 is as it was before this run; nothing of this step is committed
            error: 1 more partition of d failed in the same way, the last 2026-01-04
            hint: `pintail backfill show 1` names what failed, `pintail backfill retry 1` does the 2 partitions once more
        "#]],
    );
    check(
        &project,
        "backfill list",
        expect![[r#"
        exit code 0
        --- stdout
        job  script  state   done  failed  of  began (UTC)          asked for
          1  d       failed     3       2   5  <when>  --from 2026-01-01 --to 2026-01-06
        --- stderr
        hint: `pintail backfill show <job>` tells all of one, `pintail backfill show last` of the newest
    "#]],
    );
    check(
        &project,
        "backfill show 1",
        expect![[r#"
        exit code 0
        --- stdout
        backfill 1 of d: failed

        partitions 5, 2026-01-01 … 2026-01-05
        asked for  --from 2026-01-01 --to 2026-01-06
        began      <when> UTC
        ended      <when> UTC
        now        3 done, 2 failed

        failed      run                                   why
        2026-01-02  <id>  Invalid Input error: a bad day
        2026-01-04  <id>  Invalid Input error: a bad day
        --- stderr
        hint: `pintail backfill retry 1` does what failed once more
    "#]],
    );
    project.replace("pipelines/d.sql", "error('a bad day')", "'2'");
    check(
        &project,
        "backfill retry last",
        expect![[r#"
            exit code 0
            --- stdout
            backfill 1 done: 5 done in <time>
            --- stderr
            3 of 5 partitions have ended before
            materialized  d 2026-01-02  1 row, snapshot 5 (<time>)
            materialized  d 2026-01-04  1 row, snapshot 6 (<time>)
        "#]],
    );
    check(
        &project,
        "backfill resume 1",
        expect![[r#"
        exit code 2
        --- stderr
        error: backfill 1: nothing of it is left to do
    "#]],
    );
    check(
        &project,
        "backfill cancel 1",
        expect![[r#"
        exit code 0
        --- stdout
        backfill 1: had ended before: done
    "#]],
    );
    check(
        &project,
        "backfill d --from 2026-01-01 --to 2026-01-09 --stale",
        expect![[r#"
            exit code 0
            --- stdout
            backfill 2 done: 3 done in <time>
            --- stderr
            3 partitions to make
            materialized  d 2026-01-01  1 row, 1 deleted, snapshot 7 (<time>)
            materialized  d 2026-01-03  1 row, 1 deleted, snapshot 8 (<time>)
            materialized  d 2026-01-05  1 row, 1 deleted, snapshot 9 (<time>)
        "#]],
    );
}

#[test]
fn a_job_speaks_json() {
    let project = Project::new(SOME_FAIL);
    check(
        &project,
        "backfill d --from 2026-01-01 --to 2026-01-04 --dry-run --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "script": "d",
          "partitions": 3,
          "up_to_date": 0,
          "ranges": [
            {
              "first": "2026-01-01",
              "last": "2026-01-03"
            }
          ],
          "first": [
            "2026-01-01",
            "2026-01-02",
            "2026-01-03"
          ],
          "estimate": null,
          "unwritten_upstream": [],
          "interrupted": []
        }
    "#]],
    );
    let outcome = run(&project, "backfill d --from 2026-01-01 --to 2026-01-03 --json");
    let first_and_last: Vec<&str> = outcome
        .stdout
        .lines()
        .enumerate()
        .filter_map(|(at, line)| (at == 0 || line.contains("backfill_finished")).then_some(line))
        .collect();
    expect![[r#"
        {"event":"backfill_started","backfill":1,"partitions":2,"ended":0}
        {"event":"backfill_finished","backfill":1,"state":"failed","partitions":2,"done":1,"failed":1,"left":0,"reason":null,"failures":[{"partition":"2026-01-02","run":"<id>","error":"Invalid Input error: a bad day"}],"seconds":<seconds>}"#]].assert_eq(&first_and_last.join("\n"));
    check(
        &project,
        "backfill show 1 --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "backfill": 1,
          "script": "d",
          "asset": "ducklake://main/d",
          "state": "failed",
          "asked_for": "--from 2026-01-01 --to 2026-01-03",
          "upstream": false,
          "force": false,
          "concurrency": null,
          "partitions": 2,
          "done": 1,
          "failed": 1,
          "running": 0,
          "stopped": 0,
          "queued": 0,
          "began": "<when>",
          "ended": "<when>",
          "reason": null,
          "failures": [
            {
              "partition": "2026-01-02",
              "run": "<id>",
              "error": "Invalid Input error: a bad day"
            }
          ]
        }
    "#]],
    );
}

#[test]
fn what_is_missing_upstream_is_named_with_its_command() {
    let project = Project::new(
        "
//- /pipelines/up.sql
-- partitioned daily by=ts
-- materialize ducklake://main/up
SELECT $partition_start AS ts, 1 AS n
//- /pipelines/down.sql
-- partitioned daily by=ts
-- materialize ducklake://main/down
SELECT * FROM up WHERE in_partition(ts)
",
    );
    check(
        &project,
        "backfill down --from 2026-01-01 --to 2026-02-01 --dry-run",
        expect![[r#"
        exit code 0
        --- stdout
        down: 31 partitions to make, 2026-01-01 … 2026-01-31

          2026-01-01
          2026-01-02
          2026-01-03
          … 28 more

        no estimate: it has written nothing here yet
        --- stderr
        warning: 31 partitions of `up`, which it reads, were never written
        hint: `pintail backfill down --from 2026-01-01 --to 2026-02-01 --upstream` makes them first
    "#]],
    );
    let outcome = run(&project, "backfill down --from 2026-01-01 --to 2026-01-03 --upstream").expect_ok();
    assert_eq!(outcome.stdout, "backfill 1 done: 2 done in <time>\n");
    check(
        &project,
        "backfill down --from 2026-01-01 --to 2026-01-03 --force --dry-run",
        expect![[r#"
            exit code 0
            --- stdout
            down: 2 partitions to make, 2026-01-01 … 2026-01-02

              2026-01-01
              2026-01-02

            about <time>: <time> each by the median of the last 2, 2 at once
        "#]],
    );
}

#[test]
fn ctrl_c_leaves_a_job_that_can_be_resumed() {
    let project = Project::new(&SOME_FAIL.replace("error('a bad day')", "'2'"));
    let folder = project.place("faults");
    std::fs::create_dir(&folder).unwrap();
    let command = "backfill d --from 2026-01-01 --to 2026-01-04";
    let running = pintail(&project).words(command).fault(&format!("written=pause:{}", folder.display())).start();
    running.wait_for(&folder.join("written.reached"));
    running.signal("INT");
    running.wait_for_talk("stopping");
    std::fs::write(folder.join("written.release"), "").unwrap();
    let outcome = running.finish();
    assert_eq!(outcome.stdout, "backfill 1 was stopped: 3 left in <time>\n");
    // What has not begun may end before or after what is under way.
    let mut talk: Vec<&str> = outcome.stderr.lines().collect();
    talk.sort_unstable();
    expect![[r#"
        3 partitions to make
        hint: what is written stays written; `pintail backfill resume 1` does what is left
        stopped       d 2026-01-01  (<time>)
        stopped       d 2026-01-02
        stopped       d 2026-01-03
        stopping: what is not committed is rolled back; again to exit at once"#]]
    .assert_eq(&talk.join("\n"));
    check(
        &project,
        "backfill resume 1",
        expect![[r#"
            exit code 0
            --- stdout
            backfill 1 done: 3 done in <time>
            --- stderr
            materialized  d 2026-01-01  1 row, snapshot 2 (<time>)
            materialized  d 2026-01-02  1 row, snapshot 3 (<time>)
            materialized  d 2026-01-03  1 row, snapshot 4 (<time>)
        "#]],
    );
}
