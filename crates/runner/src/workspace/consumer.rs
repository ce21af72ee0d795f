//! A consumer as `pintail.toml` configures it.

use pintail_core::asset::Asset;
use pintail_core::id::LakeName;
use pintail_core::source::Span;
use pintail_streams::consumer::{Shard, Source, Spec};

/// One `[consumer.<name>]`.
#[derive(Clone, Debug)]
pub struct ConsumerConfig {
    /// The lake that it reads and writes.
    pub lake: LakeName,
    /// What holds for all of its shards.
    pub spec: Spec,
    /// How many shards it has.
    pub shards: u32,
    /// The column by which they share the rows; always there when there are several.
    pub by: Option<String>,
    /// The decoder's name.
    pub decoder: String,
    /// The source's column of time, for backfills and replays.
    pub time_column: String,
    /// Types of events whose payload has signals; the decoder's own when absent.
    pub signal_types: Option<Vec<String>>,
    /// Types of events whose payload has events; the decoder's own when absent.
    pub event_types: Option<Vec<String>>,
    /// The chain and the contract whose tokens have signals; all subjects when absent.
    pub vehicles: Option<(u64, String)>,
    /// Where pintail.toml says it.
    pub places: ConsumerPlaces,
}

/// Where pintail.toml says what can only be held against the rest of the project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerPlaces {
    /// `source`.
    pub source: Span,
    /// `by`.
    pub by: Option<Span>,
    /// `time_column`.
    pub time_column: Option<Span>,
}

impl ConsumerConfig {
    /// Returns the table that it reads.
    pub fn asset(&self) -> Asset {
        let Source { schema, table } = self.spec.source.clone();
        Asset::Lake { lake: self.lake.clone(), schema, table }
    }

    /// Returns one consumer per shard, or the consumer itself.
    pub fn specs(&self) -> Vec<Spec> {
        let Some(by) = self.by.as_ref().filter(|_| 1 < self.shards) else { return vec![self.spec.clone()] };
        let shard = |index| Some(Shard { index, of: self.shards, by: by.clone() });
        (0..self.shards).map(|index| Spec { shard: shard(index), ..self.spec.clone() }).collect()
    }
}
