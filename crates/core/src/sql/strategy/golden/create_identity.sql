-- create the table
CREATE TABLE "_pt_w_main"."main"."orders" AS
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total",
  '2026-01-02' AS "_partition"
FROM "_pt_stage"
LIMIT 0;

-- partition the table
ALTER TABLE "_pt_w_main"."main"."orders"
SET PARTITIONED BY ("_partition");

-- describe the table
COMMENT ON TABLE "_pt_w_main"."main"."orders" IS 'It''s one row per order';

-- describe a column
COMMENT ON COLUMN "_pt_w_main"."main"."orders"."total" IS 'in cents';

-- insert the staged rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT
  "id",
  "ordered_at",
  CAST("total" AS BIGINT) AS "total",
  '2026-01-02' AS "_partition"
FROM "_pt_stage";
