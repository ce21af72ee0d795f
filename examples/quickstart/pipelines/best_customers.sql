-- description Customers by what they spent: a view, always current.
-- materialize view ducklake://main/best_customers

FROM orders
SELECT customer, count(*) AS orders, sum(amount)::DECIMAL(18, 2) AS spent
GROUP BY customer
ORDER BY spent DESC
