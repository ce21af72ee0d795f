//! The guards on a stage: what would spoil the table, found before anything is written.
//!
//! One query counts everything; a sample query is sent only for a guard that failed. [`judge`] is pure: counts in,
//! failures out, each with its message, its help and its sample query. Deliberately not here: the schema diff and the
//! types that the lake cannot hold, which need no rows.

use indoc::formatdoc;

use super::{Slice, Target};
use crate::sql::{Ident, Relation};

/// How many rows a sample shows.
pub const SAMPLE_ROWS: u32 = 20;

/// What a stage must satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GuardRules<'a> {
    /// The key of a merge; empty when there is none.
    pub key: &'a [String],
    /// The window that every row lies in: the slice itself, or the one that `by=` checks beside an identity column.
    pub window: Option<&'a Slice>,
    /// Whether an empty stage would empty something that has rows, and `allow_empty` is not given.
    pub refuses_empty: bool,
}

/// What to ask the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardQueries {
    /// One row: `row_count`, `null_keys`, `duplicate_keys`, `duplicate_rows`, `outside_window`, `null_by`, all BIGINT.
    pub summary: String,
    /// A query of at most [`SAMPLE_ROWS`] rows for each guard that can fail.
    pub samples: Vec<(GuardKind, String)>,
}

/// The guards that look at rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// A key column is NULL.
    NullKeys,
    /// Several rows have one key.
    DuplicateKeys,
    /// A row lies outside the slice's window.
    OutsideWindow,
    /// The column that `by=` names is NULL.
    NullBy,
    /// Nothing is staged, and something would be emptied.
    EmptyReplace,
}

/// The summary's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GuardCounts {
    /// Rows in the stage.
    pub row_count: u64,
    /// Rows with a NULL in their key.
    pub null_keys: u64,
    /// Keys that several rows have; NULL keys are not counted again.
    pub duplicate_keys: u64,
    /// Rows with such a key.
    pub duplicate_rows: u64,
    /// Rows outside the window.
    pub outside_window: u64,
    /// Rows with NULL in the window's column.
    pub null_by: u64,
}

/// Why a stage must not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardFailure {
    /// Which guard.
    pub kind: GuardKind,
    /// How many rows.
    pub count: u64,
    /// What is wrong, with counts and columns.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Returns the queries of the guards over the target's staged rows.
pub fn guards(target: &Target, rules: &GuardRules<'_>) -> GuardQueries {
    GuardQueries { summary: summary(&target.stage, rules), samples: samples(&target.stage, rules) }
}

fn summary(stage: &Relation, rules: &GuardRules<'_>) -> String {
    let count = |condition: Option<String>| match condition {
        Some(condition) => format!("count(*) FILTER (WHERE {condition})"),
        None => "0::BIGINT".to_owned(),
    };
    // The keys are grouped once: on five million rows that is most of what a guard costs.
    let duplicates = match duplicate_keys(stage, rules.key) {
        Some(keys) => formatdoc! {"
            (
              SELECT count(*) AS duplicate_keys, coalesce(sum(_pt_count), 0)::BIGINT AS duplicate_rows
              FROM (
            {keys}
              ) AS _pt_groups
            )", keys = indented(&keys)},
        None => "(SELECT 0::BIGINT AS duplicate_keys, 0::BIGINT AS duplicate_rows)".to_owned(),
    };
    formatdoc! {"
        SELECT
          row_count,
          null_keys,
          duplicate_keys,
          duplicate_rows,
          outside_window,
          null_by
        FROM (
          SELECT
            count(*) AS row_count,
            {null_keys} AS null_keys,
            {outside_window} AS outside_window,
            {null_by} AS null_by
          FROM {stage}
        ) AS _pt_rows, {duplicates} AS _pt_keys",
        null_keys = count(null_key(rules.key)),
        outside_window = count(rules.window.map(outside)),
        null_by = count(rules.window.map(null_by)),
    }
}

fn samples(stage: &Relation, rules: &GuardRules<'_>) -> Vec<(GuardKind, String)> {
    let rows_where = |condition: String| {
        formatdoc! {"
            SELECT *
            FROM {stage}
            WHERE {condition}
            LIMIT {SAMPLE_ROWS}"}
    };
    let duplicates =
        duplicate_keys(stage, rules.key).map(|keys| format!("{keys}\nORDER BY _pt_count DESC\nLIMIT {SAMPLE_ROWS}"));
    [
        (GuardKind::NullKeys, null_key(rules.key).map(rows_where)),
        (GuardKind::DuplicateKeys, duplicates),
        (GuardKind::OutsideWindow, rules.window.map(outside).map(rows_where)),
        (GuardKind::NullBy, rules.window.map(null_by).map(rows_where)),
    ]
    .into_iter()
    .filter_map(|(kind, sql)| Some((kind, sql?)))
    .collect()
}

fn null_key(key: &[String]) -> Option<String> {
    let nulls: Vec<String> = key.iter().map(|column| format!("{} IS NULL", Ident::new(column))).collect();
    (!nulls.is_empty()).then(|| nulls.join(" OR "))
}

/// Returns the query of the keys that several rows have.
fn duplicate_keys(stage: &Relation, key: &[String]) -> Option<String> {
    if key.is_empty() {
        return None;
    }
    let columns: Vec<String> = key.iter().map(|column| Ident::new(column).to_string()).collect();
    let not_null: Vec<String> = columns.iter().map(|column| format!("{column} IS NOT NULL")).collect();
    let columns = columns.join(", ");
    let not_null = not_null.join(" AND ");
    Some(formatdoc! {"
        SELECT {columns}, count(*) AS _pt_count
        FROM {stage}
        WHERE {not_null}
        GROUP BY {columns}
        HAVING count(*) > 1"})
}

fn indented(query: &str) -> String {
    let lines: Vec<String> = query.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

fn outside(window: &Slice) -> String {
    format!("NOT ({})", window.predicate(None))
}

fn null_by(window: &Slice) -> String {
    format!("{} IS NULL", Ident::new(window.column()))
}

/// Returns what `counts` breaks of `rules`, worst first.
pub fn judge(counts: &GuardCounts, rules: &GuardRules<'_>) -> Vec<GuardFailure> {
    let key = rules.key.join(", ");
    let by = rules.window.map(Slice::column).unwrap_or_default();
    let mut failures = Vec::new();
    let mut fail = |kind, count: u64, message: String, help: String| {
        if 0 < count {
            failures.push(GuardFailure { kind, count, message, help });
        }
    };
    fail(
        GuardKind::NullKeys,
        counts.null_keys,
        format!("{} NULL in the key `{key}`", rows_have(counts.null_keys)),
        format!("filter them out, or give them a value: `coalesce({}, …)`", rules.key.first().map_or("", |k| k)),
    );
    fail(
        GuardKind::DuplicateKeys,
        counts.duplicate_keys,
        format!("{} of the key `{key}` stand in {} rows", values(counts.duplicate_keys), counts.duplicate_rows),
        "make the key complete, aggregate by it, or say which row is kept: `order_by=<column desc>`".to_owned(),
    );
    fail(
        GuardKind::OutsideWindow,
        counts.outside_window,
        format!("{} `{by}` outside the partition: {}", rows_have(counts.outside_window), window_text(rules.window)),
        format!("read only the partition's rows: `WHERE in_partition({by})`"),
    );
    fail(
        GuardKind::NullBy,
        counts.null_by,
        format!("{} NULL in `{by}`, which decides the partition", rows_have(counts.null_by)),
        format!("filter them out: `WHERE {by} IS NOT NULL`"),
    );
    if rules.refuses_empty && counts.row_count == 0 {
        failures.push(GuardFailure {
            kind: GuardKind::EmptyReplace,
            count: 0,
            message: "the query gives no rows and would empty what has rows now".to_owned(),
            help: "if that is meant, say so: `materialize … allow_empty`".to_owned(),
        });
    }
    failures
}

pub(super) fn rows_have(count: u64) -> String {
    if count == 1 { "1 row has".to_owned() } else { format!("{count} rows have") }
}

pub(super) fn values(count: u64) -> String {
    if count == 1 { "1 value".to_owned() } else { format!("{count} values") }
}

fn window_text(window: Option<&Slice>) -> String {
    match window {
        Some(Slice::Window { lower, upper, .. }) => format!("from {lower} up to {upper}, exclusive"),
        Some(Slice::Identity { value, .. }) => value.clone(),
        None => String::new(),
    }
}
