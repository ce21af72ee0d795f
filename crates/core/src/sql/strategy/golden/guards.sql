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
    count(*) FILTER (WHERE "id" IS NULL OR "total" IS NULL) AS null_keys,
    count(*) FILTER (WHERE NOT ("ordered_at" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND "ordered_at" < TIMESTAMPTZ '2026-01-03 05:00:00+00')) AS outside_window,
    count(*) FILTER (WHERE "ordered_at" IS NULL) AS null_by
  FROM "_pt_stage"
) AS _pt_rows, (
  SELECT count(*) AS duplicate_keys, coalesce(sum(_pt_count), 0)::BIGINT AS duplicate_rows
  FROM (
    SELECT "id", "total", count(*) AS _pt_count
    FROM "_pt_stage"
    WHERE "id" IS NOT NULL AND "total" IS NOT NULL
    GROUP BY "id", "total"
    HAVING count(*) > 1
  ) AS _pt_groups
) AS _pt_keys;

-- NullKeys
SELECT *
FROM "_pt_stage"
WHERE "id" IS NULL OR "total" IS NULL
LIMIT 20;

-- DuplicateKeys
SELECT "id", "total", count(*) AS _pt_count
FROM "_pt_stage"
WHERE "id" IS NOT NULL AND "total" IS NOT NULL
GROUP BY "id", "total"
HAVING count(*) > 1
ORDER BY _pt_count DESC
LIMIT 20;

-- OutsideWindow
SELECT *
FROM "_pt_stage"
WHERE NOT ("ordered_at" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND "ordered_at" < TIMESTAMPTZ '2026-01-03 05:00:00+00')
LIMIT 20;

-- NullBy
SELECT *
FROM "_pt_stage"
WHERE "ordered_at" IS NULL
LIMIT 20;
