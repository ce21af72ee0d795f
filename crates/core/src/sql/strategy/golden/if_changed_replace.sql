-- compare the fingerprints
SELECT (
  SELECT (count(*), sum(CAST(_pt_hash AS HUGEINT)), bit_xor(_pt_hash))
  FROM (
    SELECT hash("id", "ordered_at", "total", "weight", "weight" = 0 AND signbit("weight"), "note", CAST("note" AS VARCHAR)) AS _pt_hash
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
  )
) IS NOT DISTINCT FROM (
  SELECT (count(*), sum(CAST(_pt_hash AS HUGEINT)), bit_xor(_pt_hash))
  FROM (
    SELECT hash("id", "ordered_at", "total", "weight", "weight" = 0 AND signbit("weight"), "note", CAST("note" AS VARCHAR)) AS _pt_hash
    FROM (
      SELECT
        rowid AS _pt_row_id,
        "id",
        "ordered_at",
        "total",
        "weight",
        CAST(NULL AS STRUCT(a FLOAT, b VARCHAR)) AS "note"
      FROM "_pt_w_main"."main"."orders"
      WHERE "ordered_at" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND "ordered_at" < TIMESTAMPTZ '2026-01-03 05:00:00+00'
    )
  )
) AS is_same;

-- hash the rows of both sides
CREATE OR REPLACE TEMP TABLE "_pt_stage_rows" AS
SELECT true AS _pt_is_new, _pt_row_id, hash("id", "ordered_at", "total", "weight", "weight" = 0 AND signbit("weight"), "note", CAST("note" AS VARCHAR)) AS _pt_hash
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
UNION ALL
SELECT false AS _pt_is_new, _pt_row_id, hash("id", "ordered_at", "total", "weight", "weight" = 0 AND signbit("weight"), "note", CAST("note" AS VARCHAR)) AS _pt_hash
FROM (
  SELECT
    rowid AS _pt_row_id,
    "id",
    "ordered_at",
    "total",
    "weight",
    CAST(NULL AS STRUCT(a FLOAT, b VARCHAR)) AS "note"
  FROM "_pt_w_main"."main"."orders"
  WHERE "ordered_at" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND "ordered_at" < TIMESTAMPTZ '2026-01-03 05:00:00+00'
);

-- find the rows that differ
CREATE OR REPLACE TEMP TABLE "_pt_stage_difference" AS
SELECT _pt_is_new, _pt_row_id, _pt_hash
FROM (
  SELECT
    _pt_is_new,
    _pt_row_id,
    _pt_hash,
    CASE WHEN _pt_is_new THEN _pt_old_copies ELSE _pt_new_copies END AS _pt_other_copies,
    row_number() OVER (PARTITION BY _pt_is_new, _pt_hash ORDER BY _pt_row_id) AS _pt_copy
  FROM "_pt_stage_rows"
  JOIN (
    SELECT
      _pt_hash,
      count(*) FILTER (WHERE _pt_is_new) AS _pt_new_copies,
      count(*) FILTER (WHERE NOT _pt_is_new) AS _pt_old_copies
    FROM "_pt_stage_rows"
    GROUP BY _pt_hash
    HAVING count(*) FILTER (WHERE _pt_is_new) <> count(*) FILTER (WHERE NOT _pt_is_new)
  ) USING (_pt_hash)
)
WHERE _pt_other_copies < _pt_copy;

-- drop the hashes
DROP TABLE "_pt_stage_rows";

-- delete the rows that are gone
DELETE FROM "_pt_w_main"."main"."orders" AS _pt_old
WHERE EXISTS (
  SELECT 1
  FROM "_pt_stage_difference" AS _pt_row
  WHERE NOT _pt_row._pt_is_new
    AND _pt_row._pt_row_id = _pt_old.rowid
    AND _pt_row._pt_hash = hash(_pt_old."id", _pt_old."ordered_at", _pt_old."total", _pt_old."weight", _pt_old."weight" = 0 AND signbit(_pt_old."weight"), _pt_old."note", CAST(_pt_old."note" AS VARCHAR))
)
  AND _pt_old."ordered_at" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND _pt_old."ordered_at" < TIMESTAMPTZ '2026-01-03 05:00:00+00';

-- insert the rows that are new
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total"
FROM "_pt_stage"
WHERE rowid IN (
  SELECT _pt_row_id
  FROM "_pt_stage_difference"
  WHERE _pt_is_new
);
