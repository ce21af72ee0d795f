-- relationships customer_id -> ducklake://main/orders.id
SELECT *
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE "customer_id" IS NOT NULL
  AND NOT EXISTS (
    SELECT 1
    FROM "_pt_w_main"."main"."orders" AS _pt_parent
    WHERE _pt_parent."id" = _pt_rows."customer_id"
  );

-- ignored
SELECT count(*) AS ignored
FROM "_pt_w_main"."main"."orders" AS _pt_rows
WHERE "customer_id" IS NULL;
