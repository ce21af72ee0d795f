-- description What the weather at departure does to delays, by kind of weather.
-- tag report
-- materialize ducklake://main/weather_impact
-- test unique weather
-- test accepted_values weather = fog,wet,windy,fair

WITH
conditions AS (
    SELECT
        origin,
        time_hour,
        CASE
            WHEN visib < 2 THEN 'fog'
            WHEN 0 < precip THEN 'wet'
            WHEN 20 < wind_speed THEN 'windy'
            ELSE 'fair'
        END AS weather
    FROM weather
)

SELECT
    conditions.weather,
    count(*) AS flights,
    round(avg(daily.dep_delay), 1) AS mean_departure_delay,
    round(avg(daily.cancelled::INTEGER), 4) AS cancelled_share
FROM flights_daily AS daily
JOIN conditions USING (origin, time_hour)
GROUP BY ALL
