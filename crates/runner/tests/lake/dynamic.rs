//! Partitions that are not of time: values of a payload, and increments by a column.

use chrono::{DateTime, Utc};
use pintail_runner::pintail::PlanRequest;
use pintail_runner::run::StepState;

use crate::harness::{Folder, Told, at, foreign, only, planned, query, refreshed, run};

const BY_COUNTRY: &str = "//- pipelines/by_country.sql
-- partitioned dynamic key=$.order.country
-- materialize ducklake://main/by_country
SELECT $partition AS country, length($partition) AS n
";

/// `events` is made by somebody else; `copy` takes what is new.
fn events(materialize: &str) -> Folder {
    Folder::new(&format!(
        "//- pipelines/copy.sql
-- partitioned dynamic key=ts
-- materialize ducklake://main/copy {materialize}
SELECT id, ts FROM events WHERE in_partition(ts)
"
    ))
}

fn create_events(folder: &Folder, data_type: &str) {
    foreign(&folder.open(), &format!("CREATE TABLE events (id INTEGER, ts {data_type})"));
}

fn ids(folder: &Folder) -> Vec<String> {
    folder.query("SELECT id FROM copy ORDER BY ALL")
}

fn state(told: &Told) -> Vec<StepState> {
    told.steps.iter().map(|step| step.state).collect()
}

#[test]
fn a_value_is_a_slice_of_its_own() {
    let folder = Folder::new(BY_COUNTRY);
    folder.run(&at("DE")).assert_good();
    folder.run(&at("it's \"é\"/%20;--")).assert_good();
    let payload = |json: &str| PlanRequest { payload: Some(json.to_owned()), ..PlanRequest::default() };
    folder.run(&payload(r#"{"order": {"country": "FR"}}"#)).assert_good();
    let rows = folder.query("SELECT country, n, _partition FROM by_country ORDER BY ALL");
    assert_eq!(rows, ["DE|2|DE", "FR|2|FR", "it's \"é\"/%20;--|15|it's \"é\"/%20;--"]);
    assert_eq!(folder.run(&at("DE")).summary.up_to_date, 1);
    folder.run(&PlanRequest { force: true, ..at("DE") }).assert_good();
    assert_eq!(folder.query("SELECT count(*) FROM by_country"), ["3"]);
    let error = folder.open().plan(&payload(r#"{"order": {}}"#)).unwrap_err().to_string();
    assert_eq!(error, "`by_country`: the payload has nothing at `$.order.country`");
}

#[test]
fn without_a_value_it_is_left_out_and_says_so() {
    let folder = Folder::new(BY_COUNTRY);
    let (plan, _) = folder.open().plan(&PlanRequest::default()).unwrap();
    assert!(plan.steps.is_empty());
    assert!(format!("{:?}", plan.hints).contains("give it with `--partition <value>` or `--payload <json>`"));
}

#[test]
fn increments_begin_where_the_last_one_ended() {
    let folder = events("append");
    create_events(&folder, "TIMESTAMPTZ");
    let insert = |values: &str| foreign(&folder.open(), &format!("INSERT INTO events VALUES {values}"));
    insert("(1, '2026-01-01 10:00:00.000001+00'), (2, '2026-01-01 10:00:00.000002+00')");
    assert_eq!(folder.run_all().assert_good().step("copy").changed, (0, 2));
    assert_eq!(folder.run_all().summary.up_to_date, 1);
    insert("(3, '2026-01-01 10:00:00.000003+00'), (4, '2026-01-01 12:00:00+02')");
    let told = folder.run_all();
    // The fourth lies at the microsecond of none: it is before what was consumed, so it is late.
    assert_eq!(told.step("copy").changed, (0, 1));
    assert!(told.notes()[0].contains("1 row of ducklake://main/events came late"), "{:?}", told.notes());
    assert_eq!(ids(&folder), ["1", "2", "3"]);
    // The lake alone knows what was consumed.
    folder.lose_store();
    folder.open().rebuild_state().unwrap();
    insert("(5, '2026-01-02 00:00:00+00')");
    assert_eq!(folder.run_all().assert_good().step("copy").changed, (0, 1));
    assert_eq!(ids(&folder), ["1", "2", "3", "5"]);
}

#[test]
fn case_b12_late_rows_and_ties_are_taken_in_by_a_key_and_told_without_one() {
    for (materialize, expected) in [("key=id", vec!["1", "2", "3", "4"]), ("append", vec!["1", "2"])] {
        let folder = events(materialize);
        create_events(&folder, "TIMESTAMP");
        let insert = |values: &str| foreign(&folder.open(), &format!("INSERT INTO events VALUES {values}"));
        insert("(1, '2026-01-13 10:00'), (2, '2026-01-15 10:00')");
        folder.run_all().assert_good();
        insert("(3, '2026-01-13 09:00'), (4, '2026-01-15 10:00')");
        let told = folder.run_all();
        assert_eq!(ids(&folder), expected, "{materialize}");
        let note = told.notes().join("\n");
        assert!(note.contains("2 rows of ducklake://main/events came late"), "{note}");
        assert_eq!(note.contains("reaches back"), materialize == "key=id", "{note}");
        assert_eq!(note.contains("`--full-refresh`"), materialize == "append", "{note}");
    }
}

#[test]
fn case_b13_a_clock_in_the_future_does_not_move_the_watermark() {
    let folder = events("append");
    create_events(&folder, "TIMESTAMPTZ");
    fn then() -> DateTime<Utc> {
        "2026-01-15T10:00:00Z".parse().unwrap()
    }
    fn later() -> DateTime<Utc> {
        "2026-01-20T10:00:00Z".parse().unwrap()
    }
    foreign(
        &folder.open(),
        "INSERT INTO events VALUES (1, '2026-01-15 09:00:00+00'), (2, '2026-01-15 10:30:00+00'), (3, '2026-01-19 00:00:00+00')",
    );
    let told = run(&folder.open_at(then), &PlanRequest::default());
    assert_eq!(ids(&folder), ["1", "2"]);
    assert!(told.notes()[0].contains("lie too far ahead of now"), "{:?}", told.notes());
    foreign(&folder.open(), "INSERT INTO events VALUES (4, '2026-01-15 10:45:00+00')");
    run(&folder.open_at(then), &PlanRequest::default()).assert_good();
    assert_eq!(ids(&folder), ["1", "2", "4"]);
    assert_eq!(planned(&folder.open_at(then), &PlanRequest::default()), Vec::<String>::new());
    let due = planned(&folder.open_at(later), &PlanRequest::default());
    assert_eq!(due, ["copy: rows that lay in the future are due"]);
    run(&folder.open_at(later), &PlanRequest::default()).assert_good();
    assert_eq!(ids(&folder), ["1", "2", "3", "4"]);
}

#[test]
fn keys_of_every_ordered_type_work() {
    let cases = [
        ("DATE", "'2026-01-01'", "'2026-01-02'"),
        ("BIGINT", "-9223372036854775808", "7"),
        ("DECIMAL(18,3)", "0.001", "0.002"),
        ("VARCHAR", "'a''b'", "'ä'"),
        ("TIMESTAMP_NS", "'2026-01-01 00:00:00.000000001'", "'2026-01-01 00:00:00.000000002'"),
    ];
    for (data_type, first, second) in cases {
        let folder = events("append");
        create_events(&folder, data_type);
        foreign(&folder.open(), &format!("INSERT INTO events VALUES (1, {first}), (9, NULL)"));
        let told = folder.run_all();
        assert!(told.notes().join("\n").contains("1 row of ducklake://main/events with NULL in `ts`"), "{data_type}");
        foreign(&folder.open(), &format!("INSERT INTO events VALUES (2, {second})"));
        assert_eq!(folder.run_all().assert_good().step("copy").changed, (0, 1), "{data_type}");
        assert_eq!(ids(&folder), ["1", "2"], "{data_type}");
    }
}

#[test]
fn an_empty_increment_is_unchanged_and_is_not_due_again() {
    let folder = events("append");
    create_events(&folder, "TIMESTAMPTZ");
    folder.run_all().assert_good();
    foreign(&folder.open(), "INSERT INTO events VALUES (1, '2026-01-01 00:00:00+00')");
    folder.run_all().assert_good();
    foreign(&folder.open(), "DELETE FROM events");
    assert_eq!(state(&folder.run_all()), [StepState::Unchanged]);
    assert_eq!(folder.run_all().summary.up_to_date, 1);
    assert_eq!(ids(&folder), ["1"]);
}

#[test]
fn the_bounds_have_the_type_of_the_column() {
    let folder = Folder::new(
        "//- pipelines/copy.sql
-- partitioned dynamic key=seq
-- materialize ducklake://main/copy append
SELECT id, $partition_end - seq AS before_end, $partition AS upto FROM events
WHERE seq > $partition_start AND seq <= $partition_end
",
    );
    foreign(&folder.open(), "CREATE TABLE events (id INTEGER, seq BIGINT)");
    foreign(&folder.open(), "INSERT INTO events VALUES (1, 5), (2, 7)");
    folder.run_all().assert_good();
    foreign(&folder.open(), "INSERT INTO events VALUES (3, 9)");
    let preview = folder.open().preview("copy", None, 10).unwrap().text_rows().unwrap();
    assert_eq!(preview.len(), 1);
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT * FROM copy ORDER BY ALL"), ["1|2|7", "2|0|7", "3|0|9"]);
    folder.run(&refreshed()).assert_good();
    assert_eq!(folder.query("SELECT * FROM copy ORDER BY ALL"), ["1|4|9", "2|2|9", "3|0|9"]);
}

#[test]
fn case_a10_nothing_is_written_when_it_is_not_known_what_was_consumed() {
    let folder = Folder::new(
        "//- pipelines/copy.sql
-- materialize ducklake://main/copy append
SELECT id, ts FROM events
",
    );
    create_events(&folder, "TIMESTAMPTZ");
    foreign(&folder.open(), "INSERT INTO events VALUES (1, '2026-01-01 00:00:00+00')");
    folder.run_all().assert_good();
    folder.write(
        "//- pipelines/copy.sql
-- partitioned dynamic key=ts
-- materialize ducklake://main/copy append
SELECT id, ts FROM events WHERE in_partition(ts)
",
    );
    let told = folder.run_all();
    let text = folder.told_of(&told, "copy");
    assert!(text.starts_with("P314 find the increment: what ducklake://main/copy has consumed is not known"), "{text}");
    assert!(text.contains("`pintail run --select copy --full-refresh`"), "{text}");
    assert_eq!(ids(&folder), ["1"]);
    folder.run(&refreshed()).assert_good();
    assert_eq!(ids(&folder), ["1"]);
}

#[test]
fn the_table_that_the_increments_go_by_must_be_clear() {
    let folder = Folder::new(
        "//- pipelines/joined.sql
-- partitioned dynamic key=ts
-- materialize ducklake://main/joined append
SELECT a.ts FROM a JOIN b USING (ts) WHERE in_partition(a.ts)
",
    );
    foreign(&folder.open(), "CREATE TABLE a (ts TIMESTAMPTZ); CREATE TABLE b (ts TIMESTAMPTZ)");
    let told = folder.run_all();
    let text = folder.told_of(&told, "joined");
    assert!(text.starts_with("P313 find the increment: several of what it reads have a column `ts`"), "{text}");
    folder.write(
        "//- pipelines/joined.sql
-- partitioned dynamic key=ts
-- on ducklake://main/a
-- materialize ducklake://main/joined append
SELECT a.ts FROM a JOIN b USING (ts) WHERE in_partition(a.ts)
",
    );
    folder.run_all().assert_good();
}

#[test]
fn an_increment_reads_what_an_earlier_step_of_the_run_has_written() {
    let folder = Folder::new(
        "//- pipelines/src.sql
-- materialize ducklake://main/src
SELECT range AS n FROM range(3)
//- pipelines/tail.sql
-- partitioned dynamic key=n
-- materialize ducklake://main/tail append
SELECT n FROM src WHERE in_partition(n)
",
    );
    let told = folder.run_all();
    assert_eq!(told.assert_good().step("tail").changed, (0, 3));
    assert_eq!(query(&folder.open(), "SELECT sum(n) FROM tail", None), ["3"]);
    let pintail = folder.open();
    assert_eq!(planned(&pintail, &only("tail")), Vec::<String>::new());
}

#[test]
fn an_increment_whose_query_asks_for_all_of_it_is_refused_by_check() {
    let folder = Folder::new(
        "//- pipelines/tail.sql
-- partitioned dynamic key=n
-- materialize ducklake://main/tail append
SELECT n FROM src
",
    );
    let found = folder.check();
    let expected = "Error P313 pipelines/tail.sql:1 the query does not ask for what is new in `n`";
    assert!(found.iter().any(|line| line.starts_with(expected)), "{found:?}");
    folder.write(
        "//- pipelines/tail.sql
-- partitioned dynamic key=n
-- materialize ducklake://main/tail append
SELECT n FROM src WHERE n > $partition_start AND n <= $partition_end
",
    );
    assert!(!folder.check().iter().any(|line| line.starts_with("Error")), "{:?}", folder.check());
}
