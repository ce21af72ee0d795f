//! Ranges of time that hold all rows of a stage: only files of the base with rows in them are looked at.
//!
//! Ranges are few, so that the statement stays small, and hold every row, whatever its time; a row delivered again after
//! months makes a range of its own instead of one that spans the months.

use indoc::formatdoc;
use pintail_core::sql::{Ident, Literal, Relation};
use pintail_engine::{EngineError, Session};

use crate::decoder::Target;

/// Into how many ranges of time the rows of a window fall at most, for looking into the base.
const RANGES: usize = 8;

/// A day.
const DAY_MICROS: i64 = 86_400_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// Rows without a time.
    Null,
    /// From and to, both included, and their distance from 1970 in days.
    Between { first: String, last: String, days: (i64, i64) },
}

/// Returns the ranges of time in which the staged rows lie: days with rows that follow each other are one range.
pub(super) fn ranges_of(session: &Session, target: &Target, stage: &Relation) -> Result<Vec<Range>, EngineError> {
    let Some(time) = &target.identity.time else { return Ok(Vec::new()) };
    let time = Ident::new(time);
    let sql = formatdoc! {"
        SELECT
          CAST(min({time}) AS VARCHAR),
          CAST(max({time}) AS VARCHAR),
          epoch_us({time}) // {DAY_MICROS} AS day
        FROM {stage}
        GROUP BY day
        ORDER BY day NULLS FIRST"};
    type Row = (Option<String>, Option<String>, Option<i64>);
    let days: Vec<Row> =
        session.rows("see when the rows are from", &sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let ranges = days.into_iter().map(|day| match day {
        (Some(first), Some(last), Some(day)) => Range::Between { first, last, days: (day, day) },
        _ => Range::Null,
    });
    Ok(joined(ranges.collect()))
}

/// Joins ranges that follow each other, and then the nearest ones, until they are few.
fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    let distance = |left: &Range, right: &Range| match (left, right) {
        (Range::Between { days: (_, end), .. }, Range::Between { days: (start, _), .. }) => Some(start - end),
        _ => None,
    };
    loop {
        let gaps = ranges.windows(2).enumerate();
        let gaps = gaps.filter_map(|(index, pair)| Some((distance(&pair[0], &pair[1])?, index)));
        let Some((gap, index)) = gaps.min() else { return ranges };
        if 1 < gap && ranges.len() <= RANGES {
            return ranges;
        }
        let right = ranges.remove(index + 1);
        if let (Range::Between { last, days, .. }, Range::Between { last: end, days: (_, end_day), .. }) =
            (&mut ranges[index], right)
        {
            (*last, days.1) = (end, end_day);
        }
    }
}

impl Range {
    /// Returns the condition that the column `time` of the relation `of` is in the range.
    pub(super) fn condition(&self, of: &str, time: &str, data_type: &str) -> String {
        let time = Ident::new(time);
        match self {
            Range::Null => format!("{of}.{time} IS NULL"),
            Range::Between { first, last, .. } => {
                let (first, last) = (Literal::new(first), Literal::new(last));
                format!("{of}.{time} BETWEEN {first}::{data_type} AND {last}::{data_type}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i64) -> Range {
        Range::Between { first: format!("{day}a"), last: format!("{day}z"), days: (day, day) }
    }

    fn shown(ranges: &[Range]) -> Vec<String> {
        let show = |range: &Range| match range {
            Range::Null => "NULL".to_owned(),
            Range::Between { first, last, .. } => format!("{first}-{last}"),
        };
        ranges.iter().map(show).collect()
    }

    #[test]
    fn days_that_follow_each_other_are_one_range_and_far_ones_are_not() {
        let ranges = joined(vec![Range::Null, day(1), day(2), day(3), day(60)]);
        assert_eq!(shown(&ranges), ["NULL", "1a-3z", "60a-60z"]);
        assert_eq!(joined(Vec::new()), []);
    }

    #[test]
    fn there_are_never_many_ranges_and_all_days_are_in_them() {
        let ranges = joined((0..40).map(|index| day(index * 10)).collect());
        assert_eq!(ranges.len(), RANGES);
        assert_eq!(
            (shown(&ranges)[0].split('-').next(), shown(&ranges)[RANGES - 1].split('-').next_back()),
            (Some("0a"), Some("390z"))
        );
    }
}
