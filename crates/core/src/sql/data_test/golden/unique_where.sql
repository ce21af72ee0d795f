-- unique id
SELECT "id", count(*) AS _pt_count
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE "id" IS NOT NULL
  AND (
day > DATE '2026-01-01' OR status = 'x' -- why
)
GROUP BY "id"
HAVING count(*) > 1;

-- ignored
SELECT count(*) AS ignored
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE ("id" IS NULL)
  AND (
day > DATE '2026-01-01' OR status = 'x' -- why
);
