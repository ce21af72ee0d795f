-- unique id, day
SELECT "id", "day", count(*) AS _pt_count
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE "id" IS NOT NULL
  AND "day" IS NOT NULL
GROUP BY "id", "day"
HAVING count(*) > 1;

-- ignored
SELECT count(*) AS ignored
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE ("id" IS NULL OR "day" IS NULL);
