//! Who runs a consumer, and what is left when nobody shall any more.

use expect_test::expect;
use pintail_testkit::{pintail, wait_until};

use crate::consumers::{more, project};
use crate::{check, run};

#[test]
fn a_consumer_that_another_process_has_is_an_exit_code_with_its_owner_and_since_when() {
    let project = project();
    more(&project, 0, 3);
    let follower = pintail(&project).words("consume run --follow --poll 1s").start();
    let listed = || run(&project, "consume list --json").to_string();
    wait_until("all is consumed", || listed().contains("\"idle\""));
    check(
        &project,
        "consume run",
        expect![[r#"
        exit code 1
        --- stderr
        error: decode: process <pid> since <when> UTC has it, so nothing was done
        hint: with `--follow`, a consumer is waited for, and taken over when its owner is gone
    "#]],
    );
    let shown = run(&project, "consume show decode").expect_ok().to_string();
    assert!(shown.contains("run by         process <pid> since <when> UTC\n"), "{shown}");
    check(
        &project,
        "consume reset decode",
        expect![[r#"
        exit code 2
        --- stderr
        error: process <pid> since <when> UTC runs `decode`
        hint: stop it first: what it commits would be from the old place
    "#]],
    );
    check(
        &project,
        "consume remove decode --yes",
        expect![[r#"
        exit code 2
        --- stderr
        error: process <pid> since <when> UTC runs `decode`; nothing was removed
        hint: stop it first: it could not go on from a cursor that is gone
    "#]],
    );
    follower.signal("TERM");
    assert_eq!(follower.finish().code, Some(0));
    let shown = run(&project, "consume show decode").expect_ok().to_string();
    assert!(shown.contains("run by         nobody\n"), "{shown}");
}

#[test]
fn one_that_is_silent_for_longer_than_its_limit_is_shown_as_stale_since_then() {
    let project = project();
    let config = std::fs::read_to_string(project.place("pintail.toml")).unwrap();
    let brief = "[consumer.decode]\nretention = \"400d\"\nstart = \"head\"\ngap = \"skip\"\nstale = \"0s\"";
    project.write("pintail.toml", &config.replace("[consumer.decode]", brief));
    more(&project, 0, 3);
    run(&project, "consume run").expect_ok();
    let shown = run(&project, "consume show decode").expect_ok().to_string();
    let lines = [
        "holds          nothing: stale since <when> UTC (snapshot ",
        "starts         with what comes from then on",
        "at a gap       skip",
        "expiry         waits for it until it is silent for 0s",
        "rows stay      400d",
    ];
    for line in lines {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn ctrl_c_before_nothing_is_left_is_an_exit_code() {
    let project = project();
    more(&project, 0, 3);
    let folder = project.place("faults");
    std::fs::create_dir(&folder).unwrap();
    let running = pintail(&project).words("consume run").fault(&format!("staged=pause:{}", folder.display())).start();
    running.wait_for(&folder.join("staged.reached"));
    running.signal("INT");
    running.wait_for_talk("stopping");
    std::fs::write(folder.join("staged.release"), "").unwrap();
    expect![[r#"
        exit code 1
        --- stdout
        decode: up to snapshot 3, 3 rows read, 3 in signals, 0 in events
        --- stderr
        stopping: what is not committed is read again the next time; again to exit at once
        error: decode: stopped; what is left is read the next time
    "#]]
    .assert_eq(&running.finish().to_string());
    run(&project, "consume run").expect_ok();
}

#[test]
fn a_removed_consumer_holds_nothing_and_what_it_wrote_stays() {
    let project = project();
    check(
        &project,
        "consume remove decode",
        expect![[r#"
        exit code 2
        --- stderr
        error: `decode` has never run, so there is nothing to remove
        hint: take its section out of pintail.toml, or its script out of the project
    "#]],
    );
    more(&project, 0, 6);
    check(
        &project,
        "consume remove decode --yes",
        expect![[r#"
        exit code 2
        --- stderr
        error: `decode` has never run, so there is nothing to remove
        hint: take its section out of pintail.toml, or its script out of the project
    "#]],
    );
    run(&project, "consume run").expect_ok();
    check(
        &project,
        "consume remove decoed",
        expect![[r#"
        exit code 2
        --- stderr
        error: no lake knows a consumer `decoed`
        hint: did you mean `decode`?
    "#]],
    );
    check(
        &project,
        "consume remove decode --lake man",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no lake `man`
        hint: did you mean `main`?
    "#]],
    );
    check(
        &project,
        "consume remove decode",
        expect![[r#"
        exit code 2
        --- stderr
        error: a removal asks before it writes, and there is nobody to ask
        hint: `--yes` goes on without asking; the tables that it wrote stay
    "#]],
    );
    let held = |project| run(project, "maintain --once --dry-run").expect_ok().to_string();
    assert!(held(&project).contains("decode"), "{}", held(&project));
    check(
        &project,
        "consume remove decode --yes",
        expect![[r#"
            exit code 0
            --- stdout
            decode: removed from lake main; nothing waits for it any more
            --- stderr
            note: events, events_latest, signals, signals_latest and its dead letters stay
            hint: a script with `-- materialize manual <uri>` can drop them, with `DROP TABLE <table>`
            warning: `[consumer.decode]` in pintail.toml is still there, and its next run begins anew
        "#]],
    );
    assert!(!held(&project).contains("decode"), "{}", held(&project));
    check(
        &project,
        "consume list",
        expect![[r#"
        exit code 0
        --- stdout
        consumer  state      lag  unread  cursor  head  dead letters  source
        decode    never run    -       0       -    11             1  ducklake://main/raw_events
    "#]],
    );
    check(
        &project,
        "consume remove decode --yes",
        expect![[r#"
        exit code 2
        --- stderr
        error: `decode` has never run, so there is nothing to remove
        hint: take its section out of pintail.toml, or its script out of the project
    "#]],
    );
    // It begins anew, and what it wrote before is known.
    check(
        &project,
        "consume run",
        expect![[r#"
        exit code 0
        --- stdout
        decode: up to snapshot 3, 6 rows read, 0 in signals, 0 in events, 5 known already
    "#]],
    );
    // One that is no longer configured is found by what the lake knows of it.
    let config = std::fs::read_to_string(project.place("pintail.toml")).unwrap();
    project.write("pintail.toml", &config.replace("[consumer.decode]", "[consumer.decode-v2]"));
    check(
        &project,
        "consume remove decode --yes --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "lake": "main",
          "removed": [
            {
              "consumer": "decode",
              "cursor": true,
              "progress": true
            }
          ],
          "stay": [],
          "configured": null
        }
    "#]],
    );
}

#[test]
fn a_script_with_a_stream_is_removed_by_its_name() {
    let project = project();
    project.write(
        "pipelines/fast.sql",
        "-- stream ducklake://main/raw_events start=earliest
-- materialize ducklake://main/fast append
SELECT id, subject FROM changes
",
    );
    more(&project, 0, 3);
    run(&project, "consume run fast").expect_ok();
    check(
        &project,
        "consume remove fast --yes",
        expect![[r#"
            exit code 0
            --- stdout
            script.fast: removed from lake main; nothing waits for it any more
            --- stderr
            note: fast and its dead letters stay
            hint: a script with `-- materialize manual <uri>` can drop them, with `DROP TABLE <table>`
            warning: the script `fast` is still there, and its next run begins anew
        "#]],
    );
}
