//! Times of events: RFC 3339 as it is written in the standard, any offset, to the microsecond of UTC.
//!
//! Strict, because a lenient reader guesses: without seconds, without an offset, or with a blank for the T a text is
//! refused. More digits than microseconds are cut off, never rounded.

use chrono::{DateTime, NaiveDate, SecondsFormat};

/// A time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTime {
    micros: i64,
}

/// What is wrong with the text of a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected} at character {at}")]
pub struct TimeError {
    /// What was expected.
    pub expected: &'static str,
    /// The character of the text, from 1.
    pub at: usize,
}

impl EventTime {
    /// Returns the time `micros` microseconds after 1970-01-01T00:00:00Z.
    pub fn from_micros(micros: i64) -> Self {
        Self { micros }
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    pub fn micros(self) -> i64 {
        self.micros
    }

    /// Returns the microseconds, cut to whole milliseconds: what the raw table keeps.
    pub fn micros_of_millisecond(self) -> i64 {
        self.micros.div_euclid(1_000) * 1_000
    }

    /// Returns RFC 3339 in UTC, cut to whole seconds.
    pub fn whole_seconds(self) -> String {
        self.text(SecondsFormat::Secs)
    }

    /// Returns RFC 3339 in UTC, with as many digits as the time needs.
    pub fn to_rfc3339(self) -> String {
        self.text(SecondsFormat::AutoSi)
    }

    fn text(self, format: SecondsFormat) -> String {
        let time = DateTime::from_timestamp_micros(self.micros).expect("every time was parsed, or is of a clock");
        time.to_rfc3339_opts(format, true)
    }

    /// Reads RFC 3339: `2026-01-02T03:04:05[.digits](Z|±hh:mm)`; `t` and `z` may be small.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let mut rest = Rest { text: text.as_bytes(), at: 0 };
        let year = rest.number(4, 0..=9999, "a year of four digits was expected")?;
        rest.one_of(b"-", "`-` after the year was expected")?;
        let month = rest.number(2, 1..=12, "a month from 01 to 12 was expected")?;
        rest.one_of(b"-", "`-` after the month was expected")?;
        let day_at = rest.at;
        let day = rest.number(2, 1..=31, "a day from 01 to 31 was expected")?;
        let date = NaiveDate::from_ymd_opt(year.cast_signed(), month, day)
            .ok_or(TimeError { expected: "a day of that month was expected", at: day_at + 1 })?;
        rest.one_of(b"Tt", "`T` between date and time was expected")?;
        let hour = rest.number(2, 0..=23, "an hour from 00 to 23 was expected")?;
        rest.one_of(b":", "`:` after the hour was expected")?;
        let minute = rest.number(2, 0..=59, "a minute from 00 to 59 was expected")?;
        rest.one_of(b":", "`:` and the seconds were expected")?;
        // 60 is a leap second, which runs on into the next minute.
        let second = rest.number(2, 0..=60, "a second from 00 to 60 was expected")?;
        let micros = rest.fraction()?;
        let offset = rest.offset()?;
        rest.end()?;
        let days = i64::from(date.to_epoch_days());
        let seconds = days * 86_400 + i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second) - offset;
        // With its offset a time may lie in a year that has no four digits, and could not be written as a text again.
        if !YEARS.contains(&seconds) {
            return Err(TimeError { expected: "a time from year 0000 to 9999 in UTC was expected", at: 1 });
        }
        Ok(Self { micros: seconds * 1_000_000 + micros })
    }
}

/// The years 0000 to 9999 of UTC, in seconds since 1970-01-01T00:00:00Z.
const YEARS: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

struct Rest<'a> {
    text: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn wrong(&self, expected: &'static str) -> TimeError {
        TimeError { expected, at: self.at + 1 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn one_of(&mut self, bytes: &[u8], expected: &'static str) -> Result<u8, TimeError> {
        match self.peek() {
            Some(byte) if bytes.contains(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            _ => Err(self.wrong(expected)),
        }
    }

    fn number(
        &mut self,
        digits: usize,
        range: std::ops::RangeInclusive<u32>,
        expected: &'static str,
    ) -> Result<u32, TimeError> {
        let found = self.text.get(self.at..self.at + digits).filter(|found| found.iter().all(u8::is_ascii_digit));
        let value = found.map(|found| found.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')));
        match value.filter(|value| range.contains(value)) {
            Some(value) => {
                self.at += digits;
                Ok(value)
            }
            None => Err(self.wrong(expected)),
        }
    }

    /// Returns the microseconds of a fraction of any length.
    fn fraction(&mut self) -> Result<i64, TimeError> {
        if self.peek() != Some(b'.') {
            return Ok(0);
        }
        self.at += 1;
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.wrong("digits after the point were expected"));
        }
        let digits = self.text[start..self.at].iter().copied().chain(std::iter::repeat(b'0')).take(6);
        Ok(digits.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0')))
    }

    /// Returns the offset in seconds east of UTC.
    fn offset(&mut self) -> Result<i64, TimeError> {
        let sign = match self.one_of(b"Zz+-", "an offset, `Z` or such as `+01:00`, was expected")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Ok(0),
        };
        let hours = self.number(2, 0..=23, "hours of the offset from 00 to 23 were expected")?;
        self.one_of(b":", "`:` between hours and minutes of the offset was expected")?;
        let minutes = self.number(2, 0..=59, "minutes of the offset from 00 to 59 were expected")?;
        Ok(sign * i64::from(hours * 3_600 + minutes * 60))
    }

    fn end(&self) -> Result<(), TimeError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("the end was expected")),
        }
    }
}
