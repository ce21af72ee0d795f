//! What a consumer reads, and how it was asked to.

use std::num::NonZeroUsize;
use std::time::Duration;

use pintail_core::id::{LakeName, SnapshotId, TableId};
use pintail_core::stream::{GapPolicy, SpanLimits, WindowLimits};

use super::shard::Shard;
use crate::position::PositionTable;

/// A table of the lake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
}

impl Source {
    /// Returns the asset, as people write it.
    pub fn asset(&self, lake: &LakeName) -> String {
        match self.schema.as_str() {
            "main" => format!("ducklake://{lake}/{}", self.table),
            schema => format!("ducklake://{lake}/{schema}.{}", self.table),
        }
    }
}

/// Where a consumer begins that has never run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With everything that the table holds.
    #[default]
    Earliest,
    /// With what comes from now on.
    Head,
    /// Behind a snapshot.
    After(SnapshotId),
}

/// A consumer as it is configured, or one shard of it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// What it reads.
    pub source: Source,
    /// Its part of the rows; all of them when absent.
    pub shard: Option<Shard>,
    /// Where it begins.
    pub start: Start,
    /// What it does about a gap.
    pub gap: GapPolicy,
    /// The most that it takes before its cursor moves.
    pub span: SpanLimits,
    /// The most that it decodes and commits at once.
    pub window: WindowLimits,
    /// Whether expiry waits for it however long it is silent.
    pub required: bool,
    /// After how long a silence expiry no longer waits for it.
    pub staleness: Option<Duration>,
    /// How long decoded rows stay; for ever when absent.
    pub retention: Option<Duration>,
    /// How many threads decode; as many as the machine has cores when absent.
    pub threads: Option<NonZeroUsize>,
}

impl Spec {
    /// Returns a consumer of `source` with what holds where nothing is said.
    pub fn new(name: impl Into<String>, source: Source) -> Self {
        Self {
            name: name.into(),
            source,
            shard: None,
            start: Start::default(),
            gap: GapPolicy::default(),
            span: SpanLimits::default(),
            window: WindowLimits::default(),
            required: false,
            staleness: None,
            retention: None,
            threads: None,
        }
    }

    /// Returns the name with the shard's number, such as `decode.03`.
    pub fn full_name(&self) -> String {
        match &self.shard {
            None => self.name.clone(),
            Some(shard) => format!("{}.{:02}", self.name, shard.index),
        }
    }

    /// Returns the table of its cursor.
    pub fn cursor(&self) -> PositionTable {
        PositionTable::cursor(&self.full_name())
    }

    /// Returns what its cursor is one in: the table by name and id, and the part of its rows. A cursor in something else
    /// is refused instead of being taken for one.
    pub fn source_text(&self, lake: &LakeName, table: TableId) -> String {
        let shard = self.shard.as_ref().map(|shard| format!(", {shard}")).unwrap_or_default();
        format!("{}#{}{shard}", self.source.asset(lake), table.0)
    }
}

/// Returns the table's id in a cursor's source text.
pub(crate) fn table_of(source_text: &str) -> Option<TableId> {
    let rest = source_text.rsplit_once('#')?.1;
    let digits = rest.split(',').next()?;
    digits.parse().ok().map(TableId)
}
