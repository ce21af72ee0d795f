//! Any batches, in any order, with duplicates, ties, late rows, places at (0, 0) and values that are NULL: after each the
//! rollup is what its base says.

use proptest::prelude::*;

use super::*;

/// A row, drawn from few keys and instants so that ties and late rows are the rule.
#[derive(Clone, Debug)]
pub struct Row {
    subject: u8,
    name: u8,
    second: u8,
    source: Option<u8>,
    event: u8,
    number: Option<u8>,
    place: Option<(i8, i8)>,
}

pub fn row() -> impl Strategy<Value = Row> {
    let place = prop_oneof![Just((0, 0)), Just((0, 1)), (1..4_i8, 1..4_i8)];
    (0..3_u8, 0..2_u8, 0..6_u8, prop::option::of(0..2_u8), 0..4_u8, prop::option::of(0..3_u8), prop::option::of(place))
        .prop_map(|(subject, name, second, source, event, number, place)| Row {
            subject,
            name,
            second,
            source,
            event,
            number,
            place,
        })
}

pub const COLUMNS: &str = "subject, subject_bucket, name, \"timestamp\", source, cloud_event_id";
pub const SIGNAL_COLUMNS: &str =
    "subject, subject_bucket, name, \"timestamp\", source, cloud_event_id, value_number, loc_lat, loc_lon";

/// Returns the rows as VALUES.
pub fn values(table: &str, rows: &[Row]) -> String {
    let value = |row: &Row| {
        let source = row.source.map_or("NULL".to_owned(), |source| format!("'source-{source}'"));
        let event = format!(
            "'subject-{0}', {0}, 'name-{1}', TIMESTAMPTZ '2025-01-0{2} 00:00:00Z', {source}, 'event-{3}'",
            row.subject,
            row.name,
            row.second + 1,
            row.event
        );
        let number = row.number.map_or("NULL::DOUBLE".to_owned(), |number| number.to_string());
        let (latitude, longitude) =
            row.place.map_or(("NULL::DOUBLE".to_owned(), "NULL::DOUBLE".to_owned()), |(latitude, longitude)| {
                (latitude.to_string(), longitude.to_string())
            });
        match table {
            "events" => format!("({event})"),
            _ => format!("({event}, {number}, {latitude}, {longitude})"),
        }
    };
    rows.iter().map(value).collect::<Vec<_>>().join(", ")
}

pub fn columns(table: &str) -> &'static str {
    if table == "events" { COLUMNS } else { SIGNAL_COLUMNS }
}

/// A case takes some hundred statements, so there are few of them unless `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig { cases: 8, ..default },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn folds_in_any_order_are_the_recomputation(
        batches in prop::collection::vec(prop::collection::vec(row(), 1..14), 1..6),
        retired in 0..7_u8,
    ) {
        let (_instance, session) = session();
        for table in ["signals", "events"] {
            let tables = Tables::make(&session, "memory.main", table);
            for batch in &batches {
                tables.write(columns(table), &values(table, batch));
                prop_assert_eq!(tables.drift(), Drift::default(), "{} after {:?}", table, batch);
            }
            tables.decode_again("subject-0");
            prop_assert_eq!(tables.drift(), Drift::default(), "{} decoded again", table);
            tables.retire(&format!("TIMESTAMPTZ '2025-01-0{} 00:00:00Z'", retired + 1));
            prop_assert_eq!(tables.drift(), Drift::default(), "{} retired before {}", table, retired);
            tables.write(columns(table), &values(table, &batches[0]));
            prop_assert_eq!(tables.drift(), Drift::default(), "{} after what went came again", table);
        }
    }
}
