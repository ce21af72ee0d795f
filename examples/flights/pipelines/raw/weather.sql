-- description Hourly weather at the three airports, in the units of the source: Fahrenheit, miles, inches.
-- tag raw
-- materialize ducklake://main/weather
-- test unique origin,time_hour
-- test expression "visib BETWEEN 0 AND 10"

SELECT
    origin,
    time_hour::TIMESTAMPTZ AS time_hour,
    temp,
    wind_speed,
    precip,
    visib
FROM read_csv('data/weather.csv', nullstr => ['', 'NA'])
