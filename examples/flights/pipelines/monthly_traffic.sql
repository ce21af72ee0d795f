-- description Flights and distance flown per local month and airport.
-- tag monthly
-- partitioned monthly tz=America/New_York start=2013-01-01
-- materialize ducklake://main/monthly_traffic
-- test unique month,origin
-- test expression "cancelled <= flights"

SELECT
    date_trunc('month', flight_date)::DATE AS month,
    origin,
    count(*) AS flights,
    count(*) FILTER (cancelled) AS cancelled,
    sum(distance)::BIGINT AS miles
FROM flights_daily
WHERE in_partition(time_hour)
GROUP BY ALL
