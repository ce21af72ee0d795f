//! Partitioned scripts: which partition a run takes, hints, and backfills.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{check, run};

/// One slot, so that the partitions are made in their order.
const EVENTS: &str = "
//- /pintail.toml
[run]
slots = 1
//- /pipelines/events_daily.sql
-- partitioned daily by=ts start=2026-01-01
-- materialize ducklake://main/events_daily

SELECT ts, n FROM (VALUES
    (TIMESTAMPTZ '2026-01-01 08:00:00+00', 1),
    (TIMESTAMPTZ '2026-01-02 08:00:00+00', 2),
    (TIMESTAMPTZ '2026-01-03 08:00:00+00', 3)
) AS events(ts, n)
WHERE in_partition(ts)
";

#[test]
fn a_backfill_is_half_open_and_resumes_where_it_was() {
    let project = Project::new(EVENTS);
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-03 --dry-run",
        expect![[r#"
            exit code 0
            --- stdout
            events_daily: 2 partitions to make, 2026-01-01 … 2026-01-02

              2026-01-01
              2026-01-02

            no estimate: it has written nothing here yet
        "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-03",
        expect![[r#"
            exit code 0
            --- stdout
            backfill 1 done: 2 done in <time>
            --- stderr
            2 partitions to make
            materialized  events_daily 2026-01-01  1 row, snapshot 2 (<time>)
            materialized  events_daily 2026-01-02  1 row, snapshot 3 (<time>)
        "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-04",
        expect![[r#"
            exit code 0
            --- stdout
            backfill 2 done: 1 done in <time>
            --- stderr
            1 partition to make, 2 up to date
            materialized  events_daily 2026-01-03  1 row, snapshot 4 (<time>)
        "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01 --to 2026-01-04",
        expect![[r#"
        exit code 0
        --- stdout
        nothing to do: 3 partitions are up to date
    "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01-04 --to 2026-01-04",
        expect![[r#"
        exit code 2
        --- stderr
        error: nothing lies from 2026-01-04 to 2026-01-04: the end itself is not included
    "#]],
    );
    check(
        &project,
        "history events_daily",
        expect![[r#"
            exit code 0
            --- stdout
            ducklake://main/events_daily

            snapshot  when (UTC)           result        partition   strategy  rows  inserted  deleted  columns  run
                   4  <when>  materialized  2026-01-03  replace      1         1        0  v1       <id>
                   3  <when>  materialized  2026-01-02  replace      1         1        0  v1       <id>
                   2  <when>  materialized  2026-01-01  replace      1         1        0  v1       <id>
        "#]],
    );
    check(
        &project,
        "show events_daily",
        expect![[r#"
            exit code 0
            --- stdout
            events_daily  pipelines/events_daily.sql

            writes       ducklake://main/events_daily (replace)
            partitioned  daily by=ts start=2026-01-01

            columns
              ts  TIMESTAMP WITH TIME ZONE  (files are partitioned by it: day)
              n   INTEGER

            now: 3 partitions (2026-01-01 … 2026-01-03), 3 rows

            snapshot  when (UTC)           result        partition   strategy  rows  inserted  deleted  columns  run
                   4  <when>  materialized  2026-01-03  replace      1         1        0  v1       <id>
                   3  <when>  materialized  2026-01-02  replace      1         1        0  v1       <id>
                   2  <when>  materialized  2026-01-01  replace      1         1        0  v1       <id>
        "#]],
    );
}

#[test]
fn a_long_backfill_on_two_slots_sums_its_steps_up() {
    let project = Project::new(EVENTS);
    project.replace("pintail.toml", "slots = 1", "slots = 2");
    let outcome = run(&project, "backfill events_daily --from 2026-01-01 --to 2026-01-26").expect_ok();
    assert_eq!(outcome.stdout, "backfill 1 done: 25 done in <time>\n");
    // Two slots may meet at the table's creation; the one that came second says that it wrote again.
    let talk: Vec<&str> = outcome.stderr.lines().filter(|line| !line.contains("written again")).collect();
    assert_eq!(talk, ["25 partitions to make", "25 of 25 partitions"]);
}

#[test]
fn equal_warnings_of_partitions_are_one_line() {
    let project = Project::new(EVENTS);
    project.replace(
        "pipelines/events_daily.sql",
        "\n\nSELECT",
        "\n-- test expression \"n = 2\" severity=warn\n\nSELECT",
    );
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-04",
        expect![[r#"
            exit code 0
            --- stdout
            backfill 1 done: 3 done in <time>
            --- stderr
            3 partitions to make
            materialized  events_daily 2026-01-01  1 row, snapshot 2 (<time>)
            materialized  events_daily 2026-01-02  1 row, snapshot 3 (<time>)
            materialized  events_daily 2026-01-03  1 row, snapshot 3 (<time>)
            warning: events_daily, 2 partitions from 2026-01-01 on: test `expression "n = 2"` found 2 rows; it only warns, so the writes went on
            hint: `pintail show last` has the rows that the tests of the last run warn of
        "#]],
    );
}

#[test]
fn equal_failures_of_partitions_are_shown_once() {
    let project = Project::new(EVENTS);
    project.replace("pipelines/events_daily.sql", "\n\nSELECT", "\n-- test expression \"n = 2\"\n\nSELECT");
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-04",
        expect![[r#"
            exit code 1
            --- stdout
            backfill 1 failed: 1 done, 2 failed in <time>
            --- stderr
            3 partitions to make
            failed        events_daily 2026-01-01  (<time>)
            materialized  events_daily 2026-01-02  1 row, snapshot 2 (<time>)
            failed        events_daily 2026-01-03  (<time>)
            error[P510]: events_daily 2026-01-01: the test `expression "n = 2"`: 1 row fails
             --> pipelines/events_daily.sql:3:4
              |
            3 | -- test expression "n = 2"
              |    ^^^^^^^^^^^^^^^^^^^^^^^
              |
              = note: failed to test the new data
              = note: committed now: nothing of this step is committed; Pintail has not written ducklake://main/events_daily 2026-01-01 yet
              = help: the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again
                ts                         n
                <when>+00:00  1
            error: 1 more partition of events_daily failed in the same way, the last 2026-01-03
            hint: `pintail backfill show 1` names what failed, `pintail backfill retry 1` does the 2 partitions once more
        "#]],
    );
}

#[test]
fn a_partition_that_is_none_says_which_form_is_expected() {
    let project = Project::new(EVENTS);
    check(
        &project,
        "run --partition 2026-13-01",
        expect![[r#"
        exit code 2
        --- stderr
        error: `events_daily`: there is no partition `2026-13-01`: the calendar has no such date
    "#]],
    );
    check(
        &project,
        "plan --partition 2999-01-01",
        expect![[r#"
        exit code 2
        --- stderr
        error: `events_daily`: the partition 2999-01-01 has not begun yet
    "#]],
    );
    check(
        &project,
        "plan --partition 2026-01-02",
        expect![[r#"
        exit code 0
        --- stdout
        #  script        partition   strategy  why
        1  events_daily  2026-01-02  replace   never written

        1 step to do
    "#]],
    );
    check(
        &project,
        "preview events_daily --partition 2026-01-02",
        expect![[r#"
        exit code 0
        --- stdout
        ts                         n
        ────────────────────────────
        <when>+00:00  2
        --- stderr
        (1 row)
    "#]],
    );
}

#[test]
fn missing_partitions_are_named_with_their_command() {
    let project = Project::new(EVENTS);
    let outcome = run(&project, "plan").expect_ok();
    let hint = outcome.stderr.lines().find(|line| line.starts_with("hint:")).unwrap_or_default();
    assert!(hint.contains("(2026-01-01 … "), "{hint}");
    assert!(hint.ends_with("were never written: `pintail backfill events_daily --missing`"), "{hint}");
}

#[test]
fn only_partitioned_scripts_have_backfills() {
    let project = Project::new(crate::SHOP);
    check(
        &project,
        "backfill orders --missing",
        expect![[r#"
        exit code 2
        --- stderr
        error: `orders` has no partitions; `pintail run --select orders` runs it
    "#]],
    );
    check(
        &project,
        "backfill ordrs --missing",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no script `ordrs`; did you mean `orders`?
    "#]],
    );
}
