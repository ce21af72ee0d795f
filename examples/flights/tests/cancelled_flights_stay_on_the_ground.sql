-- description A flight that never left has neither time in the air nor a delay on arrival.

SELECT time_hour, carrier, flight, dep_delay, arr_delay, air_time
FROM lake.flights_daily
WHERE cancelled AND (air_time IS NOT NULL OR arr_delay IS NOT NULL)
