//! What the user asked for.

use std::collections::BTreeSet;

use crate::partition::PartitionKey;

/// Which partitions of the partitioned scripts are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partitions {
    /// The last closed period of each.
    #[default]
    LastClosed,
    /// The one the user named, in the script's own terms or translated from another kind.
    Named(String),
    /// These, of one script (a backfill); every other partitioned script runs the ones that overlap them.
    Of {
        /// The script's position.
        script: usize,
        /// Its partitions, in order.
        keys: Vec<PartitionKey>,
    },
}

/// A request for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The selected scripts, by position.
    pub selected: BTreeSet<usize>,
    /// Their partitions.
    pub partitions: Partitions,
    /// Run steps that are up to date too.
    pub force: bool,
    /// Write merge and append targets anew instead of adding to them; implies `force`.
    pub full_refresh: bool,
}
