-- row_count ..9
SELECT count(*) AS row_count
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE (
day > DATE '2026-01-01' OR status = 'x' -- why
)
HAVING count(*) > 9;
