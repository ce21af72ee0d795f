-- create Pintail's schema
CREATE SCHEMA IF NOT EXISTS "_pt_w_main"."_pintail";

-- create a fence
CREATE TABLE IF NOT EXISTS "_pt_w_main"."_pintail"."fence_15" AS
SELECT 0::BIGINT AS touched;
