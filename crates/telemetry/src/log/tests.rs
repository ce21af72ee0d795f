//! The log on a real file: durable, shared fsyncs, bounded, alone; and its parts against simple models.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use proptest::prelude::*;
use tempfile::TempDir;

use super::index::Index;
use super::*;
use crate::cloudevents::{Payload, from_json};

fn event(id: &str) -> Record {
    let json = format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t","data":{{"a":1.10}}}}"#);
    Record::Event(Arrival { event: from_json(json.as_bytes()).unwrap(), received_micros: 5 })
}

fn options(folder: &TempDir, limit: u64) -> LogOptions {
    LogOptions { path: folder.path().join("deep/log.sqlite"), limit }
}

async fn open(folder: &TempDir) -> Log {
    Log::open(&options(folder, 1 << 20)).await.unwrap()
}

async fn all(log: &Log) -> Vec<(u64, Vec<Record>)> {
    let entries = log.read(LogPosition(0), LogPosition(u64::MAX >> 1)).await.unwrap();
    entries.into_iter().map(|entry| (entry.position.0, decode(&entry.body).unwrap())).collect()
}

/// Waits until everything asked for before is done: the queue is served in order.
async fn settle(log: &Log) {
    log.append(&[event("settle")]).await.unwrap();
}

#[tokio::test]
async fn what_was_appended_is_there_after_a_restart_under_the_same_id() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder).await;
    let refused =
        Record::Refused(Refusal { part: Some("element 1".into()), reason: "no id".into(), raw: vec![0, 255] });
    assert_eq!(log.append(&[event("a"), refused.clone()]).await.unwrap(), LogPosition(1));
    assert_eq!(log.append(&[event("b")]).await.unwrap(), LogPosition(2));
    let (id, held, pending) = (log.id().to_owned(), log.held(), log.pending(LogPosition(0)));
    log.close().await;
    let again = open(&folder).await;
    assert_eq!((again.id(), again.held(), again.pending(LogPosition(0))), (id.as_str(), held, pending));
    assert_eq!(pending.records, 3);
    assert_eq!(all(&again).await, [(1, vec![event("a"), refused]), (2, vec![event("b")])]);
}

#[tokio::test]
async fn positions_grow_also_over_a_log_that_was_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder).await;
    for id in ["a", "b", "c"] {
        log.append(&[event(id)]).await.unwrap();
    }
    log.forget(LogPosition(3)).await;
    log.close().await;
    let again = open(&folder).await;
    assert_eq!((again.first(), again.held()), (None, 0));
    assert_eq!(again.append(&[event("d")]).await.unwrap(), LogPosition(4));
    assert_eq!(again.first(), Some(LogPosition(4)));
}

#[tokio::test]
async fn requests_that_wait_at_the_same_time_share_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder).await;
    let names: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    let records: Vec<[Record; 1]> = names.iter().map(|name| [event(name)]).collect();
    let positions = join_all(records.iter().map(|records| log.append(records))).await;
    let positions: BTreeSet<u64> = positions.into_iter().map(|position| position.unwrap().0).collect();
    assert_eq!(positions, (1..=300).collect());
    let groups: BTreeSet<i64> = (0..300).map(|after| log.pending(LogPosition(after)).oldest_micros).collect();
    assert!(groups.len() <= 3, "{} commits for 300 requests", groups.len());
}

#[tokio::test]
async fn a_full_log_refuses_until_what_is_in_the_lake_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(&options(&folder, 600)).await.unwrap();
    let mut count = 0;
    let refused = loop {
        match log.append(&[event("x")]).await {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, AppendError::Full { limit: 600, .. }), "{refused}");
    assert_eq!(all(&log).await.len(), count);
    log.forget(LogPosition(1)).await;
    let mut head = log.watch();
    while log.append(&[event("y")]).await.is_err() {
        // Forgetting is done in the background; the log has room as soon as it is.
        tokio::task::yield_now().await;
    }
    assert_eq!(head.borrow_and_update().0, count as u64 + 1);
}

#[tokio::test]
async fn a_log_has_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder).await;
    let second = Log::open(&options(&folder, 1)).await.unwrap_err();
    assert!(matches!(second, LogError::InUse { .. }), "{second}");
    log.close().await;
    open(&folder).await.close().await;
}

#[tokio::test]
async fn a_log_of_a_later_format_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(&folder).await;
    log.shared.database.set_format("2").await;
    log.close().await;
    let error = Log::open(&options(&folder, 1)).await.unwrap_err();
    assert!(error.to_string().contains("has format 2, this version reads format 1"), "{error}");
}

#[tokio::test]
async fn a_disk_that_is_full_refuses_and_takes_again_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(&options(&folder, 1 << 30)).await.unwrap();
    log.append(&[event("before")]).await.unwrap();
    log.shared.database.limit_pages(Some(40)).await;
    let large = Record::Refused(Refusal { part: None, reason: String::new(), raw: vec![7; 1 << 20] });
    let held = log.held();
    let refused = log.append(std::slice::from_ref(&large)).await.unwrap_err();
    assert!(matches!(refused, AppendError::DiskFull), "{refused}");
    // Nothing of it is there, and its room is free again.
    assert_eq!((log.held(), all(&log).await.len()), (held, 1));
    log.shared.database.limit_pages(None).await;
    log.append(&[large]).await.unwrap();
    settle(&log).await;
    assert_eq!(all(&log).await.len(), 3);
}

#[test]
fn a_payload_that_lies_elsewhere_keeps_its_key() {
    let Record::Event(mut arrival) = event("a") else { panic!() };
    arrival.event.data = Payload::Stored { key: "cloudevent/blobs/x".into() };
    let record = Record::Event(arrival);
    assert_eq!(decode(&encode(std::slice::from_ref(&record))).unwrap(), [record]);
}

#[test]
fn bytes_that_are_no_entry_say_so() {
    assert_eq!(decode(&[]).unwrap_err(), RecordError::Damaged("it is empty".into()));
    assert_eq!(decode(&[9]).unwrap_err(), RecordError::Format(9));
    assert_eq!(decode(&[1, 7]).unwrap_err(), RecordError::Damaged("7 is no kind of record".into()));
    let whole = encode(&[event("a")]);
    for end in 2..whole.len() {
        assert!(matches!(decode(&whole[..end]), Err(RecordError::Damaged(_))), "{end}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn the_index_agrees_with_a_plain_list(
        entries in proptest::collection::vec((1_u64..5, 1_u64..100), 0..30),
        forgotten in 0_u64..35, after in 0_u64..35, records in 0_u64..20, bytes in 0_u64..500,
    ) {
        let mut index = Index::default();
        for (number, (records, bytes)) in (1..).zip(&entries) {
            index.push(LogPosition(number), *records, *bytes, number.cast_signed());
        }
        index.forget(LogPosition(forgotten));
        let rest: Vec<(u64, u64, u64)> = (1..).zip(&entries).map(|(n, (r, b))| (n, *r, *b))
            .filter(|(n, ..)| forgotten < *n && after < *n).collect();
        let pending = index.pending(LogPosition(after));
        prop_assert_eq!(pending.records, rest.iter().map(|(_, r, _)| r).sum::<u64>());
        prop_assert_eq!(pending.bytes, rest.iter().map(|(.., b)| b).sum::<u64>());
        prop_assert_eq!(pending.oldest_micros, rest.first().map_or(0, |(n, ..)| n.cast_signed()));
        let mut sums = (0, 0);
        let within = rest.iter().take_while(|(_, r, b)| {
            sums = (sums.0 + r, sums.1 + b);
            sums.0 <= records && sums.1 <= bytes
        }).last();
        let expected = within.or(rest.first()).map(|(n, ..)| LogPosition(*n));
        prop_assert_eq!(index.cut(LogPosition(after), records, bytes), expected);
    }
}
