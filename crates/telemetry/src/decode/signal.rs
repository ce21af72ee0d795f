//! Signals of one payload: each element of `signals` becomes a row, or a fault that says why not.
//!
//! A bad element takes no good one with it. Within one event the last value of a name and time counts.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::fault::Fault;
use super::json;
use super::location::{Location, merge_coordinates};
use super::near::NearNames;
use super::time;
use super::vss::{self, Kind, KnownSignal};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A finite number.
    Number(f64),
    /// Text, or JSON of a list of texts.
    Text(Cow<'a, str>),
    /// A place.
    Location(Location),
}

/// A decoded signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal<'a> {
    /// The position in the payload's array.
    pub index: usize,
    /// Its name.
    pub name: &'static str,
    /// UTC microseconds.
    pub timestamp: i64,
    /// Its value.
    pub value: Value<'a>,
}

/// Decodes the elements of `signals`, sorted by time and name.
pub fn decode_signals<'a>(
    elements: &[&'a RawValue],
    now_micros: i64,
    near: &mut NearNames,
    faults: &mut Vec<Fault>,
) -> Vec<Signal<'a>> {
    let part = |index: usize| format!("signals[{index}]");
    let mut signals = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        match decode_signal(index, element, now_micros, near) {
            Ok(signal) => signals.push(signal),
            Err(reason) => faults.push(Fault::part(part(index), element, reason)),
        }
    }
    keep_last(&mut signals);
    for (index, reason) in merge_coordinates(&mut signals) {
        faults.push(Fault::part(part(index), elements[index], reason));
    }
    // A place from parts comes before one that was said as such, which therefore counts.
    keep_last(&mut signals);
    signals
}

/// Sorts by time and name, and of equal ones keeps the last of the payload.
fn keep_last(signals: &mut Vec<Signal<'_>>) {
    signals.sort_by_key(|signal| (signal.timestamp, signal.name));
    signals.dedup_by(|later, kept| {
        let is_same = (later.timestamp, later.name) == (kept.timestamp, kept.name);
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
}

fn decode_signal<'a>(
    index: usize,
    element: &'a RawValue,
    now_micros: i64,
    near: &mut NearNames,
) -> Result<Signal<'a>, String> {
    let Ok(object) = json::object(element.get()) else {
        return Err(format!("expected an object with name, timestamp and value, found {}", json::found(Some(element))));
    };
    let Some(name) = object.value("name").and_then(json::string) else {
        return Err(format!("expected a text as `name`, found {}", json::found(object.get("name"))));
    };
    let Some(known) = vss::signal(&name) else { return Err(near.unknown_signal(&name)) };
    let about = |reason: String| format!("`{}`: {reason}", known.name);
    let value = decode_value(known, object.get("value")).map_err(about)?;
    let timestamp = time::timestamp(object.get("timestamp"), now_micros).map_err(about)?;
    Ok(Signal { index, name: known.name, timestamp, value })
}

fn decode_value(known: KnownSignal, raw: Option<&RawValue>) -> Result<Value<'_>, String> {
    let expected = |what: &str| format!("expected {what}, found {}", json::found(raw));
    let value = raw.filter(|value| value.get() != "null");
    match known.kind {
        Kind::Number => value.and_then(number).map(Value::Number).ok_or_else(|| number_expected(raw)),
        Kind::Text => value.and_then(json::string).map(Value::Text).ok_or_else(|| expected("a text")),
        Kind::Texts => value.and_then(texts).map(Value::Text).ok_or_else(|| expected("a list of texts")),
        Kind::Location => match value {
            Some(value) => Location::parse(value).map(Value::Location),
            None => Err(expected("an object with latitude and longitude")),
        },
    }
}

/// Reads a number, or a text that is one; only finite ones are.
fn number(value: &RawValue) -> Option<f64> {
    let number = match json::is_number(value) {
        true => value.get().parse().ok(),
        false => json::string(value)?.parse().ok(),
    };
    number.filter(|number: &f64| number.is_finite())
}

fn number_expected(raw: Option<&RawValue>) -> String {
    let hint = match raw.map(RawValue::get) {
        Some("true") => " (a switch that is on is 1)",
        Some("false") => " (a switch that is off is 0)",
        _ => "",
    };
    format!("expected a finite number, found {}{hint}", json::found(raw))
}

/// Reads a list of texts as its JSON; a text is taken as the JSON that it holds.
fn texts(value: &RawValue) -> Option<Cow<'_, str>> {
    match json::array(value) {
        Some(elements) => {
            let texts: Vec<Cow<'_, str>> = elements.into_iter().map(json::string).collect::<Option<_>>()?;
            serde_json::to_string(&texts).ok().map(Cow::Owned)
        }
        None => json::string(value),
    }
}

#[cfg(test)]
mod tests;
