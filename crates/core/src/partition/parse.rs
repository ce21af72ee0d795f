//! Reads the text of an identity: one shape per unit, told apart by form alone.
//!
//! Invariant: digits are ASCII and every part has its full width, so one partition has one spelling.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc, Weekday};

use super::period::{Period, YEARS};

/// What a text says before a script's kind and zone are considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelled {
    /// `2026-05`, `2026-W20`, `2026-05-16`.
    Dates(Period),
    /// `2026-05-16T09` with the offset in seconds when one is written.
    Hour { start: NaiveDateTime, offset: Option<i32> },
    /// RFC 3339.
    Instant(DateTime<Utc>),
}

/// Why a text could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// No known form.
    Shape,
    /// A known form, but not on the calendar: why.
    Calendar(&'static str),
}

/// Reads `text`.
pub fn read(text: &str) -> Result<Spelled, Unreadable> {
    let Some((year, rest)) = text.split_at_checked(4) else { return Err(Unreadable::Shape) };
    let (Some(year), Some(rest)) = (digits(year), rest.strip_prefix('-')) else { return Err(Unreadable::Shape) };
    let spelled = match rest.len() {
        2 => read_month(year, rest)?,
        3 => read_week(year, rest)?,
        5 => Spelled::Dates(Period::Day(read_date(year, rest)?)),
        // `T09:00Z` is as long as `T09-0400`: an instant when it is no hour.
        8 | 13 | 15 => match read_hour(year, rest) {
            Err(Unreadable::Shape) => return read_instant(text),
            read => read?,
        },
        _ => return read_instant(text),
    };
    if YEARS.contains(&(year as i32)) { Ok(spelled) } else { Err(Unreadable::Calendar("years are 0001 to 9999")) }
}

fn read_month(year: u32, rest: &str) -> Result<Spelled, Unreadable> {
    let month = digits(rest).ok_or(Unreadable::Shape)?;
    let first = NaiveDate::from_ymd_opt(year as i32, month, 1).ok_or(Unreadable::Calendar("months are 01 to 12"))?;
    Ok(Spelled::Dates(Period::Month(first)))
}

fn read_week(year: u32, rest: &str) -> Result<Spelled, Unreadable> {
    let week = rest.strip_prefix('W').and_then(digits).ok_or(Unreadable::Shape)?;
    let monday = NaiveDate::from_isoywd_opt(year as i32, week, Weekday::Mon)
        .ok_or(Unreadable::Calendar("the ISO year has no such week"))?;
    Ok(Spelled::Dates(Period::Week(monday)))
}

fn read_date(year: u32, rest: &str) -> Result<NaiveDate, Unreadable> {
    let (month, day) = rest.split_once('-').ok_or(Unreadable::Shape)?;
    let (Some(month), Some(day)) = (two_digits(month), two_digits(day)) else { return Err(Unreadable::Shape) };
    NaiveDate::from_ymd_opt(year as i32, month, day).ok_or(Unreadable::Calendar("the calendar has no such date"))
}

fn read_hour(year: u32, rest: &str) -> Result<Spelled, Unreadable> {
    let (date, time) = rest.split_once('T').ok_or(Unreadable::Shape)?;
    let (Some(hour), Some(offset)) = (time.get(..2).and_then(two_digits), time.get(2..)) else {
        return Err(Unreadable::Shape);
    };
    let offset = if offset.is_empty() { None } else { Some(read_offset(offset).ok_or(Unreadable::Shape)?) };
    let start = read_date(year, date)?.and_hms_opt(hour, 0, 0).ok_or(Unreadable::Calendar("hours are 00 to 23"))?;
    Ok(Spelled::Hour { start, offset })
}

/// Returns the seconds of `±HHMM` or `±HHMMSS`; zero seconds are never written.
fn read_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(digits), _) => (1, digits),
        (_, Some(digits)) => (-1, digits),
        _ => return None,
    };
    let part = |from: usize| digits.get(from..from + 2).and_then(two_digits);
    let seconds = match digits.len() {
        4 => 0,
        6 => part(4).filter(|seconds| *seconds != 0)?,
        _ => return None,
    };
    let (hours, minutes) = (part(0)?, part(2)?);
    let in_range = hours < 24 && minutes < 60 && seconds < 60;
    in_range.then_some(sign * (hours * 3600 + minutes * 60 + seconds) as i32).filter(|total| *total != 0 || sign == 1)
}

fn read_instant(text: &str) -> Result<Spelled, Unreadable> {
    match DateTime::parse_from_rfc3339(text) {
        Ok(instant) => Ok(Spelled::Instant(instant.to_utc())),
        Err(_) => Err(Unreadable::Shape),
    }
}

fn two_digits(text: &str) -> Option<u32> {
    if text.len() == 2 { digits(text) } else { None }
}

fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}
