//! One script with everything that is known of it before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pintail_core::annotation::{Header, WriteStrategy};
use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, ScriptHash, ScriptName};
use pintail_core::lineage::BodyLineage;
use pintail_core::partition::{PartitionSpec, TimeSpec};
use pintail_core::source::{Language, Span};
use pintail_core::sql::body::ParsedBody;
use pintail_core::sql::classify::Need;
use pintail_core::sql::strategy::{Layout, current_view_name};
use pintail_core::write::ErrorClass;

use super::CompiledProject;
use super::deferral::Deferral;
use crate::executors::RunContext;
use crate::workspace::ScriptFile;

/// The identity column when no other name is given.
const IDENTITY_COLUMN: &str = "_partition";

/// A body with what was found in it.
#[derive(Clone, Debug, Default)]
pub struct ParsedText {
    /// The file's path relative to the project root.
    pub path: String,
    /// The file with its header lines blanked.
    pub blanked: String,
    /// The statements.
    pub body: ParsedBody,
    /// Its reads and writes.
    pub lineage: BodyLineage,
    /// Whether its partitions are increments of a column, whose bounds have the type of that column.
    pub has_increments: bool,
    /// The profile that is read where the selected one has built nothing.
    pub deferral: Option<Arc<Deferral>>,
    /// What its script writes, where that matters to what is read.
    pub own: Option<Asset>,
    /// Where a script with `stream` names its changes.
    pub changes: BTreeSet<Span>,
    /// What is sent in place of the stores that it names.
    pub places: Vec<(Span, String)>,
}

/// A script, compiled.
#[derive(Clone, Debug)]
pub struct CompiledScript {
    /// The file.
    pub file: ScriptFile,
    /// What its header declares.
    pub header: Header,
    /// The hash of its text, and of the variables that it uses.
    pub hash: ScriptHash,
    /// Its body.
    pub text: ParsedText,
    /// Where the query stands; `None` for a script with statements of its own.
    pub query: Option<Span>,
    /// The setup statements that are sent, in order.
    pub setup: Vec<Span>,
    /// The statements of a manual script with what each needs, in order.
    pub statements: Vec<(Span, Need)>,
    /// What it writes: the declared target, or the one table that its statements write.
    pub target: Option<Asset>,
    /// The singular tests that run with it, by name.
    pub singular_tests: Vec<String>,
    /// What its tests read besides its target.
    pub test_reads: BTreeSet<Asset>,
    /// Why this version cannot run it, if so.
    pub cannot_run: Option<String>,
}

impl CompiledScript {
    /// Returns the name.
    pub fn name(&self) -> &ScriptName {
        &self.file.name
    }

    /// Returns the hash of the text, and of the variables that it uses: another value of one is another script.
    pub fn hash(&self) -> &ScriptHash {
        &self.hash
    }

    /// Returns the language.
    pub fn language(&self) -> Language {
        self.file.language
    }

    /// Returns how the target is written; a script without `materialize` writes with statements of its own.
    pub fn strategy(&self) -> WriteStrategy {
        self.header.materialize.as_ref().map_or(WriteStrategy::Manual, |line| line.value.strategy.clone())
    }

    /// Returns the strategy as a word of the language.
    pub fn strategy_word(&self) -> &'static str {
        match self.strategy() {
            WriteStrategy::Replace => "replace",
            WriteStrategy::Merge { .. } => "merge",
            WriteStrategy::Append => "append",
            WriteStrategy::History { .. } => "history",
            WriteStrategy::View => "view",
            WriteStrategy::Manual => "manual",
        }
    }

    /// Returns the view of the current rows that is made beside a history table.
    pub fn current_view(&self) -> Option<Asset> {
        let (WriteStrategy::History { .. }, Some(Asset::Lake { lake, schema, table })) =
            (self.strategy(), self.target.as_ref())
        else {
            return None;
        };
        Some(Asset::Lake { lake: lake.clone(), schema: schema.clone(), table: current_view_name(table) })
    }

    /// Returns the time partitions.
    pub fn time_spec(&self) -> Option<&TimeSpec> {
        match self.header.partitioned.as_ref().map(|partitioned| &partitioned.value) {
            Some(PartitionSpec::Time(spec)) => Some(spec),
            _ => None,
        }
    }

    /// Returns the partitions that are not of time.
    pub fn dynamic_spec(&self) -> Option<&PartitionSpec> {
        let spec = self.header.partitioned.as_ref().map(|partitioned| &partitioned.value);
        spec.filter(|spec| matches!(spec, PartitionSpec::Dynamic { .. }))
    }

    /// Returns the column that its increments go by.
    pub fn increment_column(&self) -> Option<&str> {
        self.dynamic_spec()?.increment_column()
    }

    /// Returns the path of its partition into a payload.
    pub fn payload_path(&self) -> Option<&str> {
        self.dynamic_spec()?.payload_path()
    }

    /// Returns the name of the identity column.
    pub fn identity_column(&self) -> &str {
        let configured = self.header.materialize.as_ref().and_then(|line| line.value.partition_column.as_deref());
        configured.unwrap_or(IDENTITY_COLUMN)
    }

    /// Returns what the body reads, each asset once.
    pub fn reads(&self) -> BTreeSet<&Asset> {
        self.text.lineage.reads.iter().map(|read| self.text.resolve(&read.asset)).collect()
    }

    /// Returns what the body reads as this profile calls it, whether or not it has built it.
    pub fn own_reads(&self) -> BTreeSet<&Asset> {
        self.text.lineage.reads.iter().map(|read| &read.asset).collect()
    }

    /// Returns whether the body reads the script's own target.
    pub fn reads_target(&self) -> bool {
        self.self_read_span().is_some()
    }

    /// Returns where the body reads the script's own target.
    pub fn self_read_span(&self) -> Option<Span> {
        let target = self.target.as_ref()?;
        self.text.lineage.reads.iter().find(|read| read.asset == *target).map(|read| read.span)
    }

    /// Returns whether the body reads something of `place`, a lake or another place that counts versions.
    pub fn reads_place(&self, place: &LakeName) -> bool {
        self.reads().iter().any(|asset| asset.place() == *place)
    }

    /// Returns the datatables that the body or its tests read, by name.
    pub fn datatables_read(&self) -> BTreeSet<&str> {
        let assets = self.text.lineage.reads.iter().map(|read| &read.asset).chain(&self.test_reads);
        assets
            .filter_map(|asset| match asset {
                Asset::Datatable { database, .. } => Some(database.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Returns the lakes that must be attached at their pins: those that the body or its tests read.
    pub fn lakes_needed(&self, project: &CompiledProject) -> BTreeSet<LakeName> {
        let mut lakes: BTreeSet<LakeName> =
            self.reads().into_iter().filter_map(|asset| asset.lake().cloned()).collect();
        lakes.extend(self.test_reads.iter().filter_map(|asset| self.text.resolve(asset).lake().cloned()));
        if !self.text.lineage.unknown_reads.is_empty() {
            lakes.insert(project.default_lake.clone());
        }
        lakes
    }

    /// Returns whether the default lake must be in the search path: something in the body may name it.
    pub fn reads_lakes(&self, project: &CompiledProject) -> bool {
        self.lakes_needed(project).contains(&project.default_lake)
    }

    /// Returns where the query stands; the whole body for a script without one.
    pub fn query_span(&self) -> Span {
        self.query.unwrap_or_else(|| Span::new(0, self.text.blanked.len()))
    }

    /// Returns the setup statements that are sent.
    pub fn setup_spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.setup.iter().copied()
    }

    /// Returns the descriptions that the table gets.
    pub fn layout_words(&self) -> Layout {
        Layout {
            comment: self.header.description.clone(),
            column_comments: self
                .header
                .columns
                .iter()
                .filter_map(|column| Some((column.value.name.clone(), column.value.description.clone()?)))
                .collect(),
            ..Layout::default()
        }
    }

    /// Returns the fingerprints of the local files that the body reads.
    pub fn files_read(&self, project: &CompiledProject) -> BTreeMap<String, String> {
        self.reads()
            .into_iter()
            .filter_map(|asset| Some((asset.to_string(), super::fingerprint(&project.project, asset)?)))
            .collect()
    }

    /// Returns the fingerprints of what the body reads and nobody counts versions of: local files as they are now, tables
    /// and objects of other programs as they were when the run was planned.
    pub fn prints_read(&self, ctx: &RunContext) -> BTreeMap<String, String> {
        let mut prints = self.files_read(&ctx.project);
        for asset in self.reads() {
            let key = asset.to_string();
            if let (false, Some(print)) = (prints.contains_key(&key), ctx.print_of(&key)) {
                prints.insert(key, print);
            }
        }
        prints
    }

    /// Returns whether attempt `number` that failed with `class` is followed by another one (`retry`).
    pub fn retries(&self, class: ErrorClass, number: u32) -> bool {
        let Some(retry) = &self.header.retry else { return false };
        matches!(class, ErrorClass::Transient | ErrorClass::Conflict | ErrorClass::Bug) && number <= retry.value.times
    }

    /// Returns the pause after attempt `number`.
    pub fn retry_delay(&self, number: u32) -> Duration {
        let Some(retry) = self.header.retry.as_ref().map(|retry| retry.value) else { return Duration::ZERO };
        match retry.exponential {
            true => retry.delay * 2_u32.saturating_pow(number.saturating_sub(1).min(16)),
            false => retry.delay,
        }
    }
}
