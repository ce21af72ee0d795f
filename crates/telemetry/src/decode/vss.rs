//! The signals that decoders know, and the kind of value that each has.
//!
//! The list is data: `vss_signals.csv`, names and paths of the COVESA Vehicle Signal Specification with the additions
//! (coordinates, OBD, connectivity) that the DIMO network publishes for it. A line has eight fields, none quoted: name,
//! path, type, unit, least, greatest, privilege, kind.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a signal's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number; booleans are 0 and 1.
    Number,
    /// Text.
    Text,
    /// A list of texts, stored as JSON.
    Texts,
    /// A place.
    Location,
}

/// A known signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSignal {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
}

/// The name of the signal that holds a place.
pub const COORDINATES: &str = "currentLocationCoordinates";
/// One half of a place, as devices send it that know no places.
pub const LATITUDE: &str = "currentLocationLatitude";
/// The other half.
pub const LONGITUDE: &str = "currentLocationLongitude";
/// How exact a place is: the horizontal dilution of precision.
pub const HDOP: &str = "dimoAftermarketHDOP";

/// Signals that are not in the list because they never become rows: they are the parts of one that is.
const PARTS_OF_COORDINATES: [&str; 3] = [LATITUDE, LONGITUDE, HDOP];

static SIGNALS: LazyLock<HashMap<&'static str, KnownSignal>> = LazyLock::new(|| {
    let listed = include_str!("vss_signals.csv").lines().skip(1).filter_map(known_signal);
    let parts = PARTS_OF_COORDINATES.map(|name| KnownSignal { name, kind: Kind::Number });
    listed.chain(parts).map(|signal| (signal.name, signal)).collect()
});

fn known_signal(line: &'static str) -> Option<KnownSignal> {
    let fields: Vec<&str> = line.split(',').collect();
    let [name, _, data_type, _, _, _, _, kind] = fields[..] else { return None };
    let kind = match (kind, data_type) {
        ("number", _) => Kind::Number,
        ("string", "string[]") => Kind::Texts,
        ("string", _) => Kind::Text,
        ("location", _) => Kind::Location,
        _ => return None,
    };
    Some(KnownSignal { name, kind })
}

/// Returns the signal named `name`, exactly as written.
pub fn signal(name: &str) -> Option<KnownSignal> {
    SIGNALS.get(name).copied()
}

/// Returns the names of all signals, in no order.
pub fn names() -> impl Iterator<Item = &'static str> {
    SIGNALS.keys().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_list_is_a_signal() {
        let lines = include_str!("vss_signals.csv").lines().count() - 1;
        assert_eq!(lines, 116);
        assert_eq!(SIGNALS.len(), lines + PARTS_OF_COORDINATES.len());
    }

    #[test]
    fn kinds_are_those_of_the_list() {
        for (name, kind) in [
            ("speed", Kind::Number),
            ("isIgnitionOn", Kind::Number),
            ("powertrainType", Kind::Text),
            ("obdDTCList", Kind::Texts),
            (COORDINATES, Kind::Location),
            (HDOP, Kind::Number),
        ] {
            assert_eq!(signal(name).map(|signal| signal.kind), Some(kind), "{name}");
        }
        assert_eq!(signal("Speed"), None);
    }
}
