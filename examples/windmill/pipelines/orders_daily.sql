-- pipeline
-- on ducklake://main/orders
-- partitioned daily start=2026-05-16 format=%Y-%m-%d
-- materialize ducklake://main/orders_daily
-- unique_key order_id
-- data_test relationships customer_id -> ducklake://main/customers.customer_id

ATTACH 'ducklake://main' AS dl;

-- One day of orders; the partition is a text such as 2026-05-16.
SELECT order_id, customer_id, amount, created_at
FROM dl.orders
WHERE created_at::DATE = '{partition}';
