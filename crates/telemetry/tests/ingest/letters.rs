//! Dead letters: listed, found by the beginning of their id, and replayed once.

use pintail_telemetry::cloudevents::Payload;
use pintail_telemetry::letters::{Letter, LetterFilter, list, replay};
use pintail_telemetry::log::{Record, Refusal};
use pintail_telemetry::raw::RawTable;

use crate::harness::{On, Place, RECEIVED, event, foreign, rows};

fn place_with_letters() -> Place {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    let good = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
    for (part, raw) in [("element 0", good), ("element 1", "{}")] {
        let refusal = Refusal { part: Some(part.into()), reason: "because".into(), raw: raw.into() };
        place.append(&log, &[Record::Refused(refusal)]);
    }
    place.sink(&log).flush().unwrap().unwrap();
    place
}

fn all(place: &Place, filter: &LetterFilter) -> Vec<Letter> {
    list(&place.writer(), filter).unwrap()
}

#[test]
fn a_letter_that_is_an_event_now_lands_once() {
    let place = place_with_letters();
    let letters = all(&place, &LetterFilter::default());
    assert_eq!(letters.len(), 2);
    let done = replay(place.writer(), RawTable::default(), &letters, RECEIVED).unwrap();
    assert_eq!((done.landed.len(), done.refused.len()), (1, 1));
    assert!(done.refused[0].1.contains("the event has no `specversion`"), "{done:?}");
    // The same letters again: whoever holds an older list does no harm.
    assert_eq!(replay(place.writer(), RawTable::default(), &letters, RECEIVED).unwrap().landed.len(), 0);
    assert_eq!(all(&place, &LetterFilter::default()).len(), 1);
    assert_eq!(rows(&place.writer(), "SELECT id FROM lake.main.raw_events"), ["1"]);
    let with_replayed = LetterFilter { with_replayed: true, ..LetterFilter::default() };
    assert_eq!(all(&place, &with_replayed).iter().filter(|letter| letter.replayed_at.is_some()).count(), 1);
}

#[test]
fn a_letter_whose_payload_is_in_the_blob_store_lands_with_it() {
    let place = Place::new(On::Sqlite);
    let log = place.log("log");
    let mut sink = place.sink(&log);
    place.append(&log, &[event("first", r#""subject":"s""#)]);
    sink.flush().unwrap().unwrap();
    let lake = place.writer();
    foreign(&lake, "ALTER TABLE lake.main.raw_events ALTER COLUMN subject SET NOT NULL");
    let Record::Event(mut refused) = event("refused", "") else { unreachable!() };
    refused.event.data = Payload::Stored { key: "cloudevent/blobs/x/1".to_owned() };
    place.append(&log, &[Record::Event(refused)]);
    assert_eq!(sink.flush().unwrap().unwrap().letters, 1);
    drop(sink);
    foreign(&lake, "ALTER TABLE lake.main.raw_events ALTER COLUMN subject DROP NOT NULL");
    let letters = all(&place, &LetterFilter::default());
    assert_eq!(letters[0].part.as_deref(), Some("its payload is the object cloudevent/blobs/x/1"));
    let done = replay(place.writer(), RawTable::default(), &letters, RECEIVED).unwrap();
    assert_eq!(done.landed.len(), 1, "{done:?}");
    let key = "SELECT data_index_key FROM lake.main.raw_events WHERE id = 'refused'";
    assert_eq!(rows(&place.writer(), key), ["cloudevent/blobs/x/1"]);
}

#[test]
fn letters_are_found_by_id_and_origin() {
    let place = place_with_letters();
    let letters = all(&place, &LetterFilter::default());
    let by_id = LetterFilter { ids: vec![letters[1].id[..8].to_owned()], ..LetterFilter::default() };
    assert_eq!(all(&place, &by_id), letters[1..]);
    let by_origin = |origin: &str| LetterFilter { origin: Some(origin.to_owned()), ..LetterFilter::default() };
    assert_eq!(all(&place, &by_origin("http")).len(), 2);
    assert_eq!(all(&place, &by_origin("kafka")), []);
    let newest = LetterFilter { limit: Some(1), ..LetterFilter::default() };
    assert_eq!(all(&place, &newest), letters[..1]);
}

#[test]
fn letters_of_consumers_are_not_events_of_their_own() {
    let place = place_with_letters();
    let mut letters = all(&place, &LetterFilter::default());
    letters.iter_mut().for_each(|letter| "consumer decode".clone_into(&mut letter.origin));
    let done = replay(place.writer(), RawTable::default(), &letters, RECEIVED).unwrap();
    assert_eq!((done.landed.len(), done.refused.len()), (0, 2));
    assert!(done.refused[0].1.contains("`pintail consume replay`"), "{done:?}");
}
