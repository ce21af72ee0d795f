-- delete the slice
DELETE FROM "_pt_w_main"."main"."orders"
WHERE "ordered_at" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND "ordered_at" < TIMESTAMPTZ '2026-01-03 05:00:00+00';

-- insert the staged rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total"
FROM "_pt_stage";
