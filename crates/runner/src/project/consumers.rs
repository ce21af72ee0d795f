//! Consumers and scripts with `stream` held against what the project makes: what can be known before a lake is opened.
//!
//! A source that nothing here makes may be another program's, so it is only worth a word when its name is almost that of
//! something that is made here. Columns are held against those of raw events, and those of an enforced contract.

use pintail_core::asset::Asset;
use pintail_core::diagnostic::{Code, Diagnostic, nearest};
use pintail_core::source::Span;
use pintail_core::stream::RAW_EVENT_COLUMNS;

use super::CompiledScript;
use super::streams::ingested;
use crate::workspace::{CONFIG_FILE, Config, ConsumerConfig};

/// Returns what is wrong.
pub(super) fn check(config: &Config, scripts: &[CompiledScript]) -> Vec<Diagnostic> {
    let mut made: Vec<Asset> = scripts.iter().filter_map(|script| script.target.clone()).collect();
    made.push(ingested(config));
    let streams = scripts.iter().filter_map(|script| {
        let stream = script.header.stream.as_ref()?;
        not_made(&stream.value.asset, &script.file.source.path, stream.span, &made)
    });
    let mut found: Vec<Diagnostic> = streams.collect();
    for consumer in config.consumers.values() {
        found.extend(not_made(&consumer.asset(), CONFIG_FILE, consumer.places.source, &made));
        found.extend(unknown_columns(consumer, config, scripts));
    }
    found
}

/// Says when nobody makes `source` and something with almost its name is made.
fn not_made(source: &Asset, path: &str, span: Span, made: &[Asset]) -> Option<Diagnostic> {
    if made.contains(source) {
        return None;
    }
    let names: Vec<String> = made.iter().filter(|asset| asset.lake() == source.lake()).map(Asset::to_string).collect();
    let source = source.to_string();
    let near = nearest(&source, names.iter().map(String::as_str))?;
    let message = format!("no script and no `[ingest]` of this project makes `{source}`");
    Some(Diagnostic::new(Code::SOURCE_NOT_MADE, path, span, message).with_help(format!("did you mean `{near}`?")))
}

fn unknown_columns(consumer: &ConsumerConfig, config: &Config, scripts: &[CompiledScript]) -> Vec<Diagnostic> {
    let Some(columns) = known_columns(&consumer.asset(), config, scripts) else { return Vec::new() };
    let named = [
        ("by", consumer.by.as_deref(), consumer.places.by),
        ("time_column", Some(consumer.time_column.as_str()), consumer.places.time_column),
    ];
    let unknown = |(key, name, span): (&str, Option<&str>, Option<Span>)| {
        let (name, span) = (name?, span?);
        if columns.iter().any(|column| column.eq_ignore_ascii_case(name)) {
            return None;
        }
        let message = format!("`{key}` names the column `{name}`, which `{}` does not have", consumer.asset());
        let help = match nearest(name, columns.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", columns.join(", ")),
        };
        Some(Diagnostic::new(Code::CONSUMER_COLUMN, CONFIG_FILE, span, message).with_help(help))
    };
    named.into_iter().filter_map(unknown).collect()
}

/// Returns the columns of `asset` where the project fixes them.
fn known_columns(asset: &Asset, config: &Config, scripts: &[CompiledScript]) -> Option<Vec<String>> {
    match scripts.iter().find(|script| script.target.as_ref() == Some(asset)) {
        Some(script) if script.header.contract_enforced.is_some() => {
            Some(script.header.columns.iter().map(|column| column.value.name.clone()).collect())
        }
        Some(_) => None,
        None => (*asset == ingested(config)).then(|| RAW_EVENT_COLUMNS.map(str::to_owned).into()),
    }
}
