//! Where local days and hours of a time zone begin, as UTC instants.
//!
//! Invariant: everything is calendar arithmetic in the zone, never "plus 24 hours". A local date begins at the *first*
//! instant at which the clock shows it or a later one: after a gap at midnight that is 01:00, for a date that the zone
//! skipped it is the start of the next one, and where clocks fall back over midnight the date does not begin twice.

use chrono::{
    DateTime, Datelike, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc,
};
use chrono_tz::Tz;

use super::Window;

/// Farther than any zone's clock ever was from UTC.
const MOST_OFFSET: TimeDelta = TimeDelta::hours(26);

/// A jump of the clock that can swallow a whole date; changes of summer time are far smaller.
const DATE_LINE_JUMP_SECONDS: i32 = 12 * 3600;

/// Returns whether `zone` is UTC by another name.
pub fn is_utc(zone: Tz) -> bool {
    matches!(
        zone,
        Tz::UTC | Tz::UCT | Tz::Universal | Tz::Zulu | Tz::Etc__UTC | Tz::Etc__UCT | Tz::Etc__Universal | Tz::Etc__Zulu
    )
}

/// Returns how many seconds the clock of `zone` is ahead of UTC at `instant`.
pub fn offset_at(zone: Tz, instant: DateTime<Utc>) -> i32 {
    zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()
}

/// Returns what the clock of `zone` shows at `instant`.
pub fn local_time(zone: Tz, instant: DateTime<Utc>) -> NaiveDateTime {
    instant.naive_utc() + TimeDelta::seconds(offset_at(zone, instant).into())
}

/// Returns the first instant at which the clock of `zone` shows `date` or a later date.
pub fn day_start(zone: Tz, date: NaiveDate) -> DateTime<Utc> {
    let midnight = date.and_time(NaiveTime::MIN);
    match zone.from_local_datetime(&midnight) {
        MappedLocalTime::Single(instant) => instant.to_utc(),
        MappedLocalTime::Ambiguous(first, second) => first.min(second).to_utc(),
        MappedLocalTime::None => {
            let around = midnight.and_utc();
            first_second(around - MOST_OFFSET, around + MOST_OFFSET, |instant| midnight <= local_time(zone, instant))
        }
    }
}

/// Returns the window of the local date, or `None` when the zone skipped it.
pub fn day_window(zone: Tz, date: NaiveDate) -> Option<Window> {
    let window = Window { start: day_start(zone, date), end: day_start(zone, date.succ_opt()?) };
    (window.start < window.end).then_some(window)
}

/// Returns the date whose window holds `instant`.
pub fn date_at(zone: Tz, instant: DateTime<Utc>) -> NaiveDate {
    let mut date = local_time(zone, instant).date();
    // The clock may have shown a later date before it fell back over midnight (America/St_Johns until 2011).
    while let Some(later) = date.succ_opt().filter(|later| day_start(zone, *later) <= instant) {
        date = later;
    }
    date
}

/// Returns the window in which the clock of `zone` is `offset` seconds ahead and shows the hour that begins at `hour`,
/// or `None` when it never does. Shorter than an hour only where a clock changes inside the hour.
pub fn hour_window(zone: Tz, hour: NaiveDateTime, offset: i32) -> Option<Window> {
    let start = (hour - TimeDelta::seconds(offset.into())).and_utc();
    let end = start + TimeDelta::hours(1);
    let has_offset = |instant| offset_at(zone, instant) == offset;
    match (has_offset(start), has_offset(end - TimeDelta::seconds(1))) {
        (true, true) => Some(Window { start, end }),
        (true, false) => Some(Window { start, end: first_second(start, end, |instant| !has_offset(instant)) }),
        (false, true) => Some(Window { start: first_second(start, end, has_offset), end }),
        (false, false) => None,
    }
}

/// Returns how many dates of `[first, last]` the zone skipped, without walking the dates: only a year whose offset
/// differs by about a day between its ends is looked at closely.
pub fn skipped_days(zone: Tz, first: NaiveDate, last: NaiveDate) -> u64 {
    let mut skipped = 0;
    let mut from = first;
    while from <= last {
        let year_end = NaiveDate::from_ymd_opt(from.year(), 12, 31).expect("every year has a 31 December");
        let to = year_end.min(last);
        let after = to.succ_opt().expect("years end at 9999, far from chrono's last date");
        let drift =
            offset_at(zone, day_start(zone, after)) - offset_at(zone, day_start(zone, from) - TimeDelta::days(1));
        if DATE_LINE_JUMP_SECONDS <= drift {
            skipped += from
                .iter_days()
                .take_while(|date| *date <= to)
                .filter(|date| day_window(zone, *date).is_none())
                .count() as u64;
        }
        from = after;
    }
    skipped
}

/// Returns the first whole second of `(low, high]` that holds; `holds` changes once, from false to true.
fn first_second(low: DateTime<Utc>, high: DateTime<Utc>, holds: impl Fn(DateTime<Utc>) -> bool) -> DateTime<Utc> {
    let (mut low, mut high) = (low.timestamp(), high.timestamp());
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if holds(at_second(middle)) { high = middle } else { low = middle }
    }
    at_second(high)
}

fn at_second(timestamp: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(timestamp, 0).expect("lies between two valid instants")
}
