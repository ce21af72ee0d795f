-- stage the query
CREATE OR REPLACE TEMP TABLE "_pt_stage" AS
SELECT *
FROM (
SELECT 1 AS id, 2 AS total -- note
) AS _pt_rows
QUALIFY row_number() OVER (
  PARTITION BY "id"
  ORDER BY
total DESC -- newest
) = 1;
