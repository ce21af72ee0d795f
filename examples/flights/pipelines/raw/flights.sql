-- description Departures from the three airports of New York City in 2013, as published.
-- owner flights-team
-- tag raw
-- retry 2 5s
-- timeout 5m
-- materialize ducklake://main/flights
-- column time_hour not_null "The scheduled hour of departure, an instant"
-- column arr_delay "Minutes after the schedule, negative when early; NULL when cancelled or diverted"
-- test unique time_hour,carrier,flight,origin
-- test not_null time_hour
-- test accepted_values origin = EWR,JFK,LGA
-- test row_count 300000..400000

SELECT
    time_hour::TIMESTAMPTZ AS time_hour,
    carrier,
    flight,
    tailnum,
    origin,
    dest,
    sched_dep_time,
    dep_delay,
    arr_delay,
    air_time,
    distance
FROM read_csv('data/flights.csv', nullstr => ['', 'NA'])
