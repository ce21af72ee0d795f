//! Files: every format, trees, kills in the middle, repetition, and files that changed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use pintail_telemetry::import::{Changed, Import, ImportError, Imported};
use pintail_telemetry::raw::RawTable;
use pintail_telemetry::sink::FlushPolicy;

use crate::harness::{On, Place, RECEIVED, foreign, on_both, options, rows};

const COUNT: &str = "SELECT count(*), count(DISTINCT id) FROM lake.main.raw_events";

on_both! {
    an_import_that_is_killed_goes_on_where_it_was_and_a_second_one_does_nothing
}

fn try_import(place: &Place, path: &Path, fault: &str) -> Result<Imported, ImportError> {
    let policy = FlushPolicy { rows: 10, bytes: 1 << 20, age_micros: 0 };
    let mut import = Import::open(place.writer_with(fault), RawTable::default(), policy, options(&[]), RECEIVED)?;
    import.run(path, |_| {})
}

fn import(place: &Place, path: &Path) -> Imported {
    try_import(place, path, "").unwrap()
}

fn write(place: &Place, name: &str, text: &str) -> std::path::PathBuf {
    let path = place.folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn lines(ids: std::ops::Range<u32>) -> String {
    let line =
        |id| format!("{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":\"/s\",\"type\":\"t\",\"data\":1.10}}\n");
    ids.map(line).collect()
}

fn an_import_that_is_killed_goes_on_where_it_was_and_a_second_one_does_nothing(on: On) {
    let place = Place::new(on);
    let file = write(&place, "in/a.ndjson", &(lines(0..25) + "\nno event\n" + &lines(25..35)));
    let mut landed = 0;
    for fault in ["written*2=panic", "committed=panic", "stamped=panic"] {
        assert!(catch_unwind(AssertUnwindSafe(|| try_import(&place, &file, fault))).is_err(), "{fault}");
        let found = rows(&place.writer(), "SELECT count(*) FROM lake.main.raw_events")[0].parse::<u64>().unwrap();
        assert!(landed <= found, "{fault}");
        landed = found;
    }
    assert_eq!(landed, 20);
    let done = import(&place, &file);
    assert_eq!((done.files, done.rows, done.letters), (1, 15, 1));
    assert_eq!(rows(&place.writer(), COUNT), ["35|35"]);
    assert_eq!(import(&place, &file), Imported { known: 1, ..Imported::default() });
    let letters = rows(&place.writer(), "SELECT position, decode(raw) FROM lake._pintail.dead_letters");
    assert_eq!(letters, [format!("{} record 26|no event", file.display())]);
}

#[test]
fn a_tree_of_parquet_as_the_raw_table_exports_it_comes_in_as_it_was() {
    let place = Place::new(On::Sqlite);
    let all = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"car","time":"2026-03-04T05:06:07.123Z",
        "dataversion":"v2","datacontenttype":"application/json","tags":["a"],"seq":7,"data":{"a":1.10,"a":2}}"#;
    let base64 =
        r#"{"specversion":"1.0","id":"2","source":"/s","type":"u","time":"2026-03-05T05:06:07Z","data_base64":"YQ=="}"#;
    let file = write(&place, "a.jsonl", &format!("{}\n{base64}\n", all.replace('\n', " ")));
    import(&place, &file);
    let tree = place.folder.path().join("tree");
    let writer = place.writer();
    let before = rows(&writer, "SELECT * FROM lake.main.raw_events ORDER BY id");
    let copy = format!(
        "COPY lake.main.raw_events TO '{}' (FORMAT parquet, PARTITION_BY (type), WRITE_PARTITION_COLUMNS true)",
        tree.display()
    );
    foreign(&writer, &copy);
    foreign(&writer, "DELETE FROM lake.main.raw_events");
    drop(writer);
    let done = import(&place, &tree);
    assert_eq!((done.files, done.rows, done.letters), (2, 2, 0));
    assert_eq!(rows(&place.writer(), "SELECT * FROM lake.main.raw_events ORDER BY id"), before);
}

#[test]
fn a_table_in_csv_has_attributes_as_columns() {
    let place = Place::new(On::Sqlite);
    let text = "id,source,type,subject,time,data\n1,/s,t,,2026-03-04T05:06:07Z,\"{\"\"a\"\":1.10}\"\n2,/s,t,x,yesterday,1\n3,/s,t,x,,\"1,\"\"id\"\":2\"\n";
    let file = write(&place, "a.csv", text);
    let done = import(&place, &file);
    assert_eq!((done.rows, done.letters), (1, 2));
    let writer = place.writer();
    assert_eq!(rows(&writer, "SELECT id, subject, data FROM lake.main.raw_events"), [r#"1|NULL|{"a":1.10}"#]);
    let reasons = rows(&writer, "SELECT reason FROM lake._pintail.dead_letters ORDER BY position");
    assert!(
        reasons[0].contains("`time` must be RFC 3339") && reasons[1].contains("`data` must be one JSON value"),
        "{reasons:?}"
    );
}

#[test]
fn a_file_that_has_changed_since_is_left_out_and_told_and_the_others_land() {
    let place = Place::new(On::Sqlite);
    let file = write(&place, "in/a.ndjson", &lines(0..3));
    import(&place, &file);
    write(&place, "in/a.ndjson", &lines(0..4));
    write(&place, "in/b.ndjson", &lines(10..12));
    let done = import(&place, file.parent().unwrap());
    assert_eq!((done.files, done.rows), (1, 2));
    assert_eq!(done.changed, [Changed { path: file, records: 3 }]);
    assert_eq!(rows(&place.writer(), COUNT), ["5|5"]);
}

#[test]
fn what_is_no_file_to_import_is_named() {
    let place = Place::new(On::Sqlite);
    let other = write(&place, "in/b.txt", "");
    assert!(matches!(try_import(&place, &other, "").unwrap_err(), ImportError::Unknown { .. }));
    let empty = write(&place, "empty/_b.ndjson", "");
    let error = try_import(&place, empty.parent().unwrap(), "").unwrap_err();
    assert!(matches!(error, ImportError::Nothing { .. }), "{error}");
    assert!(matches!(try_import(&place, Path::new("/none"), "").unwrap_err(), ImportError::File { .. }));
}
