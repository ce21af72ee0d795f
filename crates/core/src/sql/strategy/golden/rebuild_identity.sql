-- set the kept rows aside
CREATE OR REPLACE TEMP TABLE "_pt_kept" AS
SELECT
  "id",
  CAST("total" AS BIGINT) AS "total",
  "_partition"
FROM "_pt_w_main"."main"."orders"
WHERE ("_partition" = '2026-01-02') IS NOT TRUE;

-- replace the table by one of the new shape
CREATE OR REPLACE TABLE "_pt_w_main"."main"."orders" AS
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

-- insert the kept rows
INSERT INTO "_pt_w_main"."main"."orders" BY NAME
SELECT *
FROM "_pt_kept";

-- drop what was set aside
DROP TABLE "_pt_kept";
