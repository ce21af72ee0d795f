//! Why a text names no partition, or a mapping cannot be made.

use thiserror::Error;

use super::PartitionKey;
use crate::annotation::PartitionMap;

/// A partition that cannot be named, found or mapped; every message says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// The text has no form of an identity of this kind.
    #[error("`{text}` is no {unit} partition: expected {form}, such as `{example}`")]
    Malformed {
        /// What was given.
        text: String,
        /// `hourly`, `daily`, `weekly` or `monthly`.
        unit: &'static str,
        /// The form in letters, such as `YYYY-MM-DD`.
        form: &'static str,
        /// An identity of that form.
        example: String,
    },
    /// The form is right, but the calendar or the zone has no such period.
    #[error("there is no partition `{text}`: {reason}")]
    NoSuchPeriod {
        /// What was given.
        text: String,
        /// Why, in a few words.
        reason: String,
    },
    /// The text names an instant or a date inside a partition, not the partition.
    #[error("`{text}` is not the start of a {unit} partition; the one that holds it is `{holder}`")]
    NotExact {
        /// What was given.
        text: String,
        /// The kind.
        unit: &'static str,
        /// The partition that holds it.
        holder: PartitionKey,
    },
    /// An hour without an offset where the zone makes a difference.
    #[error("`{text}` has no offset and the script counts in {zone}: write {candidates}")]
    NeedsOffset {
        /// What was given.
        text: String,
        /// The script's zone.
        zone: &'static str,
        /// The identities that may be meant, quoted, joined by `or`.
        candidates: String,
    },
    /// A range that runs backwards.
    #[error("the range `{from}` to `{to}` runs backwards")]
    Backwards {
        /// Where it should begin.
        from: PartitionKey,
        /// Where it should end.
        to: PartitionKey,
    },
    /// Local dates were asked of an hourly partition.
    #[error("an hourly partition has no dates of its own")]
    NoDates,
    /// A mapping that does not fit the two ends of an edge.
    #[error("`map={}` does not fit: {reason}", map_word(.map))]
    MapMismatch {
        /// The mapping.
        map: PartitionMap,
        /// Why, in a few words.
        reason: String,
    },
}

/// Returns the mapping as `map=` spells it.
pub fn map_word(map: &PartitionMap) -> String {
    match map {
        PartitionMap::Identity => "identity".into(),
        PartitionMap::Coarsen => "coarsen".into(),
        PartitionMap::Partial => "partial".into(),
        PartitionMap::FanOut => "fan_out".into(),
        PartitionMap::Lookback(before) => format!("lookback={before}"),
        PartitionMap::All => "all".into(),
        PartitionMap::Latest => "latest".into(),
    }
}
