-- touch the asset's fence
UPDATE "_pt_w_main"."_pintail"."fence_07"
SET touched = touched + 1;
