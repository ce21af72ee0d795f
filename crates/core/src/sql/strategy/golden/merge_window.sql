-- delete the rows with staged keys
DELETE FROM "_pt_w_main"."main"."orders" AS _pt_old
WHERE EXISTS (
  SELECT 1
  FROM "_pt_stage" AS _pt_new
  WHERE _pt_new."id" IS NOT DISTINCT FROM _pt_old."id"
)
  AND _pt_old."ordered_at" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND _pt_old."ordered_at" < TIMESTAMPTZ '2026-01-03 05:00:00+00';

-- insert the staged rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total"
FROM "_pt_stage";
