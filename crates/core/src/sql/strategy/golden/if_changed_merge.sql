-- find the keys whose rows differ
CREATE OR REPLACE TEMP TABLE "_pt_stage_difference" AS
WITH _pt_staged AS (
  SELECT "id", "total", hash("id", "ordered_at", "total", "weight", "weight" = 0 AND signbit("weight"), "note", CAST("note" AS VARCHAR)) AS _pt_hash
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
        CAST("total" AS BIGINT) AS "total",
        '2026-01-02' AS "_partition"
      FROM "_pt_stage"
    )
  )
)
SELECT _pt_staged."id", _pt_staged."total"
FROM _pt_staged
LEFT JOIN (
  SELECT "id", "total", count(*) AS _pt_copies, min(_pt_hash) AS _pt_hash
  FROM (
    SELECT "id", "total", hash("id", "ordered_at", "total", "weight", "weight" = 0 AND signbit("weight"), "note", CAST("note" AS VARCHAR)) AS _pt_hash
    FROM (
      SELECT
        rowid AS _pt_row_id,
        "id",
        "ordered_at",
        "total",
        "weight",
        CAST(NULL AS STRUCT(a FLOAT, b VARCHAR)) AS "note"
      FROM "_pt_w_main"."main"."orders"
      WHERE "_partition" = '2026-01-02'
    )
  ) AS _pt_live
  WHERE EXISTS (
    SELECT 1
    FROM _pt_staged
    WHERE _pt_staged."id" IS NOT DISTINCT FROM _pt_live."id" AND _pt_staged."total" IS NOT DISTINCT FROM _pt_live."total"
  )
  GROUP BY "id", "total"
) AS _pt_old ON _pt_staged."id" IS NOT DISTINCT FROM _pt_old."id" AND _pt_staged."total" IS NOT DISTINCT FROM _pt_old."total"
WHERE _pt_old._pt_copies IS DISTINCT FROM 1
  OR _pt_staged._pt_hash <> _pt_old._pt_hash;

-- see whether any row differs
SELECT count(*) = 0 AS is_same
FROM "_pt_stage_difference";

-- delete the rows that have changed
DELETE FROM "_pt_w_main"."main"."orders" AS _pt_old
WHERE EXISTS (
  SELECT 1
  FROM "_pt_stage_difference" AS _pt_key
  WHERE _pt_key."id" IS NOT DISTINCT FROM _pt_old."id" AND _pt_key."total" IS NOT DISTINCT FROM _pt_old."total"
)
  AND _pt_old."_partition" = '2026-01-02';

-- insert the rows that are new
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total",
  '2026-01-02' AS "_partition"
FROM "_pt_stage" AS _pt_new
WHERE EXISTS (
  SELECT 1
  FROM "_pt_stage_difference" AS _pt_key
  WHERE _pt_key."id" IS NOT DISTINCT FROM _pt_new."id" AND _pt_key."total" IS NOT DISTINCT FROM _pt_new."total"
);
