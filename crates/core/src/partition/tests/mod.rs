//! The calendar as tables of small facts, and the tiling of time as a property over many zones.

mod keys;
mod mapping;
mod slices;
mod tiling;
mod windows;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;

use super::*;

fn spec(unit: TimeUnit, zone: &str) -> TimeSpec {
    let tz = if zone.is_empty() { None } else { Some(zone.parse().expect("a known zone")) };
    TimeSpec { unit, by: None, tz, start: None, retention: None }
}

fn key(text: &str) -> PartitionKey {
    PartitionKey(text.to_owned())
}

fn at(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).expect("a valid instant").to_utc()
}

fn date(text: &str) -> NaiveDate {
    text.parse().expect("a valid date")
}

fn texts(partitions: Partitions) -> String {
    partitions.map(|key| key.0).collect::<Vec<_>>().join(" ")
}
