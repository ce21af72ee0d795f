//! Partitioned scripts: which partition a run takes, hints, and backfills.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{check, run};

const EVENTS: &str = "
//- /pipelines/events_daily.sql
-- partitioned daily by=at start=2026-01-01
-- materialize ducklake://main/events_daily

SELECT at, n FROM (VALUES
    (TIMESTAMPTZ '2026-01-01 08:00:00+00', 1),
    (TIMESTAMPTZ '2026-01-02 08:00:00+00', 2),
    (TIMESTAMPTZ '2026-01-03 08:00:00+00', 3)
) AS events(at, n)
WHERE in_partition(at)
";

#[test]
fn a_backfill_is_half_open_and_resumes_where_it_was() {
    let project = Project::new(EVENTS);
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-03 --dry-run",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-03",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-04",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01 --to 2026-01-04",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "backfill events_daily --from 2026-01-04 --to 2026-01-04",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "history events_daily",
        expect![[r#"
        exit code 0
        --- stdout
        ducklake://main/events_daily has no versions: Pintail never wrote it
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
        partitioned  daily by=at start=2026-01-01
        reads        something unknown: the query of this statement is known only when it runs
        cannot run   it has errors

        it does not exist yet
    "#]],
    );
}

#[test]
fn a_long_backfill_sums_its_steps_up() {
    let project = Project::new(EVENTS);
    check(
        &project,
        "backfill events_daily --from 2026-01-01 --to 2026-01-26",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
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
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "plan --partition 2999-01-01",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "plan --partition 2026-01-02",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
        error: 2 errors in the project; nothing was run
    "#]],
    );
    check(
        &project,
        "preview events_daily --partition 2026-01-02",
        expect![[r#"
        exit code 3
        --- stderr
        error[P202]: this statement gives no rows to keep
         --> pipelines/events_daily.sql:4:1
          |
        4 | SELECT at, n FROM (VALUES
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
        error[P201]: syntax error at or near ","
         --> pipelines/events_daily.sql:4:10
          |
        4 | SELECT at, n FROM (VALUES
          |          ^
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
