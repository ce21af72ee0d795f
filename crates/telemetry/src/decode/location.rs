//! Places: what makes one, and how one is put together from the parts that some devices send as signals of their own.
//!
//! A place has a latitude and a longitude, both finite and on the globe. Nothing else is one: a place is never filled up
//! with zeros. Exactly (0, 0) is kept when a device says it as one value, and never becomes a latest place (rollups see to
//! that); put together from parts it is refused, because there it stands for parts without a value.

use serde_json::value::RawValue;

use super::json::{self, Object};
use super::signal::{Signal, Value};
use super::vss::{COORDINATES, HDOP, LATITUDE, LONGITUDE};

/// Parts belong to one place when they are less than this apart.
const TOGETHER_MICROS: i64 = 500_000;

/// A place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Location {
    /// Degrees north, -90 to 90.
    pub latitude: f64,
    /// Degrees east, -180 to 180.
    pub longitude: f64,
    /// Horizontal dilution of precision.
    pub hdop: Option<f64>,
    /// Degrees clockwise from north.
    pub heading: Option<f64>,
}

impl Location {
    /// Reads an object with `latitude`, `longitude`, and perhaps `hdop` and `heading`.
    pub fn parse(value: &RawValue) -> Result<Self, String> {
        let Ok(object) = json::object(value.get()) else {
            return Err(format!("expected an object with latitude and longitude, found {}", json::found(Some(value))));
        };
        let latitude = required(&object, "latitude")?;
        let longitude = required(&object, "longitude")?;
        check(latitude, longitude)?;
        Ok(Self { latitude, longitude, hdop: optional(&object, "hdop")?, heading: optional(&object, "heading")? })
    }
}

fn required(object: &Object<'_>, key: &str) -> Result<f64, String> {
    optional(object, key)?.ok_or_else(|| {
        format!("expected a number as `{key}`, found {}{}", json::found(object.get(key)), object.near(key))
    })
}

fn optional(object: &Object<'_>, key: &str) -> Result<Option<f64>, String> {
    let Some(value) = object.value(key) else { return Ok(None) };
    let number = json::is_number(value).then(|| value.get().parse::<f64>().ok()).flatten();
    match number.filter(|number| number.is_finite()) {
        Some(number) => Ok(Some(number)),
        None => Err(format!("expected a number as `{key}`, found {}", json::found(Some(value)))),
    }
}

fn check(latitude: f64, longitude: f64) -> Result<(), String> {
    if !(-90.0..=90.0).contains(&latitude) {
        return Err(format!("the latitude {latitude} is outside -90 to 90"));
    }
    if !(-180.0..=180.0).contains(&longitude) {
        return Err(format!("the longitude {longitude} is outside -180 to 180"));
    }
    Ok(())
}

/// A part that did not become a place: the index of its signal in the payload, and why.
pub type Refused = (usize, String);

/// Puts places together from the parts among `signals`, which are sorted by time and name; the parts leave, the places
/// join at the time of their earliest part.
///
/// A part joins the open place when it is less than half a second after that place's first part and the place lacks it;
/// otherwise it opens the next one.
pub fn merge_coordinates(signals: &mut Vec<Signal<'_>>) -> Vec<Refused> {
    let is_part = |signal: &Signal<'_>| [LATITUDE, LONGITUDE, HDOP].contains(&signal.name);
    if !signals.iter().any(is_part) {
        return Vec::new();
    }
    let mut places: Vec<Parts> = Vec::new();
    for signal in signals.iter().filter(|signal| is_part(signal)) {
        let Value::Number(number) = signal.value else { continue };
        let part = Part { index: signal.index, timestamp: signal.timestamp, number };
        match places.last_mut().filter(|open| open.takes(signal.name, part)) {
            Some(open) => open.put(signal.name, part),
            None => places.push(Parts::opened_by(signal.name, part)),
        }
    }
    signals.retain(|signal| !is_part(signal));
    let mut refused = Vec::new();
    for parts in &places {
        match parts.close() {
            Ok(signal) => signals.push(signal),
            Err(reason) => refused.extend(parts.indices().map(|index| (index, reason.clone()))),
        }
    }
    refused
}

#[derive(Clone, Copy)]
struct Part {
    index: usize,
    timestamp: i64,
    number: f64,
}

struct Parts {
    first: i64,
    latitude: Option<Part>,
    longitude: Option<Part>,
    hdop: Option<Part>,
}

impl Parts {
    fn opened_by(name: &str, part: Part) -> Self {
        let mut parts = Self { first: part.timestamp, latitude: None, longitude: None, hdop: None };
        parts.put(name, part);
        parts
    }

    fn slot(&mut self, name: &str) -> &mut Option<Part> {
        match name {
            LATITUDE => &mut self.latitude,
            LONGITUDE => &mut self.longitude,
            _ => &mut self.hdop,
        }
    }

    fn takes(&self, name: &str, part: Part) -> bool {
        let is_free = match name {
            LATITUDE => self.latitude.is_none(),
            LONGITUDE => self.longitude.is_none(),
            _ => self.hdop.is_none(),
        };
        is_free && part.timestamp - self.first < TOGETHER_MICROS
    }

    fn put(&mut self, name: &str, part: Part) {
        *self.slot(name) = Some(part);
    }

    fn indices(&self) -> impl Iterator<Item = usize> {
        [self.latitude, self.longitude, self.hdop].into_iter().flatten().map(|part| part.index)
    }

    fn close(&self) -> Result<Signal<'static>, String> {
        let (latitude, longitude) = match (self.latitude, self.longitude) {
            (Some(latitude), Some(longitude)) => (latitude, longitude),
            (Some(_), None) => return Err(format!("`{LATITUDE}` has no `{LONGITUDE}` within 500 ms")),
            (None, Some(_)) => return Err(format!("`{LONGITUDE}` has no `{LATITUDE}` within 500 ms")),
            (None, None) => return Err(format!("`{HDOP}` has no `{LATITUDE}` and `{LONGITUDE}` within 500 ms")),
        };
        check(latitude.number, longitude.number)?;
        if latitude.number == 0.0 && longitude.number == 0.0 {
            return Err("latitude and longitude are both 0, which stands for no place".to_owned());
        }
        let location = Location {
            latitude: latitude.number,
            longitude: longitude.number,
            hdop: self.hdop.map(|hdop| hdop.number),
            heading: None,
        };
        Ok(Signal { index: latitude.index, name: COORDINATES, timestamp: self.first, value: Value::Location(location) })
    }
}

#[cfg(test)]
mod tests;
