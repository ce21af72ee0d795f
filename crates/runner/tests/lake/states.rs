//! The states of slices on real lakes: what makes which slice stale, and what a selection by state runs.

use chrono::{DateTime, Utc};
use pintail_runner::Pintail;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, force_at, foreign, only, planned, run};

fn now() -> DateTime<Utc> {
    "2026-01-05T12:00:00Z".parse().unwrap()
}

/// `raw` daily, and `daily` that reads it; four days are expected.
const DAYS: &str = "//- pipelines/raw.sql
-- partitioned daily by=ts start=2026-01-01
-- materialize ducklake://main/raw
SELECT $partition_start AS ts, 1 AS n
//- pipelines/daily.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/daily
SELECT count(*) AS n FROM raw WHERE in_partition(ts)
";

fn states(pintail: &Pintail, select: Option<&str>) -> Vec<String> {
    let (statuses, _) = pintail.status(select, None).unwrap();
    let mut lines = Vec::new();
    for status in statuses {
        for range in status.ranges {
            let key = |key: &Option<pintail_core::partition::PartitionKey>| {
                key.as_ref().map_or("-".to_owned(), ToString::to_string)
            };
            let why = range.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            lines.push(format!("{} {}..{} {}{why}", status.script, key(&range.first), key(&range.last), range.state));
        }
    }
    lines
}

fn by_state(select: &str) -> PlanRequest {
    PlanRequest { select: Some(select.to_owned()), ..PlanRequest::default() }
}

#[test]
fn missing_days_are_selected_written_and_then_fresh() {
    let folder = Folder::new(DAYS);
    let pintail = folder.open_at(now);
    assert_eq!(
        states(&pintail, None),
        ["raw 2026-01-01..2026-01-04 missing (never written)", "daily 2026-01-01..2026-01-04 missing (never written)"]
    );
    let told = run(&pintail, &by_state("missing"));
    assert_eq!(told.assert_good().steps.len(), 8);
    assert_eq!(states(&pintail, None), ["raw 2026-01-01..2026-01-04 fresh", "daily 2026-01-01..2026-01-04 fresh"]);
    assert_eq!(run(&pintail, &by_state("stale+")).steps.len(), 0);
}

#[test]
fn a_backfilled_day_makes_one_day_stale() {
    let folder = Folder::new(DAYS);
    let pintail = folder.open_at(now);
    run(&pintail, &by_state("missing")).assert_good();
    run(&pintail, &force_at("raw", "2026-01-02")).assert_good();
    assert_eq!(
        states(&pintail, Some("daily")),
        [
            "daily 2026-01-01..2026-01-01 fresh",
            "daily 2026-01-02..2026-01-02 stale (ducklake://main/raw changed)",
            "daily 2026-01-03..2026-01-04 fresh"
        ]
    );
    assert_eq!(planned(&pintail, &by_state("stale")), ["daily 2026-01-02: ducklake://main/raw changed"]);
    run(&pintail, &by_state("stale")).assert_good();
    assert_eq!(states(&pintail, Some("stale")), Vec::<String>::new());
}

#[test]
fn case_b12_late_rows_of_others_make_their_own_days_stale() {
    let folder = Folder::new(
        "//- pipelines/daily.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/daily
SELECT count(*) AS n FROM raw WHERE in_partition(ts)
",
    );
    let pintail = folder.open_at(now);
    foreign(&pintail, "CREATE TABLE raw (ts TIMESTAMPTZ, n INTEGER); ALTER TABLE raw SET PARTITIONED BY (day(ts))");
    foreign(
        &pintail,
        "INSERT INTO raw SELECT TIMESTAMPTZ '2026-01-01 08:00:00+00' + to_days(d::INTEGER), 1 FROM range(4) t(d)",
    );
    run(&pintail, &by_state("missing")).assert_good();
    foreign(&pintail, "INSERT INTO raw VALUES ('2026-01-02 23:59:59.999999+00', 2)");
    assert_eq!(
        states(&pintail, None),
        [
            "daily 2026-01-01..2026-01-01 fresh",
            "daily 2026-01-02..2026-01-02 stale (ducklake://main/raw changed)",
            "daily 2026-01-03..2026-01-04 fresh"
        ]
    );
    run(&pintail, &by_state("stale")).assert_good();
    assert_eq!(folder.query("SELECT _partition, n FROM daily ORDER BY ALL")[1], "2026-01-02|2");
    // An unpartitioned table cannot tell: every day counts.
    foreign(&pintail, "ALTER TABLE raw RESET PARTITIONED BY");
    run(&pintail, &by_state("stale")).assert_good();
    foreign(&pintail, "INSERT INTO raw VALUES ('2026-01-03 10:00:00+00', 2)");
    assert_eq!(states(&pintail, None), ["daily 2026-01-01..2026-01-04 stale (ducklake://main/raw changed)"]);
}

#[test]
fn another_column_of_time_says_nothing_about_the_slice() {
    let folder = Folder::new(
        "//- pipelines/raw.sql
-- partitioned daily by=received start=2026-01-01
-- materialize ducklake://main/raw
SELECT $partition_start AS received, $partition_start - INTERVAL 1 DAY AS happened
//- pipelines/daily.sql
-- partitioned daily start=2026-01-01
-- materialize ducklake://main/daily allow_empty
SELECT count(*) AS n FROM raw WHERE in_partition(happened)
",
    );
    let pintail = folder.open_at(now);
    run(&pintail, &by_state("missing")).assert_good();
    run(&pintail, &force_at("raw", "2026-01-03")).assert_good();
    assert_eq!(states(&pintail, Some("daily")), ["daily 2026-01-01..2026-01-04 stale (ducklake://main/raw changed)"]);
}

#[test]
fn a_table_that_others_put_in_the_place_of_ours_is_of_unknown_origin() {
    for sql in [
        "CREATE OR REPLACE TABLE t AS SELECT 9 AS n",
        "CREATE TABLE u AS SELECT 9 AS n; ALTER TABLE t RENAME TO old; ALTER TABLE u RENAME TO t",
    ] {
        let folder = Folder::new("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 1 AS n\n");
        let pintail = folder.open_at(now);
        run(&pintail, &PlanRequest::default()).assert_good();
        foreign(&pintail, sql);
        let unknown = ["t -..- unknown (the table there was made by something else: `pintail adopt`)"];
        assert_eq!(states(&pintail, None), unknown, "{sql}");
        let told = run(&pintail, &PlanRequest::default());
        assert_eq!(told.failure("t").code.as_str(), "P508", "{sql}");
        assert_eq!(folder.query("FROM t"), ["9"], "{sql}");
        pintail.adopt("t", None).unwrap();
        assert_eq!(states(&pintail, None), ["t -..- unknown (taken over, never written)"], "{sql}");
        run(&pintail, &PlanRequest::default()).assert_good();
        assert_eq!(folder.query("FROM t"), ["1"], "{sql}");
    }
}

#[test]
fn a_table_that_others_renamed_away_is_missing() {
    let folder = Folder::new("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 1 AS n\n");
    let pintail = folder.open_at(now);
    run(&pintail, &PlanRequest::default()).assert_good();
    foreign(&pintail, "ALTER TABLE t RENAME TO away");
    assert_eq!(states(&pintail, None), ["t -..- missing (never written)"]);
    run(&pintail, &PlanRequest::default()).assert_good();
}

#[test]
fn an_open_day_is_partial_and_comes_again_after_it_closed() {
    fn next_day() -> DateTime<Utc> {
        "2026-01-06T00:30:00Z".parse().unwrap()
    }
    let folder = Folder::new(DAYS);
    let pintail = folder.open_at(now);
    run(&pintail, &force_at("raw", "2026-01-05")).assert_good();
    let partial = |pintail: &Pintail| {
        states(pintail, Some("raw")).into_iter().filter(|line| line.contains("partial")).collect::<Vec<_>>()
    };
    assert_eq!(partial(&pintail), ["raw 2026-01-05..2026-01-05 partial (its period is still open)"]);
    let pintail = folder.open_at(next_day);
    assert_eq!(planned(&pintail, &by_state("partial")), ["raw 2026-01-05: its period was still open last time"]);
    run(&pintail, &only("raw")).assert_good();
    assert_eq!(partial(&pintail), Vec::<String>::new());
}

#[test]
fn another_value_of_a_variable_makes_its_scripts_stale() {
    let folder = Folder::new(
        "//- pintail.toml
[vars]
country = \"DE\"
//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT $country AS country
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT 1 AS n
",
    );
    folder.run_all().assert_good();
    folder.write("//- pintail.toml\n[vars]\ncountry = \"FR\"\n");
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), ["a: the script changed"]);
}
