//! History: every version of a row, with the half-open time `[valid_from, valid_to)` in which it was valid.
//!
//! What begins and what ends is found before the transaction and left in a temp table; the transaction deletes the rows
//! whose end has moved, inserts them again with their new end, and adds the versions that begin. A version is never
//! removed. Two ways to tell versions apart: by the tracked columns, at the run's time; or by the time that each row
//! brings (`updated_at=`), where late rows are placed by rebuilding the chains of their keys.

mod by_check;
mod by_time;
mod guard;

use indoc::formatdoc;

use super::create::create_filled;
use super::if_changed::{Compared, beside_stage, live_columns, same_key, staged_rows};
use super::{ComparedColumn, Comparison, Layout, Projected, Projection, Target, append, view};
use crate::schema::Column;
use crate::sql::{Ident, Relation, Statement};

pub use guard::{HistoryCounts, HistoryFault, HistoryGuards, broken_rows, history_guards, judge_history};

/// When a version begins to be valid.
pub const VALID_FROM: &str = "valid_from";
/// When it ends to be; NULL while it is the current one.
pub const VALID_TO: &str = "valid_to";
/// Whether it is the current one.
pub const IS_CURRENT: &str = "is_current";

/// The columns that a history table keeps itself.
pub const BOOKKEEPING: [&str; 3] = [VALID_FROM, VALID_TO, IS_CURRENT];

/// The purpose of the insert whose rows were there before, with another end.
pub const REWRITE: &str = "insert the versions that end";

/// A write of history.
#[derive(Clone, Copy, Debug)]
pub struct HistoryWrite<'a> {
    /// The stage and the table.
    pub target: &'a Target,
    /// The table's columns but those of bookkeeping.
    pub columns: &'a [ComparedColumn],
    /// The key.
    pub key: &'a [String],
    /// The columns whose change begins a version; all but the key when empty.
    pub track: &'a [String],
    /// The column that says when a row changed.
    pub updated_at: Option<&'a str>,
    /// Whether rows whose key is gone are closed.
    pub close_deleted: bool,
    /// The run's time, a typed literal.
    pub at: &'a str,
    /// Whether the table exists.
    pub exists: bool,
}

/// Returns the columns that a history table keeps itself, with their types.
pub fn bookkeeping_columns() -> [Column; 3] {
    const TYPES: [&str; 3] = ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE", "BOOLEAN"];
    let mut types = TYPES.into_iter();
    BOOKKEEPING.map(|name| Column {
        name: name.to_owned(),
        data_type: types.next().expect("every column has a type").to_owned(),
    })
}

/// Returns the name of the view of the current rows beside the history table `table`.
pub fn current_view_name(table: &str) -> String {
    format!("{table}_current")
}

/// Returns how a write of history finds out what it has to do.
pub fn compare_history(write: &HistoryWrite<'_>) -> Comparison {
    let find = match write.updated_at {
        Some(updated_at) => by_time::find(write, updated_at),
        None => by_check::find(write),
    };
    let question = formatdoc! {"
        SELECT count(*) = 0 AS is_same
        FROM {versions}",
        versions = write.versions(),
    };
    Comparison {
        before: vec![Statement::new("find the versions that begin and end", find)],
        question: Statement::new("see whether any version begins or ends", question),
        after: Vec::new(),
        ends_when_same: write.exists,
    }
}

/// Returns the statements that write what [`compare_history`] has found.
pub fn history(write: &HistoryWrite<'_>, layout: &Layout) -> Vec<Statement> {
    let versions = Target { stage: write.versions(), projection: all_columns(write), ..write.target.clone() };
    if !write.exists {
        return create_filled(&versions, layout);
    }
    let delete = formatdoc! {"
        DELETE FROM {table} AS _pt_old
        WHERE EXISTS (
          SELECT 1
          FROM {stage} AS _pt_row
          WHERE _pt_row._pt_change = 'end'
            AND _pt_row.{valid_from} = _pt_old.{valid_from}
            AND {same_key}
        )",
        table = write.target.write,
        stage = versions.stage,
        valid_from = Ident::new(VALID_FROM),
        same_key = same_key(write.key, "_pt_row", "_pt_old"),
    };
    let insert = |change: &str| format!("{}\nWHERE _pt_change = '{change}'", append(&versions)[0].sql);
    vec![
        Statement::new("delete the versions that end", delete),
        Statement::new(REWRITE, insert("end")),
        Statement::new("insert the versions that begin", insert("begin")),
    ]
}

/// Returns the statements that make the view of the current rows: the query's own columns, as the query would give them.
pub fn current_view(write: &HistoryWrite<'_>, current: &Relation, comment: &str) -> Vec<Statement> {
    let columns: Vec<String> = write.columns.iter().map(|column| format!("  {}", Ident::new(&column.name))).collect();
    let select = formatdoc! {"
        SELECT
        {columns}
        FROM {table}
        WHERE {is_current}",
        columns = columns.join(",\n"),
        table = write.target.write,
        is_current = Ident::new(IS_CURRENT),
    };
    view(current, &select, &Layout { comment: Some(comment.to_owned()), ..Layout::default() })
}

fn all_columns(write: &HistoryWrite<'_>) -> Projection {
    let own = write.columns.iter().map(|column| column.name.as_str());
    Projection(own.chain(BOOKKEEPING).map(|name| Projected::Column(Ident::new(name))).collect())
}

impl<'a> HistoryWrite<'a> {
    /// Returns the temp table of the versions that begin and the rows whose end moves.
    fn versions(&self) -> Relation {
        beside_stage(self.target, "versions")
    }

    fn staged(&self) -> String {
        staged_rows(&Compared { target: self.target, columns: self.columns, slice: None })
    }

    /// Returns the query of the stored versions in `condition`; of none when there is no table yet.
    fn stored(&self, condition: &str) -> String {
        if self.exists {
            return formatdoc! {"
                SELECT
                {columns},
                  {valid_from},
                  {valid_to}
                FROM {table} AS _pt_stored
                WHERE {condition}",
                columns = live_columns(self.columns),
                valid_from = Ident::new(VALID_FROM),
                valid_to = Ident::new(VALID_TO),
                table = self.target.write,
            };
        }
        let column =
            |column: &ComparedColumn| format!("  CAST(NULL AS {}) AS {}", column.data_type, Ident::new(&column.name));
        formatdoc! {"
            SELECT
            {columns},
              CAST(NULL AS TIMESTAMPTZ) AS {valid_from},
              CAST(NULL AS TIMESTAMPTZ) AS {valid_to}
            WHERE false",
            columns = self.columns.iter().map(column).collect::<Vec<_>>().join(",\n"),
            valid_from = Ident::new(VALID_FROM),
            valid_to = Ident::new(VALID_TO),
        }
    }

    /// Returns the columns of `alias` in one list.
    fn columns_of(&self, alias: &str) -> String {
        let names = self.columns.iter().map(|column| format!("{alias}.{}", Ident::new(&column.name)));
        names.collect::<Vec<_>>().join(", ")
    }

    fn is_key(&self, column: &ComparedColumn) -> bool {
        self.key.iter().any(|key| key.eq_ignore_ascii_case(&column.name))
    }

    /// Returns the columns whose change begins a version. What the query does not give cannot have changed.
    fn tracked(&self) -> impl Iterator<Item = &'a ComparedColumn> + '_ {
        let is_tracked = |column: &ComparedColumn| match self.track {
            [] => !self.is_key(column),
            track => track.iter().any(|tracked| tracked.eq_ignore_ascii_case(&column.name)),
        };
        self.columns.iter().filter(|column| column.is_staged).filter(move |column| is_tracked(column))
    }
}

/// Returns the condition that any of `columns` differs between two relations, NULL-safely.
fn differs<'c>(columns: impl Iterator<Item = &'c ComparedColumn>, one: &str, other: &str) -> String {
    let sides = |column: &ComparedColumn| {
        let left = super::if_changed::comparable(column, Some(one));
        let right = super::if_changed::comparable(column, Some(other));
        let pairs = left.into_iter().zip(right);
        pairs.map(|(left, right)| format!("({left}) IS DISTINCT FROM ({right})")).collect::<Vec<_>>()
    };
    let any: Vec<String> = columns.flat_map(sides).collect();
    if any.is_empty() { "false".to_owned() } else { format!("({})", any.join("\n    OR ")) }
}
