-- pipeline
-- on ducklake://main/orders
-- materialize manual ducklake://main/audit

ATTACH 'ducklake' AS dl;

CREATE TABLE IF NOT EXISTS dl.audit (checked_at TIMESTAMPTZ, orders BIGINT);

INSERT INTO dl.audit
SELECT now(), count(*)
FROM dl.orders;
