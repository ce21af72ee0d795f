-- description An example: the days of a week. Change it, or delete it when there are scripts of your own.
-- materialize ducklake://main/example key=day
-- test not_null name

SELECT day::DATE AS day, dayname(day) AS name
FROM generate_series(DATE '2026-06-01', DATE '2026-06-07', INTERVAL 1 DAY) AS days(day)
