//! The settings that are read and checked, but that this version does not act on: each is said, nothing is silent.
//!
//! A setting that has its default value is not worth a word. When a setting gets its runtime, its line here goes.

use pintail_core::diagnostic::Code;
use pintail_core::source::Span;

use super::catalog::{Catalog, StoreUrl};
use super::config::{BrokerKind, Config, RunConfig};
use super::reader::Reader;
use super::toml_tree::{Table, Value};

/// Sections that nothing reads yet, with what to do meanwhile.
const SECTIONS: [(&str, &str); 3] = [
    ("datatable", "scripts cannot read or write Postgres tables yet"),
    ("object_store", "scripts cannot read or write object stores by `s3://` assets yet"),
    ("packages", "put macros and tests into the project itself"),
];

/// Notes every setting of `table`, which `config` was read from, that has no effect yet.
pub(super) fn report(reader: &mut Reader<'_>, table: &Table, config: &Config, embedded: &RunConfig) {
    report_lakes(reader, table, config);
    report_run(reader, table, &config.run, embedded);
    if let (StoreUrl::Postgres { .. }, Some(span)) = (&config.store, place(table, &["store", "url"])) {
        note(reader, span, "a store on Postgres", "write `url = \"sqlite:.pintail/store.sqlite\"` to run something");
    }
    for (section, help) in SECTIONS {
        if let Some(node) = table.get(section) {
            note(reader, node.key, &format!("`[{section}]`"), help);
        }
    }
    for (_, section) in BrokerKind::ALL {
        if let Some(node) = table.get(section) {
            let help = "nothing starts runs by itself yet: use cron, or `pintail run` by hand";
            note(reader, node.key, &format!("`[{section}]`"), help);
        }
    }
}

fn report_lakes(reader: &mut Reader<'_>, table: &Table, config: &Config) {
    for (name, lake) in &config.lakes {
        let span = place(table, &["lake", name.as_str(), "catalog"]);
        if let (Catalog::Postgres { .. }, Some(span)) = (&lake.catalog, span) {
            note(reader, span, "a catalog on Postgres", "write `catalog = \"sqlite:<path>\"` to run something");
        }
    }
}

fn report_run(reader: &mut Reader<'_>, table: &Table, run: &RunConfig, embedded: &RunConfig) {
    let settings = [
        ("keep_runs", run.keep_runs != embedded.keep_runs, "nothing expires yet"),
        ("keep_days", run.keep_days != embedded.keep_days, "nothing expires yet"),
        ("timezone", run.timezone != embedded.timezone, "schedules do not run yet; partitions have `tz=`"),
        ("worker", run.worker != embedded.worker, "choose scripts by `--select tag:…`"),
    ];
    for (key, is_changed, help) in settings {
        if let (true, Some(span)) = (is_changed, place(table, &["run", key])) {
            note(reader, span, &format!("`{key}`"), help);
        }
    }
}

fn note(reader: &mut Reader<'_>, span: Span, what: &str, help: &str) {
    reader.report(Code::NOT_YET, span, format!("{what} is checked, but this version does not act on it yet"), help);
}

/// Returns where the last key of `path` stands.
fn place(table: &Table, path: &[&str]) -> Option<Span> {
    let (key, rest) = path.split_first()?;
    let node = table.get(*key)?;
    match (&node.value, rest) {
        (_, []) => Some(node.key),
        (Value::Table(inner), rest) => place(inner, rest),
        _ => None,
    }
}
