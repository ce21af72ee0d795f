-- accepted_values status
SELECT *
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE "status" NOT IN ('open', 'it''s');

-- ignored
SELECT count(*) AS ignored
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE "status" IS NULL;
