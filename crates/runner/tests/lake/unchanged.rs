//! `if_changed` and minimal change feeds: what is not written, what then does not run, and what a feed shows.

use std::collections::BTreeMap;

use expect_test::expect;
use pintail_core::asset::Asset;
use pintail_core::id::SnapshotId;
use pintail_engine::fault::FaultPoint;
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::StepState;
use pintail_store::MaterializationStatus;

use crate::harness::{Folder, Told, at, facts, force, force_at, forced, foreign, planned, query, run};
use crate::processes::{Pause, Work, open, wait_for};

/// A project with `t`, written from a file, and `d`, which reads `t`.
fn project(options: &str, query: &str) -> Folder {
    let folder = Folder::new("");
    folder.write(&format!(
        "//- pipelines/t.sql\n-- materialize ducklake://main/t {options}\n{query}\n//- pipelines/d.sql\n-- materialize ducklake://main/d\nSELECT count(*) AS n FROM t\n"
    ));
    folder
}

const FROM_FILE: &str = "SELECT * FROM read_csv('data/in.csv', nullstr = 'NULL')";

fn rows(folder: &Folder, rows: &str) {
    folder.write(&format!("//- data/in.csv\n{rows}\n"));
}

fn head(pintail: &Pintail) -> SnapshotId {
    *pintail.plan(&PlanRequest::default()).unwrap().0.pins.values().next().unwrap()
}

/// Returns what the change feed of `table` shows after `from`: each change with its columns.
fn feed(folder: &Folder, table: &str, columns: &str, from: SnapshotId) -> Vec<String> {
    let upto = head(&folder.open());
    if upto <= from {
        return Vec::new();
    }
    let first = from.0 + 1;
    folder.query(&format!(
        "SELECT change_type, {columns} FROM lake.table_changes('{table}', {first}, {upto}) ORDER BY ALL"
    ))
}

fn state(told: &Told, name: &str) -> StepState {
    told.step(name).state
}

#[test]
fn identical_rows_are_not_written_and_nothing_downstream_runs() {
    for options in ["if_changed", "key=id if_changed"] {
        let folder = project(options, FROM_FILE);
        rows(&folder, "id,v\n1,a\n2,NULL");
        folder.run_all().assert_good();
        let before = head(&folder.open());
        // The same rows in another order: the file is another one, so the step is due.
        rows(&folder, "id,v\n2,NULL\n1,a");
        let told = folder.run_all();
        assert_eq!((state(&told, "t"), state(&told, "d")), (StepState::Unchanged, StepState::Unchanged));
        assert_eq!((told.summary.unchanged, told.summary.materialized), (2, 0));
        assert_eq!(told.step("t").rows, Some(2));
        let pintail = folder.open();
        assert_eq!(head(&pintail), before, "{options}");
        // The slice counts as computed at the new inputs.
        assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
        let versions = pintail.history(&pintail.parse_asset("t").unwrap(), 10).unwrap();
        let status = |status: MaterializationStatus| versions.iter().filter(|version| version.status == status).count();
        assert_eq!((status(MaterializationStatus::Unchanged), status(MaterializationStatus::Materialized)), (1, 1));
        assert_eq!(versions[0].snapshot, versions[1].snapshot, "it confirms the version that is there");
        let run = pintail.run_detail("last").unwrap();
        let steps: Vec<_> = run.steps.iter().map(|step| step.step.status.as_str()).collect();
        assert_eq!(steps, ["unchanged", "unchanged"]);
    }
}

#[test]
fn a_script_that_reads_something_else_that_has_changed_runs_all_the_same() {
    let folder = project("if_changed", FROM_FILE);
    folder.write("//- pipelines/u.sql\n-- materialize ducklake://main/u\nSELECT count(*) AS n FROM read_csv('data/in.csv')\n//- pipelines/d.sql\n-- materialize ducklake://main/d\nSELECT t.*, u.n FROM t, u\n//- pipelines/e.sql\n-- materialize ducklake://main/e\nSELECT * FROM t\n");
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    rows(&folder, "id,v\n1,a\n");
    let told = folder.run_all();
    let states = ["t", "u", "d", "e"].map(|name| state(&told, name));
    assert_eq!(states, [StepState::Unchanged, StepState::Materialized, StepState::Materialized, StepState::Unchanged]);
}

#[test]
fn only_what_differs_is_written() {
    for (options, gone) in [("if_changed", true), ("key=id if_changed", false)] {
        let folder = project(options, FROM_FILE);
        rows(&folder, "id,v\n1,a\n2,NULL\n3,c\n4,d");
        folder.run_all().assert_good();
        let (before, id) = (head(&folder.open()), facts(&folder.open(), "t").id);
        rows(&folder, "id,v\n1,a\n2,b\n4,NULL\n5,e");
        let told = folder.run_all();
        told.assert_good();
        let mut expected = vec!["delete|2|NULL", "delete|4|d", "insert|2|b", "insert|4|NULL", "insert|5|e"];
        if gone {
            expected.insert(1, "delete|3|c");
        }
        assert_eq!(feed(&folder, "t", "id, v", before), expected, "{options}");
        let changed = if gone { (3, 3) } else { (2, 3) };
        let count = if gone { 4 } else { 5 };
        assert_eq!((told.step("t").changed, told.step("t").rows), (changed, Some(count)), "{options}");
        assert_eq!(folder.query("SELECT count(*) FROM t"), [count.to_string()]);
        assert_eq!(facts(&folder.open(), "t").id, id);
    }
}

#[test]
fn duplicates_are_counted() {
    let folder = project("if_changed", FROM_FILE);
    rows(&folder, "id,v\n1,a\n1,a\n1,a\n2,b\n3,c");
    folder.run_all().assert_good();
    let before = head(&folder.open());
    rows(&folder, "id,v\n1,a\n2,b\n2,b\n1,a\n3,c");
    let told = folder.run_all();
    assert_eq!(told.step("t").changed, (1, 1));
    assert_eq!(feed(&folder, "t", "id, v", before), ["delete|1|a", "insert|2|b"]);
    assert_eq!(folder.query("SELECT id, count(*) FROM t GROUP BY id ORDER BY id"), ["1|2", "2|2", "3|1"]);
}

#[test]
fn only_the_slice_is_compared_and_written() {
    let folder = Folder::new("");
    for (partitioned, query) in [
        ("daily", "SELECT $partition AS day, * FROM read_csv('data/in.csv')"),
        ("daily by=ts", "SELECT $partition_start AS ts, * FROM read_csv('data/in.csv')"),
    ] {
        folder.write(&format!(
            "//- pipelines/t.sql\n-- partitioned {partitioned}\n-- materialize ducklake://main/t{} if_changed\n{query}\n",
            query.len()
        ));
        let table = format!("t{}", query.len());
        rows(&folder, "id\n1\n2");
        folder.run(&at("2026-01-01")).assert_good();
        folder.run(&at("2026-01-02")).assert_good();
        let before = head(&folder.open());
        assert_eq!(state(&folder.run(&force_at("t", "2026-01-02")), "t 2026-01-02"), StepState::Unchanged);
        rows(&folder, "id\n1\n3");
        let told = folder.run(&force_at("t", "2026-01-01"));
        assert_eq!((told.step("t 2026-01-01").changed, told.step("t 2026-01-01").rows), ((1, 1), Some(2)));
        assert_eq!(feed(&folder, &table, "id", before), ["delete|2", "insert|3"]);
        assert_eq!(folder.query(&format!("SELECT sum(id) FROM {table}")), ["7"]);
    }
}

#[test]
fn an_empty_slice_gets_its_stamp_once() {
    let folder = Folder::new(
        "//- pipelines/t.sql\n-- partitioned daily\n-- materialize ducklake://main/t if_changed allow_empty\nSELECT 1 AS id WHERE $partition = '2026-01-01'\n",
    );
    folder.run(&at("2026-01-01")).assert_good();
    folder.run(&at("2026-01-02")).assert_good();
    assert_eq!(state(&folder.run(&force_at("t", "2026-01-02")), "t 2026-01-02"), StepState::Unchanged);
}

#[test]
fn values_are_the_same_when_they_look_the_same() {
    let columns = [
        ("DOUBLE", "'nan'", "'NaN'", true),
        ("DOUBLE", "0.0", "'-0.0'", false),
        ("FLOAT", "'inf'", "'-inf'", false),
        ("DECIMAL(10,2)", "1.5", "1.50", true),
        ("DECIMAL(38,10)", "0.0000000001", "0", false),
        ("INTERVAL", "'1 month'", "'30 days'", false),
        ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': NULL}", "{'a': 1, 'b': NULL}", true),
        ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': NULL}", "NULL", false),
        ("VARCHAR[]", "['a', NULL]", "[NULL, 'a']", false),
        ("VARCHAR[]", "['a, b']", "['a', 'b']", false),
        ("DOUBLE[]", "['nan']", "['nan']", true),
        ("DOUBLE[]", "[0.0]", "['-0.0']", false),
        ("MAP(VARCHAR, INTEGER)", "MAP {'a': 1}", "MAP {'a': 2}", false),
        ("BLOB", "''::BLOB", "NULL", false),
        ("TIMESTAMPTZ", "'2026-01-01 00:00:00+00'", "'2026-01-01 01:00:00+01'", true),
        ("VARCHAR", "'a'", "'A'", false),
        ("VARCHAR", "''", "NULL", false),
    ];
    let mut folder = Folder::new("");
    for (number, (data_type, ..)) in columns.iter().enumerate() {
        let column = format!("SELECT 1 AS id, CAST({{value}} AS {data_type}) AS v");
        write_value(&mut folder, number, &column.replace("{value}", columns[number].1));
    }
    folder.run_all().assert_good();
    for (number, (data_type, _, other, _)) in columns.iter().enumerate() {
        write_value(&mut folder, number, &format!("SELECT 1 AS id, CAST({other} AS {data_type}) AS v"));
    }
    let told = folder.run(&forced());
    let wrong: Vec<String> = columns
        .iter()
        .enumerate()
        .flat_map(|(number, column)| ["r", "m"].map(|kind| (format!("{kind}{number}"), column)))
        .filter(|(name, column)| (state(&told, name) == StepState::Unchanged) != column.3)
        .map(|(name, column)| format!("{name} {column:?}: {:?}", told.step(&name).state))
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "{}", told.text());
}

/// Writes the query as a replace and as a merge.
fn write_value(folder: &mut Folder, number: usize, query: &str) {
    folder.write(&format!(
        "//- pipelines/r{number}.sql\n-- materialize ducklake://main/r{number} if_changed\n{query}\n//- pipelines/m{number}.sql\n-- materialize ducklake://main/m{number} key=id if_changed\n{query}\n"
    ));
}

#[test]
fn a_narrower_type_is_compared_as_the_table_holds_it() {
    let folder = project("if_changed", "SELECT 1::BIGINT AS id, 1.50::DECIMAL(10,2) AS v");
    folder.run_all().assert_good();
    folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t if_changed\nSELECT 1.5::DECIMAL(3,1) AS v, 1::TINYINT AS id\n");
    assert_eq!(state(&folder.run_all(), "t"), StepState::Unchanged);
}

#[test]
fn a_key_that_the_table_has_twice_is_written_once() {
    let folder = project("key=id if_changed", FROM_FILE);
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    foreign(&folder.open(), "INSERT INTO t VALUES (1, 'a')");
    folder.run(&force("t")).assert_good();
    assert_eq!(folder.query("SELECT * FROM t"), ["1|a"]);
}

#[test]
fn a_column_named_rowid_does_no_harm() {
    let folder = project("if_changed", "SELECT n AS rowid, n AS v FROM read_csv('data/in.csv')");
    rows(&folder, "n\n1\n2");
    folder.run_all().assert_good();
    assert_eq!(state(&folder.run(&force("t")), "t"), StepState::Unchanged);
    rows(&folder, "n\n3\n2");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT v FROM t ORDER BY v"), ["2", "3"]);
}

#[test]
fn new_columns_are_added_although_the_rows_are_the_same_and_only_differing_rows_are_written() {
    let folder = project("if_changed on_schema_change=append_new_columns", FROM_FILE);
    rows(&folder, "id,v\n1,a\n2,b");
    folder.run_all().assert_good();
    let before = head(&folder.open());
    rows(&folder, "id,v,w\n1,a,NULL\n2,b,x");
    folder.run_all().assert_good();
    assert_eq!(feed(&folder, "t", "id, v, w", before), ["delete|2|b|NULL", "insert|2|b|x"]);
    folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t if_changed on_schema_change=append_new_columns\nSELECT *, NULL::INTEGER AS z FROM read_csv('data/in.csv', nullstr = 'NULL')\n");
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT * FROM t ORDER BY id"), ["1|a|NULL|NULL", "2|b|x|NULL"]);
}

#[test]
fn tests_run_although_nothing_is_written() {
    let folder = project("if_changed", FROM_FILE);
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    folder.write("//- tests/none.sql\nSELECT * FROM t WHERE v = 'a'\n");
    let told = folder.run(&force("t"));
    assert_eq!(told.failure("t").code.as_str(), "P510");
    let folder = project("key=id if_changed", FROM_FILE);
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    folder.write(&format!(
        "//- pipelines/t.sql\n-- materialize ducklake://main/t key=id if_changed\n-- test row_count 2..\n{FROM_FILE}\n"
    ));
    assert_eq!(folder.run(&force("t")).failure("t").code.as_str(), "P510");
}

#[test]
fn what_was_compared_must_be_the_version_that_is_written_over() {
    for (file, expected) in [("id,v\n1,a", "1|a"), ("id,v\n1,b", "1|b")] {
        let folder = project("if_changed", FROM_FILE);
        rows(&folder, "id,v\n1,a");
        folder.run_all().assert_good();
        rows(&folder, file);
        let pause = Pause::at("compared");
        let pintail = open(folder.path(), &pause.fault());
        let told = std::thread::scope(|scope| {
            let told = scope.spawn(|| run(&pintail, &force("t")));
            wait_for("the comparison", || pause.reached().exists());
            foreign(&folder.open(), "INSERT INTO t VALUES (9, 'foreign')");
            pause.release();
            told.join().unwrap()
        });
        told.assert_good();
        let notes = told.notes().join(" ");
        assert!(notes.contains("changed ducklake://main/t meanwhile"), "{notes}");
        assert_eq!(folder.query("SELECT * FROM t"), [expected], "the foreign row was written over knowingly");
    }
}

#[test]
fn on_sqlite_a_newer_run_between_comparison_and_decision_supersedes() {
    let folder = project("if_changed", FROM_FILE);
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    let pause = Pause::at("compared");
    let mut older = Work::run().force().faults(pause.fault()).start(folder.path());
    older.reaches(&pause.reached());
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.path().join(format!(".pintail/main.sqlite.guard.sqlite{ending}")));
    }
    rows(&folder, "id,v\n1,newer");
    folder.run(&force("t")).assert_good();
    pause.release();
    let told = older.done();
    assert!(told.iter().any(|line| line == "t: Superseded"), "{told:?}");
    assert_eq!(folder.query("SELECT * FROM t"), ["1|newer"]);
    assert_eq!(
        planned(&folder.open(), &PlanRequest { select: Some("t".to_owned()), ..PlanRequest::default() }),
        Vec::<String>::new()
    );
}

#[test]
fn a_crash_between_the_decision_and_the_store_loses_nothing() {
    let folder = project("if_changed", FROM_FILE);
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    let before = head(&folder.open());
    rows(&folder, "id,v\n1,a\n");
    let kill = format!("{}=kill", FaultPoint::Compared.name());
    Work::run().faults(kill).start(folder.path()).killed();
    let pintail = folder.open();
    let asset = Asset::parse("ducklake://main/t").unwrap();
    assert_eq!(pintail.history(&asset, 10).unwrap().len(), 1);
    let told = run(&pintail, &PlanRequest::default());
    assert_eq!((state(&told, "t"), head(&pintail)), (StepState::Unchanged, before));
    // And when the store has it, a killed process changes nothing any more.
    rows(&folder, "id,v\n1,a\n\n");
    Work::run().faults("remembered=kill").start(folder.path()).killed();
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), Vec::<String>::new());
}

#[test]
fn a_rebuilt_store_compares_again() {
    let folder = project("if_changed", FROM_FILE);
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    rows(&folder, "id,v\n1,a\n");
    folder.run_all();
    let pintail = folder.open();
    pintail.rebuild_state().unwrap();
    let told = run(&pintail, &PlanRequest::default());
    assert_eq!(state(&told, "t"), StepState::Unchanged, "{}", told.text());
}

#[test]
fn case_a7_a_table_keeps_its_identity_and_its_feed_over_replaces_and_new_columns() {
    let folder = project("on_schema_change=append_new_columns", FROM_FILE);
    rows(&folder, "id,v\n1,a");
    folder.run_all().assert_good();
    let (before, id) = (head(&folder.open()), facts(&folder.open(), "t").id);
    rows(&folder, "id,v\n2,b");
    folder.run_all().assert_good();
    rows(&folder, "id,v,w\n3,c,x");
    folder.run_all().assert_good();
    rows(&folder, "id,v,w\n4,d,y");
    folder.run_all().assert_good();
    assert_eq!(facts(&folder.open(), "t").id, id);
    expect![[r#"
        delete|1|a|NULL
        delete|2|b|NULL
        delete|3|c|x
        insert|2|b|NULL
        insert|3|c|x
        insert|4|d|y"#]]
    .assert_eq(&feed(&folder, "t", "id, v, w", before).join("\n"));
    let generations = |pintail: &Pintail| {
        let versions = pintail.history(&Asset::parse("ducklake://main/t").unwrap(), 10).unwrap();
        versions.iter().rev().map(|version| version.generation).collect::<Vec<_>>()
    };
    assert_eq!(generations(&folder.open()), [0, 0, 0, 0]);
    folder.write(&format!(
        "//- pipelines/t.sql\n-- materialize ducklake://main/t on_schema_change=sync_all_columns\n{FROM_FILE}\n"
    ));
    rows(&folder, "id\n5");
    folder.run_all().assert_good();
    assert_eq!(generations(&folder.open()), [0, 0, 0, 0, 1], "a table that is made anew says so");
    assert_ne!(facts(&folder.open(), "t").id, id);
}

#[test]
fn random_replaces_leave_exactly_the_staged_rows_and_the_smallest_feed() {
    let folder = project(
        "if_changed allow_empty",
        "SELECT * FROM read_csv('data/in.csv', columns = {id: 'INTEGER', v: 'INTEGER'}, nullstr = 'NULL')",
    );
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut roll = move |sides: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % sides
    };
    let mut before: BTreeMap<String, i64> = BTreeMap::new();
    for round in 0..8 {
        let lines: Vec<String> = (0..roll(8))
            .map(|_| {
                format!(
                    "{},{}",
                    roll(3),
                    match roll(3) {
                        0 => "NULL".to_owned(),
                        n => n.to_string(),
                    }
                )
            })
            .collect();
        rows(&folder, &format!("id,v\n{}", lines.join("\n")));
        let mut now: BTreeMap<String, i64> = BTreeMap::new();
        lines.iter().for_each(|line| *now.entry(line.clone()).or_default() += 1);
        let told = folder.run(&force("t"));
        let copies = |of: &BTreeMap<String, i64>, row: &String| of.get(row).copied().unwrap_or(0);
        let inserted: i64 = now.iter().map(|(row, count)| (count - copies(&before, row)).max(0)).sum();
        let deleted: i64 = before.iter().map(|(row, count)| (count - copies(&now, row)).max(0)).sum();
        if round == 0 {
            told.assert_good();
        } else if (inserted, deleted) == (0, 0) {
            assert_eq!(state(&told, "t"), StepState::Unchanged, "round {round}");
        } else {
            let changed = told.step("t").changed;
            assert_eq!((changed.0, changed.1), (deleted.unsigned_abs(), inserted.unsigned_abs()), "round {round}");
        }
        let mut expected: Vec<String> = lines.iter().map(|line| line.replace(',', "|")).collect();
        expected.sort_unstable();
        let mut found = query(&folder.open(), "SELECT * FROM t", None);
        found.sort_unstable();
        assert_eq!(found, expected, "round {round}");
        before = now;
    }
}

#[test]
fn the_statements_of_a_comparison_are_shown_by_the_plan() {
    let folder = project("if_changed", "SELECT 1 AS id, 'a' AS v");
    folder.run_all().assert_good();
    let pintail = folder.open();
    let (plan, seen) = pintail.plan(&forced()).unwrap();
    let index = plan.steps.iter().position(|step| step.name.as_str() == "t").unwrap();
    let explained = pintail.explain(&plan, &seen, Some(index)).unwrap();
    let purposes: Vec<&str> = explained[0].1.iter().map(|statement| statement.purpose).collect();
    assert_eq!(
        purposes,
        [
            "stage the query",
            "compare the fingerprints",
            "hash the rows of both sides",
            "find the rows that differ",
            "drop the hashes",
            "delete the rows that are gone",
            "insert the rows that are new",
        ]
    );
}

#[test]
fn an_atomic_run_writes_only_what_differs_and_history_with_it() {
    let folder = project("if_changed", FROM_FILE);
    folder.write("//- pipelines/h.sql\n-- materialize history ducklake://main/h key=id\nSELECT * FROM t\n//- pipelines/c.sql\n-- materialize ducklake://main/c\nSELECT * FROM h_current\n");
    rows(&folder, "id,v\n1,a\n2,b");
    let atomic = PlanRequest { atomic: true, ..forced() };
    folder.run(&atomic).assert_good();
    let before = head(&folder.open());
    rows(&folder, "id,v\n1,a\n2,c");
    folder.run(&atomic).assert_good();
    assert_eq!(feed(&folder, "t", "id, v", before), ["delete|2|b", "insert|2|c"]);
    assert_eq!(
        folder.query("SELECT id, v, is_current FROM h ORDER BY id, valid_from"),
        ["1|a|true", "2|b|false", "2|c|true"]
    );
    assert_eq!(folder.query("SELECT * FROM c ORDER BY id"), ["1|a", "2|c"]);
    let before = head(&folder.open());
    folder.run(&atomic).assert_good();
    assert_eq!(feed(&folder, "t", "id, v", before), Vec::<String>::new());
    assert_eq!(feed(&folder, "h", "id, v", before), Vec::<String>::new());
}

#[test]
fn steps_that_share_a_commit_have_differences_of_their_own() {
    let folder = Folder::new("//- pintail.toml\n[run]\nslots = 1\n");
    for number in 0..4 {
        folder.write(&format!("//- pipelines/g{number}.sql\n-- materialize ducklake://main/g{number} if_changed\nSELECT id + {number} * step AS id FROM read_csv('data/in.csv')\n"));
    }
    rows(&folder, "id,step\n1,0\n2,0");
    folder.run_all().assert_good();
    // The first stays as it is, the others become different from each other.
    rows(&folder, "id,step\n1,1\n2,1");
    let told = folder.run_all();
    assert_eq!(state(&told, "g0"), StepState::Unchanged, "{}", told.text());
    for number in 1..4 {
        assert_eq!(state(&told, &format!("g{number}")), StepState::Materialized, "{}", told.text());
        let expected = [(1 + number).to_string(), (2 + number).to_string()];
        assert_eq!(folder.query(&format!("SELECT id FROM g{number} ORDER BY id")), expected);
    }
}
