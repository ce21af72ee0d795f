//! The guards of history: what is staged must have keys and times, and what is written must be one chain per key.

use indoc::formatdoc;

use super::super::SAMPLE_ROWS;
use super::super::guard::{rows_have, values};
use super::super::if_changed::{name_list, names, same_key};
use super::{HistoryWrite, IS_CURRENT, VALID_FROM, VALID_TO};
use crate::sql::Ident;

/// What to ask the engine about a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryGuards {
    /// One row: `null_keys`, `no_time`, `tied`, all BIGINT.
    pub summary: String,
    /// The rows with a NULL in their key.
    pub null_keys: String,
    /// The rows without a time.
    pub no_time: String,
    /// The keys, or the keys and times, that several rows have.
    pub tied: String,
}

/// The summary's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// Rows with a NULL in their key.
    pub null_keys: u64,
    /// Rows whose time is NULL or infinite.
    pub no_time: u64,
    /// Keys (with `updated_at=`, keys and times) that several rows have.
    pub tied: u64,
}

/// Why a stage must not become history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryFault {
    /// A key column is NULL.
    NullKeys,
    /// A time is NULL or infinite.
    NoTime,
    /// Several rows have one key.
    DuplicateKeys,
    /// Several rows say different things of one key at one time.
    Contradiction,
}

/// Returns what is wrong with a stage, if anything: the fault, a message, and what to do.
pub fn judge_history(write: &HistoryWrite<'_>, counts: &HistoryCounts) -> Option<(HistoryFault, String, String)> {
    let key = write.key.join("`, `");
    let column = write.updated_at.unwrap_or_default();
    Some(match (counts, write.updated_at) {
        (HistoryCounts { null_keys: count @ 1.., .. }, _) => (
            HistoryFault::NullKeys,
            format!("{} NULL in the key `{key}`", rows_have(*count)),
            format!("filter them out, or give them a value: `coalesce({}, …)`", write.key.first().map_or("", |k| k)),
        ),
        (HistoryCounts { no_time: count @ 1.., .. }, _) => (
            HistoryFault::NoTime,
            format!("{} no time in `{column}`, so their versions have no beginning", rows_have(*count)),
            format!("filter them out (`WHERE isfinite({column})`), or give them a time"),
        ),
        (HistoryCounts { tied: count @ 1.., .. }, Some(_)) => (
            HistoryFault::Contradiction,
            format!("{} of `{key}` and `{column}` together have rows that contradict each other", values(*count)),
            "say which row counts: `order_by=\"<column> desc\"`".to_owned(),
        ),
        (HistoryCounts { tied: count @ 1.., .. }, None) => (
            HistoryFault::DuplicateKeys,
            format!("{} of the key `{key}` stand in several rows", values(*count)),
            "make the key complete, or say which row is kept: `order_by=\"<column> desc\"`; when the rows are versions \
             of one thing, say when each began: `updated_at=<column>`"
                .to_owned(),
        ),
        _ => return None,
    })
}

/// Returns the queries of the guards on the stage.
pub fn history_guards(write: &HistoryWrite<'_>) -> HistoryGuards {
    let stage = &write.target.stage;
    let null_key = names(write.key).map(|name| format!("{name} IS NULL")).collect::<Vec<_>>().join(" OR ");
    let no_time = write.updated_at.map_or_else(
        || "false".to_owned(),
        |column| {
            let column = Ident::new(column);
            format!("{column} IS NULL OR NOT isfinite({column})")
        },
    );
    let tied = tied(write);
    let rows_where = |condition: &str| {
        formatdoc! {"
            SELECT *
            FROM {stage}
            WHERE {condition}
            LIMIT {SAMPLE_ROWS}"}
    };
    let summary = formatdoc! {"
        SELECT
          count(*) FILTER (WHERE {null_key}) AS null_keys,
          count(*) FILTER (WHERE {no_time}) AS no_time,
          (SELECT count(*) FROM ({tied}) AS _pt_tied) AS tied
        FROM {stage}"};
    HistoryGuards {
        summary,
        null_keys: rows_where(&null_key),
        no_time: rows_where(&no_time),
        tied: format!("{tied}\nORDER BY ALL\nLIMIT {SAMPLE_ROWS}"),
    }
}

fn tied(write: &HistoryWrite<'_>) -> String {
    let keys = name_list(write.key);
    let stage = &write.target.stage;
    match write.updated_at {
        // Equal rows count once: only rows that contradict each other are refused.
        Some(column) => {
            let time = format!("CAST({} AS TIMESTAMPTZ)", Ident::new(column));
            formatdoc! {"
                SELECT {keys}, {time} AS _pt_time, count(*) AS _pt_count
                FROM (SELECT DISTINCT * FROM {stage})
                GROUP BY {keys}, {time}
                HAVING count(*) > 1"}
        }
        None => formatdoc! {"
            SELECT {keys}, count(*) AS _pt_count
            FROM {stage}
            GROUP BY {keys}
            HAVING count(*) > 1"},
    }
}

/// Returns the query of the written versions that are not as a chain must be: two current ones, an overlap, an end before
/// the beginning. Only the keys that were written are looked at.
pub fn broken_rows(write: &HistoryWrite<'_>) -> String {
    let keys = name_list(write.key);
    formatdoc! {"
        SELECT {keys}, {valid_from}, {valid_to}, {is_current}, _pt_next
        FROM (
          SELECT
            {keys}, {valid_from}, {valid_to}, {is_current},
            lead({valid_from}) OVER (PARTITION BY {keys} ORDER BY {valid_from}, {valid_to}) AS _pt_next
          FROM {table} AS _pt_written
          WHERE EXISTS (
            SELECT 1
            FROM {versions} AS _pt_row
            WHERE {same_key}
          )
        )
        WHERE {valid_from} IS NULL
          OR {is_current} IS DISTINCT FROM ({valid_to} IS NULL)
          OR {valid_to} <= {valid_from}
          OR _pt_next < {valid_to}
          OR (_pt_next IS NOT NULL AND {valid_to} IS NULL)
        LIMIT {SAMPLE_ROWS}",
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
        is_current = Ident::new(IS_CURRENT),
        table = write.target.write,
        versions = write.versions(),
        same_key = same_key(write.key, "_pt_row", "_pt_written"),
    }
}
