//! What the folds of all rollups have in common: temp tables in the order in which they are made, and how the rows of
//! touched keys replace those that stand.
//!
//! Every rollup here has one row per subject and name, and the columns `count`, `first_seen` and `last_seen`.

use indoc::{formatdoc, indoc};
use pintail_core::sql::Statement;
use pintail_streams::rollup::prove_keys;

/// The rows of the rollup whose keys are touched.
pub const OLD: &str = "_pt_fold_old";
/// What is new and has to be compared with the base or with others, one row per instant, and whether it is late: not
/// after the newest instant of its key.
pub const NEW: &str = "_pt_fold_new";
/// What the base holds at the instants of late rows.
pub const STANDING: &str = "_pt_fold_standing";
/// What is new and counts.
pub const DELTA: &str = "_pt_fold_delta";
/// The rows that the touched keys shall have.
pub const ROWS: &str = "_pt_fold_rows";

/// Returns the condition that two relations have one key.
pub fn same_key(one: &str, other: &str) -> String {
    format!("{one}.subject = {other}.subject AND {one}.name = {other}.name")
}

/// Returns the condition that two relations have one key and instant.
pub fn same_instant(one: &str, other: &str) -> String {
    format!("{} AND {one}.\"timestamp\" = {other}.\"timestamp\"", same_key(one, other))
}

/// Returns a statement that makes a temp table.
pub fn temp_table(purpose: &'static str, table: &str, query: &str) -> Statement {
    Statement::new(purpose, format!("CREATE OR REPLACE TEMP TABLE {table} AS\n{query}"))
}

/// Returns the statement that finds the rows of the rollup which `fresh` touches.
pub fn find_old(fresh: &str, rollup: &str) -> Statement {
    let query = formatdoc! {"
        SELECT *
        FROM {rollup} AS _pt_rollup
        WHERE EXISTS (
          SELECT 1
          FROM {fresh} AS _pt_fresh
          WHERE {same_key}
        )",
        same_key = same_key("_pt_fresh", "_pt_rollup"),
    };
    temp_table("find the rollup's rows of touched keys", OLD, &query)
}

/// Returns the expression, over [`NEW`]'s source and [`OLD`], that says whether a row is late.
pub fn is_late(new: &str) -> String {
    format!("{OLD}.last_seen IS NOT NULL AND {new}.\"timestamp\" <= {OLD}.last_seen")
}

/// Returns the statements that remember between which times rows are late: the engine reads no file of the base outside
/// of them, and none at all when nothing is late.
pub fn bound_late_rows() -> Vec<Statement> {
    let bound = |purpose, variable, function| {
        let query = format!("SELECT {function}(\"timestamp\") FROM {NEW} WHERE _pt_is_late");
        Statement::new(purpose, format!("SET VARIABLE {variable} = (\n  {query}\n)"))
    };
    vec![
        bound("remember the first late time", "_pt_late_from", "min"),
        bound("remember the last late time", "_pt_late_upto", "max"),
    ]
}

/// Returns the WHERE clause that keeps of the base, named `base`, the instants of late rows.
pub fn at_late_instants(base: &str) -> String {
    formatdoc! {"
        WHERE {base}.\"timestamp\" BETWEEN getvariable('_pt_late_from') AND getvariable('_pt_late_upto')
          AND EXISTS (
            SELECT 1
            FROM {NEW} AS _pt_new
            WHERE _pt_new._pt_is_late
              AND {same_instant}
          )",
        same_instant = same_instant("_pt_new", base),
    }
}

/// Returns the statements that put [`ROWS`] in the place of the rollup's rows with the same keys, and prove it.
pub fn replace_rows(rollup_name: &'static str, rollup: &str) -> Vec<Statement> {
    let delete = formatdoc! {"
        DELETE FROM {rollup} AS _pt_rollup
        WHERE EXISTS (
          SELECT 1
          FROM {ROWS} AS _pt_rows
          WHERE {same_key}
        )",
        same_key = same_key("_pt_rows", "_pt_rollup"),
    };
    vec![Statement::new("take the touched keys out of the rollup", delete), insert(rollup), prove(rollup_name, rollup)]
}

/// Returns the statement that inserts [`ROWS`].
pub fn insert(rollup: &str) -> Statement {
    Statement::new(
        "put the touched keys into the rollup",
        format!("INSERT INTO {rollup} BY NAME\nSELECT *\nFROM {ROWS}"),
    )
}

/// The columns of the key.
pub fn key() -> Vec<String> {
    vec!["subject".to_owned(), "name".to_owned()]
}

/// Returns the statement that fails unless each key of [`ROWS`] has exactly one row in the rollup.
pub fn prove(rollup_name: &str, rollup: &str) -> Statement {
    prove_keys(rollup_name, &key(), rollup, ROWS, ROWS)
}

/// What of the base goes, by key: how many instants are counted there.
pub const GOING: &str = "_pt_fold_going";
/// What of the base stays, for keys of which some goes: the first instant.
pub const STAYING: &str = "_pt_fold_staying";

/// Returns the statement that finds the first staying instant of the keys that lose some rows before `cutoff`, and not all.
pub fn find_staying(base: &str, rollup: &str, cutoff: &str) -> Statement {
    let query = formatdoc! {"
        SELECT subject, name, min(\"timestamp\") AS first_seen
        FROM {base} AS _pt_base
        WHERE \"timestamp\" >= {cutoff}
          AND EXISTS (
            SELECT 1
            FROM {rollup} AS _pt_rollup
            WHERE _pt_rollup.first_seen < {cutoff}
              AND {cutoff} <= _pt_rollup.last_seen
              AND {same_key}
          )
        GROUP BY subject, name",
        same_key = same_key("_pt_rollup", "_pt_base"),
    };
    temp_table("find the first rows that stay", STAYING, &query)
}

/// Returns the statements that put [`ROWS`] in the place of every row that knows something from before `cutoff`.
pub fn replace_retired(rollup_name: &'static str, rollup: &str, cutoff: &str) -> Vec<Statement> {
    let delete = format!("DELETE FROM {rollup}\nWHERE first_seen < {cutoff}");
    vec![
        Statement::new("take the keys that lose rows out of the rollup", delete),
        insert(rollup),
        prove(rollup_name, rollup),
    ]
}

/// Returns the joins of the rows that a rollup keeps of keys that lose some of their rows.
pub fn from_staying(rollup: &str) -> String {
    formatdoc! {"
        FROM {rollup} AS _pt_old
        JOIN {STAYING} AS _pt_staying
          ON {staying}
        JOIN {GOING} AS _pt_going
          ON {going}",
        staying = same_key("_pt_staying", "_pt_old"),
        going = same_key("_pt_going", "_pt_old"),
    }
}

/// The columns that every rollup here has last.
pub const SUMMARY: &str = indoc! {"
    coalesce(_pt_old.count, 0) + _pt_delta.count AS count,
      least(_pt_old.first_seen, _pt_delta.first_seen) AS first_seen,
      greatest(_pt_old.last_seen, _pt_delta.last_seen) AS last_seen"};
