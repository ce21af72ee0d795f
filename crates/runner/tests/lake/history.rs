//! History tables: which versions begin and end, where late rows go, what is refused, and that nothing is ever lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeZone, Utc};
use expect_test::expect;
use pintail_runner::RunnerError;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::StepState;

use crate::harness::{Folder, Told, force, forced, foreign, only, planned, query, refreshed, run};

/// The days on which the runs of these tests happen.
fn day(number: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, number, 0, 0, 0).unwrap()
}

const DAYS: [fn() -> DateTime<Utc>; 9] =
    [|| day(1), || day(2), || day(3), || day(4), || day(5), || day(6), || day(7), || day(8), || day(9)];

/// A history `h` of the rows of a file.
struct Customers {
    folder: Folder,
}

impl Customers {
    fn new(options: &str) -> Self {
        Self::with_query(options, "SELECT * FROM read_csv('data/in.csv', nullstr = 'NULL')")
    }

    fn with_query(options: &str, query: &str) -> Self {
        let folder = Folder::new("");
        folder.write(&format!("//- pipelines/h.sql\n-- materialize history ducklake://main/h {options}\n{query}\n"));
        Self { folder }
    }

    /// Writes the file and runs on the `number`th of January.
    fn on(&self, number: usize, rows: &str) -> Told {
        self.folder.write(&format!("//- data/in.csv\n{rows}\n"));
        run(&self.folder.open_at(DAYS[number - 1]), &PlanRequest::default())
    }

    /// Returns the versions: key, value, days of January from and to, whether it is current.
    fn versions(&self) -> Vec<String> {
        self.folder.query("SELECT id, v, day(valid_from), day(valid_to), is_current FROM h ORDER BY id, valid_from, v")
    }
}

#[test]
fn case_v89_versions_begin_at_changes_and_an_unchanged_rerun_adds_nothing() {
    let h = Customers::new("key=id");
    h.on(1, "id,v\n1,a\n2,b\n3,NULL").assert_good();
    let changed = h.on(2, "id,v\n1,a\n2,c\n3,NULL\n4,d");
    // Versions that have begun are inserted, versions that have ended count as deleted.
    assert_eq!((changed.step("h").changed, changed.step("h").rows), ((1, 2), Some(5)));
    let expected = ["1|a|1|NULL|true", "2|b|1|2|false", "2|c|2|NULL|true", "3|NULL|1|NULL|true", "4|d|2|NULL|true"];
    assert_eq!(h.versions(), expected);
    let head = |h: &Customers| *h.folder.open().plan(&PlanRequest::default()).unwrap().0.pins.values().next().unwrap();
    let before = head(&h);
    let again = run(&h.folder.open_at(DAYS[2]), &forced());
    assert_eq!(again.step("h").state, StepState::Unchanged, "{}", again.text());
    assert_eq!((again.summary.unchanged, again.summary.materialized), (1, 0));
    assert_eq!(again.step("h").rows, Some(5));
    assert_eq!(h.versions(), expected);
    assert_eq!(head(&h), before, "an unchanged rerun makes no snapshot");
}

#[test]
fn case_v89_nulls_are_compared_like_values() {
    let h = Customers::new("key=id");
    h.on(1, "id,v\n1,NULL\n2,x").assert_good();
    assert_eq!(h.on(2, "id,v\n2,x\n1,NULL").step("h").state, StepState::Unchanged);
    h.on(3, "id,v\n1,y\n2,NULL").assert_good();
    assert_eq!(h.versions(), ["1|NULL|1|3|false", "1|y|3|NULL|true", "2|x|1|3|false", "2|NULL|3|NULL|true"]);
}

#[test]
fn case_v89_a_deleted_key_is_closed_when_asked_for_and_opens_again_when_it_returns() {
    for (option, gone) in [("deletes=close", "1|a|1|2|false"), ("", "1|a|1|NULL|true")] {
        let h = Customers::new(&format!("key=id {option}"));
        h.on(1, "id,v\n1,a\n2,b").assert_good();
        let told = h.on(2, "id,v\n2,b");
        assert_eq!(told.step("h").state == StepState::Materialized, !option.is_empty());
        assert_eq!(h.versions(), [gone, "2|b|1|NULL|true"]);
        h.on(3, "id,v\n1,a\n2,b");
        let back = if option.is_empty() { vec![gone] } else { vec![gone, "1|a|3|NULL|true"] };
        assert_eq!(h.versions(), [back, vec!["2|b|1|NULL|true"]].concat());
    }
}

#[test]
fn an_empty_input_closes_everything_only_when_that_is_allowed() {
    let typed = "SELECT * FROM read_csv('data/in.csv', columns = {id: 'BIGINT', v: 'VARCHAR'})";
    let h = Customers::with_query("key=id deletes=close", typed);
    h.on(1, "id,v\n1,a").assert_good();
    let told = h.on(2, "id,v");
    expect![[r#"
        P504 guard the stage: the query gives no rows, so every key would be taken for deleted
        at line 1: materialize history ducklake://main/h key=id deletes=close
        help: if that is meant, say so: `materialize history … deletes=close allow_empty`
        committed: ducklake://main/h is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&h.folder.told_of(&told, "h"));
    assert_eq!(h.versions(), ["1|a|1|NULL|true"]);
    h.folder.write("//- pipelines/h.sql\n-- materialize history ducklake://main/h key=id deletes=close allow_empty\nSELECT * FROM read_csv('data/in.csv', columns = {id: 'BIGINT', v: 'VARCHAR'})\n");
    h.on(3, "id,v").assert_good();
    assert_eq!(h.versions(), ["1|a|1|3|false"]);
    assert_eq!(h.folder.query("SELECT count(*) FROM h_current"), ["0"]);
    // Without `deletes=close` an empty input says nothing about anyone.
    let open = Customers::with_query(
        "key=id",
        "SELECT * FROM read_csv('data/in.csv', columns = {id: 'BIGINT', v: 'VARCHAR'})",
    );
    open.on(1, "id,v\n1,a").assert_good();
    assert_eq!(open.on(2, "id,v").step("h").state, StepState::Unchanged);
}

#[test]
fn only_tracked_columns_begin_versions_and_the_others_stay_as_they_were() {
    let h = Customers::new("key=id track=v");
    h.on(1, "id,v,note\n1,a,first").assert_good();
    assert_eq!(h.on(2, "id,v,note\n1,a,second").step("h").state, StepState::Unchanged);
    h.on(3, "id,v,note\n1,b,third").assert_good();
    assert_eq!(h.folder.query("SELECT v, note FROM h ORDER BY valid_from"), ["a|first", "b|third"]);
}

#[test]
fn late_rows_are_placed_by_their_time_and_one_older_than_all_becomes_the_first() {
    let h = Customers::new("key=id updated_at=at");
    h.on(1, "id,v,at\n1,c,2026-01-03\n2,x,2026-01-02").assert_good();
    h.on(2, "id,v,at\n1,e,2026-01-05\n1,d,2026-01-04").assert_good();
    let told = h.on(3, "id,v,at\n1,a,2026-01-01\n1,c,2026-01-03");
    assert_eq!(told.step("h").changed, (0, 1));
    let told = h.on(4, "id,v,at\n1,b,2026-01-02");
    assert_eq!(told.step("h").changed, (1, 1), "the version before it ends earlier");
    let expected =
        ["1|a|1|2|false", "1|b|2|3|false", "1|c|3|4|false", "1|d|4|5|false", "1|e|5|NULL|true", "2|x|2|NULL|true"];
    assert_eq!(h.versions(), expected);
    let again = h.on(5, "id,v,at\n1,d,2026-01-04\n1,a,2026-01-01\n2,x,2026-01-02");
    assert_eq!(again.step("h").state, StepState::Unchanged);
}

#[test]
fn case_v89_a_time_that_comes_twice_is_one_version_and_contradictions_are_refused() {
    let h = Customers::new("key=id updated_at=at");
    h.on(1, "id,v,at\n1,a,2026-01-01\n1,a,2026-01-01").assert_good();
    assert_eq!(h.versions(), ["1|a|1|NULL|true"]);
    let told = h.on(2, "id,v,at\n1,b,2026-01-02\n1,c,2026-01-02");
    expect![[r#"
        P533 guard the stage: 1 value of `id` and `at` together have rows that contradict each other
        at line 1: materialize history ducklake://main/h key=id updated_at=at
        help: say which row counts: `order_by="<column> desc"`
        sample: id|_pt_time|_pt_count
          1|2026-01-02 00:00:00+00:00|2
        committed: ducklake://main/h is as it was before this run; nothing of this step is committed"#]]
    .assert_eq(&h.folder.told_of(&told, "h"));
    // What a later batch says of a known time corrects it.
    h.on(3, "id,v,at\n1,z,2026-01-01").assert_good();
    assert_eq!(h.versions(), ["1|z|1|NULL|true"]);
    let chosen = Customers::new("key=id updated_at=at order_by=\"v desc\"");
    chosen.on(1, "id,v,at\n1,b,2026-01-02\n1,c,2026-01-02\n1,a,2026-01-01").assert_good();
    assert_eq!(chosen.versions(), ["1|a|1|2|false", "1|c|2|NULL|true"]);
}

#[test]
fn a_row_without_a_time_is_refused() {
    let h = Customers::new("key=id updated_at=at");
    let told = h.on(1, "id,v,at\n1,a,2026-01-01\n2,b,NULL\n3,c,infinity");
    let failure = told.failure("h");
    assert_eq!(failure.code.as_str(), "P533");
    assert_eq!(failure.message, "2 rows have no time in `at`, so their versions have no beginning");
    let text = Customers::with_query("key=id updated_at=at", "SELECT 1 AS id, 'x' AS v, 'yesterday' AS at");
    let told = text.on(1, "");
    assert_eq!(told.failure("h").message, "`updated_at=at` is no time of microseconds: `at` is VARCHAR");
}

#[test]
fn case_a1_null_and_duplicate_keys_are_refused_with_their_rows() {
    let h = Customers::new("key=id");
    let told = h.on(1, "id,v\n1,a\nNULL,b\nNULL,c");
    expect![[r#"
        P502 guard the stage: 2 rows have NULL in the key `id`
        at line 1: materialize history ducklake://main/h key=id
        help: filter them out, or give them a value: `coalesce(id, …)`
        sample: id|v
          NULL|b
          NULL|c
        committed: nothing of this step is committed; Pintail has not written ducklake://main/h yet"#]]
    .assert_eq(&h.folder.told_of(&told, "h"));
    let told = h.on(1, "id,v\n1,a\n1,b");
    expect![[r#"
        P501 guard the stage: 1 value of the key `id` stand in several rows
        at line 1: materialize history ducklake://main/h key=id
        help: make the key complete, or say which row is kept: `order_by="<column> desc"`; when the rows are versions of one thing, say when each began: `updated_at=<column>`
        sample: id|_pt_count
          1|2
        committed: nothing of this step is committed; Pintail has not written ducklake://main/h yet"#]]
    .assert_eq(&h.folder.told_of(&told, "h"));
    let chosen = Customers::new("key=id order_by=v");
    chosen.on(1, "id,v\n1,b\n1,a").assert_good();
    assert_eq!(chosen.versions(), ["1|a|1|NULL|true"]);
}

#[test]
fn case_c15_columns_in_another_order_are_no_change() {
    let h = Customers::new("key=id");
    h.on(1, "id,v,w\n1,a,b").assert_good();
    assert_eq!(h.on(2, "w,v,id\nb,a,1").step("h").state, StepState::Unchanged);
    h.on(3, "w,v,id\na,b,1").assert_good();
    assert_eq!(h.folder.query("SELECT v, w FROM h ORDER BY valid_from"), ["a|b", "b|a"]);
}

#[test]
fn case_c16_another_type_or_a_lost_column_is_refused_and_no_policy_drops_a_column() {
    for policy in ["fail", "append_new_columns", "sync_all_columns"] {
        let h = Customers::new(&format!("key=id on_schema_change={policy}"));
        h.on(1, "id,v\n1,2").assert_good();
        let told = h.on(2, "id,v\n1,many");
        assert_eq!(told.failure("h").code.as_str(), "P505", "{policy}");
        let told = h.on(3, "id\n1");
        assert_eq!(told.failure("h").code.as_str(), "P505", "{policy}");
        assert_eq!(h.versions(), ["1|2|1|NULL|true"], "{policy}");
    }
}

#[test]
fn a_new_column_is_null_in_old_versions_and_begins_versions_where_it_has_a_value() {
    for (track, expected) in [
        ("", ["1|a|NULL|1|3", "1|a|x|3|NULL", "2|b|NULL|1|NULL"].as_slice()),
        ("track=v", ["1|a|NULL|1|NULL", "2|b|NULL|1|NULL"].as_slice()),
    ] {
        let h = Customers::new(&format!("key=id {track} on_schema_change=append_new_columns"));
        h.on(1, "id,v\n1,a\n2,b").assert_good();
        let told = h.on(3, "id,v,extra\n1,a,x\n2,b,NULL");
        told.assert_good();
        assert_eq!(told.notes(), ["h: adds `extra` VARCHAR"]);
        let rows = "SELECT id, v, extra, day(valid_from), day(valid_to) FROM h ORDER BY id, valid_from";
        assert_eq!(h.folder.query(rows), expected);
        // The view has the column as well.
        let extra = if track.is_empty() { "x" } else { "NULL" };
        assert_eq!(
            h.folder.query("SELECT * FROM h_current ORDER BY id"),
            [format!("1|a|{extra}"), "2|b|NULL".to_owned()]
        );
    }
}

#[test]
fn case_c19_an_older_version_has_the_columns_that_it_had() {
    let h = Customers::new("key=id on_schema_change=append_new_columns");
    let first = h.on(1, "id,v\n1,a").step("h").snapshot;
    h.on(2, "id,v,extra\n1,b,x").assert_good();
    let pintail = h.folder.open();
    assert_eq!(query(&pintail, "SELECT * EXCLUDE (valid_from) FROM h", first), ["1|a|NULL|true"]);
    assert_eq!(query(&pintail, "SELECT * FROM h_current", first), ["1|a"]);
}

#[test]
fn case_n68_huge_numbers_are_held_and_compared_exactly() {
    let h = Customers::with_query(
        "key=id",
        "SELECT id, sum(n) AS v FROM (SELECT 1 AS id, 9007199254740993::BIGINT + count(*) AS n FROM read_csv('data/in.csv')) GROUP BY id",
    );
    h.on(1, "x").assert_good();
    assert_eq!(h.on(2, "x").step("h").state, StepState::Unchanged);
    h.on(3, "x\n1").assert_good();
    assert_eq!(h.versions(), ["1|9007199254740993|1|3|false", "1|9007199254740994|3|NULL|true"]);
}

#[test]
fn a_change_that_the_engine_calls_equal_is_a_change() {
    let h = Customers::with_query(
        "key=id",
        "SELECT 1 AS id, (n || '0.0')::DOUBLE AS v, {'x': [(n || '0.0')::DOUBLE, 'nan'::DOUBLE]} AS s FROM (SELECT coalesce(min(sign), '') AS n FROM read_csv('data/in.csv', header = true, columns = {sign: 'VARCHAR'}))",
    );
    h.on(1, "sign").assert_good();
    assert_eq!(run(&h.folder.open_at(DAYS[1]), &forced()).step("h").state, StepState::Unchanged);
    h.on(3, "sign\n-").assert_good();
    assert_eq!(h.folder.query("SELECT v, s FROM h ORDER BY valid_from").len(), 2);
}

#[test]
fn columns_that_a_history_keeps_itself_are_refused_where_they_stand() {
    let h = Customers::with_query(
        "key=id",
        "SELECT 1 AS id, now() AS Valid_From, is_current FROM (SELECT true AS is_current)",
    );
    assert_eq!(
        h.folder.check(),
        [
            "Error P530 pipelines/h.sql:2 the column `Valid_From` is kept by the history table itself",
            "Error P530 pipelines/h.sql:2 the column `is_current` is kept by the history table itself",
        ]
    );
    let star = Customers::new("key=id");
    let told = star.on(1, "id,valid_to\n1,2026-01-01");
    expect![[r#"
        P530 compare the columns: the query has a column `valid_to`, which a history table keeps itself
        at line 2: SELECT * FROM read_csv('data/in.csv', nullstr = 'NULL')
        help: give it another name (`valid_to AS source_valid_to`), or leave it out: `* EXCLUDE (valid_to)`
        committed: nothing of this step is committed; Pintail has not written ducklake://main/h yet"#]]
    .assert_eq(&star.folder.told_of(&told, "h"));
}

#[test]
fn columns_that_the_line_names_must_be_there() {
    for (options, message) in [
        ("key=idd", "the query has no column `idd`, which the key names"),
        ("key=id track=vv", "the query has no column `vv`, which `track=` names"),
        ("key=id updated_at=att", "the query has no column `att`, which `updated_at=` names"),
    ] {
        let h = Customers::new(options);
        let told = h.on(1, "id,v,at\n1,a,2026-01-01");
        assert_eq!(told.failure("h").message, message);
        assert!(told.failure("h").help.as_ref().unwrap().starts_with("did you mean"), "{options}");
    }
}

#[test]
fn a_full_refresh_never_loses_history() {
    let h = Customers::new("key=id");
    h.on(1, "id,v\n1,a").assert_good();
    h.on(2, "id,v\n1,b").assert_good();
    let error = h.folder.open().plan(&refreshed()).unwrap_err();
    assert!(
        matches!(&error, RunnerError::Usage { message } if message == "`h` keeps history, which a full refresh would lose; leave it out: `--exclude 'h'`, or drop the table by hand when its history is not wanted any more"),
        "{error}"
    );
    h.folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 1 AS n\n");
    let without = PlanRequest { exclude: Some("h".to_owned()), ..refreshed() };
    h.folder.run(&without).assert_good();
    assert_eq!(h.versions(), ["1|a|1|2|false", "1|b|2|NULL|true"]);
}

#[test]
fn the_current_rows_are_a_view_that_others_may_read() {
    let h = Customers::new("key=id deletes=close");
    h.folder.write("//- pipelines/reader.sql\n-- materialize ducklake://main/reader\nSELECT id, v FROM h_current\n");
    h.on(1, "id,v\n1,a\n2,b").assert_good();
    assert_eq!(h.folder.query("SELECT * FROM reader ORDER BY id"), ["1|a", "2|b"]);
    assert_eq!(planned(&h.folder.open(), &PlanRequest::default()), Vec::<String>::new());
    let told = h.on(2, "id,v\n1,c");
    assert_eq!(told.steps.len(), 2, "{}", told.text());
    assert_eq!(h.folder.query("SELECT * FROM reader"), ["1|c"]);
    assert_eq!(h.folder.query("SELECT * FROM h_current"), ["1|c"]);
    // A reader that was left behind is due.
    h.folder.write("//- data/in.csv\nid,v\n1,d\n");
    h.folder.run(&only("h")).assert_good();
    assert_eq!(planned(&h.folder.open(), &PlanRequest::default()), ["reader: ducklake://main/h changed"]);
}

#[test]
fn the_view_comes_back_when_somebody_has_dropped_it() {
    let h = Customers::new("key=id");
    h.on(1, "id,v\n1,a").assert_good();
    foreign(&h.folder.open(), "DROP VIEW h_current");
    let told = h.folder.run(&force("h"));
    assert_eq!((told.step("h").state, told.step("h").changed), (StepState::Materialized, (0, 0)));
    assert_eq!(h.folder.query("SELECT * FROM h_current"), ["1|a"]);
    assert_eq!(h.folder.run(&force("h")).step("h").state, StepState::Unchanged);
}

#[test]
fn what_has_the_views_name_is_never_replaced() {
    for (what, sql) in
        [("a table", "CREATE TABLE h_current AS SELECT 42 AS n"), ("a view", "CREATE VIEW h_current AS SELECT 42 AS n")]
    {
        let h = Customers::new("key=id");
        h.folder.write("//- pipelines/other.sql\n-- materialize ducklake://main/other\nSELECT 1 AS n\n");
        h.folder.run(&only("other")).assert_good();
        foreign(&h.folder.open(), sql);
        let told = h.on(1, "id,v\n1,a");
        assert_eq!(told.failure("h").code.as_str(), "P531");
        assert_eq!(
            told.failure("h").message,
            format!("the current rows of h are to be read as h_current, but there is {what} of that name")
        );
        assert_eq!(h.folder.query("SELECT n FROM h_current"), ["42"]);
    }
}

#[test]
fn another_script_that_writes_the_view_is_found_by_check() {
    let h = Customers::new("key=id");
    h.folder.write("//- pipelines/z.sql\n-- materialize ducklake://main/h_current\nSELECT 1 AS n\n");
    assert_eq!(
        h.folder.check(),
        ["Error P302 pipelines/z.sql:1 `ducklake://main/h_current` is already written by `h`"]
    );
}

#[test]
fn a_table_without_history_does_not_become_one() {
    let folder =
        Folder::new("//- pipelines/h.sql\n-- materialize ducklake://main/h key=id\nSELECT 1 AS id, 'a' AS v\n");
    folder.run_all().assert_good();
    folder.write("//- pipelines/h.sql\n-- materialize history ducklake://main/h key=id on_schema_change=append_new_columns\nSELECT 1 AS id, 'a' AS v\n");
    let told = folder.run_all();
    assert_eq!(told.failure("h").code.as_str(), "P532");
    assert_eq!(folder.query("SELECT * FROM h"), ["1|a"]);
}

#[test]
fn tests_look_at_the_current_rows_unless_they_ask_for_the_table() {
    let h = Customers::new("key=id deletes=close");
    let header = "-- materialize history ducklake://main/h key=id deletes=close\n-- test unique id\n-- test accepted_values v = b,c\n-- test row_count 2..2 scope=table\n-- test only_letters v\n";
    h.folder.write(&format!(
        "//- pipelines/h.sql\n{header}SELECT * FROM read_csv('data/in.csv')\n//- tests/only_letters.sql\nSELECT * FROM this WHERE v = 'a'\n//- tests/as_current.sql\nSELECT * FROM h_current WHERE v = 'a'\n"
    ));
    // The first version is there in no run whose tests fail.
    let told = h.on(1, "id,v\n1,a");
    let failure = told.failure("h");
    assert_eq!(failure.code.as_str(), "P510");
    assert!(failure.message.starts_with("4 tests failed: "), "{}", failure.message);
    let lenient = header.replace("-- test row_count 2..2 scope=table\n", "").replace("= b,c", "= a,b,c");
    let lenient = lenient.replace("-- test only_letters v\n", "");
    std::fs::remove_file(h.folder.path().join("tests/as_current.sql")).unwrap();
    h.folder.write(&format!("//- pipelines/h.sql\n{lenient}SELECT * FROM read_csv('data/in.csv')\n"));
    h.on(1, "id,v\n1,a").assert_good();
    h.folder.write(&format!(
        "//- pipelines/h.sql\n{header}SELECT * FROM read_csv('data/in.csv')\n//- tests/as_current.sql\nSELECT * FROM h_current WHERE v = 'a'\n"
    ));
    h.on(2, "id,v\n1,b").assert_good();
    let tested = h.folder.open().test(None, None, None).unwrap();
    assert!(tested[0].tests.iter().all(|test| test.failures == Some(0)), "{:?}", tested[0].tests);
}

#[test]
fn a_clock_that_goes_back_never_makes_a_version_begin_before_the_one_that_it_follows() {
    let h = Customers::new("key=id deletes=close");
    h.on(5, "id,v\n1,a\n2,x").assert_good();
    h.on(3, "id,v\n1,b").assert_good();
    h.on(2, "id,v\n1,c\n2,x").assert_good();
    let wrong = "SELECT * FROM h WHERE valid_to <= valid_from";
    assert_eq!(h.folder.query(wrong), Vec::<String>::new());
    let versions = "SELECT id, string_agg(v, '' ORDER BY valid_from), count(*) FILTER (WHERE is_current) FROM h GROUP BY id ORDER BY id";
    assert_eq!(h.folder.query(versions), ["1|abc|1", "2|xx|1"]);
}

#[test]
fn versions_that_overlap_are_never_committed() {
    let h = Customers::new("key=id");
    h.on(1, "id,v\n1,a\n2,b").assert_good();
    foreign(&h.folder.open(), "INSERT INTO h VALUES (1, 'forged', TIMESTAMPTZ '2025-01-01', NULL, true)");
    let told = h.on(2, "id,v\n1,c\n2,b");
    assert_eq!(told.failure("h").code.as_str(), "P534", "{}", told.text());
    assert_eq!(h.folder.query("SELECT count(*) FROM h"), ["3"]);
}

#[test]
fn a_script_may_read_its_own_history() {
    let h = Customers::with_query(
        "key=id\n-- column id BIGINT\n-- column v BIGINT",
        "SELECT 1::BIGINT AS id, coalesce(max(v), 0) + 1 AS v FROM h WHERE is_current",
    );
    h.on(1, "").assert_good();
    run(&h.folder.open_at(DAYS[1]), &forced()).assert_good();
    assert_eq!(h.versions(), ["1|1|1|2|false", "1|2|2|NULL|true"]);
}

/// One staged row of the model; all times of the model are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    key: u32,
    time: i64,
    value: u32,
}

const SECOND: i64 = 1_000_000;

/// What the versions of one key must be, computed from all that ever came, the slow and obvious way.
#[derive(Clone, Debug, Default)]
struct Chain {
    /// Where a version begins: its row.
    starts: BTreeMap<i64, Row>,
    /// When the key was found to be gone.
    ends: BTreeSet<i64>,
}

impl Chain {
    fn end_of(&self, from: i64) -> Option<i64> {
        self.starts.keys().chain(&self.ends).copied().filter(|bound| from < *bound).min()
    }

    fn is_open(&self) -> bool {
        self.starts.keys().any(|from| self.end_of(*from).is_none())
    }

    /// Where the version that `time` belongs to begins.
    fn known(&self, time: i64) -> Option<i64> {
        let is_known = |(from, row): &(&i64, &Row)| **from == time || row.time == time;
        self.starts.iter().filter(is_known).map(|(from, _)| *from).max()
    }

    fn take_in(&mut self, mut rows: Vec<Row>, now: i64, reopens: bool) {
        rows.sort_unstable();
        let before = self.clone();
        for row in &rows {
            self.starts.insert(before.known(row.time).unwrap_or(row.time), *row);
        }
        let newest = *rows.last().unwrap();
        let closed = before.ends.iter().max().copied();
        if let (true, false, Some(closed)) = (reopens, before.starts.is_empty() || before.is_open(), closed)
            && newest.time < closed
        {
            self.starts.insert(now.max(closed), newest);
        }
    }
}

/// A small deterministic generator, so that a failing seed is a test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

static CLOCK: AtomicI64 = AtomicI64::new(0);

fn model_now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(CLOCK.load(Ordering::SeqCst)).unwrap()
}

/// Random batches with late rows, ties, corrections, deletions and returns give what a naive recomputation gives.
#[test]
fn random_batches_give_what_recomputing_everything_gives() {
    for (seed, closes) in [(11, false), (12, true), (13, true), (14, true)] {
        let options = if closes { "key=id updated_at=at deletes=close" } else { "key=id updated_at=at" };
        let h = Customers::with_query(
            options,
            "SELECT id, v, make_timestamptz(\"at\") AS \"at\" FROM read_csv('data/in.csv', columns = {id: 'BIGINT', 'at': 'BIGINT', v: 'BIGINT'})",
        );
        let mut dice = Dice(seed);
        let mut chains: BTreeMap<u32, Chain> = BTreeMap::new();
        for round in 1..=7_i64 {
            let now = round * 10 * SECOND;
            CLOCK.store(now, Ordering::SeqCst);
            let mut batch: BTreeMap<(u32, i64), Row> = BTreeMap::new();
            for _ in 0..1 + dice.roll(9) {
                // Mostly of this round, often late, sometimes ahead of the clock.
                let seconds = i64::try_from(dice.roll(6)).unwrap() - 3 - 10 * i64::try_from(dice.roll(3)).unwrap();
                let time = (now + seconds * SECOND).max(SECOND);
                let row = Row {
                    key: u32::try_from(dice.roll(4)).unwrap(),
                    time,
                    value: u32::try_from(dice.roll(3)).unwrap(),
                };
                batch.insert((row.key, row.time), row);
            }
            let lines: String = batch.values().map(|row| format!("{},{},{}\n", row.key, row.time, row.value)).collect();
            h.folder.write(&format!("//- data/in.csv\nid,at,v\n{lines}"));
            let told = run(&h.folder.open_at(model_now), &forced());
            assert!(told.steps.iter().all(|step| step.failure.is_none()), "{}", told.text());

            let keys: BTreeSet<u32> = batch.keys().map(|(key, _)| *key).collect();
            for key in &keys {
                let rows = batch.values().filter(|row| row.key == *key).copied().collect();
                chains.entry(*key).or_default().take_in(rows, now, closes);
            }
            if closes {
                for (_, chain) in chains.iter_mut().filter(|(key, chain)| !keys.contains(key) && chain.is_open()) {
                    let last = *chain.starts.keys().next_back().unwrap();
                    // A version that began later than now ends right after it began.
                    chain.ends.insert(now.max(last + 1));
                }
            }
            check_model(&h, &chains, &format!("seed {seed}, round {round}"));
        }
    }
}

fn check_model(h: &Customers, chains: &BTreeMap<u32, Chain>, when: &str) {
    let mut expected = Vec::new();
    for (key, chain) in chains {
        for (from, row) in &chain.starts {
            let to = chain.end_of(*from).map_or("NULL".to_owned(), |to| to.to_string());
            expected.push(format!("{key}|{}|{}|{from}|{to}|{}", row.value, row.time, to == "NULL"));
        }
    }
    let found = h.folder.query(
        "SELECT id, v, epoch_us(\"at\"), epoch_us(valid_from), epoch_us(valid_to), is_current FROM h ORDER BY id, valid_from",
    );
    assert_eq!(found, expected, "{when}");
}
