-- delete the rows with staged keys
DELETE FROM "_pt_w_main"."main"."orders" AS _pt_old
WHERE EXISTS (
  SELECT 1
  FROM "_pt_stage" AS _pt_new
  WHERE _pt_new."id" IS NOT DISTINCT FROM _pt_old."id"
);

-- insert the staged rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total"
FROM "_pt_stage";
