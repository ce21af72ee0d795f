//! Scripts with `stream`: what came to a table, once, by SQL.

use std::time::Duration;

use pintail_engine::fault::FaultPoint;
use pintail_runner::pintail::{Compaction, MaintainRequest};
use pintail_runner::run::StepState;

use crate::harness::{Folder, force, foreign, only, planned, refreshed, upkeep};
use crate::processes::{Pause, Work};

const APPEND: &str = "//- pipelines/big.sql
-- stream ducklake://main/orders start=earliest
-- materialize ducklake://main/big append
SELECT id, amount, snapshot_id AS came FROM changes WHERE 10 <= amount
";

const LATEST: &str = "//- pipelines/latest.sql
-- stream ducklake://main/orders start=earliest changes=all
-- materialize ducklake://main/latest key=id on_delete=delete
SELECT id, amount, snapshot_id, change_type FROM changes
";

fn insert(folder: &Folder, values: &str) {
    foreign(&folder.open(), &format!("INSERT INTO orders VALUES {values}"));
}

fn with_orders(text: &str) -> Folder {
    let folder = Folder::new(text);
    foreign(&folder.open(), "CREATE TABLE orders (id BIGINT, amount BIGINT)");
    folder
}

#[test]
fn an_append_takes_each_row_once_and_says_when_nothing_came() {
    let folder = with_orders(APPEND);
    insert(&folder, "(1, 5), (2, 50)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id, amount FROM big"), ["2|50"]);
    assert_eq!(planned(&folder.open(), &Default::default()), Vec::<String>::new(), "it is up to date");
    insert(&folder, "(3, 70)");
    insert(&folder, "(4, 7), (5, 90)");
    let plan = planned(&folder.open(), &Default::default());
    assert_eq!(plan.len(), 1, "{plan:?}");
    let told = folder.run_all();
    told.assert_good();
    assert_eq!(told.step("big").changed, (0, 2));
    assert_eq!(folder.query("SELECT id, count(DISTINCT came) FROM big GROUP BY id ORDER BY id"), ["2|1", "3|1", "5|1"]);
    // Deletes and updates of the source are no inserts: the cursor passes them.
    foreign(&folder.open(), "UPDATE orders SET amount = 99 WHERE id = 1");
    foreign(&folder.open(), "DELETE FROM orders WHERE id = 2");
    assert_eq!(folder.run_all().step("big").changed, (0, 0));
    assert_eq!(folder.query("SELECT count(*) FROM big"), ["3"]);
    assert_eq!(folder.run(&force("big")).step("big").state, StepState::Unchanged, "nothing has come");
    let position = folder.query("SELECT count(*) FROM _pintail.\"cursor_script.big\"");
    assert_eq!(position, ["1"]);
}

#[test]
fn a_key_keeps_the_last_change_and_a_final_delete_removes_the_row() {
    let folder = with_orders(LATEST);
    insert(&folder, "(1, 10), (2, 20), (3, 30)");
    folder.run_all().assert_good();
    let pintail = folder.open();
    foreign(&pintail, "UPDATE orders SET amount = 11 WHERE id = 1");
    foreign(&pintail, "UPDATE orders SET amount = 12 WHERE id = 1");
    foreign(&pintail, "DELETE FROM orders WHERE id = 2");
    // Replaced within one commit: the delete comes before the insert.
    foreign(&pintail, "BEGIN; DELETE FROM orders WHERE id = 3; INSERT INTO orders VALUES (3, 33); COMMIT");
    insert(&folder, "(4, 40)");
    foreign(&pintail, "DELETE FROM orders WHERE id = 4");
    let told = folder.run_all();
    told.assert_good();
    assert_eq!(folder.query("SELECT id, amount FROM latest ORDER BY id"), ["1|12", "3|33"]);
    assert_eq!(
        folder.query("SELECT id, amount FROM latest ORDER BY id"),
        folder.query("SELECT * FROM orders ORDER BY id")
    );
}

#[test]
fn without_on_delete_the_row_stays_and_it_is_counted() {
    let folder = with_orders(&LATEST.replace(" on_delete=delete", ""));
    insert(&folder, "(1, 10), (2, 20)");
    folder.run_all().assert_good();
    foreign(&folder.open(), "DELETE FROM orders WHERE id = 2");
    let told = folder.run_all();
    assert_eq!(folder.query("SELECT id, amount FROM latest ORDER BY id"), ["1|10", "2|20"]);
    assert!(
        told.notes().iter().any(|note| note.contains("1 keys whose last change is a delete")),
        "{:?}",
        told.notes()
    );
}

#[test]
fn a_stream_begins_with_the_next_change_unless_it_says_otherwise_and_a_full_refresh_reads_all() {
    let folder = with_orders(&APPEND.replace(" start=earliest", ""));
    insert(&folder, "(1, 50)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big"), Vec::<String>::new());
    insert(&folder, "(2, 60)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big"), ["2"]);
    folder.run(&refreshed()).assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["1", "2"]);
    insert(&folder, "(3, 70)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["1", "2", "3"]);
}

#[test]
fn a_source_that_was_made_anew_is_refused_until_a_full_refresh() {
    let folder = with_orders(APPEND);
    insert(&folder, "(1, 50)");
    folder.run_all().assert_good();
    foreign(&folder.open(), "DROP TABLE orders");
    foreign(&folder.open(), "CREATE TABLE orders AS SELECT 7::BIGINT AS id, 70::BIGINT AS amount");
    let told = folder.run_all();
    let text = folder.told_of(&told, "big");
    assert!(text.contains("was made anew") && text.contains("--full-refresh"), "{text}");
    folder.run(&refreshed()).assert_good();
    assert_eq!(folder.query("SELECT id FROM big"), ["7"]);
    insert(&folder, "(8, 80)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["7", "8"]);
}

#[test]
fn a_preview_shows_what_would_be_taken_next_and_takes_nothing() {
    let folder = with_orders(APPEND);
    insert(&folder, "(1, 50)");
    folder.run_all().assert_good();
    insert(&folder, "(2, 60)");
    for _ in 0..2 {
        let rows = folder.open().preview("big", None, 10).unwrap().text_rows().unwrap();
        let ids: Vec<&str> = rows.iter().filter_map(|row| row[0].as_deref()).collect();
        assert_eq!(ids, ["2"]);
    }
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["1", "2"]);
}

#[test]
fn a_guard_that_was_lost_does_not_stop_a_stream() {
    let folder = with_orders(APPEND);
    for id in 0..3 {
        insert(&folder, &format!("({id}, 50)"));
        folder.run_all().assert_good();
    }
    for ending in ["", "-wal", "-shm"] {
        // What is not there, as on Postgres, need not go.
        let _ = std::fs::remove_file(folder.path().join(format!(".pintail/main.sqlite.guard.sqlite{ending}")));
    }
    insert(&folder, "(3, 50)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT count(*) FROM big"), ["4"]);
}

#[test]
fn a_limit_takes_a_part_and_the_next_run_goes_on() {
    let folder = with_orders(&APPEND.replace("start=earliest", "start=0 batch_rows=2"));
    for id in 1..=3 {
        insert(&folder, &format!("({id}, 50), ({id}0, 50)"));
    }
    for expected in [2, 4, 6] {
        folder.run_all().assert_good();
        assert_eq!(folder.query("SELECT count(*), count(DISTINCT id) FROM big"), [format!("{expected}|{expected}")]);
    }
    assert_eq!(planned(&folder.open(), &Default::default()), Vec::<String>::new());
}

#[test]
fn a_stream_that_is_killed_at_any_point_takes_each_row_once() {
    let folder = with_orders(APPEND);
    insert(&folder, "(0, 50)");
    folder.run_all().assert_good();
    for (id, point) in (1..).zip(FaultPoint::ALL) {
        insert(&folder, &format!("({id}, 50)"));
        Work::run().faults(format!("{}=kill", point.name())).start(folder.path()).killed();
        let sum = folder.query("SELECT count(*) - count(DISTINCT id) FROM big");
        assert_eq!(sum, ["0"], "{point:?}");
    }
    folder.run_all();
    let expected = FaultPoint::ALL.len() + 1;
    assert_eq!(folder.query("SELECT count(*), count(DISTINCT id) FROM big"), [format!("{expected}|{expected}")]);
}

#[test]
fn two_runs_of_one_stream_at_once_take_each_row_once() {
    let folder = with_orders(APPEND);
    insert(&folder, "(0, 50)");
    folder.run_all().assert_good();
    insert(&folder, "(1, 50), (2, 50), (3, 50)");
    let pause = Pause::at("staged");
    let mut first = Work::run().faults(pause.fault()).start(folder.path());
    first.reaches(&pause.reached());
    let second = Work::run().start(folder.path());
    pause.release();
    first.done();
    second.done();
    assert_eq!(folder.query("SELECT count(*), count(DISTINCT id) FROM big"), ["4|4"]);
}

#[test]
fn a_failed_test_leaves_the_cursor_where_it_was() {
    let folder = with_orders(&APPEND.replace("-- materialize", "-- test expression \"amount < 100\"\n-- materialize"));
    insert(&folder, "(1, 50)");
    folder.run_all().assert_good();
    let cursor = "SELECT position FROM _pintail.\"cursor_script.big\"";
    let before = folder.query(cursor);
    insert(&folder, "(2, 500)");
    let told = folder.run(&only("big"));
    assert_eq!(told.step("big").state, StepState::Failed);
    assert_eq!(folder.query(cursor), before);
    foreign(&folder.open(), "DELETE FROM orders WHERE id = 2");
    insert(&folder, "(3, 60)");
    // The row came, whatever became of it later: it is still to be taken.
    assert_eq!(folder.run(&only("big")).step("big").state, StepState::Failed);
}

#[test]
fn case_e36_an_update_is_no_row_that_came_although_its_files_are_to_be_merged() {
    let folder = with_orders(APPEND);
    for id in 1..=3 {
        insert(&folder, &format!("({id}, 50)"));
    }
    folder.run_all().assert_good();
    for id in 1..=3 {
        foreign(&folder.open(), &format!("UPDATE orders SET amount = 60 WHERE id = {id}"));
    }
    let keep = Duration::from_secs(3_600);
    let merging = MaintainRequest { keep, compaction: Some(Compaction::default()), ..upkeep() };
    let compacted = |folder: &Folder| {
        let done = folder.open().maintain(&merging).unwrap().remove(0).compacted;
        done.into_iter().find(|table| table.table == "orders").unwrap()
    };
    let left = compacted(&folder).left.unwrap();
    assert!(left.starts_with("consumer script.big has not read the updates of snapshot "), "{left}");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id, amount FROM big ORDER BY ALL"), ["1|50", "2|50", "3|50"]);
    // Once they are read, nothing is in the way.
    assert!(compacted(&folder).merged.is_some());
    insert(&folder, "(4, 70)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["1", "2", "3", "4"]);
}

/// Takes row 1, lets rows 2 and 3 come and the commit of row 2 expire, and returns the folder.
fn with_a_gap(text: &str) -> Folder {
    let folder = with_orders(text);
    insert(&folder, "(1, 50)");
    folder.run_all().assert_good();
    insert(&folder, "(2, 60)");
    let lost = folder.query("SELECT max(snapshot_id) FROM lake.snapshots()").remove(0);
    insert(&folder, "(3, 70)");
    foreign(&folder.open(), &format!("CALL ducklake_expire_snapshots('_pt_w_main', versions => [{lost}])"));
    folder
}

#[test]
fn a_gap_stops_a_script_and_says_what_there_is_to_do() {
    let folder = with_a_gap(APPEND);
    let told = folder.run(&only("big"));
    let failure = told.step("big").failure.as_ref().unwrap();
    assert!(failure.message.contains("are needed and expired"), "{}", failure.message);
    let help = failure.help.as_deref().unwrap_or_default();
    for word in ["`gap=rescan`", "`gap=skip`", "--full-refresh"] {
        assert!(help.contains(word), "{help}");
    }
    assert_eq!(folder.query("SELECT id FROM big"), ["1"], "nothing was taken");
}

#[test]
fn a_gap_is_read_again_from_the_table_where_a_script_says_so() {
    let folder = with_a_gap(&APPEND.replace("start=earliest", "start=earliest gap=rescan"));
    let notes = folder.run_all().notes();
    assert!(notes.len() == 1 && notes[0].contains("were read instead"), "{notes:?}");
    insert(&folder, "(4, 80)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["1", "2", "3", "4"]);
    assert_eq!(planned(&folder.open(), &Default::default()), Vec::<String>::new(), "it is up to date");
}

#[test]
fn a_gap_is_left_out_on_record_where_a_script_says_so() {
    let folder = with_a_gap(&LATEST.replace("start=earliest", "start=earliest gap=skip"));
    let notes = folder.run_all().notes();
    assert!(notes.len() == 1 && notes[0].contains("were left out"), "{notes:?}");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM latest ORDER BY id"), ["1", "3"]);
    let letters = folder.query("SELECT origin, position, reason FROM _pintail.dead_letters");
    let gap = letters[0].split('|').nth(1).unwrap().to_owned();
    let reason =
        format!("{gap} of ducklake://main/orders were expired before they were consumed; they were skipped as asked");
    assert_eq!(letters, [format!("consumer script.latest|{gap}|{reason}")]);
    assert_eq!(planned(&folder.open(), &Default::default()), Vec::<String>::new(), "it is up to date");
}

#[test]
fn upkeep_keeps_what_a_script_has_not_taken_and_no_more() {
    let folder = with_orders(APPEND);
    insert(&folder, "(1, 50)");
    folder.run_all().assert_good();
    insert(&folder, "(2, 60)");
    let pintail = folder.open();
    for number in 0..4 {
        foreign(&pintail, &format!("CREATE OR REPLACE TABLE noise AS SELECT {number} AS n"));
    }
    pintail.maintain(&upkeep()).unwrap();
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["1", "2"]);
    // While nothing comes, the script holds nothing but the newest version; and that is no gap later.
    for number in 0..4 {
        foreign(&pintail, &format!("CREATE OR REPLACE TABLE noise AS SELECT {number} AS n"));
    }
    let expired: usize = pintail.maintain(&upkeep()).unwrap().iter().map(|lake| lake.expired.len()).sum();
    assert!(3 < expired, "{expired} went");
    insert(&folder, "(3, 70)");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT id FROM big ORDER BY id"), ["1", "2", "3"]);
}

#[test]
fn what_cannot_be_a_stream_is_said() {
    let check = |from: &str, to: &str| {
        let folder = Folder::new(&APPEND.replace(from, to));
        folder.check().into_iter().filter(|line| line.contains("P562")).collect::<Vec<_>>()
    };
    let cases = [
        (" append", "", "a stream is applied by `append` or by `key=`"),
        ("FROM changes", "FROM orders", "the query does not read `changes`"),
        ("main/big", "main/orders", "the script would consume its own rows"),
        ("-- stream", "-- partitioned daily by=came\n-- stream", "has no partitions"),
    ];
    for (from, to, expected) in cases {
        let found = check(from, to);
        assert!(found.len() == 1 && found[0].contains(expected), "{from}: {found:?}");
    }
    assert_eq!(check("nothing", ""), Vec::<String>::new());
}
