//! The table of raw events: thirteen columns in a fixed order, partitioned by type and day, sorted by subject and time.
//!
//! Invariant: readers rely on the order of the columns, so a table with another one is refused, never mended. What it is
//! partitioned and sorted by is set again only where it differs: setting it makes a new version of the schema.

mod layout;
mod rows;

use std::fmt;

use pintail_core::sql::{Ident, Relation};

pub use layout::{LayoutError, prepare};
pub use rows::{rows, stage};

/// The columns, in order, with DuckDB's types.
pub const COLUMNS: [(&str, &str); 13] = [
    ("subject", "VARCHAR"),
    ("time", "TIMESTAMP WITH TIME ZONE"),
    ("type", "VARCHAR"),
    ("id", "VARCHAR"),
    ("source", "VARCHAR"),
    ("producer", "VARCHAR"),
    ("data_content_type", "VARCHAR"),
    ("data_version", "VARCHAR"),
    ("extras", "VARCHAR"),
    ("data", "VARCHAR"),
    ("data_base64", "BLOB"),
    ("data_index_key", "VARCHAR"),
    ("voids_id", "VARCHAR"),
];

/// The column and transform of each level of partitions.
pub const PARTITION: [(&str, &str); 4] = [("type", "identity"), ("time", "year"), ("time", "month"), ("time", "day")];

/// The columns that files are sorted by.
pub const SORT: [&str; 2] = ["subject", "time"];

/// Which table holds raw events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTable {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
}

impl Default for RawTable {
    fn default() -> Self {
        Self { schema: "main".to_owned(), name: "raw_events".to_owned() }
    }
}

impl RawTable {
    /// Returns the table in the lake attached as `alias`.
    pub fn relation(&self, alias: &str) -> Relation {
        Relation::in_catalog(alias, &self.schema, &self.name)
    }
}

impl fmt::Display for RawTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// Returns the columns as a list for SQL.
pub(crate) fn column_list() -> String {
    COLUMNS.map(|(name, _)| Ident::new(name).to_string()).join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_columns_that_a_configuration_may_name_are_those_of_the_table() {
        assert_eq!(super::COLUMNS.map(|(name, _)| name), pintail_core::stream::RAW_EVENT_COLUMNS);
    }
}
