//! One calendar period: the parsed form of an identity, its text and its window.
//!
//! Invariant: [`Period::holding`] never returns an empty period, so stepping from window end to window end visits every
//! partition once, also over hours and dates that a zone skipped or repeated.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;

use super::{TimeUnit, Window, zone};

/// The first and the last year whose partitions have an identity.
pub const YEARS: std::ops::RangeInclusive<i32> = 1..=9999;

/// A period of one unit in some zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// The local hour that begins at `start`, while the clock is `offset` seconds ahead of UTC.
    Hour { start: NaiveDateTime, offset: i32 },
    /// A local date.
    Day(NaiveDate),
    /// The ISO week of this Monday.
    Week(NaiveDate),
    /// The month of this first day.
    Month(NaiveDate),
}

impl Period {
    /// Returns the period of `unit` that holds `instant`.
    pub fn holding(unit: TimeUnit, zone: Tz, instant: DateTime<Utc>) -> Self {
        let instant = instant.clamp(before_years(), after_years());
        if unit == TimeUnit::Hour {
            let local = zone::local_time(zone, instant);
            let start = local.date().and_hms_opt(local.hour(), 0, 0).expect("a full hour of the day");
            return Period::Hour { start, offset: zone::offset_at(zone, instant) };
        }
        Self::of_date(unit, zone::date_at(zone, instant))
    }

    /// Returns the period of `unit` that holds `instant`, with its window.
    pub fn with_window(unit: TimeUnit, zone: Tz, instant: DateTime<Utc>) -> (Self, Window) {
        let period = Self::holding(unit, zone, instant);
        (period, period.window(zone).expect("a period that holds an instant is not empty"))
    }

    /// Returns the day, week or month that holds the local `date`; of hours there are many.
    pub fn of_date(unit: TimeUnit, date: NaiveDate) -> Self {
        match unit {
            TimeUnit::Hour | TimeUnit::Day => Period::Day(date),
            TimeUnit::Week => Period::Week(date - TimeDelta::days(date.weekday().num_days_from_monday().into())),
            TimeUnit::Month => Period::Month(date.with_day(1).expect("every month has a first day")),
        }
    }

    /// Returns the unit.
    pub fn unit(self) -> TimeUnit {
        match self {
            Period::Hour { .. } => TimeUnit::Hour,
            Period::Day(_) => TimeUnit::Day,
            Period::Week(_) => TimeUnit::Week,
            Period::Month(_) => TimeUnit::Month,
        }
    }

    /// Returns the window, or `None` when the zone's clock skipped the whole period.
    pub fn window(self, zone: Tz) -> Option<Window> {
        match self {
            Period::Hour { start, offset } => zone::hour_window(zone, start, offset),
            Period::Day(date) => zone::day_window(zone, date),
            Period::Week(_) | Period::Month(_) => {
                let (first, after) = self.dates()?;
                Some(Window { start: zone::day_start(zone, first), end: zone::day_start(zone, after) })
            }
        }
    }

    /// Returns the local dates `[first, after)`, or `None` for an hour.
    pub fn dates(self) -> Option<(NaiveDate, NaiveDate)> {
        match self {
            Period::Hour { .. } => None,
            Period::Day(date) => Some((date, date.succ_opt()?)),
            Period::Week(monday) => Some((monday, monday + TimeDelta::days(7))),
            Period::Month(first) => Some((first, first + chrono::Months::new(1))),
        }
    }

    /// Returns the year that its identity shows.
    pub fn year(self) -> i32 {
        match self {
            Period::Hour { start, .. } => start.year(),
            Period::Day(date) | Period::Month(date) => date.year(),
            Period::Week(monday) => monday.iso_week().year(),
        }
    }

    /// Returns the identity in `zone`.
    pub fn text(self, zone: Tz) -> String {
        match self {
            Period::Hour { start, .. } if zone::is_utc(zone) => start.format("%Y-%m-%dT%H").to_string(),
            Period::Hour { start, offset } => format!("{}{}", start.format("%Y-%m-%dT%H"), offset_text(offset)),
            Period::Day(date) => date.format("%Y-%m-%d").to_string(),
            Period::Week(monday) => monday.format("%G-W%V").to_string(),
            Period::Month(first) => first.format("%Y-%m").to_string(),
        }
    }
}

/// Returns `-0400`, with seconds (`-045602`) only for the local mean times of the nineteenth century.
fn offset_text(offset: i32) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes, seconds) = (offset.abs() / 3600, offset.abs() / 60 % 60, offset.abs() % 60);
    match seconds {
        0 => format!("{sign}{hours:02}{minutes:02}"),
        _ => format!("{sign}{hours:02}{minutes:02}{seconds:02}"),
    }
}

/// Returns an instant whose periods all lie before [`YEARS`].
fn before_years() -> DateTime<Utc> {
    NaiveDate::from_ymd_opt(YEARS.start() - 1, 11, 15).expect("a valid date").and_time(chrono::NaiveTime::MIN).and_utc()
}

/// Returns an instant whose periods all lie after [`YEARS`].
fn after_years() -> DateTime<Utc> {
    NaiveDate::from_ymd_opt(YEARS.end() + 1, 2, 15).expect("a valid date").and_time(chrono::NaiveTime::MIN).and_utc()
}
