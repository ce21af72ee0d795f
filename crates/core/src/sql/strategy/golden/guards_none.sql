-- summary
SELECT
  row_count,
  null_keys,
  duplicate_keys,
  duplicate_rows,
  outside_window,
  null_by
FROM (
  SELECT
    count(*) AS row_count,
    0::BIGINT AS null_keys,
    0::BIGINT AS outside_window,
    0::BIGINT AS null_by
  FROM "_pt_stage"
) AS _pt_rows, (SELECT 0::BIGINT AS duplicate_keys, 0::BIGINT AS duplicate_rows) AS _pt_keys;
