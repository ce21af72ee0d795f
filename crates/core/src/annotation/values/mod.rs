//! Readers of single values: each takes one [`Value`](super::tokens::Value) and gives its meaning, or a problem whose
//! span is the value (or the part of it) and whose text names what was expected.

mod asset;
mod columns;
mod plain;
mod sql;
mod time;

pub(super) use asset::{read_asset, read_asset_or_named, read_column_of_asset, read_upstream};
pub(super) use columns::{read_column, read_columns};
pub(super) use plain::{read_bytes, read_choice, read_count, read_script_path, read_word};
pub(super) use sql::{check_sql, read_sql};
pub use time::parse_duration_text;
pub(super) use time::{read_cron, read_date, read_duration, read_time_zone};
