//! The settings that are read and checked, but that this version does not act on: each is said, nothing is silent.
//!
//! A setting that has its default value is not worth a word. When a setting gets its runtime, its line here goes.

use pintail_core::diagnostic::Code;
use pintail_core::source::Span;

use super::config::{BrokerKind, Config, RunConfig};
use super::reader::Reader;
use super::toml_tree::{Table, Value};

/// Sections that nothing reads yet, with what to do meanwhile.
const SECTIONS: [(&str, &str); 1] = [("packages", "put macros and tests into the project itself")];

/// Notes every setting of `table`, which `config` was read from, that has no effect yet.
pub(super) fn report(reader: &mut Reader<'_>, table: &Table, config: &Config, embedded: &RunConfig) {
    report_run(reader, table, &config.run, embedded);
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

/// Notes `defer` of the selected profile.
pub(super) fn report_defer(reader: &mut Reader<'_>, profile: &Table) {
    if let Some(span) = place(profile, &["defer"]) {
        note(reader, span, "`defer`", "each profile reads and writes its own lakes");
    }
}

fn report_run(reader: &mut Reader<'_>, table: &Table, run: &RunConfig, embedded: &RunConfig) {
    let settings = [
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
