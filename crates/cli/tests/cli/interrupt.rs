//! Ctrl-C: the first stops cleanly, and the next run goes on.

use expect_test::expect;
use pintail_testkit::{Project, pintail};

use crate::{SHOP, check, run};

#[test]
fn ctrl_c_rolls_back_and_the_next_run_goes_on() {
    let project = Project::new(SHOP);
    let folder = project.place("faults");
    std::fs::create_dir(&folder).unwrap();
    let running = pintail(&project).words("run").fault(&format!("written=pause:{}", folder.display())).start();
    running.wait_for(&folder.join("written.reached"));
    running.signal("INT");
    // The signal is taken in before the step is let go, or else the step would simply end.
    running.wait_for_talk("stopping");
    std::fs::write(folder.join("written.release"), "").unwrap();
    expect![[r#"
        exit code 1
        --- stdout
        run <id> was stopped: 1 skipped, 1 stopped in <time>
        --- stderr
        stopping: what is not committed is rolled back; again to exit at once
        stopped       orders   (<time>)
        skipped       revenue
        hint: what was written before stays written; the same command goes on where this one stopped
    "#]]
    .assert_eq(&running.finish().to_string());
    check(
        &project,
        "history",
        expect![[r#"
        exit code 0
        --- stdout
        run                                   started (UTC)        result     command  time
        <id>  <when>  cancelled  run      <time>
        --- stderr
        (1 run)
        hint: `pintail show <run>` tells all of one, `pintail show last` of the newest
    "#]],
    );
    run(&project, "run").expect_ok();
    let rows = pintail(&project).args(["query", "SELECT count(*) AS rows FROM orders"]).run();
    expect![[r#"
        exit code 0
        --- stdout
        rows
        ────
           3
        --- stderr
        (1 row)
    "#]]
    .assert_eq(&rows.to_string());
}

#[test]
fn a_second_ctrl_c_ends_the_process_at_once() {
    let project = Project::new(SHOP);
    let folder = project.place("faults");
    std::fs::create_dir(&folder).unwrap();
    let running = pintail(&project).words("run").fault(&format!("written=pause:{}", folder.display())).start();
    running.wait_for(&folder.join("written.reached"));
    running.signal("INT");
    running.wait_for_talk("stopping");
    running.signal("INT");
    let outcome = running.finish();
    assert_eq!(outcome.code, Some(1), "{outcome}");
    run(&project, "run").expect_ok();
}

#[test]
fn a_killed_run_is_closed_as_crashed_by_the_next_one() {
    let project = Project::new(SHOP);
    let killed = pintail(&project).words("run").fault("committed=kill").run();
    assert_eq!(killed.code, None, "{killed}");
    check(
        &project,
        "run",
        expect![[r#"
            exit code 0
            --- stdout
            run <id> succeeded: 1 materialized, 1 up to date in <time>
            --- stderr
            warning: 1 run died before its end; it is marked as crashed
            note: 1 commit of the lake had not been recorded; recorded now
            materialized  revenue  2 rows, snapshot 3 (<time>)
        "#]],
    );
    check(
        &project,
        "history",
        expect![[r#"
        exit code 0
        --- stdout
        run                                   started (UTC)        result     command  time
        <id>  <when>  succeeded  run      <time>
        <id>  <when>  crashed    run      <time>
        --- stderr
        (2 runs)
        hint: `pintail show <run>` tells all of one, `pintail show last` of the newest
    "#]],
    );
}
