//! `signals_latest`: of each subject and signal the newest value, the newest place, and how many values there are.
//!
//! Of values at one time the one of the lowest event id counts, then of the lowest source. A place at exactly (0, 0) is
//! none. The event and source of the newest value are kept as well, for whoever reads the rollup and wants the whole row.

use indoc::formatdoc;
use pintail_core::schema::{Column, Schema};
use pintail_core::sql::Statement;
use pintail_streams::Rollup;

use super::fold::{self, DELTA, GOING, NEW, OLD, ROWS, STANDING, SUMMARY};

const TABLE: &str = "signals_latest";

/// Hashes of instants at which there are several new rows; an instant that is here by chance is only looked at twice.
const TIED: &str = "_pt_fold_tied";
/// Those of [`NEW`] that count, before they are summed up by key.
const EFFECTIVE: &str = "_pt_fold_effective";
/// Keys whose newest place is overruled by a value without one.
const LOST: &str = "_pt_fold_lost";
/// The newest place that those keys have instead.
const PLACES: &str = "_pt_fold_places";

/// The rollup of `signals`.
#[derive(Clone, Copy, Debug)]
pub struct SignalsLatest;

/// The columns of the base that matter.
const READ: [&str; 12] = [
    "subject",
    "subject_bucket",
    "name",
    "\"timestamp\"",
    "source",
    "cloud_event_id",
    "value_number",
    "value_string",
    "loc_lat",
    "loc_lon",
    "loc_hdop",
    "loc_heading",
];

/// Keeps of several rows at one instant the one that counts.
const FIRST_AT_INSTANT: &str = "QUALIFY row_number() OVER (\n  PARTITION BY subject, name, \"timestamp\"\n  ORDER BY \
                                cloud_event_id NULLS LAST, source NULLS LAST\n) = 1";

/// Whether a row has a place.
const HAS_PLACE: &str = "(loc_lat IS NOT NULL AND loc_lon IS NOT NULL AND NOT (loc_lat = 0 AND loc_lon = 0))";

/// A row's value.
const VALUE: &str = "struct_pack(value_number := value_number, value_string := value_string, \
                     cloud_event_id := cloud_event_id, source := source)";

/// A row's place.
const PLACE: &str = "struct_pack(loc_lat := loc_lat, loc_lon := loc_lon, loc_hdop := loc_hdop, \
                     loc_heading := loc_heading, loc_ts := \"timestamp\")";

impl Rollup for SignalsLatest {
    fn table(&self) -> &str {
        TABLE
    }

    fn columns(&self) -> Vec<Column> {
        Schema::of(&[
            ("subject", "VARCHAR"),
            ("subject_bucket", "INTEGER"),
            ("name", "VARCHAR"),
            ("timestamp", "TIMESTAMP WITH TIME ZONE"),
            ("value_number", "DOUBLE"),
            ("value_string", "VARCHAR"),
            ("loc_lat", "DOUBLE"),
            ("loc_lon", "DOUBLE"),
            ("loc_hdop", "DOUBLE"),
            ("loc_heading", "DOUBLE"),
            ("loc_ts", "TIMESTAMP WITH TIME ZONE"),
            ("count", "BIGINT"),
            ("first_seen", "TIMESTAMP WITH TIME ZONE"),
            ("last_seen", "TIMESTAMP WITH TIME ZONE"),
            ("cloud_event_id", "VARCHAR"),
            ("source", "VARCHAR"),
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
        let mut statements = vec![fold::find_old(fresh, rollup), find_tied(fresh), find_new(fresh)];
        statements.extend(fold::bound_late_rows());
        statements.extend([find_standing(base), find_effective(), find_lost(), bound_lost()]);
        statements.extend([find_places(base, fresh), sum_delta(fresh), make_rows()]);
        statements.extend(fold::replace_rows(TABLE, rollup));
        statements
    }

    fn retire(&self, base: &str, rollup: &str, cutoff: &str) -> Vec<Statement> {
        let going = formatdoc! {"
            SELECT subject, name, count(DISTINCT \"timestamp\") AS count
            FROM {base}
            WHERE \"timestamp\" < {cutoff}
            GROUP BY subject, name"};
        let kept: Vec<String> = ["loc_lat", "loc_lon", "loc_hdop", "loc_heading", "loc_ts"]
            .map(|column| format!("CASE WHEN _pt_old.loc_ts >= {cutoff} THEN _pt_old.{column} END AS {column}"))
            .into();
        // The newest value stays, since its key has rows that stay; a place that goes has no newer one behind it.
        let rows = formatdoc! {"
            SELECT _pt_old.* REPLACE (
              {kept},
              _pt_old.count - _pt_going.count AS count,
              _pt_staying.first_seen AS first_seen
            )
            {from}",
            kept = kept.join(",\n  "),
            from = fold::from_staying(rollup),
        };
        let mut statements = vec![
            fold::temp_table("count the values that go", GOING, &going),
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
              subject_bucket,
              name,
              last_seen AS \"timestamp\",
              unnest(_pt_value),
              _pt_place.loc_lat AS loc_lat,
              _pt_place.loc_lon AS loc_lon,
              _pt_place.loc_hdop AS loc_hdop,
              _pt_place.loc_heading AS loc_heading,
              _pt_place.loc_ts AS loc_ts,
              count,
              first_seen,
              last_seen
            FROM (
              SELECT
                subject,
                max(subject_bucket) AS subject_bucket,
                name,
                arg_max({VALUE}, \"timestamp\") AS _pt_value,
                arg_max({PLACE}, \"timestamp\") FILTER ({HAS_PLACE}) AS _pt_place,
                count(*) AS count,
                min(\"timestamp\") AS first_seen,
                max(\"timestamp\") AS last_seen
              FROM (
                SELECT {read}
                FROM {base} AS _pt_base
                {FIRST_AT_INSTANT}
              )
              GROUP BY subject, name
            )",
            read = read("_pt_base"),
        }
    }
}

/// Returns the columns of `rows` that matter.
fn read(rows: &str) -> String {
    READ.map(|column| format!("{rows}.{column}")).join(", ")
}

fn find_tied(fresh: &str) -> Statement {
    let query = formatdoc! {"
        SELECT hash(subject, name, \"timestamp\") AS instant
        FROM {fresh}
        GROUP BY ALL
        HAVING count(*) > 1"};
    fold::temp_table("find instants with several new rows", TIED, &query)
}

/// Whether a new row, joined with [`OLD`], has to be compared with others before it counts: when it is late, or not alone
/// at its instant. All rows of one instant need it, or none.
fn needs_care() -> String {
    formatdoc! {"
        (
          coalesce({is_late}, false)
          OR hash(_pt_fresh.subject, _pt_fresh.name, _pt_fresh.\"timestamp\") IN (SELECT instant FROM {TIED})
        )",
        is_late = fold::is_late("_pt_fresh"),
    }
}

/// Returns the new rows that count as they are: nearly all of them, so they are copied nowhere.
fn plain(fresh: &str) -> String {
    formatdoc! {"
        SELECT {read}, true AS _pt_is_first
        FROM {fresh} AS _pt_fresh
        LEFT JOIN {OLD}
          ON {same_key}
        WHERE NOT {needs_care}",
        read = read("_pt_fresh"),
        same_key = fold::same_key(OLD, "_pt_fresh"),
        needs_care = needs_care(),
    }
}

fn find_new(fresh: &str) -> Statement {
    let query = formatdoc! {"
        SELECT *
        FROM (
          SELECT {read}, {is_late} AS _pt_is_late
          FROM {fresh} AS _pt_fresh
          LEFT JOIN {OLD}
            ON {same_key}
          WHERE {needs_care}
        )
        {FIRST_AT_INSTANT}",
        read = read("_pt_fresh"),
        is_late = fold::is_late("_pt_fresh"),
        same_key = fold::same_key(OLD, "_pt_fresh"),
        needs_care = needs_care(),
    };
    fold::temp_table("find what is late, or not alone at its time", NEW, &query)
}

fn find_standing(base: &str) -> Statement {
    let query = formatdoc! {"
        SELECT subject, name, \"timestamp\", source, cloud_event_id
        FROM {base} AS _pt_base
        {late}
        {FIRST_AT_INSTANT}",
        late = fold::at_late_instants("_pt_base"),
    };
    fold::temp_table("find what stands at the times of late values", STANDING, &query)
}

/// A new row counts when nothing stands at its instant, or when it comes before what does; the latter is no new value to
/// be counted.
fn find_effective() -> Statement {
    let query = formatdoc! {"
        SELECT _pt_new.*, _pt_standing.subject IS NULL AS _pt_is_first
        FROM {NEW} AS _pt_new
        LEFT JOIN {STANDING} AS _pt_standing
          ON {same_instant}
        WHERE _pt_standing.subject IS NULL
          OR _pt_new.cloud_event_id < _pt_standing.cloud_event_id
          OR (
            _pt_new.cloud_event_id = _pt_standing.cloud_event_id
            AND (
              _pt_new.source < _pt_standing.source
              OR (_pt_new.source IS NOT NULL AND _pt_standing.source IS NULL)
            )
          )",
        same_instant = fold::same_instant("_pt_standing", "_pt_new"),
    };
    fold::temp_table("find the new values that count", EFFECTIVE, &query)
}

/// The newest place of a key is lost when a value without one now counts at its instant.
fn find_lost() -> Statement {
    let query = formatdoc! {"
        SELECT _pt_old.subject, _pt_old.name, _pt_old.loc_ts
        FROM {OLD} AS _pt_old
        JOIN {EFFECTIVE} AS _pt_new
          ON {same_key}
          AND _pt_new.\"timestamp\" = _pt_old.loc_ts
        WHERE NOT {has_place}",
        same_key = fold::same_key("_pt_new", "_pt_old"),
        has_place = HAS_PLACE.replace("loc_l", "_pt_new.loc_l"),
    };
    fold::temp_table("find the places that are overruled", LOST, &query)
}

fn bound_lost() -> Statement {
    let sql = format!("SET VARIABLE _pt_lost_upto = (\n  SELECT max(loc_ts) FROM {LOST}\n)");
    Statement::new("remember the last overruled place", sql)
}

/// Of what is new only what counts takes part: a new value may lose to one of the base that is later than all that was lost,
/// and is not read here.
fn find_places(base: &str, fresh: &str) -> Statement {
    let lost = |rows: &str| {
        format!(
            "EXISTS (\n      SELECT 1\n      FROM {LOST} AS _pt_lost\n      WHERE {}\n    )",
            fold::same_key("_pt_lost", rows)
        )
    };
    let query = formatdoc! {"
        SELECT subject, name, arg_max({PLACE}, \"timestamp\") FILTER ({HAS_PLACE}) AS _pt_place
        FROM (
          SELECT *
          FROM (
            SELECT {base_columns}
            FROM {base} AS _pt_base
            WHERE \"timestamp\" <= getvariable('_pt_lost_upto')
              AND {lost_base}
            UNION ALL
            SELECT {new_columns}
            FROM (
              SELECT * EXCLUDE (_pt_is_late)
              FROM {EFFECTIVE}
              UNION ALL BY NAME
              {plain}
            ) AS _pt_new
            WHERE getvariable('_pt_lost_upto') IS NOT NULL
              AND {lost_new}
          )
          {FIRST_AT_INSTANT}
        )
        GROUP BY subject, name",
        base_columns = read("_pt_base"),
        new_columns = read("_pt_new"),
        plain = plain(fresh),
        lost_base = lost("_pt_base"),
        lost_new = lost("_pt_new"),
    };
    fold::temp_table("find the places behind those that are overruled", PLACES, &query)
}

fn sum_delta(fresh: &str) -> Statement {
    let query = formatdoc! {"
        SELECT
          subject,
          name,
          max(subject_bucket) AS subject_bucket,
          arg_max({VALUE}, \"timestamp\") AS _pt_value,
          arg_max({PLACE}, \"timestamp\") FILTER ({HAS_PLACE}) AS _pt_place,
          count(*) FILTER (_pt_is_first) AS count,
          min(\"timestamp\") AS first_seen,
          max(\"timestamp\") AS last_seen
        FROM (
          SELECT * EXCLUDE (_pt_is_late)
          FROM {EFFECTIVE}
          UNION ALL BY NAME
          {plain}
        )
        GROUP BY subject, name",
        plain = plain(fresh),
    };
    fold::temp_table("sum the new values up by key", DELTA, &query)
}

/// The standing value counts while nothing newer or better came, and so does the standing place; a place that was
/// overruled is replaced by the one behind it.
fn make_rows() -> Statement {
    let query = formatdoc! {"
        SELECT * EXCLUDE (_pt_value, _pt_place),
          _pt_value.value_number AS value_number,
          _pt_value.value_string AS value_string,
          _pt_value.cloud_event_id AS cloud_event_id,
          _pt_value.source AS source,
          _pt_place.loc_lat AS loc_lat,
          _pt_place.loc_lon AS loc_lon,
          _pt_place.loc_hdop AS loc_hdop,
          _pt_place.loc_heading AS loc_heading,
          _pt_place.loc_ts AS loc_ts
        FROM (
          SELECT
            _pt_delta.subject,
            _pt_delta.subject_bucket,
            _pt_delta.name,
            greatest(_pt_old.last_seen, _pt_delta.last_seen) AS \"timestamp\",
            CASE
              WHEN _pt_delta.last_seen < _pt_old.last_seen THEN {old_value}
              ELSE _pt_delta._pt_value
            END AS _pt_value,
            CASE
              WHEN _pt_places.subject IS NOT NULL THEN _pt_places._pt_place
              WHEN _pt_old.loc_ts > _pt_delta._pt_place.loc_ts THEN {old_place}
              WHEN _pt_old.loc_ts IS NOT NULL AND _pt_delta._pt_place IS NULL THEN {old_place}
              ELSE _pt_delta._pt_place
            END AS _pt_place,
            {SUMMARY}
          FROM {DELTA} AS _pt_delta
          LEFT JOIN {OLD} AS _pt_old
            ON {old_key}
          LEFT JOIN {PLACES} AS _pt_places
            ON {places_key}
        )",
        old_value = of_old(VALUE),
        old_place = of_old(PLACE).replace("_pt_old.\"timestamp\"", "_pt_old.loc_ts"),
        old_key = fold::same_key("_pt_old", "_pt_delta"),
        places_key = fold::same_key("_pt_places", "_pt_delta"),
    };
    fold::temp_table("make the new rows of touched keys", ROWS, &query)
}

/// Returns an expression that packs columns as one that packs those of the standing row.
fn of_old(packed: &str) -> String {
    packed.replace(":= ", ":= _pt_old.")
}
