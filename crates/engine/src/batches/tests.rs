//! What SQL sees of record batches, on a real instance.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::compute::concat_batches;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pintail_core::sql::Relation;

use super::{PLACE, Stage};
use crate::error::EngineError;
use crate::{Instance, InstanceOptions, Session};

fn session() -> (Instance, Session) {
    let instance = Instance::open(InstanceOptions { threads: Some(2), ..InstanceOptions::default() }).unwrap();
    let session = instance.session().unwrap();
    (instance, session)
}

/// Returns rows of every type that can be lent; each third value is missing.
fn every_type(rows: i64) -> RecordBatch {
    fn of<T>(rows: i64, value: impl Fn(i64) -> T) -> impl Iterator<Item = Option<T>> {
        (0..rows).map(move |row| (row % 3 != 1).then(|| value(row)))
    }
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        (0..row % 4).for_each(|tag| tags.values().append_value(format!("tag {tag} of a row {row}")));
        tags.append(row % 3 != 1);
    }
    let texts = of(rows, |row| "ä long text of several words ".repeat(usize::try_from(row % 3).unwrap()));
    let columns: [(&str, ArrayRef); 17] = [
        ("flag", Arc::new(of(rows, |row| row % 2 == 0).collect::<BooleanArray>())),
        ("i8", Arc::new(of(rows, |row| (row % 100) as i8).collect::<Int8Array>())),
        ("i16", Arc::new(of(rows, |row| row as i16).collect::<Int16Array>())),
        ("i32", Arc::new(of(rows, |row| -(row as i32)).collect::<Int32Array>())),
        ("i64", Arc::new(of(rows, |row| row << 40).collect::<Int64Array>())),
        ("u8", Arc::new(of(rows, |row| (row % 200) as u8).collect::<UInt8Array>())),
        ("u16", Arc::new(of(rows, |row| row as u16).collect::<UInt16Array>())),
        ("u32", Arc::new(of(rows, |row| row as u32).collect::<UInt32Array>())),
        ("u64", Arc::new(of(rows, |row| u64::MAX - row as u64).collect::<UInt64Array>())),
        ("f32", Arc::new(of(rows, |row| row as f32 / 4.0).collect::<Float32Array>())),
        ("f64", Arc::new(of(rows, |row| row as f64 / 3.0).collect::<Float64Array>())),
        ("day", Arc::new(of(rows, |row| row as i32).collect::<Date32Array>())),
        ("at", Arc::new(of(rows, |row| row * 1_000_003).collect::<TimestampMicrosecondArray>())),
        (
            "in_utc",
            Arc::new(of(rows, |row| row * 1_000_003).collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        ),
        ("text", Arc::new(texts.collect::<StringArray>())),
        ("bytes", Arc::new(of(rows, |row| row.to_le_bytes()).collect::<BinaryArray>())),
        ("tags", Arc::new(tags.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn lend(session: &Session, batches: &[RecordBatch]) -> Result<Stage, EngineError> {
    session.stage("lend", &Relation::temp("lent"), &batches[0].schema(), batches)
}

fn texts(session: &Session, sql: &str) -> Vec<Vec<Option<String>>> {
    session.query("ask", sql).unwrap().text_rows().unwrap()
}

#[test]
fn sql_sees_every_value_of_every_type_of_parts_that_begin_anywhere() {
    let (_instance, session) = session();
    let whole = every_type(5_000);
    // Parts begin within a byte of the bits that say what is missing, and some have no rows, or more than a vector.
    let parts = [whole.slice(0, 3), whole.slice(3, 0), whole.slice(3, 2_100), whole.slice(2_103, 2_897)];
    let _stage = lend(&session, &parts).unwrap();
    let seen = session.query("ask", &format!("SELECT * EXCLUDE ({PLACE}) FROM lent ORDER BY {PLACE}")).unwrap();
    let seen = concat_batches(&seen.batches[0].schema(), &seen.batches).unwrap();
    assert_eq!(seen.num_rows(), 5_000);
    for (expected, found) in whole.columns().iter().zip(seen.columns()) {
        let shown = |array: &ArrayRef| -> Vec<String> {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::new().with_null("missing")).unwrap();
            (0..array.len()).map(|row| formatter.value(row).to_string()).collect()
        };
        assert_eq!(shown(expected), shown(found));
    }
}

#[test]
fn a_statement_reads_what_it_asks_for_as_often_as_it_likes() {
    let (_instance, session) = session();
    let _stage = lend(&session, &[every_type(4_000), every_type(10)]).unwrap();
    let one = |sql: &str| texts(&session, sql)[0].iter().flatten().cloned().collect::<Vec<_>>().join("|");
    assert_eq!(one("SELECT count(*) FROM lent"), "4010");
    assert_eq!(one(&format!("SELECT min({PLACE}), max({PLACE}), count(DISTINCT {PLACE}) FROM lent")), "0|4009|4010");
    assert_eq!(one("SELECT sum(length(text)), count(i8) FROM lent WHERE flag"), "38802|1338");
    assert_eq!(one("SELECT count(*) FROM lent AS l JOIN lent AS r ON l.i64 = r.i64 AND l.text = r.text"), "2688");
    assert_eq!(
        one("SELECT u64, text, i8 FROM lent WHERE i32 = -2"),
        "18446744073709551613|ä long text of several words ä long text of several words |2"
    );
}

#[test]
fn what_was_lent_is_gone_when_it_is_returned_and_the_next_takes_its_place() {
    let (_instance, session) = session();
    let first = lend(&session, &[every_type(7)]).unwrap();
    let second = lend(&session, &[every_type(9)]).unwrap();
    drop(first);
    assert_eq!(texts(&session, "SELECT count(*) FROM lent"), [[Some("9".to_owned())]]);
    drop(second);
    let error = session.query("ask", "SELECT count(*) FROM lent").map(drop).unwrap_err().to_string();
    assert!(error.contains("were returned, or never lent"), "{error}");
}

#[test]
fn a_type_that_could_be_misread_is_refused() {
    let (_instance, session) = session();
    let column: ArrayRef = Arc::new(Decimal128Array::from(vec![1_i128]));
    let batch = RecordBatch::try_from_iter([("price", column)]).unwrap();
    let error = lend(&session, &[batch]).map(drop).unwrap_err().to_string();
    assert!(error.contains("`price` has the Arrow type Decimal128"), "{error}");
}
