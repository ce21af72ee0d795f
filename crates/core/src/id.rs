//! Newtypes for every id and counter that crosses a boundary.
//!
//! Ids are made by the caller (runner makes UUIDv7 text); core only compares and prints them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The id of one DuckLake snapshot; a snapshot covers the whole lake, so one integer pins every table of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SnapshotId(pub i64);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The catalog's id of one table; a replaced table (generation + 1) has a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableId(pub i64);

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl $name {
            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id!(
    /// One execution of a plan.
    RunId
);
text_id!(
    /// One script for one partition inside a run.
    StepId
);
text_id!(
    /// One try of a step; the lake's commit carries it, so it decides whether a commit happened.
    AttemptId
);
text_id!(
    /// A script's path under the project's script folder without its extension, such as `orders/orders_daily`.
    ScriptName
);
text_id!(
    /// The configured name of a lake, such as `main`.
    LakeName
);
text_id!(
    /// A project; every row of a metadata store carries it, so that many projects can share one store.
    ProjectName
);
text_id!(
    /// One living process of Pintail, so that what a dead one left open can be told apart.
    PresenceId
);
text_id!(
    /// SHA-256 (lower-case hex) of a script's text with line ends normalised.
    ScriptHash
);
