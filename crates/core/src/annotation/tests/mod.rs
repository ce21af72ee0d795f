//! Tests of the header: what each line means, and what is said about lines that mean nothing.
//!
//! `check` takes header lines without comment markers and compares what the header declares with what was found; a
//! finding is shown with the source that its span covers, so that spans are tested too.

mod block;
mod columns;
mod looks_like;
mod materialize;
mod partitioned;
mod reference;
mod rules;
mod small_words;
mod tests_of_data;
mod triggers;
mod windmill;

use std::fmt::{Debug, Write as _};

use expect_test::Expect;

use crate::diagnostic::Severity;
use crate::source::{Language, Located, SourceFile};

use super::{Header, ParsedHeader, parse_header};

/// Parses a file of DuckDB SQL.
fn parse(text: &str) -> ParsedHeader {
    let file = SourceFile { path: "pipelines/shop/orders_daily.sql".to_owned(), text: text.to_owned() };
    parse_header(&file, Language::DuckDbSql)
}

/// Checks the header whose lines are `lines`, each put behind `-- `.
fn check(lines: &str, expected: Expect) {
    let text: String = lines.lines().map(|line| format!("-- {line}\n")).chain(["SELECT 1\n".to_owned()]).collect();
    check_file(&text, expected);
}

/// Checks the findings of several headers of one line each.
fn check_each(lines: &str, expected: Expect) {
    let mut out = String::new();
    for line in lines.lines() {
        let text = format!("-- {line}\n-- materialize ducklake://main/target\n");
        out.push_str(&found(&text, &parse(&text)));
    }
    expected.assert_eq(&out);
}

/// Checks the header of a whole file.
fn check_file(text: &str, expected: Expect) {
    let parsed = parse(text);
    expected.assert_eq(&format!("{}{}", declared(&parsed.header), found(text, &parsed)));
}

/// Prints the findings, one per line, with the text under their spans.
fn found(text: &str, parsed: &ParsedHeader) -> String {
    let mut out = String::new();
    for finding in &parsed.diagnostics {
        let severity = match finding.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let place = finding.span.map_or("the file".to_owned(), |span| format!("{:?}", &text[span.start..span.end]));
        writeln!(out, "{severity} {} at {place}: {}", finding.code, finding.message).unwrap();
        for label in &finding.labels {
            writeln!(out, "  label at {:?}: {}", &text[label.span.start..label.span.end], label.message).unwrap();
        }
        if let Some(help) = &finding.help {
            writeln!(out, "  help: {help}").unwrap();
        }
    }
    out
}

/// Prints what a header declares, one line per declaration, without spans.
fn declared(header: &Header) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &dyn Debug| writeln!(out, "{name}: {value:?}").unwrap();
    if let Some(text) = &header.description {
        line("description", text);
    }
    one(&mut line, "owner", header.owner.as_ref());
    many(&mut line, "on", &header.triggers);
    many(&mut line, "mute", &header.mutes);
    if header.trigger_mode != super::TriggerMode::Any {
        line("trigger", &header.trigger_mode);
    }
    one(&mut line, "debounce", header.debounce.as_ref());
    one(&mut line, "freshness", header.freshness.as_ref());
    one(&mut line, "retry", header.retry.as_ref());
    one(&mut line, "timeout", header.timeout.as_ref());
    many(&mut line, "tag", &header.tags);
    one(&mut line, "retention", header.retention.as_ref());
    one(&mut line, "partitioned", header.partitioned.as_ref());
    if let Some(Located { value, .. }) = &header.materialize {
        line("materialize", &(value.target.value.to_string(), &value.strategy));
        for (name, is_set) in [("if_changed", value.if_changed), ("allow_empty", value.allow_empty)] {
            if is_set {
                line(name, &is_set);
            }
        }
        for (name, text) in [("format", &value.format), ("column", &value.partition_column)] {
            if let Some(text) = text {
                line(name, text);
            }
        }
    }
    if header.on_schema_change != super::SchemaPolicy::Fail {
        line("on_schema_change", &header.on_schema_change);
    }
    for Located { value, .. } in &header.columns {
        let sources: Vec<String> = value.sources.iter().map(|(asset, column)| format!("{asset} {column}")).collect();
        line("column", &(&value.name, &value.data_type, value.not_null, &value.description, sources));
    }
    if header.contract_enforced.is_some() {
        line("contract", &"enforced");
    }
    many(&mut line, "test", &header.tests);
    many(&mut line, "hook", &header.hooks);
    many(&mut line, "measure", &header.measures);
    many(&mut line, "dimension", &header.dimensions);
    if header.macros.is_some() {
        line("macros", &true);
    }
    many(&mut line, "use", &header.uses);
    one(&mut line, "stream", header.stream.as_ref());
    if header.pipeline.is_some() {
        line("pipeline", &true);
    }
    out
}

fn one<T: Debug>(line: &mut impl FnMut(&str, &dyn Debug), name: &str, value: Option<&Located<T>>) {
    if let Some(Located { value, .. }) = value {
        line(name, value);
    }
}

fn many<T: Debug>(line: &mut impl FnMut(&str, &dyn Debug), name: &str, values: &[Located<T>]) {
    for Located { value, .. } in values {
        line(name, value);
    }
}
