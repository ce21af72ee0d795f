-- description The twenty routes with the most flights. A view: it holds no rows of its own.
-- tag report
-- materialize view ducklake://main/busiest_routes

FROM routes
SELECT origin, dest, destination, flights
ORDER BY flights DESC, origin, dest
LIMIT 20
