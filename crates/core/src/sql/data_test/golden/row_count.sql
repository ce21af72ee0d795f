-- row_count 1..1000
SELECT count(*) AS row_count
FROM "_pt_w_main"."main"."orders" AS _pt_rows
HAVING count(*) < 1 OR count(*) > 1000;
