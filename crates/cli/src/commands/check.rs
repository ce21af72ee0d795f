//! `check`: compiles the project and shows everything that was found, with code, caret and help.

use std::collections::BTreeMap;

use clap::Args;
use pintail_core::diagnostic::{Code, Diagnostic, Severity};
use pintail_core::source::LineIndex;
use pintail_runner::project::CompiledProject;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::count;
use crate::terminal::Style;

/// What to check.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail check                       the whole project
  pintail check --select +reports/    the reports and what they need
  pintail check --strict --json       for a build server: warnings fail too

Exit code 3 when there are errors. `pintail explain <code>` tells more about a finding.")]
pub struct CheckArgs {
    /// Which scripts.
    #[command(flatten)]
    select: SelectArgs,
    /// Fail at warnings too
    #[arg(long)]
    strict: bool,
}

/// Runs the command.
pub fn run(args: &CheckArgs, app: &App) -> Result<Exit, Failure> {
    let project = app.compile()?;
    let (mut found, _) = app.split_diagnostics(&project, &args.select)?;
    let missing = project.project.config.ingest.missing();
    found.extend(&missing);
    let counts = Counts::of(&found);
    let fails = 0 < counts.errors || (args.strict && 0 < counts.warnings);
    if app.terminal.is_json {
        app.terminal.json(&to_json(&project, &found, &counts, !fails));
    } else {
        show(app, &project, &found, &counts);
    }
    Ok(if fails { Exit::CheckErrors } else { Exit::Ok })
}

struct Counts {
    errors: usize,
    warnings: usize,
    infos: usize,
}

impl Counts {
    fn of(found: &[&Diagnostic]) -> Self {
        let count = |severity| found.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning), infos: count(Severity::Info) }
    }
}

fn show(app: &App, project: &CompiledProject, found: &[&Diagnostic], counts: &Counts) {
    let terminal = &app.terminal;
    let in_full = |diagnostic: &&&Diagnostic| 0 < terminal.verbosity || diagnostic.severity != Severity::Info;
    app.show_diagnostics(project, found.iter().filter(in_full).copied());
    if terminal.verbosity == 0 {
        for line in info_lines(found) {
            terminal.talk(&line);
        }
    }
    let scripts = count(project.scripts.len(), "script");
    let tests = count(project.tests.len(), "test file");
    let result = match (counts.errors, counts.warnings) {
        (0, 0) => terminal.paint_data(Style::Good, "no mistakes found"),
        (0, warnings) => terminal.paint_data(Style::Warning, &count(warnings, "warning")),
        (errors, 0) => terminal.paint_data(Style::Error, &count(errors, "error")),
        (errors, warnings) => format!(
            "{}, {}",
            terminal.paint_data(Style::Error, &count(errors, "error")),
            terminal.paint_data(Style::Warning, &count(warnings, "warning"))
        ),
    };
    terminal.data(&format!("checked {scripts} and {tests}: {result}\n"));
}

/// Returns one line for each code of the infos.
fn info_lines(found: &[&Diagnostic]) -> Vec<String> {
    let mut by_code: BTreeMap<&'static str, (Code, usize)> = BTreeMap::new();
    for diagnostic in found.iter().filter(|diagnostic| diagnostic.severity == Severity::Info) {
        by_code.entry(diagnostic.code.as_str()).or_insert((diagnostic.code, 0)).1 += 1;
    }
    by_code
        .values()
        .map(|(code, number)| {
            let times = if *number == 1 { "once".to_owned() } else { format!("{number} times") };
            format!("info[{code}]: {} ({times}; `check -v` shows where)", code.info().summary)
        })
        .collect()
}

fn to_json(project: &CompiledProject, found: &[&Diagnostic], counts: &Counts, is_ok: bool) -> Value {
    json!({
        "ok": is_ok,
        "scripts": project.scripts.len(),
        "errors": counts.errors,
        "warnings": counts.warnings,
        "infos": counts.infos,
        "diagnostics": found.iter().map(|diagnostic| diagnostic_json(project, diagnostic)).collect::<Vec<_>>(),
    })
}

fn diagnostic_json(project: &CompiledProject, diagnostic: &Diagnostic) -> Value {
    let lines = project.source(&diagnostic.path).map(LineIndex::new);
    let place = |offset: usize| {
        lines
            .as_ref()
            .map(|lines| lines.line_column(offset))
            .map(|(line, column)| json!({"line": line, "column": column}))
    };
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    json!({
        "code": diagnostic.code.as_str(),
        "severity": severity,
        "path": diagnostic.path,
        "start": diagnostic.span.and_then(|span| place(span.start)),
        "end": diagnostic.span.and_then(|span| place(span.end)),
        "message": diagnostic.message,
        "help": diagnostic.help,
        "labels": diagnostic.labels.iter().map(|label| json!({
            "start": place(label.span.start),
            "end": place(label.span.end),
            "message": label.message,
        })).collect::<Vec<_>>(),
    })
}
