-- description How punctual each airline is: one row per airline, over all days that are loaded.
-- owner flights-team
-- tag report
-- materialize ducklake://main/carrier_delays
-- contract enforced
-- column carrier VARCHAR not_null "The two-letter code"
-- column airline VARCHAR not_null "The name" <- ducklake://main/airlines.name
-- column flights BIGINT not_null "Scheduled departures"
-- column cancelled BIGINT not_null "Departures that never happened"
-- column mean_delay DOUBLE "Mean delay on arrival in minutes"
-- column on_time_share DOUBLE "Share of arrivals that were not late, from 0 to 1"
-- test unique carrier
-- test expression "on_time_share BETWEEN 0 AND 1"
-- test expression "cancelled <= flights"

SELECT
    daily.carrier,
    airlines.name AS airline,
    count(*) AS flights,
    count(*) FILTER (daily.cancelled) AS cancelled,
    round(avg(daily.arr_delay), 1) AS mean_delay,
    round(100 * avg((daily.arr_delay <= $late_after::INTEGER)::INTEGER), 1) AS on_time_share
FROM flights_daily AS daily
JOIN airlines USING (carrier)
GROUP BY ALL
