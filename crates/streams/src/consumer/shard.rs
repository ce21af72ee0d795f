//! Shards: the same consumer several times, each for its part of the source's rows.
//!
//! Invariant: the part of a row depends on the text of one column alone, in the same way in every version of DuckDB, so
//! that each row belongs to exactly one shard for ever.

use std::fmt;

use pintail_core::sql::Ident;

/// One shard of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 0.
    pub index: u32,
    /// How many there are.
    pub of: u32,
    /// The column of the source, and of the targets with rollups, that decides.
    pub by: String,
}

impl Shard {
    /// Returns the condition that a row belongs to the shard.
    pub fn condition(&self) -> String {
        format!("md5_number_lower(CAST({} AS VARCHAR)) % {} = {}", Ident::new(&self.by), self.of, self.index)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {} by {}", self.index, self.of, self.by)
    }
}
