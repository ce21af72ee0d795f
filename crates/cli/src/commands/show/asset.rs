//! A script with its asset: what the header says, what it reads and why, what the table is now, and its versions.

use std::collections::BTreeMap;

use pintail_core::asset::Asset;
use pintail_core::source::LineIndex;
use pintail_core::sql::data_test::name_of;
use pintail_runner::pintail::TableInfo;
use pintail_runner::project::CompiledScript;
use pintail_runner::{Pintail, RunnerError};
use pintail_store::{Materialization, SliceState};
use serde_json::{Value, json};

use super::super::history::{version_json, version_list};
use super::super::list::{kind_word, partition_text};
use crate::app::App;
use crate::failure::Failure;
use crate::render::text::{count, thousands};
use crate::terminal::Style;

/// How many versions are shown; `history` shows more.
const VERSIONS: u32 = 5;

/// Shows a script and the asset that it writes.
pub fn show_script(pintail: &Pintail, script: &CompiledScript, app: &App) -> Result<(), Failure> {
    let state = match &script.target {
        Some(asset) => Some(AssetState::read(pintail, asset)?),
        None => None,
    };
    if app.terminal.is_json {
        let mut value = script_json(pintail, script);
        value["state"] = state.as_ref().map_or(Value::Null, AssetState::to_json);
        app.terminal.json(&value);
        return Ok(());
    }
    let name = app.terminal.paint_data(Style::Bold, script.name().as_str());
    app.terminal.data(&format!("{name}  {}\n\n", script.file.source.path));
    let lines = facts(pintail, script);
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    for (label, text) in lines {
        app.terminal.data(&format!("{label:width$}  {text}\n"));
    }
    if let Some(state) = &state {
        state.show(app);
    }
    Ok(())
}

/// Shows an asset that no script of the project writes.
pub fn show_asset(pintail: &Pintail, asset: &Asset, app: &App) -> Result<(), Failure> {
    let state = AssetState::read(pintail, asset)?;
    if app.terminal.is_json {
        let mut value = state.to_json();
        value["asset"] = json!(asset.to_string());
        app.terminal.json(&value);
        return Ok(());
    }
    app.terminal.data(&format!("{asset}  (no script of this project writes it)\n"));
    let readers: Vec<String> = readers(pintail, asset).collect();
    if !readers.is_empty() {
        app.terminal.data(&format!("read by  {}\n", readers.join(", ")));
    }
    state.show(app);
    Ok(())
}

/// Returns what the header and the body say, a labelled line each.
fn facts(pintail: &Pintail, script: &CompiledScript) -> Vec<(&'static str, String)> {
    let header = &script.header;
    let mut lines: Vec<(&'static str, String)> = Vec::new();
    if let Some(description) = &header.description {
        lines.push(("description", description.replace('\n', " ")));
    }
    if let Some(owner) = &header.owner {
        lines.push(("owner", owner.value.clone()));
    }
    if !header.tags.is_empty() {
        lines.push(("tags", header.tags.iter().map(|tag| tag.value.clone()).collect::<Vec<_>>().join(", ")));
    }
    let writes = script.target.as_ref().map_or_else(|| "nothing that is known".to_owned(), ToString::to_string);
    lines.push(("writes", format!("{writes} ({})", kind_word(script.language(), header))));
    if let Some(partitioned) = &header.partitioned {
        lines.push(("partitioned", partition_text(&partitioned.value)));
    }
    for read in reads(pintail, script) {
        lines.push(("reads", read));
    }
    for unknown in &script.text.lineage.unknown_reads {
        lines.push(("reads", format!("something unknown: {}", unknown.value)));
    }
    if let Some(asset) = &script.target {
        let readers: Vec<String> = readers(pintail, asset).collect();
        if !readers.is_empty() {
            lines.push(("read by", readers.join(", ")));
        }
    }
    for test in &header.tests {
        lines.push(("test", name_of(&test.value)));
    }
    for test in &script.singular_tests {
        lines.push(("test", format!("tests/{test}.sql")));
    }
    if let Some(reason) = &script.cannot_run {
        lines.push(("cannot run", reason.clone()));
    }
    lines
}

/// Returns what a script reads, each with its writer and the place that says so.
fn reads(pintail: &Pintail, script: &CompiledScript) -> Vec<String> {
    let graph = &pintail.project().graph;
    let Some(node) = graph.find(script.name()) else { return Vec::new() };
    let lines = LineIndex::new(&script.file.source.text);
    let read = |read: &pintail_core::graph::AssetUse| {
        let line = lines.line_column(read.reason.span().start).0;
        let writer = graph.writer(&read.asset).map_or_else(String::new, |writer| format!(" of {}", graph.name(writer)));
        format!("{}{writer}, {} at line {line}", read.asset, read.reason.words())
    };
    graph.script(node).reads.iter().map(read).collect()
}

fn readers(pintail: &Pintail, asset: &Asset) -> impl Iterator<Item = String> {
    let graph = &pintail.project().graph;
    let reads_it = move |node: &pintail_core::graph::NodeId| {
        graph.script(*node).reads.iter().any(|read| read.asset == *asset)
            && graph.writer(asset).is_none_or(|writer| writer != *node)
    };
    graph.nodes().filter(reads_it).map(|node| graph.name(node).to_string())
}

fn script_json(pintail: &Pintail, script: &CompiledScript) -> Value {
    let header = &script.header;
    json!({
        "script": script.name().as_str(),
        "path": script.file.source.path,
        "hash": script.hash().as_str(),
        "language": script.language().to_string(),
        "kind": kind_word(script.language(), header),
        "asset": script.target.as_ref().map(ToString::to_string),
        "description": header.description,
        "owner": header.owner.as_ref().map(|owner| owner.value.clone()),
        "tags": header.tags.iter().map(|tag| tag.value.clone()).collect::<Vec<_>>(),
        "partitioned": header.partitioned.as_ref().map(|spec| partition_text(&spec.value)),
        "reads": reads(pintail, script),
        "read_by": script.target.iter().flat_map(|asset| readers(pintail, asset)).collect::<Vec<_>>(),
        "tests": header.tests.iter().map(|test| name_of(&test.value)).collect::<Vec<_>>(),
        "singular_tests": script.singular_tests,
        "cannot_run": script.cannot_run,
    })
}

/// What the lake and the store say of an asset.
struct AssetState {
    table: Option<TableInfo>,
    slices: Vec<SliceState>,
    versions: Vec<Materialization>,
}

impl AssetState {
    fn read(pintail: &Pintail, asset: &Asset) -> Result<Self, Failure> {
        // The history heals first, so that the slices are those of the lake.
        let versions = pintail.history(asset, VERSIONS)?;
        let slices = pintail
            .block_on(pintail.store().current_slices(Some(std::slice::from_ref(asset))))
            .map_err(RunnerError::from)?;
        Ok(Self { table: pintail.table(asset)?, slices, versions })
    }

    fn show(&self, app: &App) {
        let terminal = &app.terminal;
        match &self.table {
            None => terminal.data("\nit does not exist yet\n"),
            Some(table) => terminal.data(&columns_text(table)),
        }
        if !self.slices.is_empty() {
            terminal.data(&format!("\n{}\n", self.slice_text()));
        }
        if !self.versions.is_empty() {
            terminal.data(&format!("\n{}", version_list(&self.versions)));
        }
    }

    /// Returns the slices in one line: how many, which, rows, failures.
    fn slice_text(&self) -> String {
        let failed = self.slices.iter().filter(|slice| slice.failure.is_some()).count();
        let rows: Option<u64> = self.current().map(|version| version.rows).sum();
        let rows = rows.map_or_else(|| "rows not known".to_owned(), |rows| format!("{} rows", thousands(rows)));
        let mut keys: Vec<&str> =
            self.slices.iter().filter_map(|slice| slice.partition.as_ref()).map(|key| key.as_str()).collect();
        keys.sort_unstable();
        let which = match (keys.first(), keys.last()) {
            (Some(first), Some(last)) => format!("{} ({first} … {last}), ", count(keys.len(), "partition")),
            _ => String::new(),
        };
        let failures = match failed {
            0 => String::new(),
            number => format!(", {} failed last time", thousands(number as u64)),
        };
        format!("now: {which}{rows}{failures}")
    }

    fn current(&self) -> impl Iterator<Item = &Materialization> {
        self.slices.iter().filter_map(|slice| slice.current.as_ref())
    }

    fn to_json(&self) -> Value {
        let table = self.table.as_ref().map(|table| {
            json!({
                "is_view": table.facts.is_view,
                "columns": table.facts.schema.columns.iter()
                    .map(|column| json!({"name": column.name, "type": column.data_type})).collect::<Vec<_>>(),
                "partition": table.facts.partition.iter()
                    .map(|(column, transform)| json!({"column": column, "transform": transform})).collect::<Vec<_>>(),
            })
        });
        let slice = |slice: &SliceState| {
            json!({
                "partition": slice.partition.as_ref().map(ToString::to_string),
                "current": slice.current.as_ref().map(version_json),
                "failure": slice.failure.as_ref().map(version_json),
            })
        };
        json!({
            "table": table,
            "slices": self.slices.iter().map(slice).collect::<Vec<_>>(),
            "versions": self.versions.iter().map(version_json).collect::<Vec<_>>(),
        })
    }
}

fn columns_text(table: &TableInfo) -> String {
    let transforms: BTreeMap<&str, &str> =
        table.facts.partition.iter().map(|(column, transform)| (column.as_str(), transform.as_str())).collect();
    let columns = &table.facts.schema.columns;
    let width = columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
    let mut text = String::from(if table.facts.is_view { "\ncolumns of the view\n" } else { "\ncolumns\n" });
    for column in columns {
        let partition = transforms
            .get(column.name.as_str())
            .map_or_else(String::new, |transform| format!("  (files are partitioned by it: {transform})"));
        text.push_str(&format!("  {:width$}  {}{partition}\n", column.name, column.data_type));
    }
    text
}
