//! Scripts with `stream`: the relation `changes` in their body is the feed of the table that they name.

use std::collections::BTreeSet;

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::{Code, Diagnostic};
use pintail_core::id::ScriptName;
use pintail_core::source::{Language, Span};

use super::{CompiledProject, CompiledScript};
use crate::workspace::Config;

/// The relation's name.
const CHANGES: &str = "changes";

/// Who of a project makes a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A script.
    Script(ScriptName),
    /// `pintail ingest`.
    Ingest,
}

impl CompiledProject {
    /// Returns who makes `asset`; `None` when nobody here does.
    pub fn maker_of(&self, asset: &Asset) -> Option<Maker> {
        if let Some(script) = self.scripts.iter().find(|script| script.target.as_ref() == Some(asset)) {
            return Some(Maker::Script(script.name().clone()));
        }
        (*asset == ingested(&self.project.config)).then_some(Maker::Ingest)
    }

    /// Returns whether a consumer or a script of the project reads the change feed of `asset`.
    pub fn has_consumers(&self, asset: &Asset) -> bool {
        let streams = self.scripts.iter().filter_map(|script| script.header.stream.as_ref());
        streams.map(|stream| &stream.value.asset).any(|source| source == asset)
            || self.project.config.consumers.values().any(|consumer| consumer.asset() == *asset)
    }
}

/// Returns the table of raw events.
pub(super) fn ingested(config: &Config) -> Asset {
    let ingest = &config.ingest;
    Asset::Lake { lake: ingest.lake.clone(), schema: ingest.schema.clone(), table: ingest.table.clone() }
}

/// Lets `changes` mean the feed; returns what keeps the script from being a stream.
pub fn resolve(script: &mut CompiledScript) -> Option<Diagnostic> {
    let stream = script.header.stream.as_ref()?;
    let (source, span) = (stream.value.asset.clone(), stream.span);
    let lineage = &mut script.text.lineage;
    let is_changes = |parts: &[String]| matches!(parts, [name] if name.eq_ignore_ascii_case(CHANGES));
    let spans: BTreeSet<Span> =
        lineage.table_refs.iter().filter(|table| is_changes(&table.name.parts)).map(|table| table.name.span).collect();
    for read in &mut lineage.reads {
        if read.name.as_ref().is_some_and(|name| spans.contains(&name.span)) {
            read.asset = source.clone();
        }
    }
    for table in lineage.table_refs.iter_mut().filter(|table| spans.contains(&table.name.span)) {
        table.asset = source.clone();
    }
    let has_changes = !spans.is_empty();
    script.text.changes = spans;
    let (message, help) = problem(script, &source, has_changes)?;
    let found = Diagnostic::new(Code::STREAM_BODY, &script.text.path, span, message);
    Some(found.with_help(help))
}

fn problem(script: &CompiledScript, source: &Asset, has_changes: bool) -> Option<(String, &'static str)> {
    if script.language() != Language::DuckDbSql {
        return Some(("only a DuckDB SQL script can have `stream`".to_owned(), "name the file `….sql`"));
    }
    if !matches!(script.strategy(), WriteStrategy::Append | WriteStrategy::Merge { .. }) {
        let how = "add `append` to the `materialize` line, or `key=` with the columns that identify a row";
        return Some(("a stream is applied by `append` or by `key=`".to_owned(), how));
    }
    if script.header.partitioned.is_some() {
        return Some((
            "a script with `stream` has no partitions: its cursor says what is new".to_owned(),
            "remove `partitioned`",
        ));
    }
    if script.target.as_ref().and_then(Asset::lake) != source.lake() {
        let why = "rows and cursor land in one commit, so the target must lie in the lake of the source";
        return Some((why.to_owned(), "write `materialize ducklake://…` with the same lake"));
    }
    if script.target.as_ref() == Some(source) {
        return Some(("the script would consume its own rows".to_owned(), "write to another table"));
    }
    let reads_changes = "select from `changes`: it has `snapshot_id`, `change_type` and the columns of the table";
    (!has_changes).then(|| ("the query does not read `changes`".to_owned(), reads_changes))
}
