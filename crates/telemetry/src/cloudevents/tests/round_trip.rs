//! What comes in comes out: payloads digit by digit, extensions in their order, the first of equal keys.

use proptest::prelude::*;

use super::{read, with};
use crate::cloudevents::{Event, EventTime, Payload, from_json};

#[test]
fn case_o75_payloads_keep_their_digits() {
    for data in ["1.10", "1e400", "9007199254740993", "-0", "\"\"", "null", "[ 1 , 2 ]", r#"{"a":1,"a":2}"#, r#""é""#]
    {
        let event = read(&with(&format!("\"data\": {data} "))).unwrap();
        assert_eq!(event.data, Payload::Json(data.to_owned()));
        let again = from_json(event.to_json().as_bytes()).unwrap();
        assert_eq!(again, event, "{data}");
    }
}

#[test]
fn case_o75_base64_is_kept_as_sent_and_decoded_once() {
    for (sent, bytes) in [("YQ==", &b"a"[..]), ("YQ", b"a"), ("YW\nJj\r\n", b"abc"), ("", b"")] {
        let event = read(&with(&format!("\"data_base64\":{}", serde_json::Value::from(sent)))).unwrap();
        assert_eq!(event.data, Payload::Base64(sent.to_owned()));
        assert_eq!(event.data.bytes().unwrap(), bytes);
    }
}

#[test]
fn the_first_of_equal_keys_counts() {
    let event = read(&with(r#""subject":"first","subject":"second","data":1,"data":2,"ext":1,"ext":{}"#)).unwrap();
    assert_eq!(event.subject.as_deref(), Some("first"));
    assert_eq!(event.data, Payload::Json("1".to_owned()));
    assert_eq!(event.extras_json(), r#"{"ext":1}"#);
    // Also where the keys are only written differently, and where the first says that it is not set.
    let event = read(&with(r#""sub\u006aect":"first","subject":"second","producer":null,"producer":"p""#)).unwrap();
    assert_eq!((event.subject.as_deref(), event.producer), (Some("first"), None));
}

#[test]
fn attributes_without_a_column_are_extras() {
    let event = read(&with(
        r#""dataschema":"https://x/y","signature":"0x1","raweventid":"r","tags":["a",1,"b\"c"],"seq":10,"on":true"#,
    ))
    .unwrap();
    let expected =
        r#"{"dataschema":"https://x/y","signature":"0x1","raweventid":"r","tags":["a","b\"c"],"seq":10,"on":true}"#;
    assert_eq!(event.extras_json(), expected);
    assert_eq!(from_json(event.to_json().as_bytes()).unwrap(), event);
}

fn text() -> impl Strategy<Value = String> {
    "[^\\p{C}]{1,12}"
}

fn any_event() -> impl Strategy<Value = Event> {
    let optional = || proptest::option::of(text());
    let extras = proptest::collection::btree_map("x[a-z0-9]{1,8}", text(), 0..4);
    let data = prop_oneof![
        Just(Payload::None),
        text().prop_map(|text| Payload::Json(serde_json::Value::from(text).to_string())),
        any::<i64>().prop_map(|number| Payload::Json(number.to_string())),
        Just(Payload::Base64("AAEC".to_owned())),
    ];
    let time = proptest::option::of(-62_135_596_800_000_000_i64..253_402_300_799_000_000);
    (text(), text(), optional(), optional(), optional(), time, extras, data).prop_map(
        |(id, kind, subject, data_version, producer, time, extras, data)| Event {
            id,
            source: "/source".to_owned(),
            kind,
            subject,
            time: time.map(EventTime::from_micros),
            data_content_type: Some("application/json".to_owned()),
            data_version,
            producer,
            extras: extras
                .into_iter()
                .map(|(name, value)| (name, serde_json::Value::from(value).to_string()))
                .collect(),
            data,
        },
    )
}

proptest! {
    #[test]
    fn an_event_that_is_written_is_read_back(event in any_event()) {
        prop_assert_eq!(from_json(event.to_json().as_bytes()), Ok(event));
    }

    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = from_json(text.as_bytes());
    }
}
