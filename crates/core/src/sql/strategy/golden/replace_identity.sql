-- delete the slice
DELETE FROM "_pt_w_main"."main"."orders"
WHERE "_partition" = '2026-01-02';

-- insert the staged rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total",
  '2026-01-02' AS "_partition"
FROM "_pt_stage";
