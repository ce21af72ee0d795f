-- description Flights cut into local days of New York: each day is a slice that is replaced as a whole.
-- owner flights-team
-- partitioned daily by=time_hour tz=America/New_York start=2013-01-01
-- materialize ducklake://main/flights_daily
-- column flight_date not_null "The local day of departure"
-- column cancelled not_null "Whether the flight never left"
-- test unique time_hour,carrier,flight,origin
-- test not_null flight_date
-- test accepted_values origin = EWR,JFK,LGA
-- test relationships carrier -> ducklake://main/airlines.carrier
-- test relationships dest -> ducklake://main/airports.faa severity=warn
-- test expression "0 < air_time" where="air_time IS NOT NULL"
-- test row_count 1..5000

SELECT
    (time_hour AT TIME ZONE 'America/New_York')::DATE AS flight_date,
    time_hour,
    carrier,
    flight,
    tailnum,
    origin,
    dest,
    dep_delay,
    arr_delay,
    air_time,
    distance,
    dep_delay IS NULL AS cancelled
FROM flights
WHERE in_partition(time_hour)
