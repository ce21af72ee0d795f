//! The table of raw events: made once, put right where it differs, refused where it cannot be.

use pintail_telemetry::raw::{RawTable, prepare};

use crate::harness::{On, Place, foreign, on_both, rows};

const SNAPSHOTS: &str = "SELECT count(*) FROM lake.snapshots()";

on_both! {
    a_table_that_is_right_is_left_alone_and_one_that_differs_is_put_right
}

fn layout(writer: &pintail_streams::Writer) -> Vec<String> {
    let facts =
        pintail_engine::lake::table_facts(writer.session(), writer.alias(), "main", "raw_events").unwrap().unwrap();
    let sort = pintail_engine::lake::sort_keys(writer.session(), writer.alias(), facts.id).unwrap();
    let partition = facts.partition.iter().map(|(column, transform)| format!("{transform} {column}"));
    partition.chain(sort.into_iter().map(|column| format!("sort {column}"))).collect()
}

fn a_table_that_is_right_is_left_alone_and_one_that_differs_is_put_right(on: On) {
    const RIGHT: [&str; 6] = ["identity type", "year time", "month time", "day time", "sort subject", "sort time"];
    let place = Place::new(on);
    let (writer, table) = (place.writer(), RawTable::default());
    prepare(&writer, &table).unwrap();
    assert_eq!(layout(&writer), RIGHT);
    let made = rows(&writer, SNAPSHOTS);
    prepare(&writer, &table).unwrap();
    assert_eq!(rows(&writer, SNAPSHOTS), made);
    foreign(&writer, "ALTER TABLE lake.main.raw_events SET PARTITIONED BY (day(\"time\"))");
    prepare(&writer, &table).unwrap();
    assert_eq!(layout(&writer), RIGHT);
    foreign(&writer, "ALTER TABLE lake.main.raw_events RESET SORTED BY");
    prepare(&writer, &table).unwrap();
    assert_eq!(layout(&writer), RIGHT);
}

#[test]
fn a_table_with_other_columns_is_refused_with_the_first_that_differs() {
    let place = Place::new(On::Sqlite);
    let writer = place.writer();
    foreign(&writer, "CREATE TABLE lake.main.raw_events (id VARCHAR, subject VARCHAR)");
    let error = prepare(&writer, &RawTable::default()).unwrap_err().to_string();
    assert!(error.contains("column 1 must be `subject` VARCHAR, found `id` VARCHAR"), "{error}");
    let table = RawTable { schema: "telemetry".to_owned(), name: "raw".to_owned() };
    prepare(&writer, &table).unwrap();
    assert_eq!(rows(&writer, "SELECT count(*) FROM lake.telemetry.raw"), ["0"]);
}
