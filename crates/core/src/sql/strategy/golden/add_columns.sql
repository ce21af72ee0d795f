-- add a column
ALTER TABLE "_pt_w_main"."main"."orders" ADD COLUMN "note" VARCHAR;

-- add a column
ALTER TABLE "_pt_w_main"."main"."orders" ADD COLUMN "a ""b""" DECIMAL(10,2);
