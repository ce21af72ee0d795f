//! By check: a version begins when a tracked column differs from the current version, at the run's time.
//!
//! The run's time is one instant for the whole step, and later than everything in the table: clocks of two machines may
//! differ, and a version must not begin before the one that it follows.

use indoc::formatdoc;

use super::super::if_changed::{same_key, shifted};
use super::{HistoryWrite, IS_CURRENT, VALID_FROM, VALID_TO, differs};
use crate::sql::Ident;

/// Returns the statement that finds the versions that begin and end.
pub(super) fn find(write: &HistoryWrite<'_>) -> String {
    let changed = differs(write.tracked(), "_pt_new", "_pt_current");
    let ends = match write.close_deleted {
        true => format!("_pt_new._pt_row_id IS NULL\n  OR {changed}"),
        false => changed.clone(),
    };
    // Without the row that follows it, a version ends only when its key is gone.
    let join = if write.close_deleted { "LEFT JOIN" } else { "JOIN" };
    formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {versions} AS
        WITH _pt_new AS (
        {staged}
        ),
        _pt_current AS (
        {current}
        ),
        _pt_now AS (
        {now}
        )
        SELECT
          {new_columns},
          _pt_now._pt_at AS {valid_from},
          CAST(NULL AS TIMESTAMPTZ) AS {valid_to},
          true AS {is_current},
          'begin' AS _pt_change
        FROM _pt_new
        LEFT JOIN _pt_current ON {same_key}
        CROSS JOIN _pt_now
        WHERE _pt_current.{valid_from} IS NULL
          OR {changed}
        UNION ALL
        SELECT
          {current_columns},
          _pt_current.{valid_from},
          _pt_now._pt_at AS {valid_to},
          false AS {is_current},
          'end' AS _pt_change
        FROM _pt_current
        {join} _pt_new ON {same_key}
        CROSS JOIN _pt_now
        WHERE {ends}",
        versions = write.versions(),
        staged = shifted(&write.staged(), 2),
        current = shifted(&write.stored(&Ident::new(IS_CURRENT).to_string()), 2),
        now = shifted(&now(write), 2),
        new_columns = write.columns_of("_pt_new"),
        current_columns = write.columns_of("_pt_current"),
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
        is_current = Ident::new(IS_CURRENT),
        same_key = same_key(write.key, "_pt_new", "_pt_current"),
    }
}

fn now(write: &HistoryWrite<'_>) -> String {
    if !write.exists {
        return format!("SELECT {} AS _pt_at", write.at);
    }
    formatdoc! {"
        SELECT greatest({at}, max(greatest({valid_from}, {valid_to})) + INTERVAL 1 MICROSECOND) AS _pt_at
        FROM {table}",
        at = write.at,
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
        table = write.target.write,
    }
}
