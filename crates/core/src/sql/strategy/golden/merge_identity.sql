-- delete the rows with staged keys
DELETE FROM "_pt_w_main"."main"."orders" AS _pt_old
WHERE EXISTS (
  SELECT 1
  FROM "_pt_stage" AS _pt_new
  WHERE _pt_new."id" IS NOT DISTINCT FROM _pt_old."id"
    AND _pt_new."total" IS NOT DISTINCT FROM _pt_old."total"
)
  AND _pt_old."_partition" = '2026-01-02';

-- insert the staged rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total",
  '2026-01-02' AS "_partition"
FROM "_pt_stage";
