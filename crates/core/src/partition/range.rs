//! Enumeration of partitions, one at a time.
//!
//! Invariant: nothing is expanded before it is asked for; a range of ten years of hours costs as much as one hour.

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use chrono_tz::Tz;

use super::period::Period;
use super::{PartitionKey, TimeUnit, Window, zone};

/// The partitions that share time with a window, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions {
    unit: TimeUnit,
    zone: Tz,
    /// An instant of the next partition.
    cursor: DateTime<Utc>,
    /// No partition begins at or after it.
    end: DateTime<Utc>,
}

impl Partitions {
    pub(super) fn new(unit: TimeUnit, zone: Tz, window: Window) -> Self {
        Self { unit, zone, cursor: window.start, end: window.end }
    }

    /// Returns whether no partition is left.
    pub fn is_empty(&self) -> bool {
        self.end <= self.cursor
    }

    /// Returns how many partitions are left; by arithmetic for days, weeks, months and hours of UTC.
    pub fn remaining(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let last_instant = self.end - TimeDelta::nanoseconds(1);
        let first = Period::holding(self.unit, self.zone, self.cursor);
        let last = Period::holding(self.unit, self.zone, last_instant);
        match (first, last) {
            (Period::Day(first), Period::Day(last)) => {
                let dates = (last - first).num_days() as u64 + 1;
                dates - zone::skipped_days(self.zone, first, last)
            }
            (Period::Week(first), Period::Week(last)) => (last - first).num_weeks() as u64 + 1,
            (Period::Month(first), Period::Month(last)) => {
                let month_number = |date: chrono::NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
                (month_number(last) - month_number(first)) as u64 + 1
            }
            (Period::Hour { start: first, .. }, Period::Hour { start: last, .. }) if zone::is_utc(self.zone) => {
                (last - first).num_hours() as u64 + 1
            }
            _ => self.clone().fold(0, |count, _| count + 1),
        }
    }
}

impl Iterator for Partitions {
    type Item = PartitionKey;

    fn next(&mut self) -> Option<PartitionKey> {
        if self.is_empty() {
            return None;
        }
        let (period, window) = Period::with_window(self.unit, self.zone, self.cursor);
        // A cursor after the year 9999 is clamped to a window before it; nothing lies beyond.
        self.cursor = if self.cursor < window.end { window.end } else { self.end };
        Some(PartitionKey(period.text(self.zone)))
    }
}
