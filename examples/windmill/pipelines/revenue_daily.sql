# pipeline
# trigger all
# debounce 5s
# partitioned daily start=2026-05-16
# materialize ducklake://main/revenue_daily on_schema_change=fail

ATTACH 'ducklake' AS dl;
USE dl;

SELECT
    $WM_PARTITION AS day,
    $WM_PARTITION_START AS day_start,
    $WM_PARTITION_END AS day_end,
    $WM_UPSTREAM_SNAPSHOT::BIGINT AS read_at,
    count(*) AS orders,
    sum(amount)::DECIMAL(18, 2) AS revenue
FROM orders_daily
WHERE wm_partition(created_at) = $WM_PARTITION
