-- find the versions that begin and end
CREATE OR REPLACE TEMP TABLE "_pt_stage_versions" AS
WITH _pt_new AS (
  SELECT DISTINCT "id", "ordered_at", "total", "weight", "note", CAST("ordered_at" AS TIMESTAMPTZ) AS _pt_time
  FROM (
    SELECT
      _pt_row_id,
      CAST("id" AS INTEGER) AS "id",
      CAST("ordered_at" AS TIMESTAMP WITH TIME ZONE) AS "ordered_at",
      CAST("total" AS BIGINT) AS "total",
      CAST(NULL AS DOUBLE) AS "weight",
      CAST("note" AS STRUCT(a FLOAT, b VARCHAR)) AS "note"
    FROM (
      SELECT
        rowid AS _pt_row_id,
        "id",
        "ordered_at",
        CAST("total" AS BIGINT) AS "total"
      FROM "_pt_stage"
    )
  )
),
_pt_old AS (
  SELECT *, CAST("ordered_at" AS TIMESTAMPTZ) AS _pt_time
  FROM (
    SELECT
      "id",
      "ordered_at",
      "total",
      "weight",
      CAST(NULL AS STRUCT(a FLOAT, b VARCHAR)) AS "note",
      "valid_from",
      "valid_to"
    FROM "_pt_w_main"."main"."orders" AS _pt_stored
    WHERE EXISTS (
        SELECT 1
        FROM _pt_new
        WHERE _pt_new."id" IS NOT DISTINCT FROM _pt_stored."id"
      )
  )
),
_pt_times AS (
  SELECT "id", _pt_time, max("valid_from") AS _pt_from
  FROM (
    SELECT "id", _pt_time, "valid_from"
    FROM _pt_old
    UNION ALL
    SELECT "id", "valid_from" AS _pt_time, "valid_from"
    FROM _pt_old
  )
  GROUP BY "id", _pt_time
),
_pt_seen AS (
  SELECT _pt_new.*, _pt_times._pt_from
  FROM _pt_new
  LEFT JOIN _pt_times ON _pt_times."id" IS NOT DISTINCT FROM _pt_new."id" AND _pt_times._pt_time = _pt_new._pt_time
),
_pt_corrected AS (
  SELECT _pt_seen.*, _pt_old."valid_to" AS _pt_until
  FROM _pt_seen
  JOIN _pt_old ON _pt_old."id" IS NOT DISTINCT FROM _pt_seen."id" AND _pt_old."valid_from" = _pt_seen._pt_from
  QUALIFY row_number() OVER (
    PARTITION BY _pt_seen."id", _pt_seen._pt_from
    ORDER BY _pt_seen._pt_time DESC) = 1
    AND ((_pt_seen."id") IS DISTINCT FROM (_pt_old."id")
    OR (_pt_seen."ordered_at") IS DISTINCT FROM (_pt_old."ordered_at")
    OR (_pt_seen."total") IS DISTINCT FROM (_pt_old."total")
    OR (_pt_seen."note") IS DISTINCT FROM (_pt_old."note")
    OR (CAST(_pt_seen."note" AS VARCHAR)) IS DISTINCT FROM (CAST(_pt_old."note" AS VARCHAR)))
),
_pt_starts AS (
  SELECT _pt_old."id", _pt_old."ordered_at", _pt_old."total", _pt_old."weight", _pt_old."note", _pt_old."valid_from", _pt_old."valid_to", 'kept' AS _pt_kind
  FROM _pt_old
  WHERE NOT EXISTS (
    SELECT 1
    FROM _pt_corrected
    WHERE _pt_corrected."id" IS NOT DISTINCT FROM _pt_old."id" AND _pt_corrected._pt_from = _pt_old."valid_from"
  )
  UNION ALL
  SELECT _pt_corrected."id", _pt_corrected."ordered_at", _pt_corrected."total", _pt_corrected."weight", _pt_corrected."note", _pt_corrected._pt_from, _pt_corrected._pt_until, 'corrected' AS _pt_kind
  FROM _pt_corrected
  UNION ALL
  SELECT _pt_seen."id", _pt_seen."ordered_at", _pt_seen."total", _pt_seen."weight", _pt_seen."note", _pt_seen._pt_time, NULL, 'new' AS _pt_kind
  FROM _pt_seen
  WHERE _pt_seen._pt_from IS NULL
  UNION ALL
  SELECT _pt_newest."id", _pt_newest."ordered_at", _pt_newest."total", _pt_newest."weight", _pt_newest."note", greatest(TIMESTAMPTZ '2026-01-02 05:00:00+00', _pt_closed._pt_end), NULL, 'new' AS _pt_kind
  FROM (
    SELECT *
    FROM _pt_new
    QUALIFY row_number() OVER (PARTITION BY "id" ORDER BY _pt_time DESC) = 1
  ) AS _pt_newest
  JOIN (
    SELECT "id", max("valid_to") AS _pt_end
    FROM _pt_old
    GROUP BY "id"
    HAVING bool_and("valid_to" IS NOT NULL)
  ) AS _pt_closed ON _pt_closed."id" IS NOT DISTINCT FROM _pt_newest."id"
  WHERE _pt_newest._pt_time < _pt_closed._pt_end
),
_pt_bounds AS (
  SELECT "id", _pt_bound, lead(_pt_bound) OVER (PARTITION BY "id" ORDER BY _pt_bound) AS _pt_next
  FROM (
    SELECT "id", "valid_from" AS _pt_bound
    FROM _pt_starts
    UNION
    SELECT "id", "valid_to" AS _pt_bound
    FROM _pt_old
    WHERE "valid_to" IS NOT NULL
  )
)
SELECT
  _pt_starts."id", _pt_starts."ordered_at", _pt_starts."total", _pt_starts."weight", _pt_starts."note",
  _pt_starts."valid_from",
  _pt_bounds._pt_next AS "valid_to",
  _pt_bounds._pt_next IS NULL AS "is_current",
  CASE WHEN _pt_starts._pt_kind = 'new' THEN 'begin' ELSE 'end' END AS _pt_change
FROM _pt_starts
JOIN _pt_bounds ON _pt_bounds."id" IS NOT DISTINCT FROM _pt_starts."id" AND _pt_bounds._pt_bound = _pt_starts."valid_from"
WHERE _pt_starts._pt_kind <> 'kept'
  OR _pt_bounds._pt_next IS DISTINCT FROM _pt_starts."valid_to"
UNION ALL
SELECT
  _pt_stored."id", _pt_stored."ordered_at", _pt_stored."total", _pt_stored."weight", _pt_stored."note",
  _pt_stored."valid_from",
  greatest(TIMESTAMPTZ '2026-01-02 05:00:00+00', _pt_stored."valid_from" + INTERVAL 1 MICROSECOND) AS "valid_to",
  false AS "is_current",
  'end' AS _pt_change
FROM (
  SELECT
    "id",
    "ordered_at",
    "total",
    "weight",
    CAST(NULL AS STRUCT(a FLOAT, b VARCHAR)) AS "note",
    "valid_from",
    "valid_to"
  FROM "_pt_w_main"."main"."orders" AS _pt_stored
  WHERE "is_current"
) AS _pt_stored
WHERE NOT EXISTS (
  SELECT 1
  FROM _pt_new
  WHERE _pt_new."id" IS NOT DISTINCT FROM _pt_stored."id"
);

-- see whether any version begins or ends
SELECT count(*) = 0 AS is_same
FROM "_pt_stage_versions";

-- delete the versions that end
DELETE FROM "_pt_w_main"."main"."orders" AS _pt_old
WHERE EXISTS (
  SELECT 1
  FROM "_pt_stage_versions" AS _pt_row
  WHERE _pt_row._pt_change = 'end'
    AND _pt_row."valid_from" = _pt_old."valid_from"
    AND _pt_row."id" IS NOT DISTINCT FROM _pt_old."id"
);

-- insert the versions that end
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  "total",
  "weight",
  "note",
  "valid_from",
  "valid_to",
  "is_current"
FROM "_pt_stage_versions"
WHERE _pt_change = 'end';

-- insert the versions that begin
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  "total",
  "weight",
  "note",
  "valid_from",
  "valid_to",
  "is_current"
FROM "_pt_stage_versions"
WHERE _pt_change = 'begin';

-- create the view
CREATE OR REPLACE VIEW "_pt_w_main"."main"."orders_current" AS
SELECT
  "id",
  "ordered_at",
  "total",
  "weight",
  "note"
FROM "_pt_w_main"."main"."orders"
WHERE "is_current";

-- describe the view
COMMENT ON VIEW "_pt_w_main"."main"."orders_current" IS 'The current rows.';

-- guard the stage
SELECT
  count(*) FILTER (WHERE "id" IS NULL) AS null_keys,
  count(*) FILTER (WHERE "ordered_at" IS NULL OR NOT isfinite("ordered_at")) AS no_time,
  (SELECT count(*) FROM (SELECT "id", CAST("ordered_at" AS TIMESTAMPTZ) AS _pt_time, count(*) AS _pt_count
FROM (SELECT DISTINCT * FROM "_pt_stage")
GROUP BY "id", CAST("ordered_at" AS TIMESTAMPTZ)
HAVING count(*) > 1) AS _pt_tied) AS tied
FROM "_pt_stage";

-- look for versions that overlap
SELECT "id", "valid_from", "valid_to", "is_current", _pt_next
FROM (
  SELECT
    "id", "valid_from", "valid_to", "is_current",
    lead("valid_from") OVER (PARTITION BY "id" ORDER BY "valid_from", "valid_to") AS _pt_next
  FROM "_pt_w_main"."main"."orders" AS _pt_written
  WHERE EXISTS (
    SELECT 1
    FROM "_pt_stage_versions" AS _pt_row
    WHERE _pt_row."id" IS NOT DISTINCT FROM _pt_written."id"
  )
)
WHERE "valid_from" IS NULL
  OR "is_current" IS DISTINCT FROM ("valid_to" IS NULL)
  OR "valid_to" <= "valid_from"
  OR _pt_next < "valid_to"
  OR (_pt_next IS NOT NULL AND "valid_to" IS NULL)
LIMIT 20;
