-- expression "total >= 0 -- cents"
SELECT *
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE NOT (
total >= 0 -- cents
);

-- ignored
SELECT count(*) AS ignored
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE (
total >= 0 -- cents
) IS NULL;
