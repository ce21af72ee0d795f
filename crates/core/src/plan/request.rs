//! What the user asked for.

use std::collections::{BTreeMap, BTreeSet};

use super::State;
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
    /// Those in certain states, and those that read what the plan writes.
    InState {
        /// The states.
        states: BTreeSet<State>,
        /// The scripts that were chosen by name too, which take their last closed period besides.
        named: BTreeSet<usize>,
    },
}

/// A request for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The selected scripts, by position.
    pub selected: BTreeSet<usize>,
    /// Their partitions.
    pub partitions: Partitions,
    /// The partition of each script whose partitions are values of a payload.
    pub values: BTreeMap<usize, PartitionKey>,
    /// Run steps that are up to date too.
    pub force: bool,
    /// Write merge and append targets anew instead of adding to them; implies `force`.
    pub full_refresh: bool,
}
