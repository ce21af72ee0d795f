//! How a person names one version of an asset: a snapshot, a moment, a run, or the head.
//!
//! Pure text here; which snapshot a moment or a run stands for is asked of the lake and the store by the caller.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

use crate::id::SnapshotId;

/// A version as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Version {
    /// The newest snapshot.
    Head,
    /// A snapshot by its number.
    Snapshot(SnapshotId),
    /// The last snapshot at or before a moment.
    Time(DateTime<Utc>),
    /// What a run wrote, by the id of the run or its beginning; `last` is the newest run.
    Run(String),
}

/// A text that names no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no version; write a snapshot (`7`), a moment (`2026-06-01` or `2026-06-01T08:30:00Z`), a run \
     (its id or the beginning of it, or `last`), or `head`"
)]
pub struct VersionError {
    /// The text.
    pub text: String,
}

/// No lake has a snapshot with more digits in its lifetime, and every id of a run has as many before its first letter
/// or dash only by chance.
const SNAPSHOT_DIGITS: usize = 10;

impl Version {
    /// Reads the name of a version. A moment without a zone is in UTC.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let text = text.trim();
        let wrong = || VersionError { text: text.to_owned() };
        if text.eq_ignore_ascii_case("head") {
            return Ok(Version::Head);
        }
        if text == "last" {
            return Ok(Version::Run(text.to_owned()));
        }
        if !text.is_empty() && text.len() <= SNAPSHOT_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(|id| Version::Snapshot(SnapshotId(id))).map_err(|_| wrong());
        }
        if let Some(at) = parse_moment(text) {
            return Ok(Version::Time(at));
        }
        if is_start_of_run(text) { Ok(Version::Run(text.to_ascii_lowercase())) } else { Err(wrong()) }
    }
}

/// Whether the text can be the beginning of a run's id, which is a UUID.
fn is_start_of_run(text: &str) -> bool {
    let fits = |(place, letter): (usize, char)| match place {
        8 | 13 | 18 | 23 => letter == '-',
        place => place < 36 && letter.is_ascii_hexdigit(),
    };
    4 <= text.len() && text.chars().enumerate().all(fits)
}

/// Reads a moment: a day, or a time to the minute, the second or less; in UTC when it names no zone.
pub fn parse_moment(text: &str) -> Option<DateTime<Utc>> {
    const OF_A_DAY: [&str; 4] = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];
    let in_utc = text.strip_suffix('Z').or_else(|| text.strip_suffix(" UTC")).unwrap_or(text);
    if let Ok(day) = NaiveDate::parse_from_str(in_utc, "%Y-%m-%d") {
        return Some(day.and_hms_opt(0, 0, 0)?.and_utc());
    }
    let time = |format: &&str| NaiveDateTime::parse_from_str(in_utc, format).ok();
    if let Some(at) = OF_A_DAY.iter().find_map(time) {
        return Some(at.and_utc());
    }
    let with_offset = |format: &&str| DateTime::parse_from_str(text, &format!("{format}%:z")).ok();
    OF_A_DAY.iter().find_map(with_offset).map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Version {
        Version::Time(text.parse().unwrap())
    }

    #[test]
    fn a_version_is_a_snapshot_a_moment_a_run_or_the_head() {
        assert_eq!(Version::parse("7"), Ok(Version::Snapshot(SnapshotId(7))));
        assert_eq!(Version::parse("HEAD"), Ok(Version::Head));
        assert_eq!(Version::parse("2026-06-01"), Ok(time("2026-06-01T00:00:00Z")));
        assert_eq!(Version::parse("2026-06-01 08:30"), Ok(time("2026-06-01T08:30:00Z")));
        assert_eq!(Version::parse("2026-06-01 08:30:05.25"), Ok(time("2026-06-01T08:30:05.25Z")));
        assert_eq!(Version::parse("2026-06-01 08:30:05 UTC"), Ok(time("2026-06-01T08:30:05Z")));
        assert_eq!(Version::parse("2026-06-01T08:30:00+02:00"), Ok(time("2026-06-01T06:30:00Z")));
        assert_eq!(Version::parse("0198C1A2"), Ok(Version::Run("0198c1a2".to_owned())));
        assert_eq!(Version::parse("01981234-5678"), Ok(Version::Run("01981234-5678".to_owned())));
        assert_eq!(Version::parse("last"), Ok(Version::Run("last".to_owned())));
    }

    #[test]
    fn a_moment_is_to_the_day_the_minute_or_the_second_and_in_utc_unless_it_says_otherwise() {
        let at = |text| parse_moment(text).map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true));
        for day in ["2026-06-01", "2026-06-01Z", "2026-06-01 00:00", "2026-06-01T00:00Z", "2026-06-01T00:00:00.000Z"] {
            assert_eq!(at(day).as_deref(), Some("2026-06-01T00:00:00Z"), "{day}");
        }
        for minute in ["2026-06-01T08:30", "2026-06-01 08:30 UTC", "2026-06-01T10:30+02:00", "2026-06-01 08:30:00Z"] {
            assert_eq!(at(minute).as_deref(), Some("2026-06-01T08:30:00Z"), "{minute}");
        }
        for none in ["", "Z", "2026-06", "2026-02-30", "2026-06-01T25:00", "08:30", "2026-06-01T08:30 CEST"] {
            assert_eq!(at(none), None, "{none}");
        }
    }

    #[test]
    fn what_names_no_version_says_what_would() {
        for text in ["", "yesterday", "-1", "2026-13-01", "7.5", "abc"] {
            let error = Version::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` names no version; write a snapshot")), "{error}");
        }
    }
}
