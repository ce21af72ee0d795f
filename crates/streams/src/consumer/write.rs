//! Writing a window: staged before the transaction, inserted in it where no row has its identity.
//!
//! Invariant: writing a window twice comes to what writing it once does, however old its rows are. A row's time only says
//! which files of the base need not be looked at.

use indoc::formatdoc;
use pintail_core::sql::{Ident, Literal, Relation, Statement};
use pintail_engine::{EngineError, Session, WriteTransaction};

use super::decoding::DecodedWindow;
use super::tables::PreparedTarget;
use crate::dead_letter::{self, StagedLetters};
use crate::decoder::Target;

/// Into how many ranges of time the rows of a window fall at most, for looking into the base.
const RANGES: usize = 8;

/// A window that lies in temp tables.
#[derive(Debug)]
pub struct StagedWindow {
    targets: Vec<StagedTarget>,
    letters: StagedLetters,
}

#[derive(Debug)]
struct StagedTarget {
    rows: u64,
    /// Ranges of the time column that hold all rows, as text; empty when the target has no such column.
    ranges: Vec<Range>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Range {
    /// Rows without a time.
    Null,
    /// From and to, both included, and their distance from 1970 in days.
    Between { first: String, last: String, days: (i64, i64) },
}

/// What a window brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows inserted, per target in their order.
    pub inserted: Vec<u64>,
    /// Rows that were there already, or twice in the window.
    pub duplicates: u64,
    /// Dead letters that are new.
    pub letters: u64,
}

fn stage_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_in_{index}"))
}

fn fresh_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_fresh_{index}"))
}

/// Puts a decoded window into temp tables.
pub fn stage(
    session: &Session,
    targets: &[PreparedTarget],
    window: &DecodedWindow,
    letters: StagedLetters,
) -> Result<StagedWindow, EngineError> {
    let mut staged = Vec::new();
    for (index, (prepared, batches)) in targets.iter().zip(&window.rows).enumerate() {
        let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows == 0 {
            staged.push(StagedTarget { rows, ranges: Vec::new() });
            continue;
        }
        let columns: Vec<String> =
            prepared.target.columns.iter().map(|c| format!("{} {}", Ident::new(&c.name), c.data_type)).collect();
        let stage = stage_of(index);
        let sql = format!("CREATE OR REPLACE TEMP TABLE {stage} ({})", columns.join(", "));
        session.run(&Statement::new("make the stage", sql))?;
        session.append("stage the decoded rows", &stage, batches)?;
        staged.push(StagedTarget { rows, ranges: ranges_of(session, &prepared.target, &stage)? });
    }
    Ok(StagedWindow { targets: staged, letters })
}

/// Returns the ranges of time in which the staged rows lie: days with rows that follow each other are one range.
fn ranges_of(session: &Session, target: &Target, stage: &Relation) -> Result<Vec<Range>, EngineError> {
    let Some(time) = &target.identity.time else { return Ok(Vec::new()) };
    let time = Ident::new(time);
    let sql = formatdoc! {"
        SELECT CAST(min({time}) AS VARCHAR), CAST(max({time}) AS VARCHAR), date_diff('day', DATE '1970-01-01', CAST({time} AS DATE)) AS day
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

/// Writes a staged window in an open transaction.
///
/// `folding` is told when a rollup is about to be folded and when that is done.
pub fn write(
    transaction: &WriteTransaction<'_>,
    alias: &str,
    targets: &[PreparedTarget],
    staged: &StagedWindow,
    mut folding: impl FnMut(bool),
) -> Result<Written, EngineError> {
    let mut written = Written::default();
    for (index, (prepared, staged)) in targets.iter().zip(&staged.targets).enumerate() {
        let inserted = match staged.rows {
            0 => 0,
            _ => write_target(transaction, prepared, staged, index, &mut folding)?,
        };
        written.inserted.push(inserted);
        written.duplicates += staged.rows - inserted;
    }
    written.letters = dead_letter::write(transaction, alias, &staged.letters)?;
    Ok(written)
}

fn write_target(
    transaction: &WriteTransaction<'_>,
    prepared: &PreparedTarget,
    staged: &StagedTarget,
    index: usize,
    folding: &mut impl FnMut(bool),
) -> Result<u64, EngineError> {
    let fresh = fresh_of(index);
    let found = transaction.run(&select_fresh(prepared, staged, index))?;
    if found == 0 {
        return Ok(0);
    }
    if let (Some(rollup), Some(table)) = (&prepared.target.rollup, &prepared.rollup) {
        folding(true);
        for statement in rollup.fold(&prepared.base_of_shard, &fresh.to_string(), &table.to_string()) {
            transaction.run(&statement)?;
        }
        folding(false);
    }
    let sql = format!("INSERT INTO {} BY NAME\nSELECT * FROM {fresh}", prepared.base);
    transaction.run(&Statement::new("insert the new rows", sql))
}

/// Returns the statement that finds which staged rows are new: one row of each identity, and none that the base has.
fn select_fresh(prepared: &PreparedTarget, staged: &StagedTarget, index: usize) -> Statement {
    let identity = &prepared.target.identity;
    let names: Vec<String> = identity.columns.iter().map(|name| Ident::new(name).to_string()).collect();
    let all: Vec<String> = prepared.target.columns.iter().map(|column| Ident::new(&column.name).to_string()).collect();
    let same: Vec<String> =
        names.iter().map(|name| format!("_pt_base.{name} IS NOT DISTINCT FROM _pt_new.{name}")).collect();
    let part = |condition: &dyn Fn(&str) -> String| {
        formatdoc! {"
            SELECT _pt_new.*
            FROM _pt_once AS _pt_new
            WHERE {in_new} AND NOT EXISTS (
              SELECT 1
              FROM {base} AS _pt_base
              WHERE {in_base} AND {same}
            )",
            in_new = condition("_pt_new"),
            in_base = condition("_pt_base"),
            base = prepared.base,
            same = same.join(" AND "),
        }
    };
    let parts: Vec<String> = match &identity.time {
        None => vec![part(&|_| "true".to_owned())],
        Some(time) => {
            let type_of = prepared.target.columns.iter().find(|column| column.name.eq_ignore_ascii_case(time));
            let data_type = type_of.map_or("TIMESTAMPTZ", |column| column.data_type.as_str());
            let one = |range: &Range| part(&|of| range.condition(of, time, data_type));
            staged.ranges.iter().map(one).collect()
        }
    };
    let sql = formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {fresh} AS
        WITH _pt_once AS (
          SELECT *
          FROM {stage}
          QUALIFY row_number() OVER (PARTITION BY {names} ORDER BY {all}) = 1
        )
        {parts}",
        fresh = fresh_of(index),
        stage = stage_of(index),
        names = names.join(", "),
        all = all.join(", "),
        parts = parts.join("\nUNION ALL\n"),
    };
    Statement::new("find the rows that are new", sql)
}

impl Range {
    fn condition(&self, of: &str, time: &str, data_type: &str) -> String {
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
