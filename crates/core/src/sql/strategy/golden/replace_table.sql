-- delete all rows
DELETE FROM "_pt_w_main"."main"."orders";

-- insert the staged rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total"
FROM "_pt_stage";
