//! What holds for any payload: no panic, the same answer every time, and good parts that do not suffer from bad ones.

use proptest::prelude::*;

use super::*;

/// An element that is good, as the name and value that its row has, or one that is bad in some way.
#[derive(Clone, Debug)]
enum Element {
    Good { second: u32, value: i32 },
    Bad(String),
}

impl Element {
    fn json(&self) -> String {
        match self {
            Element::Good { second, value } => {
                let (minute, second) = (second / 60 % 60, second % 60);
                format!(
                    r#"{{"name": "speed", "timestamp": "2025-11-29T10:{minute:02}:{second:02}Z", "value": {value}}}"#
                )
            }
            Element::Bad(json) => json.clone(),
        }
    }
}

fn bad() -> impl Strategy<Value = Element> {
    prop_oneof![
        Just(r#"{"name": "sped", "timestamp": "2025-11-29T10:00:00Z", "value": 1}"#),
        Just(r#"{"name": "speed", "timestamp": "2035-11-29T10:00:00Z", "value": 1}"#),
        Just(r#"{"name": "speed", "timestamp": "2025-11-29T10:00:00Z", "value": true}"#),
        Just(r#"{"name": "speed", "timestamp": "2025-11-29T10:00:00Z"}"#),
        Just("null"),
        Just("[[[]]]"),
        Just(r#""\ud800""#),
    ]
    .prop_map(|json| Element::Bad(json.to_owned()))
}

fn good() -> impl Strategy<Value = Element> {
    (0..3_600_u32, any::<i32>()).prop_map(|(second, value)| Element::Good { second, value })
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_dead(text in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let encoded = Raw { data: None, data_base64: Some(bytes), ..Raw::status("") };
        let rows = [Raw::status(&text), Raw::of("dimo.events", &text), encoded];
        let decoded = decode(&rows);
        prop_assert_eq!(decoded.rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
        prop_assert_eq!(decoded.dead.len(), rows.len());
    }

    #[test]
    fn any_cut_of_a_good_payload_is_dead_with_its_bytes(cut in 0..130_usize) {
        let payload = r#"{"signals": [{"name": "currentLocationCoordinates", "timestamp": "2025-11-29T10:00:00Z", "value": {"latitude": 1, "longitude": 2}}]}"#;
        let decoded = decode(&[Raw::status(&payload[..cut])]);
        prop_assert_eq!(decoded.rows[0].num_rows(), 0);
        prop_assert_eq!(&decoded.dead[0].raw, &payload.as_bytes()[..cut]);
    }

    #[test]
    fn every_good_part_is_a_row_and_every_bad_one_is_dead(
        elements in prop::collection::vec(prop_oneof![good(), bad()], 0..30),
    ) {
        let json: Vec<String> = elements.iter().map(Element::json).collect();
        let row = Raw::status(&format!(r#"{{"signals": [{}]}}"#, json.join(",")));
        let decoded = decode(std::slice::from_ref(&row));

        let mut good: Vec<u32> = elements.iter().filter_map(|element| match element {
            Element::Good { second, .. } => Some(*second),
            Element::Bad(_) => None,
        }).collect();
        good.sort_unstable();
        good.dedup();
        prop_assert_eq!(decoded.rows[0].num_rows(), good.len());

        let mut dead: Vec<String> = decoded.dead.iter().map(|dead| String::from_utf8(dead.raw.clone()).unwrap()).collect();
        let mut bad: Vec<String> = elements.iter().filter_map(|element| match element {
            Element::Bad(json) => Some(json.clone()),
            Element::Good { .. } => None,
        }).collect();
        dead.sort();
        bad.sort();
        prop_assert_eq!(dead, bad);

        let again = decode(&[row]);
        prop_assert_eq!(again.rows, decoded.rows);
        prop_assert_eq!(again.dead, decoded.dead);
    }

    #[test]
    fn batches_may_be_cut_anywhere(count in 1..8_usize, cut in 0..8_usize) {
        let rows: Vec<Raw> = (0..count).map(|index| {
            let json = format!(r#"{{"signals": [{{"name": "speed", "timestamp": "2025-11-29T10:00:0{index}Z", "value": 1}}, {index}]}}"#);
            Raw { id: Some(format!("event-{index}")), ..Raw::status(&json) }
        }).collect();
        let whole = decode(&rows);
        let (first, second) = rows.split_at(cut.min(count));
        let parts = [decode(first), decode(second)];
        let signals = arrow::compute::concat_batches(&whole.rows[0].schema(), parts.iter().map(|part| &part.rows[0])).unwrap();
        prop_assert_eq!(&signals, &whole.rows[0]);
        prop_assert_eq!(parts.iter().map(|part| part.dead.len()).sum::<usize>(), whole.dead.len());
    }
}
