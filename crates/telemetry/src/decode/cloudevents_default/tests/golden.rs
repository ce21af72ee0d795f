//! The full status of a real vehicle, 82 signals, sent as a default payload: every value comes out as it went in.

use arrow::array::{Array, AsArray};
use arrow::datatypes::Float64Type;
use serde_json::{Map, Value, json};

use super::*;

/// What each signal of the vehicle was, by name.
const STATUS: &str = include_str!("full_status.json");

#[test]
fn the_full_status_of_a_vehicle_comes_out_as_it_went_in() {
    let status: Map<String, Value> = serde_json::from_str(STATUS).unwrap();
    let signal =
        |(name, value): (&String, &Value)| json!({ "name": name, "timestamp": "2024-09-27T08:33:26Z", "value": value });
    let payload = json!({ "signals": status.iter().map(signal).collect::<Vec<_>>() });
    let decoded = decode(&[Raw::status(&payload.to_string())]);

    assert_eq!(shown(&Decoded { rows: Vec::new(), dead: decoded.dead.clone() }), "");
    let rows = &decoded.rows[0];
    assert_eq!(rows.num_rows(), 82);
    let text = |column: &str| rows.column_by_name(column).unwrap().as_string::<i32>().clone();
    let number = |column: &str| rows.column_by_name(column).unwrap().as_primitive::<Float64Type>().clone();
    let (names, texts) = (text("name"), text("value_string"));
    let [numbers, latitudes, longitudes, hdops] = ["value_number", "loc_lat", "loc_lon", "loc_hdop"].map(number);
    for row in 0..rows.num_rows() {
        let expected = &status[names.value(row)];
        let found = match expected {
            Value::Number(_) => json!(numbers.value(row)),
            Value::String(_) => json!(texts.value(row)),
            _ => json!({
                "hdop": hdops.value(row), "latitude": latitudes.value(row), "longitude": longitudes.value(row),
            }),
        };
        assert_eq!(&found, expected, "{}", names.value(row));
        let values = [numbers.is_valid(row), texts.is_valid(row), latitudes.is_valid(row)];
        assert_eq!(values.into_iter().filter(|is_there| *is_there).count(), 1, "{}", names.value(row));
    }
}
