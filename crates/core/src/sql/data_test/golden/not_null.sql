-- not_null status
SELECT *
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE "status" IS NULL;
