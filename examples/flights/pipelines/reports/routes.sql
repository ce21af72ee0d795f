-- description Every route flown, with the names of its ends.
-- tag report
-- materialize ducklake://main/routes key=origin,dest
-- column destination "The airport's name; NULL for the few that the list of airports lacks"
-- test unique origin,dest
-- test not_null flights

SELECT
    daily.origin,
    daily.dest,
    airports.name AS destination,
    min(daily.distance) AS miles,
    count(*) AS flights,
    count(DISTINCT daily.carrier) AS airlines,
    round(avg(daily.air_time), 0)::INTEGER AS mean_air_minutes
FROM flights_daily AS daily
LEFT JOIN airports ON airports.faa = daily.dest
GROUP BY ALL
