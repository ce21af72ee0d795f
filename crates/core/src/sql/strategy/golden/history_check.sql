-- find the versions that begin and end
CREATE OR REPLACE TEMP TABLE "_pt_stage_versions" AS
WITH _pt_new AS (
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
),
_pt_current AS (
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
),
_pt_now AS (
  SELECT greatest(TIMESTAMPTZ '2026-01-02 05:00:00+00', max(greatest("valid_from", "valid_to")) + INTERVAL 1 MICROSECOND) AS _pt_at
  FROM "_pt_w_main"."main"."orders"
)
SELECT
  _pt_new."id", _pt_new."ordered_at", _pt_new."total", _pt_new."weight", _pt_new."note",
  _pt_now._pt_at AS "valid_from",
  CAST(NULL AS TIMESTAMPTZ) AS "valid_to",
  true AS "is_current",
  'begin' AS _pt_change
FROM _pt_new
LEFT JOIN _pt_current ON _pt_new."id" IS NOT DISTINCT FROM _pt_current."id"
CROSS JOIN _pt_now
WHERE _pt_current."valid_from" IS NULL
  OR ((_pt_new."total") IS DISTINCT FROM (_pt_current."total")
    OR (_pt_new."note") IS DISTINCT FROM (_pt_current."note")
    OR (CAST(_pt_new."note" AS VARCHAR)) IS DISTINCT FROM (CAST(_pt_current."note" AS VARCHAR)))
UNION ALL
SELECT
  _pt_current."id", _pt_current."ordered_at", _pt_current."total", _pt_current."weight", _pt_current."note",
  _pt_current."valid_from",
  _pt_now._pt_at AS "valid_to",
  false AS "is_current",
  'end' AS _pt_change
FROM _pt_current
JOIN _pt_new ON _pt_new."id" IS NOT DISTINCT FROM _pt_current."id"
CROSS JOIN _pt_now
WHERE ((_pt_new."total") IS DISTINCT FROM (_pt_current."total")
    OR (_pt_new."note") IS DISTINCT FROM (_pt_current."note")
    OR (CAST(_pt_new."note" AS VARCHAR)) IS DISTINCT FROM (CAST(_pt_current."note" AS VARCHAR)));

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
  count(*) FILTER (WHERE false) AS no_time,
  (SELECT count(*) FROM (SELECT "id", count(*) AS _pt_count
FROM "_pt_stage"
GROUP BY "id"
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
