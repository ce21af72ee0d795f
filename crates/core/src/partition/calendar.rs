//! The calendar of one `partitioned` declaration: identities, windows, and which of them are closed.

use chrono::{DateTime, NaiveDate, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::parse::{self, Spelled, Unreadable};
use super::period::{Period, YEARS};
use super::{PartitionError, PartitionKey, Partitions, TimeSpec, TimeUnit, Window, zone};

impl TimeSpec {
    /// Returns the zone that the partitions are counted in.
    pub fn zone(&self) -> Tz {
        self.tz.unwrap_or(Tz::UTC)
    }

    /// Returns whether the windows are those of UTC: no `tz=`, or UTC by any of its names.
    pub fn is_utc(&self) -> bool {
        zone::is_utc(self.zone())
    }

    /// Returns the canonical identity that `text` names.
    ///
    /// Besides the identity itself an RFC 3339 instant is accepted when it is exactly where a partition starts, and a
    /// date for a week (its Monday) or a month (its first).
    pub fn parse_key(&self, text: &str) -> Result<PartitionKey, PartitionError> {
        Ok(self.key(self.parse_period(text)?))
    }

    /// Returns the identity of the partition whose window holds `instant`.
    ///
    /// Partitions exist in the years 0001 to 9999. The key of an instant outside them is one that [`Self::window`] and
    /// [`Self::parse_key`] refuse, so a wild event time is reported where it is used and lands in no partition.
    pub fn key_of(&self, instant: DateTime<Utc>) -> PartitionKey {
        self.key(Period::holding(self.unit, self.zone(), instant))
    }

    /// Returns the window of `key`.
    pub fn window(&self, key: &PartitionKey) -> Result<Window, PartitionError> {
        Ok(self.period_and_window(key.as_str())?.1)
    }

    /// Returns the local dates `[first, after)` of `key`, the bounds of a slice on a DATE column.
    pub fn local_dates(&self, key: &PartitionKey) -> Result<(NaiveDate, NaiveDate), PartitionError> {
        self.parse_period(key.as_str())?.dates().ok_or(PartitionError::NoDates)
    }

    /// Returns the newest partition that is over at `now`.
    pub fn last_closed(&self, now: DateTime<Utc>) -> PartitionKey {
        self.key_of(self.open_since(now) - TimeDelta::nanoseconds(1))
    }

    /// Returns whether `now` lies in the partition, so that it is still partial.
    pub fn is_open(&self, key: &PartitionKey, now: DateTime<Utc>) -> Result<bool, PartitionError> {
        let window = self.window(key)?;
        Ok(window.start <= now && now < window.end)
    }

    /// Returns whether the partition has not begun at `now`.
    pub fn is_future(&self, key: &PartitionKey, now: DateTime<Utc>) -> Result<bool, PartitionError> {
        Ok(now < self.window(key)?.start)
    }

    /// Returns the partition that begins where `key` ends.
    pub fn next(&self, key: &PartitionKey) -> Result<PartitionKey, PartitionError> {
        Ok(self.key_of(self.window(key)?.end))
    }

    /// Returns the partition that ends where `key` begins.
    pub fn previous(&self, key: &PartitionKey) -> Result<PartitionKey, PartitionError> {
        Ok(self.key_of(self.window(key)?.start - TimeDelta::nanoseconds(1)))
    }

    /// Returns the partitions from `from` to `to`, both included.
    pub fn range(&self, from: &PartitionKey, to: &PartitionKey) -> Result<Partitions, PartitionError> {
        let (first, last) = (self.window(from)?, self.window(to)?);
        if last.start < first.start {
            return Err(PartitionError::Backwards { from: from.clone(), to: to.clone() });
        }
        Ok(self.overlapping(Window { start: first.start, end: last.end }))
    }

    /// Returns the partitions that should exist at `now`: from the one that holds the date `start=` to the last closed
    /// one. Without `start=` nothing is expected.
    pub fn expected(&self, now: DateTime<Utc>) -> Partitions {
        let open = self.open_since(now);
        let start = self.start.map_or(open, |date| zone::day_start(self.zone(), date));
        let start = self.kept_since(now).map_or(start, |kept| kept.max(start));
        self.overlapping(Window { start, end: open.max(start) })
    }

    /// Returns the time that should be covered at `now`: that of [`Self::expected`], or of the last closed partition when
    /// there is no `start=`.
    pub fn expected_window(&self, now: DateTime<Utc>) -> Window {
        let end = self.open_since(now);
        let start = match self.start {
            Some(date) => Period::with_window(self.unit, self.zone(), zone::day_start(self.zone(), date)).1.start,
            None => Period::with_window(self.unit, self.zone(), end - TimeDelta::nanoseconds(1)).1.start,
        };
        let start = self.kept_since(now).map_or(start, |kept| kept.max(start));
        Window { start, end: end.max(start) }
    }

    /// Returns the beginning of the first partition that retention leaves at `now`; `None` when all stay.
    pub fn kept_since(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let cutoff = now.checked_sub_signed(TimeDelta::from_std(self.retention?).ok()?)?;
        Some(Period::with_window(self.unit, self.zone(), cutoff).1.start)
    }

    /// Returns whether `key` ends before the date `start=` begins.
    pub fn is_before_start(&self, key: &PartitionKey) -> bool {
        let Some(start) = self.start.map(|date| zone::day_start(self.zone(), date)) else { return false };
        self.window(key).is_ok_and(|window| window.end <= start)
    }

    /// Returns the partitions that share time with `window`.
    pub fn overlapping(&self, window: Window) -> Partitions {
        Partitions::new(self.unit, self.zone(), window)
    }

    /// Returns where the partition that is open at `now` began.
    fn open_since(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        Period::with_window(self.unit, self.zone(), now).1.start
    }

    pub(super) fn key(&self, period: Period) -> PartitionKey {
        PartitionKey(period.text(self.zone()))
    }

    pub(super) fn period_and_window(&self, text: &str) -> Result<(Period, Window), PartitionError> {
        let period = self.parse_period(text)?;
        Ok((period, self.window_of(period, text)?))
    }

    /// Returns the window of `period`, which was written as `text`.
    pub(super) fn window_of(&self, period: Period, text: &str) -> Result<Window, PartitionError> {
        let zone = self.zone();
        period.window(zone).ok_or_else(|| PartitionError::NoSuchPeriod {
            text: text.to_owned(),
            reason: match period {
                Period::Hour { start, offset } => {
                    let instant = (start - TimeDelta::seconds(offset.into())).and_utc();
                    format!(
                        "the clock of {zone} never showed that hour with that offset; the hour at that time is `{}`",
                        self.key_of(instant)
                    )
                }
                _ => format!("the clock of {zone} skipped that date"),
            },
        })
    }

    pub(super) fn parse_period(&self, text: &str) -> Result<Period, PartitionError> {
        let period = match self.read(text)? {
            Spelled::Dates(period) if period.unit() == self.unit => period,
            Spelled::Dates(Period::Day(date)) if self.unit != TimeUnit::Hour => {
                let period = Period::of_date(self.unit, date);
                let is_first = period.dates().is_some_and(|(first, _)| first == date);
                return if is_first { Ok(period) } else { Err(self.not_exact(text, period)) };
            }
            Spelled::Hour { start, offset } if self.unit == TimeUnit::Hour => self.hour(text, start, offset)?,
            Spelled::Instant(instant) => {
                let (period, window) = Period::with_window(self.unit, self.zone(), instant);
                if window.start != instant {
                    return Err(self.not_exact(text, period));
                }
                period
            }
            _ => return Err(self.malformed(text)),
        };
        if !YEARS.contains(&period.year()) {
            return Err(PartitionError::NoSuchPeriod {
                text: text.to_owned(),
                reason: "years are 0001 to 9999".into(),
            });
        }
        self.window_of(period, text)?;
        Ok(period)
    }

    /// Reads `text` in any form, with this script's kind in the error.
    pub(super) fn read(&self, text: &str) -> Result<Spelled, PartitionError> {
        parse::read(text).map_err(|unreadable| match unreadable {
            Unreadable::Shape => self.malformed(text),
            Unreadable::Calendar(reason) => {
                PartitionError::NoSuchPeriod { text: text.to_owned(), reason: reason.to_owned() }
            }
        })
    }

    fn hour(&self, text: &str, start: chrono::NaiveDateTime, offset: Option<i32>) -> Result<Period, PartitionError> {
        match offset {
            None if !self.is_utc() => Err(self.needs_offset(text, start)),
            Some(_) if self.is_utc() => Err(self.malformed(text)),
            _ => Ok(Period::Hour { start, offset: offset.unwrap_or(0) }),
        }
    }

    /// Returns the error for the local hour `start` that should say which of the zone's hours it means.
    pub(super) fn needs_offset(&self, text: &str, start: chrono::NaiveDateTime) -> PartitionError {
        let hourly = TimeSpec { unit: TimeUnit::Hour, ..self.clone() };
        let zone = self.zone();
        let mut keys: Vec<String> = Vec::new();
        // Late in the hour too: where clocks change by half an hour only part of it may exist.
        for minutes in [0, 45] {
            let local = zone.from_local_datetime(&(start + TimeDelta::minutes(minutes)));
            for instant in [local.earliest(), local.latest()].into_iter().flatten() {
                let key = format!("`{}`", hourly.key_of(instant.to_utc()));
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        if keys.is_empty() {
            let reason = format!("the clock of {zone} skipped that hour");
            return PartitionError::NoSuchPeriod { text: text.to_owned(), reason };
        }
        PartitionError::NeedsOffset { text: text.to_owned(), zone: zone.name(), candidates: keys.join(" or ") }
    }

    fn not_exact(&self, text: &str, holder: Period) -> PartitionError {
        PartitionError::NotExact { text: text.to_owned(), unit: self.unit.word(), holder: self.key(holder) }
    }

    fn malformed(&self, text: &str) -> PartitionError {
        let form = match self.unit {
            TimeUnit::Hour if self.is_utc() => "`YYYY-MM-DDTHH` in UTC",
            TimeUnit::Hour => "`YYYY-MM-DDTHH±HHMM`, the local hour with its offset",
            TimeUnit::Day => "`YYYY-MM-DD`",
            TimeUnit::Week => "`YYYY-Www`, the ISO week",
            TimeUnit::Month => "`YYYY-MM`",
        };
        let example = Utc.with_ymd_and_hms(2026, 5, 16, 12, 0, 0).single().expect("a valid instant");
        PartitionError::Malformed {
            text: text.to_owned(),
            unit: self.unit.word(),
            form,
            example: self.key_of(example).0,
        }
    }
}
