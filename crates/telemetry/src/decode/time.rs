//! Times of signals and events: RFC 3339 with any offset, cut to microseconds, and plausible.
//!
//! A time that cannot be true is refused and never replaced: neither by the event's time nor by the clock.

use serde_json::value::RawValue;

use super::json;
use crate::cloudevents::EventTime;

/// How far a device's clock may run ahead.
pub const AHEAD_MICROS: i64 = 5 * 60 * 1_000_000;

/// The first plausible time, 1971-01-01: what lies before is a clock that was never set.
const FIRST_MICROS: i64 = 365 * 24 * 60 * 60 * 1_000_000;

/// Reads a timestamp as UTC microseconds; the error says what was expected and what is there.
pub fn timestamp(value: Option<&RawValue>, now_micros: i64) -> Result<i64, String> {
    let Some(text) = value.and_then(json::string) else {
        return Err(format!("expected an RFC 3339 timestamp, found {}", json::found(value)));
    };
    let time = EventTime::parse(&text);
    let micros = time
        .map_err(|error| format!("expected an RFC 3339 timestamp, found {}: {error}", json::found(value)))?
        .micros();
    let shown = json::shortened(&text);
    if micros < FIRST_MICROS {
        return Err(format!("the timestamp {shown} is that of a clock that was never set"));
    }
    if now_micros.saturating_add(AHEAD_MICROS) < micros {
        return Err(format!("the timestamp {shown} is more than 5 minutes ahead of the clock"));
    }
    Ok(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_764_417_600_000_000;

    #[test]
    fn clocks_may_be_five_minutes_ahead_and_must_be_set() {
        let read = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            timestamp(Some(&raw), NOON)
        };
        assert_eq!(read(r#""2025-11-29T12:05:00Z""#), Ok(NOON + AHEAD_MICROS));
        assert_eq!(
            read(r#""2025-11-29T12:05:00.000001Z""#),
            Err("the timestamp 2025-11-29T12:05:00.000001Z is more than 5 minutes ahead of the clock".to_owned())
        );
        assert_eq!(read(r#""2025-11-29T17:30:00.1234567+05:30""#), Ok(NOON + 123_456));
        assert_eq!(
            read(r#""2025-11-29 12:00:00Z""#),
            Err("expected an RFC 3339 timestamp, found the text \"2025-11-29 12:00:00Z\": `T` between date and time was \
                 expected at character 11"
                .to_owned())
        );
        assert!(read(r#""1970-01-01T00:00:00Z""#).unwrap_err().contains("never set"));
        assert!(read(r#""0001-01-01T00:00:00Z""#).unwrap_err().contains("never set"));
        assert_eq!(read("12"), Err("expected an RFC 3339 timestamp, found the number 12".to_owned()));
        assert_eq!(timestamp(None, NOON), Err("expected an RFC 3339 timestamp, found none".to_owned()));
    }
}
