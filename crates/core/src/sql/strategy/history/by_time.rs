//! By time: a version begins when its row says so, and late rows are placed by rebuilding the chains of their keys.
//!
//! A chain is made of bounds: the starts of its versions, and the moments at which the key was found to be gone. A
//! version lasts until the next bound. A row whose time is known says nothing new; with other content it corrects the
//! version that begins then, since the source says now what was true at that time. Of a closed chain the newest row
//! opens a version when the row is back although its time is older than the end: at the run's time.

use indoc::formatdoc;

use super::super::if_changed::{name_list, names, same_key, shifted};
use super::{HistoryWrite, IS_CURRENT, VALID_FROM, VALID_TO, differs};
use crate::sql::Ident;

/// Returns the statement that finds the versions that begin and end.
pub(super) fn find(write: &HistoryWrite<'_>, updated_at: &str) -> String {
    let parts = [staged(write, updated_at), known(write), starts(write), bounds(write)].join(",\n");
    let gone =
        if write.close_deleted && write.exists { format!("\nUNION ALL\n{}", gone(write)) } else { String::new() };
    formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {versions} AS
        WITH {parts}
        SELECT
          {columns},
          _pt_starts.{valid_from},
          _pt_bounds._pt_next AS {valid_to},
          _pt_bounds._pt_next IS NULL AS {is_current},
          CASE WHEN _pt_starts._pt_kind = 'new' THEN 'begin' ELSE 'end' END AS _pt_change
        FROM _pt_starts
        JOIN _pt_bounds ON {same_key} AND _pt_bounds._pt_bound = _pt_starts.{valid_from}
        WHERE _pt_starts._pt_kind <> 'kept'
          OR _pt_bounds._pt_next IS DISTINCT FROM _pt_starts.{valid_to}{gone}",
        versions = write.versions(),
        columns = write.columns_of("_pt_starts"),
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
        is_current = Ident::new(IS_CURRENT),
        same_key = same_key(write.key, "_pt_bounds", "_pt_starts"),
    }
}

/// The staged rows, equal ones once, each with its time, and the stored versions of their keys.
fn staged(write: &HistoryWrite<'_>, updated_at: &str) -> String {
    let time = format!("CAST({} AS TIMESTAMPTZ)", Ident::new(updated_at));
    let of_staged_keys = format!(
        "EXISTS (\n    SELECT 1\n    FROM _pt_new\n    WHERE {}\n  )",
        same_key(write.key, "_pt_new", "_pt_stored")
    );
    formatdoc! {"
        _pt_new AS (
          SELECT DISTINCT {columns}, {time} AS _pt_time
          FROM (
        {staged}
          )
        ),
        _pt_old AS (
          SELECT *, {time} AS _pt_time
          FROM (
        {stored}
          )
        )",
        columns = write.columns.iter().map(|column| Ident::new(&column.name).to_string()).collect::<Vec<_>>().join(", "),
        staged = shifted(&write.staged(), 4),
        stored = shifted(&write.stored(&of_staged_keys), 4),
    }
}

/// The staged rows, each with the stored version that begins at its time, or that its time has begun again.
fn known(write: &HistoryWrite<'_>) -> String {
    let keys = name_list(write.key);
    formatdoc! {"
        _pt_times AS (
          SELECT {keys}, _pt_time, max({valid_from}) AS _pt_from
          FROM (
            SELECT {keys}, _pt_time, {valid_from}
            FROM _pt_old
            UNION ALL
            SELECT {keys}, {valid_from} AS _pt_time, {valid_from}
            FROM _pt_old
          )
          GROUP BY {keys}, _pt_time
        ),
        _pt_seen AS (
          SELECT _pt_new.*, _pt_times._pt_from
          FROM _pt_new
          LEFT JOIN _pt_times ON {same_key} AND _pt_times._pt_time = _pt_new._pt_time
        ),
        _pt_corrected AS (
          SELECT _pt_seen.*, _pt_old.{valid_to} AS _pt_until
          FROM _pt_seen
          JOIN _pt_old ON {same_old_key} AND _pt_old.{valid_from} = _pt_seen._pt_from
          QUALIFY row_number() OVER (
            PARTITION BY {seen_keys}, _pt_seen._pt_from
            ORDER BY _pt_seen._pt_time DESC) = 1
            AND {differs}
        )",
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
        same_key = same_key(write.key, "_pt_times", "_pt_new"),
        same_old_key = same_key(write.key, "_pt_old", "_pt_seen"),
        seen_keys = names(write.key).map(|name| format!("_pt_seen.{name}")).collect::<Vec<_>>().join(", "),
        differs = differs(write.columns.iter().filter(|column| column.is_staged), "_pt_seen", "_pt_old"),
    }
}

/// Where the versions of the chains begin.
fn starts(write: &HistoryWrite<'_>) -> String {
    let again =
        if write.close_deleted { format!("\n  UNION ALL\n{}", shifted(&again(write), 2)) } else { String::new() };
    formatdoc! {"
        _pt_starts AS (
          SELECT {old}, _pt_old.{valid_from}, _pt_old.{valid_to}, 'kept' AS _pt_kind
          FROM _pt_old
          WHERE NOT EXISTS (
            SELECT 1
            FROM _pt_corrected
            WHERE {same_key} AND _pt_corrected._pt_from = _pt_old.{valid_from}
          )
          UNION ALL
          SELECT {corrected}, _pt_corrected._pt_from, _pt_corrected._pt_until, 'corrected' AS _pt_kind
          FROM _pt_corrected
          UNION ALL
          SELECT {seen}, _pt_seen._pt_time, NULL, 'new' AS _pt_kind
          FROM _pt_seen
          WHERE _pt_seen._pt_from IS NULL{again}
        )",
        old = write.columns_of("_pt_old"),
        corrected = write.columns_of("_pt_corrected"),
        seen = write.columns_of("_pt_seen"),
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
        same_key = same_key(write.key, "_pt_corrected", "_pt_old"),
    }
}

/// The rows that are back: their chain is closed after all that they say.
fn again(write: &HistoryWrite<'_>) -> String {
    let keys = name_list(write.key);
    formatdoc! {"
        SELECT {newest}, greatest({at}, _pt_closed._pt_end), NULL, 'new' AS _pt_kind
        FROM (
          SELECT *
          FROM _pt_new
          QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY _pt_time DESC) = 1
        ) AS _pt_newest
        JOIN (
          SELECT {keys}, max({valid_to}) AS _pt_end
          FROM _pt_old
          GROUP BY {keys}
          HAVING bool_and({valid_to} IS NOT NULL)
        ) AS _pt_closed ON {same_key}
        WHERE _pt_newest._pt_time < _pt_closed._pt_end",
        newest = write.columns_of("_pt_newest"),
        at = write.at,
        valid_to = Ident::new(VALID_TO),
        same_key = same_key(write.key, "_pt_closed", "_pt_newest"),
    }
}

/// The bounds of the chains, each with the next one.
fn bounds(write: &HistoryWrite<'_>) -> String {
    let keys = name_list(write.key);
    formatdoc! {"
        _pt_bounds AS (
          SELECT {keys}, _pt_bound, lead(_pt_bound) OVER (PARTITION BY {keys} ORDER BY _pt_bound) AS _pt_next
          FROM (
            SELECT {keys}, {valid_from} AS _pt_bound
            FROM _pt_starts
            UNION
            SELECT {keys}, {valid_to} AS _pt_bound
            FROM _pt_old
            WHERE {valid_to} IS NOT NULL
          )
        )",
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
    }
}

/// The current versions whose key is gone: they end at the run's time, or right after they began when that is later.
fn gone(write: &HistoryWrite<'_>) -> String {
    formatdoc! {"
        SELECT
          {columns},
          _pt_stored.{valid_from},
          greatest({at}, _pt_stored.{valid_from} + INTERVAL 1 MICROSECOND) AS {valid_to},
          false AS {is_current},
          'end' AS _pt_change
        FROM (
        {stored}
        ) AS _pt_stored
        WHERE NOT EXISTS (
          SELECT 1
          FROM _pt_new
          WHERE {same_key}
        )",
        columns = write.columns_of("_pt_stored"),
        valid_from = Ident::new(VALID_FROM),
        valid_to = Ident::new(VALID_TO),
        is_current = Ident::new(IS_CURRENT),
        at = write.at,
        stored = shifted(&write.stored(&Ident::new(IS_CURRENT).to_string()), 2),
        same_key = same_key(write.key, "_pt_new", "_pt_stored"),
    }
}
