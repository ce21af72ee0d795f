//! The script's own text on its way to the engine: names, parameters and placeholders replaced, positions kept.

use std::collections::BTreeSet;

use pintail_core::asset::Asset;
use pintail_core::id::LakeName;
use pintail_core::partition::{PartitionKey, TimeSpec, Window};
use pintail_core::source::Span;
use pintail_core::sql::rewrite::{Rewriter, Rewritten};
use pintail_core::sql::{Ident, Literal, Relation};

use super::increment::OpenIncrement;
use super::stream::CHANGES;
use crate::project::{CompiledScript, ParsedText};

/// Where the tables that a text names are read from.
pub struct ReadAs<'a> {
    /// The relation of an asset when it is not simply the pinned alias.
    pub special: &'a dyn Fn(&Asset) -> Option<Relation>,
}

impl ReadAs<'_> {
    /// Every lake table under the alias of its lake.
    pub const PINNED: ReadAs<'static> = ReadAs { special: &|_| None };
}

/// Returns `span` of `text` as it is sent.
pub fn rewrite(text: &ParsedText, span: Span, read_as: &ReadAs<'_>, partition: Option<&PartitionKey>) -> Rewritten {
    let mut rewriter = match text.has_increments {
        true => Rewriter::of_increment(&text.blanked, span, &text.body),
        false => Rewriter::of_body(&text.blanked, span, &text.body, partition.map(PartitionKey::as_str)),
    };
    let reads = text.lineage.table_refs.iter().map(|table| (&table.name, &table.asset));
    let writes = text.lineage.writes.iter().filter_map(|write| Some((write.name.as_ref()?, &write.asset)));
    let mut seen = BTreeSet::new();
    for span in text.changes.iter().filter(|span| seen.insert(**span)) {
        rewriter.table(*span, &Relation::temp(CHANGES));
    }
    for (name, asset) in reads.chain(writes).filter(|(name, _)| seen.insert(name.span)) {
        let asset = text.resolve(asset);
        let usual = match asset {
            Asset::Lake { lake, schema, table } => Relation::in_catalog(lake.sql_name(), schema, table),
            Asset::Datatable { database, schema, table } => {
                Relation::in_catalog(&crate::executors::datatable::read_alias(database), schema, table)
            }
            Asset::Object { .. } | Asset::Volume { .. } => continue,
        };
        rewriter.table(name.span, &(read_as.special)(asset).unwrap_or(usual));
    }
    for read in text.lineage.reads.iter().filter(|read| read.name.is_none() && seen.insert(read.span)) {
        // An address in a string, as in FROM 'datatable://app/orders'.
        if let Asset::Datatable { database, schema, table } = &read.asset {
            let alias = crate::executors::datatable::read_alias(database);
            rewriter.table(read.span, &Relation::in_catalog(&alias, schema, table));
        }
    }
    for (span, address) in &text.places {
        rewriter.replace(*span, address);
    }
    rewriter.finish()
}

/// Returns where a view of `lake` finds the tables of its own lake: in the lake under `alias` itself.
pub fn own_relations<'a>(lake: &'a LakeName, alias: &'a str) -> impl Fn(&Asset) -> Option<Relation> + 'a {
    move |asset| match asset {
        Asset::Lake { lake: of, schema, table } if of == lake => Some(Relation::in_catalog(alias, schema, table)),
        _ => None,
    }
}

/// What a step's variables are set to.
pub struct StepVariables<'a> {
    /// The partition.
    pub partition: Option<&'a PartitionKey>,
    /// Its window.
    pub window: Option<Window>,
    /// Whether the target has no version yet, or is written anew.
    pub first_run: bool,
    /// The pin of the target's lake.
    pub upstream_snapshot: Option<i64>,
    /// What the step takes of the column that it goes by.
    pub increment: Option<OpenIncrement>,
}

/// The variables of steps, as far as they do not come from the configuration.
const VARIABLES: [&str; 5] = ["partition", "partition_start", "partition_end", "first_run", "upstream_snapshot"];

/// Returns whether `script` uses any variable.
pub fn uses_variables(script: &CompiledScript) -> bool {
    let body = &script.text.body;
    !body.parameters.is_empty() || body.functions.iter().any(|function| function == "in_partition")
}

/// Returns the statements that forget what an earlier step of the same session has set.
pub fn resets<'a>(vars: impl Iterator<Item = &'a String>) -> String {
    let names = VARIABLES.into_iter().map(str::to_owned).chain(vars.cloned());
    names.map(|name| format!("RESET VARIABLE {}", Ident::new(name))).collect::<Vec<_>>().join("; ")
}

/// Returns the settings that give the variables and macros that `script` uses; empty when it uses none.
pub fn settings(script: &CompiledScript, variables: &StepVariables<'_>, vars: &[(String, String)]) -> String {
    let used =
        |name: &str| script.text.body.parameters.iter().any(|parameter| parameter.name.eq_ignore_ascii_case(name));
    let calls = |name: &str| script.text.body.functions.iter().any(|function| function == name);
    let in_partition = calls("in_partition");
    let mut settings: Vec<String> = Vec::new();
    let mut set = |name: &str, value: String| settings.push(format!("SET VARIABLE {name} = {value}"));
    if let Some(partition) = variables.partition
        && (used("partition") || used("WM_PARTITION"))
    {
        set("partition", Literal::new(partition.as_str()).to_string());
    }
    if let Some(window) = variables.window {
        let bounds = [
            ("partition_start", "WM_PARTITION_START", window.start),
            ("partition_end", "WM_PARTITION_END", window.end),
        ];
        for (name, windmill, at) in bounds {
            if in_partition || used(name) || used(windmill) {
                set(name, format!("TIMESTAMPTZ '{}+00'", at.format("%Y-%m-%d %H:%M:%S%.f")));
            }
        }
    }
    if used("first_run") {
        set("first_run", variables.first_run.to_string());
    }
    if let Some(snapshot) = variables.upstream_snapshot
        && (used("upstream_snapshot") || used("WM_UPSTREAM_SNAPSHOT"))
    {
        set("upstream_snapshot", snapshot.to_string());
    }
    for (name, value) in vars {
        if used(name) {
            set(name, Literal::new(value).to_string());
        }
    }
    if let Some(increment) = &variables.increment {
        for (name, value) in increment.variables() {
            settings.push(format!("SET VARIABLE {name} = {value}"));
        }
        settings.push(increment.macro_sql());
    }
    if let Some(spec) = script.time_spec() {
        if in_partition {
            settings.push(in_partition_macro(spec, variables));
        }
        if calls("wm_partition") {
            settings
                .push(format!("CREATE OR REPLACE TEMP MACRO wm_partition(ts) AS {}", spec.sql_key_expression("ts")));
        }
    }
    settings.join("; ")
}

/// The filter on a column's window. A DATE means the local day, so in a zone it is compared with local dates; the
/// engine folds the choice by type, so that files are still skipped.
fn in_partition_macro(spec: &TimeSpec, variables: &StepVariables<'_>) -> String {
    let instants = "ts >= getvariable('partition_start') AND ts < getvariable('partition_end')";
    let local_dates = variables.partition.filter(|_| !spec.is_utc()).and_then(|key| spec.local_dates(key).ok());
    let condition = match local_dates {
        Some((first, after)) => format!(
            "CASE WHEN typeof(ts) = 'DATE' THEN ts >= DATE '{first}' AND ts < DATE '{after}' ELSE {instants} END"
        ),
        None => instants.to_owned(),
    };
    format!("CREATE OR REPLACE TEMP MACRO in_partition(ts) AS ({condition})")
}
