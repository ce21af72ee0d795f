-- description A test returns the rows that are wrong: here, days that do not lie in one week.

SELECT day FROM lake.example
WHERE day NOT BETWEEN DATE '2026-06-01' AND DATE '2026-06-07'
