//! The tables `signals` and `events`: their columns, and rows of them on their way into a batch.
//!
//! What has no value is NULL, so that 0 and an empty text are values. Each row says which decoder wrote it.

mod events;
mod signals;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use pintail_core::schema::{Column, Schema as Columns};
use pintail_streams::Identity;

pub use events::EventRows;
pub use signals::SignalRows;

use super::rows::RawRow;

/// The zone of every timestamp.
pub const UTC: &str = "UTC";

/// How both tables are partitioned: sixteen buckets of subjects, and days. More buckets make more files than rows.
pub const PARTITIONED_BY: [&str; 4] =
    ["bucket(16, subject)", "year(\"timestamp\")", "month(\"timestamp\")", "day(\"timestamp\")"];

/// How both tables are sorted.
pub const SORTED_BY: [&str; 2] = ["subject", "\"timestamp\""];

/// The event that rows come from.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Whom it is about.
    pub subject: &'a str,
    /// The subject's bucket.
    pub bucket: i32,
    /// Its id.
    pub id: &'a str,
    /// Its row.
    pub row: RawRow<'a>,
}

/// The decoder that rows come from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Its name.
    pub decoder: &'static str,
    /// Its version.
    pub version: i32,
}

/// Returns the columns of `signals`.
pub fn signal_columns() -> Vec<Column> {
    Columns::of(&[
        ("subject", "VARCHAR"),
        ("subject_bucket", "INTEGER"),
        ("name", "VARCHAR"),
        ("timestamp", "TIMESTAMP WITH TIME ZONE"),
        ("source", "VARCHAR"),
        ("producer", "VARCHAR"),
        ("cloud_event_id", "VARCHAR"),
        ("value_number", "DOUBLE"),
        ("value_string", "VARCHAR"),
        ("loc_lat", "DOUBLE"),
        ("loc_lon", "DOUBLE"),
        ("loc_hdop", "DOUBLE"),
        ("loc_heading", "DOUBLE"),
        ("type", "VARCHAR"),
        ("cloud_event_time", "TIMESTAMP WITH TIME ZONE"),
        ("decoder", "VARCHAR"),
        ("decoder_version", "INTEGER"),
    ])
    .columns
}

/// Returns the columns of `events`.
pub fn event_columns() -> Vec<Column> {
    Columns::of(&[
        ("subject", "VARCHAR"),
        ("subject_bucket", "INTEGER"),
        ("source", "VARCHAR"),
        ("producer", "VARCHAR"),
        ("cloud_event_id", "VARCHAR"),
        ("type", "VARCHAR"),
        ("data_version", "VARCHAR"),
        ("name", "VARCHAR"),
        ("timestamp", "TIMESTAMP WITH TIME ZONE"),
        ("duration_ns", "UBIGINT"),
        ("metadata", "VARCHAR"),
        ("tags", "VARCHAR[]"),
        ("cloud_event_time", "TIMESTAMP WITH TIME ZONE"),
        ("decoder", "VARCHAR"),
        ("decoder_version", "INTEGER"),
    ])
    .columns
}

/// Returns what makes two rows of either table the same: who sent which event about whom, and what of it the row is. Ids
/// are unique for a source at most. The event's type and time are no part of it: one that is sent without a time gets
/// another with each delivery.
pub fn identity() -> Identity {
    Identity {
        columns: ["subject", "source", "cloud_event_id", "name", "timestamp"].map(str::to_owned).into(),
        time: Some("timestamp".to_owned()),
        version: Some("decoder_version".to_owned()),
    }
}

/// Returns the Arrow schema of `columns`, all of which may be NULL.
fn arrow_schema(columns: Vec<Column>) -> Arc<Schema> {
    let field = |column: Column| {
        let data_type = match column.data_type.as_str() {
            "INTEGER" => DataType::Int32,
            "DOUBLE" => DataType::Float64,
            "UBIGINT" => DataType::UInt64,
            "TIMESTAMP WITH TIME ZONE" => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            "VARCHAR[]" => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            _ => DataType::Utf8,
        };
        Field::new(column.name, data_type, true)
    };
    Arc::new(Schema::new(columns.into_iter().map(field).collect::<Vec<_>>()))
}
