-- description Orders and revenue per day.
-- materialize ducklake://main/revenue_by_day
-- test unique ordered_on

SELECT
    ordered_on,
    count(*) AS orders,
    sum(amount)::DECIMAL(18, 2) AS revenue
FROM orders
GROUP BY ALL
