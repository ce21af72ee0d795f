//! From the log into the lake, exactly once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pintail_streams::PositionTable;
use pintail_telemetry::log::{LogPosition, Record, Refusal};
use pintail_telemetry::raw::RawTable;
use pintail_telemetry::sink::{Batch, LakeState, LogSinkError, Sink, SourceName};
use pintail_testkit::wait_until;
use tokio::sync::watch;

use crate::harness::{On, Place, event, foreign, on_both, rows};

const COUNT: &str = "SELECT count(*), count(DISTINCT id) FROM lake.main.raw_events";

on_both! {
    events_land_in_thirteen_columns_and_leave_the_log
    a_crash_between_any_two_steps_neither_loses_nor_repeats
    a_row_that_the_lake_refuses_is_a_dead_letter_and_the_others_land
    two_logs_feed_one_lake
}

fn events_land_in_thirteen_columns_and_leave_the_log(on: On) {
    let place = Place::new(on);
    let log = place.log("log");
    let all = r#""subject":"car","time":"2026-03-04T05:06:07.123999+01:00","producer":"p","dataversion":"v2",
        "datacontenttype":"application/json","dataschema":"https://x/y","tags":["a"],"data": {"a": 1.10, "a": 2}"#;
    let refused =
        Refusal { part: Some("element 2".into()), reason: "the event has no `id`".into(), raw: b"{}".to_vec() };
    place.append(&log, &[event("1", all), event("2", r#""data_base64":"YQ==""#), Record::Refused(refused)]);
    let mut sink = place.sink(&log);
    let landed = sink.flush().unwrap().unwrap();
    assert_eq!((landed.rows, landed.letters), (2, 1));
    assert!(sink.flush().unwrap().is_none());
    drop(sink);
    let writer = place.writer();
    assert_eq!(
        rows(&writer, "SELECT * FROM lake.main.raw_events ORDER BY id"),
        [
            concat!(
                "car|2026-03-04 04:06:07.123+00:00|t|1|/s|p|application/json|v2|",
                r#"{"dataschema":"https://x/y","tags":["a"]}|{"a": 1.10, "a": 2}|NULL|NULL|NULL"#
            ),
            // An event without a time has that of its arrival; base64 is kept as text.
            "NULL|2026-01-02 03:04:05.678+00:00|t|2|/s|NULL|NULL|NULL|{}|NULL|59513d3d|NULL|NULL",
        ]
    );
    let place_of = format!("log {} entry 1 record 2", log.id());
    assert_eq!(
        rows(&writer, "SELECT origin, position, part, reason, raw FROM lake._pintail.dead_letters"),
        [format!("http|{place_of}|element 2|the event has no `id`|7b7d")]
    );
    place.close(&log);
    assert_eq!(place.log("log").held(), 0);
}

fn a_crash_between_any_two_steps_neither_loses_nor_repeats(on: On) {
    let place = Place::new(on);
    let mut expected = 0;
    for point in ["checked", "written", "stamped", "committed", "remembered"] {
        let log = place.log("log");
        let mut sink = place.try_sink(&log, &format!("{point}=panic")).unwrap();
        for number in 0..3 {
            place.append(&log, &[event(&format!("{point}-{number}"), "")]);
            expected += 1;
        }
        assert!(catch_unwind(AssertUnwindSafe(|| sink.flush())).is_err(), "{point}");
        drop(sink);
        place.close(&log);
    }
    let log = place.log("log");
    let mut sink = place.sink(&log);
    while sink.flush().unwrap().is_some() {}
    drop(sink);
    assert_eq!(rows(&place.writer(), COUNT), [format!("{expected}|{expected}")]);
}

fn a_row_that_the_lake_refuses_is_a_dead_letter_and_the_others_land(on: On) {
    let place = Place::new(on);
    let log = place.log("log");
    let mut sink = place.sink(&log);
    // The lake takes no row without a subject from here on.
    foreign(&place.writer(), "ALTER TABLE lake.main.raw_events ALTER COLUMN subject SET DEFAULT 'x'");
    place.append(&log, &[event("first", r#""subject":"s""#)]);
    sink.flush().unwrap().unwrap();
    foreign(&place.writer(), "ALTER TABLE lake.main.raw_events ALTER COLUMN subject SET NOT NULL");
    let many: Vec<Record> = (0..20)
        .map(|number| event(&number.to_string(), if number % 10 == 7 { "" } else { r#""subject":"s""# }))
        .collect();
    place.append(&log, &many);
    let landed = sink.flush().unwrap().unwrap();
    assert_eq!((landed.rows, landed.letters), (18, 2));
    drop(sink);
    let writer = place.writer();
    assert_eq!(rows(&writer, COUNT), ["19|19"]);
    let letters = "SELECT decode(raw) LIKE '%\"id\":\"%7\"%', reason LIKE '%NOT NULL%' FROM lake._pintail.dead_letters";
    assert_eq!(rows(&writer, letters), ["true|true", "true|true"]);
}

fn two_logs_feed_one_lake(on: On) {
    let place = Place::new(on);
    let logs = [place.log("here"), place.log("there")];
    std::thread::scope(|scope| {
        for (name, log) in ["h", "t"].into_iter().zip(&logs) {
            let place = &place;
            scope.spawn(move || {
                let mut sink = place.sink(log);
                for number in 0..4 {
                    place.append(log, &[event(&format!("{name}{number}"), "")]);
                    sink.flush().unwrap().unwrap();
                }
            });
        }
    });
    assert_eq!(rows(&place.writer(), COUNT), ["8|8"]);
}

#[test]
fn files_in_s3_take_events_as_local_ones_do() {
    let place = Place::new(On::PostgresAndS3);
    let log = place.log("log");
    place.append(&log, &[event("1", ""), event("2", "")]);
    let mut sink = place.sink(&log);
    assert_eq!(sink.flush().unwrap().unwrap().rows, 2);
    drop(sink);
    assert_eq!(rows(&place.writer(), COUNT), ["2|2"]);
}

#[test]
fn a_flush_takes_whole_requests_up_to_its_limits() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    let request: Vec<Record> = (0..60).map(|number| event(&number.to_string(), "")).collect();
    for _ in 0..3 {
        place.append(&log, &request);
    }
    let mut sink = place.sink(&log);
    // Two requests are more than the hundred rows of a flush.
    let flushed: Vec<u64> = std::iter::from_fn(|| sink.flush().unwrap()).map(|landed| landed.rows).collect();
    assert_eq!(flushed, [60, 60, 60]);
}

/// Returns an event as an earlier version took it in.
fn event_of_type(id: &str, kind: String) -> Record {
    let Record::Event(mut arrival) = event(id, "") else { unreachable!() };
    arrival.event.kind = kind;
    Record::Event(arrival)
}

#[test]
fn a_type_that_is_no_name_of_a_folder_and_is_in_the_log_is_a_dead_letter() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    place.append(&log, &[event("1", ""), event_of_type("long", "t".repeat(300)), event("2", "")]);
    let mut sink = place.sink(&log);
    let landed = sink.flush().unwrap().unwrap();
    assert_eq!((landed.rows, landed.letters), (2, 1));
    drop(sink);
    let letters = "SELECT position, reason, decode(raw) LIKE '%\"long\"%' FROM lake._pintail.dead_letters";
    let letters = rows(&place.writer(), letters);
    let expected = format!("log {} entry 1 record 1|`type` must be of at most 200 bytes", log.id());
    assert!(letters.len() == 1 && letters[0].starts_with(&expected) && letters[0].ends_with("|true"), "{letters:?}");
}

#[test]
fn a_row_for_which_no_file_can_be_made_is_a_dead_letter_also_as_the_first_of_many() {
    let place = Place::new(On::Sqlite);
    let name =
        SourceName { position: PositionTable::source("test"), source: "test".to_owned(), origin: "test".to_owned() };
    let (sink, at) = Sink::open(place.writer(), RawTable::default(), name, "0").unwrap();
    let mut batch = Batch::default();
    let long = event_of_type("long", "t".repeat(300));
    for (number, record) in std::iter::once(long).chain((1..300).map(|id| event(&id.to_string(), ""))).enumerate() {
        let Record::Event(arrival) = record else { unreachable!() };
        batch.arrivals.push(arrival);
        batch.positions.push(format!("message {number}"));
    }
    let landed = sink.land(&at, "1", batch).unwrap();
    assert_eq!((landed.rows, landed.letters), (299, 1));
    let letters = "SELECT position, reason LIKE '%File name too long%' FROM lake._pintail.dead_letters";
    assert_eq!(rows(sink.writer(), letters), ["message 0|true"]);
}

#[test]
fn a_lake_that_refuses_everything_is_said_and_condemns_nothing() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    let sink = place.sink(&log);
    let status = sink.status();
    foreign(&place.writer(), "ALTER TABLE lake.main.raw_events RENAME COLUMN producer TO maker");
    place.append(&log, &(0..100).map(|id| event(&id.to_string(), "")).collect::<Vec<_>>());
    let (stop, stopped) = watch::channel(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| sink.run(stopped));
        wait_until("it is said", || running.is_finished() || status.lake() == LakeState::Refuses);
        stop.send_replace(true);
        running.join().unwrap().unwrap_err();
    });
    assert_eq!(rows(&place.writer(), "SELECT count(*) FROM lake._pintail.dead_letters"), ["0"]);
    assert_eq!(log.pending(LogPosition(0)).records, 100);
}

#[test]
fn a_sink_that_is_stopped_lands_what_waits_first() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    let (stop, stopped) = watch::channel(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| place.sink(&log).run(stopped));
        place.append(&log, &[event("1", "")]);
        stop.send_replace(true);
        running.join().unwrap().unwrap();
    });
    assert_eq!(rows(&place.writer(), COUNT), ["1|1"]);
    place.close(&log);
}

#[test]
fn an_entry_that_cannot_be_read_is_a_dead_letter_with_its_bytes() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    place.append(&log, &[event("1", "")]);
    place.close(&log);
    place.runtime.block_on(async {
        let path = place.folder.path().join("log.sqlite");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        sqlx::query("UPDATE entry SET body = x'0107'").execute(&pool).await.unwrap();
        pool.close().await;
    });
    let log = place.log("log");
    let mut sink = place.sink(&log);
    assert_eq!(sink.flush().unwrap().unwrap().letters, 1);
    drop(sink);
    let found = rows(&place.writer(), "SELECT reason, raw FROM lake._pintail.dead_letters");
    assert_eq!(found, ["the entry is damaged: 7 is no kind of record|0107"]);
}

#[test]
fn a_log_or_lake_of_another_time_is_refused() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    place.append(&log, &[event("1", "")]);
    place.sink(&log).flush().unwrap().unwrap();
    // The lake was put back to before that commit.
    let table = format!("lake._pintail.\"position_log.{}\"", log.id());
    foreign(&place.writer(), &format!("UPDATE {table} SET position = '0'"));
    let error = place.try_sink(&log, "").err().unwrap();
    assert!(matches!(&error, LogSinkError::Mismatch { lake: 0, log } if log == "none of 1"), "{error}");
    // The log was put back to before what it gave.
    foreign(&place.writer(), &format!("UPDATE {table} SET position = '9'"));
    let error = place.try_sink(&log, "").err().unwrap();
    assert!(matches!(&error, LogSinkError::Mismatch { lake: 9, .. }), "{error}");
}

#[test]
fn another_owner_of_the_same_position_stops_the_sink() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    place.append(&log, &[event("1", "")]);
    let mut sink = place.sink(&log);
    let table = format!("lake._pintail.\"position_log.{}\"", log.id());
    foreign(&place.writer(), &format!("UPDATE {table} SET position = '7'"));
    let error = sink.flush().unwrap_err();
    assert!(error.to_string().contains("is 7, not 0: another process feeds the lake"), "{error}");
    assert_eq!(rows(&place.writer(), COUNT), ["0|0"]);
}
