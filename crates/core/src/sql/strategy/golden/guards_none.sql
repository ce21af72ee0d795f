-- summary
SELECT
  count(*) AS row_count,
  0::BIGINT AS null_keys,
  0::BIGINT AS duplicate_keys,
  0::BIGINT AS duplicate_rows,
  0::BIGINT AS outside_window,
  0::BIGINT AS null_by
FROM "_pt_stage";
