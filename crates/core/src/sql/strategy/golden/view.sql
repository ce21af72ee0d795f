-- create the view
CREATE OR REPLACE VIEW "_pt_w_main"."main"."recent_orders" AS
SELECT *
FROM orders -- all of them
;

-- describe the view
COMMENT ON VIEW "_pt_w_main"."main"."recent_orders" IS 'It''s one row per order';
