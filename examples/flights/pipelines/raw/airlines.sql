-- description Airlines by their two-letter code.
-- tag raw
-- materialize ducklake://main/airlines key=carrier
-- test unique carrier
-- test not_null name

SELECT
    carrier,
    name
FROM read_csv('data/airlines.csv', nullstr => ['', 'NA'])
