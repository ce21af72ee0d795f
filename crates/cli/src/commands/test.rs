//! `test`: the data tests on what is committed, now or at a snapshot, without writing.

use clap::Args;
use pintail_core::annotation::TestSeverity;
use pintail_core::id::SnapshotId;
use pintail_runner::pintail::{TestReport, TestedScript};
use pintail_store::TestStatus;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::diagnostics::sample_rows;
use crate::render::text::{count, thousands};
use crate::terminal::{Style, Terminal};

/// Which tests.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail test                      every test on what is live
  pintail test --select orders      the tests of one script
  pintail test --at 7               as it was at snapshot 7

A test is a query that must return no rows. In a run, the tests of a script run before its result is
published; here they run on whole tables that are. Exit code 1 when one fails that is no warning.")]
pub struct TestArgs {
    /// Which scripts.
    #[command(flatten)]
    select: SelectArgs,
    /// Test the default lake as of this snapshot
    #[arg(long, value_name = "SNAPSHOT")]
    at: Option<i64>,
}

/// Runs the command.
pub fn run(args: &TestArgs, app: &App) -> Result<Exit, Failure> {
    let project = app.compile_checked(&args.select)?;
    let pintail = app.open(project)?;
    interrupt::listen(pintail.cancel(), None)?;
    let (select, exclude) = (args.select.select(), args.select.exclude());
    let tested = pintail
        .test(select.as_deref(), exclude.as_deref(), args.at.map(SnapshotId))
        .map_err(|error| Failure::from(error).in_selection(&args.select))?;
    let is_bad = |test: &&TestReport| {
        test.status == TestStatus::Failed
            || (test.status == TestStatus::Errored && test.severity == TestSeverity::Error)
    };
    let failed = tested.iter().flat_map(|script| &script.tests).filter(is_bad).count();
    if app.terminal.is_json {
        app.terminal.json(&json!({
            "ok": failed == 0,
            "scripts": tested.iter().map(to_json).collect::<Vec<_>>(),
        }));
    } else {
        show(&tested, &app.terminal);
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
}

fn show(tested: &[TestedScript], terminal: &Terminal) {
    for script in tested.iter().filter(|script| script.skipped.is_some() || !script.tests.is_empty()) {
        terminal.data(&format!("{}\n", script.script));
        if let Some(reason) = &script.skipped {
            terminal.data(&format!("  not tested: {reason}\n"));
        }
        for test in &script.tests {
            terminal.data(&format!("  {}\n", test_line(test, terminal)));
            if !test.sample.rows.is_empty() {
                terminal.data(&format!("{}\n", sample_rows(&test.sample)));
            }
        }
    }
    let of = |status| tested.iter().flat_map(|script| &script.tests).filter(|test| test.status == status).count();
    let numbers = [
        (TestStatus::Passed, "passed"),
        (TestStatus::Failed, "failed"),
        (TestStatus::Warned, "warned"),
        (TestStatus::Errored, "could not run"),
    ];
    let numbers: Vec<String> = numbers
        .into_iter()
        .map(|(status, word)| (of(status), word))
        .filter(|(number, _)| 0 < *number)
        .map(|(number, word)| format!("{} {word}", thousands(number as u64)))
        .collect();
    let total = if numbers.is_empty() { "no tests".to_owned() } else { numbers.join(", ") };
    terminal.data(&format!("{total}\n"));
}

fn test_line(test: &TestReport, terminal: &Terminal) -> String {
    let rows = test.failures.map(|rows| count(usize::try_from(rows).unwrap_or(usize::MAX), "row"));
    let (style, word) = match test.status {
        TestStatus::Passed => (Style::Good, "ok"),
        TestStatus::Failed => (Style::Error, "failed"),
        TestStatus::Warned => (Style::Warning, "warned"),
        TestStatus::Errored => (Style::Error, "could not run"),
    };
    let mut line = format!("{} {}", terminal.paint_data(style, word), test.name);
    if test.status != TestStatus::Passed
        && let Some(rows) = rows
    {
        line.push_str(&format!(": {rows}"));
    }
    if let Some(ignored) = test.ignored.filter(|ignored| 0 < *ignored) {
        line.push_str(&format!(" ({} NULL ignored)", thousands(ignored)));
    }
    if let Some(error) = &test.error {
        line.push_str(&format!(": {error}"));
    }
    line
}

fn to_json(script: &TestedScript) -> Value {
    let test = |test: &TestReport| {
        json!({
            "name": test.name,
            "severity": match test.severity { TestSeverity::Warn => "warn", TestSeverity::Error => "error" },
            "status": test.status.as_str(),
            "failures": test.failures,
            "nulls_ignored": test.ignored,
            "sample": {"columns": test.sample.columns, "rows": test.sample.rows},
            "error": test.error,
        })
    };
    json!({
        "script": script.script.as_str(),
        "asset": script.asset.to_string(),
        "skipped": script.skipped,
        "tests": script.tests.iter().map(test).collect::<Vec<_>>(),
    })
}
