-- pipeline
-- on kafka
-- on mqtt
-- on nats
-- on postgres
-- on sqs
-- on gcp
-- on amqp
-- on res://f/shop/settings
-- on dbt://shop/stg_events
-- on s3:///landing/events/{partition}/*.json
-- partitioned daily start=2026-05-16
-- materialize ducklake://main/events append on_schema_change=ignore

ATTACH 'ducklake' AS dl;

SELECT order_id, status, created_at AS happened_at, '{partition}' AS landed_in
FROM dl.orders
WHERE $WM_PARTITION_START <= created_at AND created_at < $WM_PARTITION_END
