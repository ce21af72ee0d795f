//! `events_latest`: how many events of each name a subject had, the first and the last of them.
//!
//! Events of one subject, time, name and source are one, whichever messages brought them.

use indoc::formatdoc;
use pintail_core::schema::{Column, Schema};
use pintail_core::sql::Statement;
use pintail_streams::Rollup;

use super::fold::{self, DELTA, GOING, NEW, OLD, ROWS, STANDING, SUMMARY};

const TABLE: &str = "events_latest";

/// The rollup of `events`.
#[derive(Clone, Copy, Debug)]
pub struct EventsLatest;

impl Rollup for EventsLatest {
    fn table(&self) -> &str {
        TABLE
    }

    fn columns(&self) -> Vec<Column> {
        Schema::of(&[
            ("subject", "VARCHAR"),
            ("subject_bucket", "INTEGER"),
            ("name", "VARCHAR"),
            ("count", "BIGINT"),
            ("first_seen", "TIMESTAMP WITH TIME ZONE"),
            ("last_seen", "TIMESTAMP WITH TIME ZONE"),
        ])
        .columns
    }

    fn key(&self) -> Vec<String> {
        fold::key()
    }

    fn sorted_by(&self) -> Vec<String> {
        self.key()
    }

    fn fold(&self, base: &str, fresh: &str, rollup: &str) -> Vec<Statement> {
        let mut statements = vec![fold::find_old(fresh, rollup), find_new(fresh)];
        statements.extend(fold::bound_late_rows());
        statements.extend([find_standing(base), find_delta(), make_rows()]);
        statements.extend(fold::replace_rows(TABLE, rollup));
        statements
    }

    fn retire(&self, base: &str, rollup: &str, cutoff: &str) -> Vec<Statement> {
        let going = formatdoc! {"
            SELECT subject, name, count(*) AS count
            FROM (
              SELECT DISTINCT subject, name, \"timestamp\", source
              FROM {base}
              WHERE \"timestamp\" < {cutoff}
            )
            GROUP BY subject, name"};
        let rows = formatdoc! {"
            SELECT _pt_old.* REPLACE (
              _pt_old.count - _pt_going.count AS count,
              _pt_staying.first_seen AS first_seen
            )
            {from}",
            from = fold::from_staying(rollup),
        };
        let mut statements = vec![
            fold::temp_table("count the events that go", GOING, &going),
            fold::find_staying(base, rollup, cutoff),
            fold::temp_table("make the rows of keys that lose some", ROWS, &rows),
        ];
        statements.extend(fold::replace_retired(TABLE, rollup, cutoff));
        statements
    }

    fn recompute(&self, base: &str) -> String {
        formatdoc! {"
            SELECT
              subject,
              max(subject_bucket) AS subject_bucket,
              name,
              count(*) AS count,
              min(\"timestamp\") AS first_seen,
              max(\"timestamp\") AS last_seen
            FROM (
              SELECT subject, name, \"timestamp\", source, max(subject_bucket) AS subject_bucket
              FROM {base}
              GROUP BY subject, name, \"timestamp\", source
            )
            GROUP BY subject, name"}
    }
}

fn find_new(fresh: &str) -> Statement {
    let query = formatdoc! {"
        SELECT _pt_fresh.*, {is_late} AS _pt_is_late
        FROM (
          SELECT subject, name, \"timestamp\", source, max(subject_bucket) AS subject_bucket
          FROM {fresh}
          GROUP BY subject, name, \"timestamp\", source
        ) AS _pt_fresh
        LEFT JOIN {OLD}
          ON {same_key}",
        is_late = fold::is_late("_pt_fresh"),
        same_key = fold::same_key(OLD, "_pt_fresh"),
    };
    fold::temp_table("find what is new, and what of it is late", NEW, &query)
}

fn find_standing(base: &str) -> Statement {
    let query = formatdoc! {"
        SELECT DISTINCT subject, name, \"timestamp\", source
        FROM {base} AS _pt_base
        {late}",
        late = fold::at_late_instants("_pt_base"),
    };
    fold::temp_table("find what stands at the times of late events", STANDING, &query)
}

fn find_delta() -> Statement {
    let query = formatdoc! {"
        SELECT subject, name, max(subject_bucket) AS subject_bucket, count(*) AS count,
          min(\"timestamp\") AS first_seen, max(\"timestamp\") AS last_seen
        FROM {NEW} AS _pt_new
        WHERE NOT EXISTS (
          SELECT 1
          FROM {STANDING} AS _pt_standing
          WHERE {same_instant}
            AND _pt_standing.source IS NOT DISTINCT FROM _pt_new.source
        )
        GROUP BY subject, name",
        same_instant = fold::same_instant("_pt_standing", "_pt_new"),
    };
    fold::temp_table("count the events that are news", DELTA, &query)
}

fn make_rows() -> Statement {
    let query = formatdoc! {"
        SELECT
          _pt_delta.subject,
          _pt_delta.subject_bucket,
          _pt_delta.name,
          {SUMMARY}
        FROM {DELTA} AS _pt_delta
        LEFT JOIN {OLD} AS _pt_old
          ON {same_key}",
        same_key = fold::same_key("_pt_old", "_pt_delta"),
    };
    fold::temp_table("make the new rows of touched keys", ROWS, &query)
}
