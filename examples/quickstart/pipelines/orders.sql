-- description The orders of a small shop, written down here so that nothing else is needed.
-- materialize ducklake://main/orders key=order_id
-- test unique order_id
-- test not_null customer
-- test expression "0 < amount"

SELECT order_id, customer, ordered_on, amount::DECIMAL(18, 2) AS amount
FROM (VALUES
    (1, 'ada', DATE '2026-06-01', 40.00),
    (2, 'grace', DATE '2026-06-01', 12.50),
    (3, 'ada', DATE '2026-06-02', 7.25),
    (4, 'edsger', DATE '2026-06-03', 99.90)
) AS orders(order_id, customer, ordered_on, amount)
