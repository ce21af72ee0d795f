-- description Delay by the age of the aircraft, in steps of five years.
-- tag report
-- materialize ducklake://main/plane_ages
-- test unique age_from
-- test expression "0 < flights"

SELECT
    5 * ((year(daily.flight_date) - planes.built) // 5) AS age_from,
    count(DISTINCT daily.tailnum) AS planes,
    count(*) AS flights,
    round(avg(daily.arr_delay), 1) AS mean_delay
FROM flights_daily AS daily
JOIN planes USING (tailnum)
WHERE planes.built <= year(daily.flight_date)
GROUP BY ALL
