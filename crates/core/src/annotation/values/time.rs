//! Durations, dates, time zones and cron expressions.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, TimeZone as _, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Year};

use crate::annotation::draft::Problem;
use crate::annotation::tokens::Value;
use crate::diagnostic::{Code, nearest};

/// No duration is longer, so that a time before or after now never leaves the calendar: a hundred years.
const LONGEST: u64 = 36_525 * 86_400;

/// Parses `30s`, `10m`, `1h`, `2d`, and several of them in a row (`1h30m`).
pub fn parse_duration_text(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("the duration is empty".to_owned());
    }
    let mut seconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(number) = rest[..digits].parse::<u64>() else {
            return Err(format!("`{text}` is not a duration"));
        };
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            "" => return Err(format!("the duration `{text}` has no unit")),
            unit => return Err(format!("unknown unit `{unit}` of a duration")),
        };
        rest = &rest[letters..];
        let added = number.checked_mul(unit).and_then(|added| seconds.checked_add(added));
        seconds = added.ok_or_else(|| format!("the duration `{text}` is too long"))?;
    }
    match seconds <= LONGEST {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(format!("`{text}` is longer than a hundred years")),
    }
}

/// Reads a duration of at least a second.
pub fn read_duration(value: &Value<'_>) -> Result<Duration, Problem> {
    let duration = parse_duration_text(&value.text).and_then(|duration| match duration.is_zero() {
        true => Err("the duration must be longer than nothing".to_owned()),
        false => Ok(duration),
    });
    duration.map_err(|message| {
        Problem::new(Code::BAD_DURATION, value.span, message)
            .with_help("write a whole number and a unit: `30s`, `10m`, `1h`, `2d`")
    })
}

/// Reads a date, `YYYY-MM-DD`.
pub fn read_date(value: &Value<'_>) -> Result<NaiveDate, Problem> {
    let has_form = value.text.len() == "YYYY-MM-DD".len();
    let date = has_form.then(|| NaiveDate::parse_from_str(&value.text, "%Y-%m-%d").ok()).flatten();
    date.ok_or_else(|| {
        Problem::new(Code::BAD_DATE, value.span, format!("`{}` is not a date", value.text))
            .with_help("write `YYYY-MM-DD`, such as `2026-01-31`")
    })
}

/// Reads the IANA name of a time zone.
pub fn read_time_zone(value: &Value<'_>) -> Result<Tz, Problem> {
    value.text.parse::<Tz>().map_err(|_| {
        let problem = Problem::new(Code::UNKNOWN_TIME_ZONE, value.span, format!("unknown time zone `{}`", value.text));
        match nearest(&value.text, TZ_VARIANTS.iter().map(|zone| zone.name())) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None => problem.with_help("write an IANA name, such as `Europe/Berlin` or `UTC`"),
        }
    })
}

/// Reads a cron expression that fires.
pub fn read_cron(value: &Value<'_>) -> Result<String, Problem> {
    let cron = parse_cron(&value.text).map_err(|error| {
        Problem::new(Code::BAD_CRON, value.span, format!("`{}` is not a cron expression", value.text)).with_help(
            format!(
                "{}; the fields are minute, hour, day of month, month, weekday, such as `\"0 2 * * 1-5\"`",
                last_clause(&error.to_string())
            ),
        )
    })?;
    if cron.find_next_occurrence(&start_of_last_searched_century(), true).is_err() {
        return Err(Problem::new(Code::CRON_NEVER_FIRES, value.span, format!("`{}` never fires", value.text))
            .with_help("no month has that day; pick a day that exists, or `L` for the last day of the month"));
    }
    Ok(value.text.clone().into_owned())
}

/// Parses five fields, or six with seconds first, as POSIX does.
fn parse_cron(text: &str) -> Result<Cron, CronError> {
    CronParser::builder().year(Year::Disallowed).build().parse(text)
}

/// The search stops in the year 5000; a century before it holds every combination of date and weekday that recurs.
fn start_of_last_searched_century() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(4900, 1, 1, 0, 0, 0).single().expect("UTC has no gaps")
}

/// Returns the end of croner's message, which names the fault, as a part of our sentence.
fn last_clause(message: &str) -> String {
    let clause = message.rsplit(": ").next().unwrap_or(message).trim_end_matches('.');
    let mut chars = clause.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use chrono::{TimeZone as _, Utc};

    use super::parse_cron;

    #[test]
    fn weekdays_count_from_sunday_and_seven_is_sunday_too() {
        let saturday = Utc.with_ymd_and_hms(2026, 8, 1, 12, 0, 0).unwrap();
        let next = |cron: &str| {
            let next = parse_cron(cron).unwrap().find_next_occurrence(&saturday, false).unwrap();
            next.format("%Y-%m-%d %H:%M").to_string()
        };
        assert_eq!(next("0 7 * * 1-5"), "2026-08-03 07:00");
        assert_eq!(next("0 7 * * 0"), "2026-08-02 07:00");
        assert_eq!(next("0 7 * * 7"), "2026-08-02 07:00");
        assert_eq!(next("@weekly"), "2026-08-02 00:00");
    }
}
