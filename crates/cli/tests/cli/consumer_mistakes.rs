//! What is wrong with a consumer, in pintail.toml, in a script, or in what it is asked for: said at its place, with what was
//! perhaps meant.

use expect_test::expect;
use pintail_testkit::Project;

use crate::{check, run};

#[test]
fn what_is_wrong_with_a_consumer_is_said_at_its_place() {
    let project = Project::new(
        "//- /pintail.toml\n[consumer.Decode]\nsource = \"ducklake://main/a\"\n[consumer.b]\nsource = \"ducklake://man/a\"
decoder = \"cloudevents-defalt\"\nshards = 2\ngap = \"leap\"\nwindow = 3\n[consumer.c]\nstart = \"begin\"\n",
    );
    check(
        &project,
        "check",
        expect![[r#"
            exit code 3
            --- stdout
            checked 0 scripts and 0 test files: 9 errors, 1 warning
            --- stderr
            warning[P013]: no scripts found
              = help: put one into `pipelines/`, such as `pipelines/orders.sql`
            error[P560]: `Decode` cannot name a consumer: it begins with no lower-case letter
             --> pintail.toml:1:11
              |
            1 | [consumer.Decode]
              |           ^^^^^^
              |
              = help: such as `decode` or `decode-v2`
            error[P560]: `[consumer.b]` has no `by`
             --> pintail.toml:3:11
              |
            3 | [consumer.b]
              |           ^
              |
              = help: add the column by which the shards share the rows, such as `by = "subject"`
            error[P004]: `source` must be a table of a lake that is configured, found `ducklake://man/a`
             --> pintail.toml:4:10
              |
            4 | source = "ducklake://man/a"
              |          ^^^^^^^^^^^^^^^^^^
              |
              = help: did you mean `main`?
            error[P561]: unknown decoder `cloudevents-defalt`
             --> pintail.toml:5:11
              |
            5 | decoder = "cloudevents-defalt"
              |           ^^^^^^^^^^^^^^^^^^^^
              |
              = help: did you mean `cloudevents-default`?
            error[P004]: `gap` must be `stop`, `rescan` or `skip`, found `leap`
             --> pintail.toml:7:7
              |
            7 | gap = "leap"
              |       ^^^^^^
              |
              = help: `stop` leaves it to a person, as without it
            error[P002]: unknown key `window` in [consumer.b]
             --> pintail.toml:8:1
              |
            8 | window = 3
              | ^^^^^^
              |
              = help: it knows `source`, `decoder`, `start`, `gap`, `shards`, `by`, `required`, `stale`, `retention`, `window_rows`, `window_bytes`, `span_snapshots`, `span_rows`, `span_bytes`, `threads`, `time_column`, `signal_types`, `event_types`, `vehicle_chain`, `vehicle_contract`
            error[P560]: `[consumer.c]` has no `source`
             --> pintail.toml:9:11
              |
            9 | [consumer.c]
              |           ^
              |
              = help: add the table that it reads, such as `source = "ducklake://main/raw_events"`
            error[P560]: `[consumer.c]` has no `decoder`
             --> pintail.toml:9:11
              |
            9 | [consumer.c]
              |           ^
              |
              = help: add one of `cloudevents-default`
            error[P004]: `start` must be `earliest`, `head` or a snapshot, found `begin`
              --> pintail.toml:10:9
               |
            10 | start = "begin"
               |         ^^^^^^^
               |
               = help: a consumer that has run before is at its cursor; `pintail consume reset` moves it
        "#]],
    );
    // A command that needs the project says the same, without what is only a warning.
    let (checked, refused) =
        (run(&project, "check").to_string(), run(&project, "consume run c").expect_code(3).to_string());
    let errors = |said: &str| said[said.find("error[").expect("there are errors")..].to_owned();
    assert_eq!(errors(&refused), errors(&checked));
    let good = crate::consumers::project();
    check(
        &good,
        "consume run decoed",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no consumer `decoed`
        hint: did you mean `decode`?
    "#]],
    );
    check(
        &good,
        "consume replay decode --from 2026-06-02 --to 2026-06-01",
        expect![[r#"
        exit code 2
        --- stderr
        error: `--to 2026-06-01` is not after `--from 2026-06-02`
    "#]],
    );
    check(
        &good,
        "consume replay decode --from 1 --to 2026-06-01",
        expect![[r#"
        exit code 2
        --- stderr
        error: `--from` and `--to` must both be moments, or both snapshots
    "#]],
    );
    check(
        &good,
        "consume replay decode --from 1 --to 2",
        expect![[r#"
        exit code 1
        --- stderr
        error: consumer `decode` has never run, so there is nothing to read again
        hint: run `pintail consume run decode` first
    "#]],
    );
    check(
        &good,
        "consume reset decode --to yesterday",
        expect![[r#"
        exit code 2
        --- stderr
        error: invalid value 'yesterday' for '--to <PLACE>': `yesterday` is neither `earliest` nor `head` nor a snapshot

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn what_is_consumed_is_held_against_what_the_project_makes() {
    let project = Project::new(
        "//- /pintail.toml
[consumer.decode]
source = \"ducklake://main/raw_event\"
decoder = \"cloudevents-default\"
[lake.other]
[consumer.shared]
source = \"ducklake://other/raw_events\"
decoder = \"cloudevents-default\"
by = \"subjekt\"
time_column = \"at\"
shards = 2
[ingest]
lake = \"other\"
//- /pipelines/orders.sql
-- materialize ducklake://main/raw_events
-- contract enforced
-- column order_id BIGINT
SELECT 1::BIGINT AS order_id
//- /pipelines/big.sql
-- stream ducklake://main/raw_evens
-- materialize ducklake://main/big append
SELECT order_id FROM changes
",
    );
    check(
        &project,
        "check",
        expect![[r#"
        exit code 3
        --- stdout
        checked 2 scripts and 0 test files: 2 errors, 2 warnings
        --- stderr
        warning[P563]: no script and no `[ingest]` of this project makes `ducklake://main/raw_event`
         --> pintail.toml:2:10
          |
        2 | source = "ducklake://main/raw_event"
          |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: did you mean `ducklake://main/raw_events`?
        error[P564]: `by` names the column `subjekt`, which `ducklake://other/raw_events` does not have
         --> pintail.toml:8:6
          |
        8 | by = "subjekt"
          |      ^^^^^^^^^
          |
          = help: did you mean `subject`?
        error[P564]: `time_column` names the column `at`, which `ducklake://other/raw_events` does not have
         --> pintail.toml:9:15
          |
        9 | time_column = "at"
          |               ^^^^
          |
          = help: it has subject, time, type, id, source, producer, data_content_type, data_version, extras, data, data_base64, data_index_key, voids_id
        warning[P563]: no script and no `[ingest]` of this project makes `ducklake://main/raw_evens`
         --> pipelines/big.sql:1:4
          |
        1 | -- stream ducklake://main/raw_evens
          |    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: did you mean `ducklake://main/raw_events`?
    "#]],
    );
}

#[test]
fn a_column_that_the_changes_do_not_have_is_said_at_its_place_in_the_first_run() {
    let project = Project::new(
        "//- /pipelines/orders.sql
-- materialize ducklake://main/orders
SELECT 1 AS order_id, 20 AS amount
//- /pipelines/big.sql
-- stream ducklake://main/orders start=earliest
-- materialize ducklake://main/big append
SELECT order_id, amont FROM changes
",
    );
    check(
        &project,
        "run",
        expect![[r#"
        exit code 1
        --- stdout
        run <id> failed: 1 materialized, 1 failed in <time>
        --- stderr
        materialized  orders  1 row, snapshot 2 (<time>)
        failed        big     (<time>)
        error: big: Binder error: Referenced column "amont" not found in FROM clause!
         --> pipelines/big.sql:3:18
          |
        3 | SELECT order_id, amont FROM changes
          |                  ^
          |
          = note: failed to stage the query
          = note: committed now: nothing of this step is committed; Pintail has not written ducklake://main/big yet
          = help: near names: amount, snapshot_id, change_type
        hint: `pintail show last` has the errors, the failing rows and the log
    "#]],
    );
}
