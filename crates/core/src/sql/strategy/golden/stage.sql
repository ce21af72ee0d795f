-- stage the query
CREATE OR REPLACE TEMP TABLE "_pt_stage" AS (
SELECT 1 AS id, 2 AS total -- note
);
