-- description Aircraft by tail number, from the register of the aviation authority.
-- tag raw
-- materialize ducklake://main/planes key=tailnum
-- column built "The year of manufacture; NULL when the register does not say"
-- test unique tailnum
-- test not_null tailnum

SELECT
    tailnum,
    year AS built,
    type,
    manufacturer,
    model,
    engines,
    seats
FROM read_csv('data/planes.csv', nullstr => ['', 'NA'])
