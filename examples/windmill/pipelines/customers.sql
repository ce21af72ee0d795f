// pipeline
// on data_upload
// on email
// materialize ducklake://main/customers key=customer_id on_schema_change=warn
// data_test unique customer_id

SELECT *
FROM (VALUES
    (10, 'ada@example.org', 'GB'),
    (11, 'grace@example.org', 'US'),
    (12, 'edsger@example.org', 'NL')
) AS source(customer_id, email, country)
