//! A run: its steps with their attempts, phases, tests and errors, what was sent, and what was said.

use pintail_runner::pintail::RunInfo;
use pintail_runner::{Pintail, RunnerError, duration_text};
use pintail_store::{LogLine, StepDetail, TestResult, TestStatus};
use serde_json::{Value, json};

use super::super::history::{run_json, run_time};
use crate::app::App;
use crate::failure::Failure;
use crate::render::run::test_json;
use crate::render::table::{Align, listing};
use crate::render::text::{count, moment, or_dash, rfc3339, thousands};

/// How many failing rows are shown; all that were kept are in `--json`.
const SAMPLE_ROWS: usize = 10;

/// Shows a run.
pub fn show(pintail: &Pintail, detail: &RunInfo, with_sql: bool, app: &App) -> Result<(), Failure> {
    let log = pintail.block_on(pintail.store().run_log(&detail.run.id)).map_err(RunnerError::from)?;
    if app.terminal.is_json {
        app.terminal.json(&to_json(detail, &log, with_sql));
        return Ok(());
    }
    let terminal = &app.terminal;
    terminal.data(&head(detail));
    terminal.data(&format!("\n{}", steps(detail)));
    for step in &detail.steps {
        let text = step_text(step);
        if !text.is_empty() {
            terminal.data(&format!("\n{text}"));
        }
    }
    if with_sql {
        for step in &detail.steps {
            terminal.data(&statements(step));
        }
    }
    if !log.is_empty() {
        terminal.data("\nlog\n");
        for line in &log {
            terminal.data(&format!("  {} {} {}\n", moment(line.at), line.level, line.text));
        }
    }
    Ok(())
}

fn head(detail: &RunInfo) -> String {
    let run = &detail.run;
    let mut text = format!("run {} {}\n", run.id, run.status);
    let mut line = |label: &str, value: String| text.push_str(&format!("  {label:9} {value}\n"));
    line("command", run.command.iter().skip(1).cloned().collect::<Vec<_>>().join(" "));
    line("started", format!("{} UTC", moment(run.started)));
    line("time", run_time(run));
    if !run.pins.is_empty() {
        let pins: Vec<String> = run.pins.iter().map(|(lake, snapshot)| format!("{lake} at {snapshot}")).collect();
        line("reads", pins.join(", "));
    }
    if let Some(error) = &run.error {
        line("end", error.clone());
    }
    text
}

fn steps(detail: &RunInfo) -> String {
    let columns = [
        ("script", Align::Left),
        ("partition", Align::Left),
        ("result", Align::Left),
        ("rows", Align::Right),
        ("snapshot", Align::Right),
        ("attempts", Align::Right),
        ("why", Align::Left),
        ("time", Align::Left),
    ];
    let row = |detail: &StepDetail| {
        let step = &detail.step;
        let took = step.started.zip(step.finished).and_then(|(from, to)| (to - from).to_std().ok());
        vec![
            step.script.to_string(),
            or_dash(step.partition.as_ref()),
            step.status.to_string().replace('_', " "),
            or_dash(step.rows.map(thousands)),
            or_dash(step.snapshot),
            detail.attempts.len().to_string(),
            step.reason.clone(),
            or_dash(took.map(duration_text)),
        ]
    };
    listing(&columns, detail.steps.iter().map(row).collect())
}

fn step_name(step: &StepDetail) -> String {
    match &step.step.partition {
        Some(partition) => format!("{} {partition}", step.step.script),
        None => step.step.script.to_string(),
    }
}

/// Returns what a step has to tell: its error, the attempts that failed before it went well, its tests, its phases.
fn step_text(detail: &StepDetail) -> String {
    let mut text = String::new();
    if let Some(error) = &detail.step.error {
        text.push_str(&format!("  failed to {}: {}\n", error.stage, indented(&error.message)));
        if !error.committed.is_empty() {
            text.push_str(&format!("  committed now: {}\n", error.committed));
        }
        if let Some(next) = &error.next {
            text.push_str(&format!("  next: {next}\n"));
        }
    }
    let is_last = |number: u32| number as usize == detail.attempts.len();
    for attempt in &detail.attempts {
        let Some(error) = attempt.error.as_ref().filter(|_| !is_last(attempt.number)) else { continue };
        text.push_str(&format!("  attempt {} {}: {}\n", attempt.number, attempt.status, indented(error)));
    }
    detail.tests.iter().for_each(|test| text.push_str(&test_text(test)));
    if !detail.step.timings.is_empty() {
        let phase =
            |timing: &pintail_store::PhaseTiming| format!("{} {:.1} ms", timing.phase, timing.micros as f64 / 1000.0);
        let phases: Vec<String> = detail.step.timings.iter().map(phase).collect();
        text.push_str(&format!("  phases: {}\n", phases.join(", ")));
    }
    if text.is_empty() { text } else { format!("{}\n{text}", step_name(detail)) }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

fn test_text(test: &TestResult) -> String {
    let failures = test.failures.filter(|_| test.status != TestStatus::Passed);
    let rows = failures
        .map_or_else(String::new, |rows| format!(": {}", count(usize::try_from(rows).unwrap_or(usize::MAX), "row")));
    let ignored = test.nulls_ignored.filter(|nulls| 0 < *nulls);
    let ignored = ignored.map_or_else(String::new, |nulls| format!(" ({} NULL ignored)", thousands(nulls)));
    let mut text = format!("  test {} {}{rows}{ignored}\n", test.name, test.status);
    for row in test.sample_rows.iter().take(SAMPLE_ROWS) {
        text.push_str(&format!("    {row}\n"));
    }
    if SAMPLE_ROWS < test.sample_rows.len() {
        text.push_str(&format!("    … {} more in `--json`\n", test.sample_rows.len() - SAMPLE_ROWS));
    }
    text
}

/// Returns what the last attempt of a step sent.
fn statements(detail: &StepDetail) -> String {
    let Some(attempt) = detail.attempts.last() else { return String::new() };
    let mut text = format!("\n-- {}, attempt {}\n", step_name(detail), attempt.number);
    for statement in &attempt.statements {
        text.push_str(&format!("\n-- {}\n{};\n", statement.purpose, statement.sql.trim_end()));
    }
    text
}

fn to_json(detail: &RunInfo, log: &[LogLine], with_sql: bool) -> Value {
    let mut value = run_json(&detail.run);
    value["steps"] = detail.steps.iter().map(|step| step_json(step, with_sql)).collect();
    value["log"] = log
        .iter()
        .map(|line| json!({"at": rfc3339(line.at), "level": line.level.as_str(), "text": line.text}))
        .collect();
    value
}

fn step_json(detail: &StepDetail, with_sql: bool) -> Value {
    let step = &detail.step;
    let attempt = |attempt: &pintail_store::Attempt| {
        let mut value = json!({
            "number": attempt.number,
            "status": attempt.status.as_str(),
            "started": rfc3339(attempt.started),
            "finished": attempt.finished.map(rfc3339),
            "error": attempt.error,
        });
        if with_sql {
            value["statements"] = attempt
                .statements
                .iter()
                .map(|statement| json!({"purpose": statement.purpose, "sql": statement.sql}))
                .collect();
        }
        value
    };
    let error = step.error.as_ref().map(|error| {
        json!({
            "stage": error.stage,
            "message": error.message,
            "committed": error.committed,
            "next": error.next,
        })
    });
    json!({
        "script": step.script.as_str(),
        "asset": step.asset.as_ref().map(ToString::to_string),
        "partition": step.partition.as_ref().map(ToString::to_string),
        "status": step.status.as_str(),
        "reason": step.reason,
        "rows": step.rows,
        "snapshot": step.snapshot.map(|snapshot| snapshot.0),
        "started": step.started.map(rfc3339),
        "finished": step.finished.map(rfc3339),
        "error": error,
        "attempts": detail.attempts.iter().map(attempt).collect::<Vec<_>>(),
        "tests": detail.tests.iter().map(test_json).collect::<Vec<_>>(),
        "phases": step.timings.iter().map(|timing| json!({
            "phase": timing.phase,
            "seconds": timing.micros as f64 / 1_000_000.0,
        })).collect::<Vec<_>>(),
    })
}
