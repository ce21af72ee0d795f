//! What the planner is told.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use super::LastChanges;
use crate::annotation::PartitionMap;
use crate::asset::Asset;
use crate::id::{LakeName, ScriptHash, ScriptName, SnapshotId};
use crate::partition::{PartitionKey, TimeSpec};

/// One script that can run, as far as planning needs it.
#[derive(Clone, Debug)]
pub struct ScriptFacts {
    /// Its name.
    pub name: ScriptName,
    /// The hash of its text.
    pub hash: ScriptHash,
    /// What it writes; `None` for a script without a lake target.
    pub asset: Option<Asset>,
    /// The strategy's word, for people.
    pub strategy: &'static str,
    /// Whether it makes a view, which has no data to go stale.
    pub is_view: bool,
    /// Its time partitions.
    pub partition: Option<TimeSpec>,
    /// Its partitions that are not of time.
    pub dynamic: Option<DynamicFacts>,
    /// What it reads, views replaced by what is behind them.
    pub reads: Vec<Asset>,
    /// How the partitions of what it reads belong to its own, where the script says it (`map=`).
    pub maps: HashMap<Asset, PartitionMap>,
    /// Whether something in it could not be resolved, so that its inputs are not known.
    pub has_unknown_reads: bool,
    /// The scripts that must come before it, as indices of lower position.
    pub upstream: Vec<usize>,
}

/// Partitions that are not of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DynamicFacts {
    /// `key=$.a.b`: values of a payload.
    Payload,
    /// `key=<column>`: increments by a column.
    Column {
        /// When the first of the rows that lie in the future may be taken, if there are any.
        waits_until: Option<DateTime<Utc>>,
    },
}

/// Where a live table came from, when Pintail has not written all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody else made it, or put it in the place of ours.
    Foreign,
    /// It was taken over: slices that Pintail has not written may hold rows.
    Adopted,
}

impl ScriptFacts {
    /// Returns whether the script reads `asset`, by its name or by a glob over files.
    pub fn reads_asset(&self, asset: &Asset) -> bool {
        self.reads.iter().any(|read| read.covers(asset))
    }
}

/// The version of a slice that is live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceVersion {
    /// Its snapshot.
    pub snapshot: SnapshotId,
    /// The script that wrote it.
    pub script_hash: ScriptHash,
    /// The pins that it was computed at.
    pub inputs: BTreeMap<LakeName, SnapshotId>,
    /// The fingerprints of the files that it read.
    pub files: BTreeMap<String, String>,
    /// When it was written.
    pub finished: DateTime<Utc>,
}

/// What is remembered of one slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceFacts {
    /// The live version; `None` when there never was one.
    pub version: Option<SliceVersion>,
    /// Whether the newest attempt failed.
    pub has_failed: bool,
}

/// Everything the planner needs.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The scripts in topological order.
    pub scripts: &'a [ScriptFacts],
    /// The slices that are remembered, by asset and partition.
    pub slices: &'a HashMap<(Asset, Option<PartitionKey>), SliceFacts>,
    /// The live targets that Pintail has not written all of.
    pub origins: &'a HashMap<Asset, Origin>,
    /// When each lake table last changed.
    pub changes: &'a LastChanges,
    /// The fingerprints of the files that scripts read, by asset.
    pub files: &'a BTreeMap<String, String>,
    /// The head of each lake: the run's pins.
    pub heads: &'a BTreeMap<LakeName, SnapshotId>,
    /// Now.
    pub now: DateTime<Utc>,
}
