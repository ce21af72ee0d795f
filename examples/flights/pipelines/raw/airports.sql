-- description Airports by their three-letter code.
-- tag raw
-- materialize ducklake://main/airports key=faa
-- test unique faa
-- test expression "lat BETWEEN -90 AND 90 AND lon BETWEEN -180 AND 180"

SELECT
    faa,
    name,
    lat,
    lon,
    alt,
    tzone
FROM read_csv('data/airports.csv', nullstr => ['', 'NA'])
