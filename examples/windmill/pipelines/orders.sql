-- pipeline
-- on schedule
-- on webhook
-- retry 3 30s
-- materialize ducklake://main/orders key=order_id on_schema_change=sync
-- data_test unique order_id
-- data_test not_null customer_id
-- data_test accepted_values status = placed,paid,shipped

ATTACH 'ducklake' AS dl;

SELECT order_id, customer_id, status, amount::DECIMAL(18, 2) AS amount, created_at
FROM (VALUES
    (1, 10, 'paid', 40.00, TIMESTAMPTZ '2026-05-16 08:30:00+00'),
    (2, 11, 'placed', 12.50, TIMESTAMPTZ '2026-05-16 09:05:00+00'),
    (3, 10, 'shipped', 7.25, TIMESTAMPTZ '2026-05-17 18:45:00+00'),
    (4, 12, 'paid', 99.90, TIMESTAMPTZ '2026-05-18 23:59:00+00')
) AS source(order_id, customer_id, status, amount, created_at);
