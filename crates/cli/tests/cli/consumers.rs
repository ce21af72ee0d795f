//! `consume`: consumers as a person meets them, and as a kill meets them.

use expect_test::expect;
use pintail_testkit::{Project, pintail};

use crate::{check, run};

/// One event per row of `events.csv`, as somebody else writes them.
const PROJECT: &str = r#"//- /pintail.toml
[consumer.decode]
source = "ducklake://main/raw_events"
decoder = "cloudevents-default"
//- /pipelines/raw.sql
-- materialize manual ducklake://main/raw_events
CREATE TABLE IF NOT EXISTS raw_events (
  subject VARCHAR, "time" TIMESTAMPTZ, type VARCHAR, id VARCHAR, source VARCHAR, producer VARCHAR,
  data_content_type VARCHAR, data_version VARCHAR, extras VARCHAR, data VARCHAR, data_base64 BLOB, data_index_key VARCHAR,
  voids_id VARCHAR
);
INSERT INTO raw_events BY NAME
SELECT 'car-' || (i % 3) AS subject, TIMESTAMPTZ '2026-06-01 00:00:00Z' + INTERVAL (i) SECOND AS "time",
       'dimo.status' AS type, 'e' || i AS id, '0xA' AS source, '{}' AS extras,
       '{"signals":[{"name":"speed","timestamp":"2026-06-01T00:00:00Z","value":' || if(i = 4, '"fast"', i::VARCHAR) || '}]}' AS data
FROM range(getvariable('from')::BIGINT, getvariable('to')::BIGINT) r(i);
"#;

pub fn project() -> Project {
    let text = PROJECT.replace("getvariable('from')", "$first").replace("getvariable('to')", "$last");
    Project::new(&text.replace("[consumer.decode]", "[vars]\nfirst = 0\nlast = 6\n[consumer.decode]"))
}

pub fn more(project: &Project, first: u32, last: u32) {
    run(project, &format!("run --force --var first={first} --var last={last}")).expect_ok();
}

#[test]
fn a_consumer_is_run_listed_shown_reset_and_replayed() {
    let project = project();
    check(
        &project,
        "consume list",
        expect![[r#"
        exit code 0
        --- stdout
        consumer  state        lag  unread  cursor  head  dead letters  source
        decode    no lake yet    -       -       -     -             -  ducklake://main/raw_events
    "#]],
    );
    check(
        &project,
        "consume run",
        expect![[r#"
            exit code 0
            --- stdout
            decode: nothing new
            --- stderr
            decode: its source ducklake://main/raw_events does not exist yet; `pintail run --select raw` makes it
        "#]],
    );
    more(&project, 0, 6);
    check(
        &project,
        "consume list",
        expect![[r#"
        exit code 0
        --- stdout
        consumer  state      lag  unread  cursor  head  dead letters  source
        decode    never run    -       0       -     3             0  ducklake://main/raw_events
    "#]],
    );
    check(
        &project,
        "consume run",
        expect![[r#"
            exit code 0
            --- stdout
            decode: up to snapshot 3, 6 rows read, 5 in signals, 0 in events, 1 dead letter
        "#]],
    );
    check(
        &project,
        "consume run decode",
        expect![[r#"
        exit code 0
        --- stdout
        decode: nothing new
    "#]],
    );
    check(
        &project,
        "consume list",
        expect![[r#"
        exit code 0
        --- stdout
        consumer  state   lag  unread  cursor  head  dead letters  source
        decode    idle   <time>       0       3    10             1  ducklake://main/raw_events
    "#]],
    );
    check(
        &project,
        "consume show decode",
        expect![[r#"
            exit code 0
            --- stdout
            decode
              lag            <time>
              state          idle
              unread         0 rows in 0 snapshots
              cursor         3, written <time> ago; the head is 10
              holds          snapshot 10, told <time> ago
              dead letters   1
              run by         nobody
              source         ducklake://main/raw_events
              decoder        cloudevents-default version 1
              writes         signals, events
              starts         with all that the table holds
              at a gap       stop
              expiry         waits for it until it is silent for 1h
              rows stay      for ever
        "#]],
    );
    check(
        &project,
        "consume show decode --json",
        expect![[r#"
            exit code 0
            --- stdout
            {
              "consumer": "decode",
              "shards": [
                {
                  "consumer": "decode",
                  "script": false,
                  "source": "ducklake://main/raw_events",
                  "decoder": "cloudevents-default",
                  "decoder_version": 1,
                  "state": "idle",
                  "lag_seconds": 0.0,
                  "unread_rows": 0,
                  "unread_snapshots": 0,
                  "oldest_unread": null,
                  "cursor": 3,
                  "head": 10,
                  "gap": null,
                  "holds_snapshot": 10,
                  "told_at": "<when>",
                  "required": false,
                  "stale_after_seconds": 3600.0,
                  "stale_since": null,
                  "retention_seconds": null,
                  "start": "earliest",
                  "gap_policy": "stop",
                  "owner": null,
                  "dead_letters": 1
                }
              ]
            }
        "#]],
    );
    check(
        &project,
        "consume reset decode --to head",
        expect![[r#"
        exit code 0
        --- stdout
        decode: the cursor is at snapshot 10; it was at 3
    "#]],
    );
    check(
        &project,
        "consume reset decode",
        expect![[r#"
        exit code 0
        --- stdout
        decode: the cursor is at snapshot 1; it was at 10
    "#]],
    );
    check(
        &project,
        "consume run",
        expect![[r#"
        exit code 0
        --- stdout
        decode: up to snapshot 3, 6 rows read, 0 in signals, 0 in events, 5 known already
    "#]],
    );
    check(
        &project,
        "consume replay decode --from 2026-06-01 --to 2026-06-02",
        expect![[r#"
        exit code 0
        --- stdout
        decode: 6 rows read, 0 in signals, 0 in events, 5 known already
    "#]],
    );
    check(
        &project,
        "consume backfill decode --from 2026-06-01T00:00:02Z --to 2026-06-01T00:00:04Z",
        expect![[r#"
        exit code 0
        --- stdout
        decode: 2 rows read, 0 in signals, 0 in events, 2 known already
    "#]],
    );
}

#[test]
fn a_consumer_that_is_killed_anywhere_reads_each_row_once() {
    let project = project();
    let mut last = 0;
    let points = ["leased", "staged", "checked", "written", "stamped", "committed", "remembered"];
    for (index, point) in points.into_iter().enumerate() {
        more(&project, last, last + 5);
        last += 5;
        // The first commits make the tables, so that the point of interest is reached later.
        let nth = if index == 0 { "" } else { "*1" };
        let killed = pintail(&project).words("consume run").fault(&format!("{point}{nth}=kill")).run();
        assert_eq!(killed.code, None, "{point}: {killed}");
    }
    run(&project, "consume run").expect_ok();
    let counted =
        "SELECT (SELECT count(*) FROM signals) AS rows, (SELECT count(DISTINCT cloud_event_id) FROM signals) AS events,
                          (SELECT sum(count) FROM signals_latest)::BIGINT AS in_rollup";
    let outcome = pintail(&project).args(["query", counted]).run();
    expect![[r#"
        exit code 0
        --- stdout
        rows  events  in_rollup
        ───────────────────────
          34      34          3
        --- stderr
        (1 row)
    "#]]
    .assert_eq(&outcome.to_string());
}

#[test]
fn a_follower_consumes_what_comes_until_it_is_told_to_stop() {
    let project = project();
    let follower = pintail(&project).words("consume run --follow --poll 1s --json").start();
    more(&project, 0, 3);
    let listed = || run(&project, "consume list --json").to_string();
    pintail_testkit::wait_until("all is consumed", || listed().contains("\"idle\""));
    follower.signal("INT");
    let outcome = follower.finish();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.to_string().contains("\"rows\":3"), "{outcome}");
}

#[test]
fn scripts_with_a_stream_are_consumers_too() {
    let project = project();
    project.write(
        "pipelines/fast.sql",
        "-- stream ducklake://main/raw_events start=earliest
-- materialize ducklake://main/fast append
SELECT id, subject FROM changes WHERE id <> 'e0'
",
    );
    more(&project, 0, 6);
    check(
        &project,
        "consume run",
        expect![[r#"
            exit code 0
            --- stdout
            decode: up to snapshot 3, 6 rows read, 5 in signals, 0 in events, 1 dead letter
        "#]],
    );
    check(
        &project,
        "consume list",
        expect![[r#"
        exit code 0
        --- stdout
        consumer  state   lag  unread  cursor  head  dead letters  source
        decode    idle   <time>       0       3    11             1  ducklake://main/raw_events
        fast      idle   <time>       0       3    11             0  ducklake://main/raw_events
    "#]],
    );
    run(&project, "run --select raw --force --var first=6 --var last=8").expect_ok();
    check(
        &project,
        "consume run fast",
        expect![[r#"
        exit code 0
        --- stdout
        fast: 2 rows in, 0 rows out
    "#]],
    );
    check(
        &project,
        "consume show fast",
        expect![[r#"
            exit code 0
            --- stdout
            fast
              lag            <time>
              state          idle
              unread         0 rows in 0 snapshots
              cursor         12, written <time> ago; the head is 13
              holds          snapshot 12, told <time> ago
              dead letters   0
              source         ducklake://main/raw_events
              cursor's name  script.fast
              writes         fast
              starts         with all that the table holds
              at a gap       stop
              expiry         waits for it until it is silent for 1h
        "#]],
    );
    check(
        &project,
        "consume reset fast",
        expect![[r#"
        exit code 2
        --- stderr
        error: `fast` is a script, and what it has taken is not decoded again row by row
        hint: `pintail run --select fast --full-refresh` reads its source from the beginning
    "#]],
    );
}

#[test]
fn a_rollup_that_somebody_broke_is_found_and_made_anew() {
    let project = project();
    more(&project, 0, 6);
    run(&project, "consume run").expect_ok();
    let broken =
        "-- materialize manual ducklake://main/signals_latest\nDELETE FROM signals_latest WHERE subject = 'car-1';\n";
    project.write("pipelines/broken.sql", broken);
    run(&project, "run --select broken --force").expect_ok();
    check(
        &project,
        "consume rebuild decode --dry-run",
        expect![[r#"
        exit code 1
        --- stdout
        signals_latest: rows missing 1, too many 0, with other values 0
        events_latest: as its table says
    "#]],
    );
    check(
        &project,
        "consume rebuild decode",
        expect![[r#"
        exit code 0
        --- stdout
        signals_latest: rows missing 1, too many 0, with other values 0; made anew
        events_latest: as its table says
    "#]],
    );
    check(
        &project,
        "consume rebuild decode",
        expect![[r#"
        exit code 0
        --- stdout
        signals_latest: as its table says
        events_latest: as its table says
    "#]],
    );
    check(
        &project,
        "consume rebuild decode --force --json",
        expect![[r#"
        exit code 0
        --- stdout
        {
          "rollups": [
            {
              "rollup": "signals_latest",
              "missing": 0,
              "extra": 0,
              "different": 0,
              "rebuilt": true
            },
            {
              "rollup": "events_latest",
              "missing": 0,
              "extra": 0,
              "different": 0,
              "rebuilt": true
            }
          ]
        }
    "#]],
    );
}

#[test]
fn a_payload_in_the_blob_store_is_decoded_and_one_that_is_missing_is_a_dead_letter() {
    let project = project();
    more(&project, 0, 0);
    let large = r#"{"signals":[{"name":"speed","timestamp":"2026-06-01T00:00:00Z","value":7}]}"#;
    project.write(".pintail/blobs/cloudevent/blobs/car/1", large);
    project.write(
        "pipelines/large.sql",
        "-- materialize manual ducklake://main/raw_events
INSERT INTO raw_events BY NAME
SELECT 'car' AS subject, now() AS \"time\", 'dimo.status' AS type, 'e' || i AS id, '{}' AS extras, '' AS data,
       'cloudevent/blobs/car/' || i AS data_index_key
FROM range(1, 3) r(i);
",
    );
    run(&project, "run --select large --force").expect_ok();
    check(
        &project,
        "consume run",
        expect![[r#"
            exit code 0
            --- stdout
            decode: up to snapshot 3, 2 rows read, 1 in signals, 0 in events, 1 dead letter
        "#]],
    );
    let letters = "SELECT reason, decode(raw) AS raw FROM _pintail.dead_letters";
    let query = pintail(&project).args(["query", letters]).run();
    expect![[r#"
        exit code 0
        --- stdout
        reason                                                                                          raw
        ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        the payload is the blob `cloudevent/blobs/car/2`: there is no object cloudevent/blobs/car/2 i…  cloudevent/blobs/car/2
        --- stderr
        (1 row)
    "#]].assert_eq(&query.to_string());
    // It names its event, for whoever looks for it.
    let letters = run(&project, "deadletter list --json").expect_ok().stdout;
    let letters: serde_json::Value = serde_json::from_str(&letters).unwrap();
    let letter = &letters["letters"][0];
    assert_eq!((&letter["event"]["id"], &letter["event"]["subject"]), (&"e2".into(), &"car".into()), "{letter}");
    let shown = run(&project, &format!("deadletter show {}", letter["id"].as_str().unwrap())).expect_ok().stdout;
    assert!(shown.contains("event     e2\n") && shown.contains("type      dimo.status\n"), "{shown}");
}
