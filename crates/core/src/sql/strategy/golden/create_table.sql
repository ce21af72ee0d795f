-- create the table with the staged rows
CREATE TABLE "_pt_w_main"."main"."orders" AS
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total"
FROM "_pt_stage";

-- describe the table
COMMENT ON TABLE "_pt_w_main"."main"."orders" IS 'It''s one row per order';

-- describe a column
COMMENT ON COLUMN "_pt_w_main"."main"."orders"."total" IS 'in cents';
