-- pipeline
-- on ducklake://main/customers
-- materialize scd2 ducklake://main/customers_history key=customer_id track=email,country deletes=close

ATTACH 'ducklake://main' AS dl;

FROM dl.customers
