//! What the rollups say, by hand: the recomputation and the fold agree with it.

use expect_test::{Expect, expect};

use super::*;

const SIGNAL: &str =
    "subject, subject_bucket, name, \"timestamp\", source, cloud_event_id, value_number, loc_lat, loc_lon";

/// Writes one batch per element, then shows the rollup, which must be what the recomputation says.
fn check(table: &str, columns: &str, batches: &[&str], shown: &str, expected: Expect) {
    let (_instance, session) = session();
    let tables = Tables::make(&session, "memory.main", table);
    for batch in batches {
        tables.write(columns, batch);
    }
    let query = |relation: &str| format!("SELECT {shown} FROM {relation} ORDER BY ALL");
    let recomputed = tables.rows(&query(&format!("({})", tables.rollup().recompute(&tables.base))));
    expected.assert_eq(&recomputed);
    assert_eq!(tables.rows(&query(&tables.rollup_table)), recomputed);
    assert_eq!(tables.drift(), Drift::default());
}

fn check_signals(batches: &[&str], shown: &str, expected: Expect) {
    check("signals", SIGNAL, batches, shown, expected);
}

#[test]
fn the_newest_value_counts_however_late_the_others_come() {
    check_signals(
        &[
            "('a', 1, 'speed', TIMESTAMPTZ '2025-01-02', 's', 'e2', 20, NULL, NULL)",
            "('a', 1, 'speed', TIMESTAMPTZ '2025-01-01', 's', 'e1', 10, NULL, NULL),
             ('a', 1, 'speed', TIMESTAMPTZ '2025-01-03', 's', 'e3', NULL, NULL, NULL),
             ('b', 2, 'speed', TIMESTAMPTZ '2025-01-01', 's', 'e4', 0, NULL, NULL)",
            "('a', 1, 'speed', TIMESTAMPTZ '2024-11-01', 's', 'e0', 5, NULL, NULL)",
        ],
        "subject, subject_bucket, \"timestamp\"::DATE, value_number, cloud_event_id, count, first_seen::DATE, last_seen::DATE",
        expect![[r#"
            a | 1 | 2025-01-03 | - | e3 | 4 | 2024-11-01 | 2025-01-03
            b | 2 | 2025-01-01 | 0.0 | e4 | 1 | 2025-01-01 | 2025-01-01
        "#]],
    );
}

#[test]
fn of_values_at_one_time_the_lowest_event_counts_once() {
    check_signals(
        &[
            "('a', 1, 'speed', TIMESTAMPTZ '2025-01-02', 's', 'e5', 5, NULL, NULL)",
            "('a', 1, 'speed', TIMESTAMPTZ '2025-01-02', 's', 'e7', 7, NULL, NULL)",
            "('a', 1, 'speed', TIMESTAMPTZ '2025-01-02', 't', 'e3', 3, NULL, NULL),
             ('a', 1, 'speed', TIMESTAMPTZ '2025-01-02', 's', 'e3', 2, NULL, NULL),
             ('a', 1, 'speed', TIMESTAMPTZ '2025-01-02', NULL, 'e3', 1, NULL, NULL)",
        ],
        "value_number, cloud_event_id, source, count",
        expect![[r#"
            2.0 | e3 | s | 1
        "#]],
    );
}

#[test]
fn case_p76_a_place_at_null_island_is_none_and_a_newer_value_without_place_keeps_the_older_place() {
    check_signals(
        &[
            "('a', 1, 'place', TIMESTAMPTZ '2025-01-01', 's', 'e1', NULL, 52.1, 0)",
            "('a', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e2', NULL, 0, 0),
             ('b', 2, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e3', NULL, 0, 0)",
        ],
        "subject, \"timestamp\"::DATE, loc_lat, loc_lon, loc_ts::DATE, count",
        expect![[r#"
            a | 2025-01-02 | 52.1 | 0.0 | 2025-01-01 | 2
            b | 2025-01-02 | - | - | - | 1
        "#]],
    );
}

#[test]
fn a_place_that_is_overruled_at_its_own_time_gives_way_to_the_one_before() {
    check_signals(
        &[
            "('a', 1, 'place', TIMESTAMPTZ '2025-01-01', 's', 'e1', NULL, 1, 1),
             ('a', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e5', NULL, 2, 2),
             ('b', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e5', NULL, 3, 3)",
            "('a', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e4', NULL, 0, 0),
             ('b', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e4', 7, NULL, NULL)",
        ],
        "subject, value_number, loc_lat, loc_ts::DATE, count",
        expect![[r#"
            a | - | 1.0 | 2025-01-01 | 2
            b | 7.0 | - | - | 1
        "#]],
    );
}

#[test]
fn a_place_that_loses_at_its_own_time_does_not_stand_in_for_one_that_is_overruled() {
    check_signals(
        &[
            "('a', 1, 'place', TIMESTAMPTZ '2025-01-01', 's', 'e5', NULL, 1, 1),
             ('a', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e0', 7, NULL, NULL)",
            "('a', 1, 'place', TIMESTAMPTZ '2025-01-01', 's', 'e4', NULL, NULL, NULL),
             ('a', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e1', NULL, 2, 2)",
        ],
        "value_number, loc_lat, loc_ts, count",
        expect![[r#"
            7.0 | - | - | 2
        "#]],
    );
}

#[test]
fn events_are_counted_once_per_time_and_source() {
    check(
        "events",
        "subject, subject_bucket, name, \"timestamp\", source, cloud_event_id",
        &[
            "('a', 1, 'safety.collision', TIMESTAMPTZ '2025-01-02', 's', 'e1')",
            "('a', 1, 'safety.collision', TIMESTAMPTZ '2025-01-02', 's', 'e2'),
             ('a', 1, 'safety.collision', TIMESTAMPTZ '2025-01-02', NULL, 'e1'),
             ('a', 1, 'safety.collision', TIMESTAMPTZ '2025-01-01', 's', 'e3')",
            "('a', 1, 'safety.collision', TIMESTAMPTZ '2025-01-02', NULL, 'e9')",
        ],
        "subject, name, count, first_seen::DATE, last_seen::DATE",
        expect![[r#"
            a | safety.collision | 3 | 2025-01-01 | 2025-01-02
        "#]],
    );
}

#[test]
fn a_key_that_is_there_twice_stops_the_fold_and_is_seen_by_the_check() {
    let (_instance, session) = session();
    let tables = Tables::make(&session, "memory.main", "signals");
    tables.write(SIGNAL, "('a', 1, 'speed', TIMESTAMPTZ '2025-01-01', 's', 'e1', 1, NULL, NULL)");
    // What a delete that hits nothing would leave behind, and what nobody folded.
    tables.sql(format!("INSERT INTO {0} BY NAME SELECT * REPLACE (0 AS count) FROM {0}", tables.rollup_table));
    tables.sql(format!("INSERT INTO {0} BY NAME SELECT * REPLACE ('b' AS subject) FROM {0}", tables.base));
    tables.sql(format!(
        "INSERT INTO {0} BY NAME SELECT * REPLACE ('c' AS subject) FROM {0} LIMIT 1",
        tables.rollup_table
    ));
    assert_eq!((tables.drift().missing, tables.drift().extra), (1, 2));
    assert_ne!(tables.drift().healing("signals_latest"), pintail_streams::Healing::Keep);

    tables.sql(
        "CREATE OR REPLACE TEMP TABLE _pt_fold_rows AS SELECT * FROM signals_latest WHERE subject = 'a'".to_owned(),
    );
    let proof = crate::rollup::fold::prove("signals_latest", &tables.rollup_table);
    let error = format!("{:?}", session.run(&proof).unwrap_err());
    assert!(error.contains("(rows expected, rows found): 1, 2"), "{error}");

    tables.run(&tables.rollup().rebuild(&tables.base, &tables.rollup_table));
    assert_eq!(tables.drift(), Drift::default());
}

#[test]
fn a_value_that_differs_is_drift() {
    let (_instance, session) = session();
    let tables = Tables::make(&session, "memory.main", "signals");
    tables.write(SIGNAL, "('a', 1, 'speed', TIMESTAMPTZ '2025-01-01', 's', 'e1', NULL, NULL, NULL)");
    tables.sql(format!("UPDATE {} SET value_number = 0", tables.rollup_table));
    assert_eq!(tables.drift(), Drift { different: 1, ..Drift::default() });
}

#[test]
fn what_goes_is_taken_out_and_what_stays_keeps_its_newest() {
    let (_instance, session) = session();
    let tables = Tables::make(&session, "memory.main", "signals");
    tables.write(
        SIGNAL,
        "('a', 1, 'place', TIMESTAMPTZ '2025-01-01', 's', 'e1', NULL, 1, 1),
         ('a', 1, 'place', TIMESTAMPTZ '2025-01-03', 's', 'e2', 7, NULL, NULL),
         ('b', 1, 'place', TIMESTAMPTZ '2025-01-01', 's', 'e3', NULL, 1, 1),
         ('c', 1, 'place', TIMESTAMPTZ '2025-01-02', 's', 'e4', NULL, 1, 1)",
    );
    tables.retire("TIMESTAMPTZ '2025-01-02'");
    let shown = format!(
        "SELECT subject, value_number, loc_ts, count, first_seen::DATE FROM {} ORDER BY ALL",
        tables.rollup_table
    );
    expect![[r#"
        a | 7.0 | - | 1 | 2025-01-03
        c | - | 2025-01-02 00:00:00+00:00 | 1 | 2025-01-02
    "#]]
    .assert_eq(&tables.rows(&shown));
    assert_eq!(tables.drift(), Drift::default());
}
