//! What a run did: a line per step, what failed and why, and the numbers at the end.

use std::time::Duration;

use pintail_core::plan::Step;
use pintail_core::write::ErrorClass;
use pintail_runner::duration_text;
use pintail_runner::executors::{StepFailure, StepOutcome, StepReport};
use pintail_runner::run::{RunSummary, StepState};
use pintail_store::{RunStatus, TestResult, TestStatus};
use serde_json::{Value, json};

use super::plan::step_name;
use super::table::{Align, listing};
use super::text::{count, or_dash, thousands};

/// A step with how it ended; `report` is `None` for one that never began.
pub struct EndedStep {
    /// The step's place in the plan.
    pub index: usize,
    /// How it ended.
    pub state: StepState,
    /// What it says.
    pub report: Option<Box<StepReport>>,
}

impl EndedStep {
    /// Returns the failure, when it failed for a reason of its own.
    pub fn failure(&self) -> Option<&StepFailure> {
        match self.report.as_ref().map(|report| &report.outcome) {
            Some(StepOutcome::Failed(failure)) if failure.class != ErrorClass::Cancelled => Some(failure),
            _ => None,
        }
    }

    /// Returns how long it took.
    pub fn elapsed(&self) -> Option<Duration> {
        self.report.as_ref().map(|report| report.elapsed)
    }
}

/// Returns the word for how a step ended.
pub fn state_word(state: StepState) -> &'static str {
    match state {
        StepState::Waiting => "waiting",
        StepState::Running => "running",
        StepState::Materialized => "materialized",
        StepState::Superseded => "superseded",
        StepState::Failed => "failed",
        StepState::Skipped => "skipped",
        StepState::Cancelled => "stopped",
    }
}

/// Returns the steps as a list: what each wrote, and how long it took.
pub fn steps(steps: &[Step], ended: &[EndedStep]) -> String {
    let is_partitioned = steps.iter().any(|step| step.partition.is_some());
    let mut columns = vec![("script", Align::Left)];
    if is_partitioned {
        columns.push(("partition", Align::Left));
    }
    columns.extend([
        ("result", Align::Left),
        ("rows", Align::Right),
        ("inserted", Align::Right),
        ("deleted", Align::Right),
        ("snapshot", Align::Right),
        ("time", Align::Left),
    ]);
    let row = |ended: &EndedStep| {
        let step = &steps[ended.index];
        let mut row = vec![step.name.to_string()];
        if is_partitioned {
            row.push(or_dash(step.partition.as_ref()));
        }
        row.push(state_word(ended.state).to_owned());
        row.extend(numbers(step, ended));
        row.push(or_dash(ended.elapsed().map(duration_text)));
        row
    };
    let mut in_order: Vec<&EndedStep> = ended.iter().collect();
    in_order.sort_by_key(|ended| ended.index);
    listing(&columns, in_order.into_iter().map(row).collect())
}

fn numbers(step: &Step, ended: &EndedStep) -> [String; 4] {
    match ended.report.as_ref().map(|report| &report.outcome) {
        Some(StepOutcome::Materialized { snapshot, .. }) if step.strategy == "view" => {
            ["-".into(), "-".into(), "-".into(), or_dash(*snapshot)]
        }
        Some(StepOutcome::Materialized { snapshot, deleted, inserted, rows }) => {
            [or_dash(rows.map(thousands)), thousands(*inserted), thousands(*deleted), or_dash(*snapshot)]
        }
        Some(StepOutcome::Superseded { snapshot, .. }) => ["-".into(), "-".into(), "-".into(), snapshot.to_string()],
        _ => ["-".into(), "-".into(), "-".into(), "-".into()],
    }
}

/// Returns one line for a step that ended, for output that is no terminal.
pub fn step_line(step: &Step, ended: &EndedStep) -> String {
    let took = ended.elapsed().map_or_else(String::new, |elapsed| format!(" ({})", duration_text(elapsed)));
    let name = step_name(step);
    let word = state_word(ended.state);
    match ended.report.as_ref().map(|report| &report.outcome) {
        Some(StepOutcome::Materialized { snapshot, inserted, deleted, rows }) => {
            let rows = match rows {
                _ if step.strategy == "view" => "the view".to_owned(),
                Some(rows) => count_rows(*rows),
                None => format!("{} inserted, {} deleted", thousands(*inserted), thousands(*deleted)),
            };
            let snapshot = snapshot.map_or_else(String::new, |snapshot| format!(", snapshot {snapshot}"));
            format!("{word} {name}: {rows}{snapshot}{took}")
        }
        Some(StepOutcome::Superseded { snapshot, .. }) => {
            format!("{word} {name}: a newer run wrote snapshot {snapshot}{took}")
        }
        _ => format!("{word} {name}{took}"),
    }
}

fn count_rows(rows: u64) -> String {
    count(usize::try_from(rows).unwrap_or(usize::MAX), "row")
}

/// Returns the phases of each step, longest run first in the order of the protocol.
pub fn timings(steps: &[Step], ended: &[EndedStep]) -> String {
    let mut phases: Vec<&'static str> = Vec::new();
    for (phase, _) in ended.iter().filter_map(|ended| ended.report.as_ref()).flat_map(|report| &report.phases) {
        if !phases.contains(phase) {
            phases.push(phase);
        }
    }
    let mut columns = vec![("step", Align::Left)];
    columns.extend(phases.iter().map(|phase| (*phase, Align::Right)));
    columns.push(("total", Align::Right));
    let row = |ended: &EndedStep| {
        let report = ended.report.as_ref()?;
        let mut row = vec![step_name(&steps[ended.index])];
        row.extend(phases.iter().map(|phase| {
            let took: Duration = report.phases.iter().filter(|(name, _)| name == phase).map(|(_, took)| *took).sum();
            if took.is_zero() { "-".to_owned() } else { milliseconds(took) }
        }));
        row.push(milliseconds(report.elapsed));
        Some(row)
    };
    listing(&columns, ended.iter().filter_map(row).collect())
}

fn milliseconds(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1000.0)
}

/// Returns the last line of a run.
pub fn totals(summary: &RunSummary, elapsed: Duration) -> String {
    let word = match summary.status {
        RunStatus::Succeeded => "succeeded",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "was stopped",
        RunStatus::Running | RunStatus::Crashed => "did not end",
    };
    let numbers = [
        (summary.materialized, "materialized"),
        (summary.superseded, "superseded"),
        (summary.failed, "failed"),
        (summary.skipped, "skipped"),
        (summary.cancelled, "stopped"),
        (summary.up_to_date, "up to date"),
    ];
    let numbers: Vec<String> = numbers
        .into_iter()
        .filter(|(number, _)| 0 < *number)
        .map(|(number, word)| format!("{} {word}", thousands(number as u64)))
        .collect();
    format!("run {} {word}: {} in {}", summary.run, numbers.join(", "), duration_text(elapsed))
}

/// Returns what tests of `step` found that people should know, a line each.
pub fn test_lines(step: &Step, tests: &[TestResult]) -> Vec<(TestStatus, String)> {
    let mut lines = Vec::new();
    for test in tests {
        let failures = test.failures.map_or_else(|| "rows".to_owned(), count_rows);
        let what = match test.status {
            TestStatus::Passed => continue,
            TestStatus::Warned => format!("found {failures}; it is only a warning, so the write went on"),
            TestStatus::Failed => format!("found {failures}"),
            TestStatus::Errored => "could not run".to_owned(),
        };
        lines.push((test.status, format!("{}: test `{}` {what}", step_name(step), test.name)));
    }
    lines
}

/// Returns a step's end for machines.
pub fn ended_json(step: &Step, ended: &EndedStep) -> Value {
    let mut value = super::plan::step_json(ended.index, step);
    value["state"] = json!(state_word(ended.state));
    let Some(report) = &ended.report else { return value };
    match &report.outcome {
        StepOutcome::Materialized { snapshot, deleted, inserted, rows } => {
            value["snapshot"] = json!(snapshot.map(|snapshot| snapshot.0));
            value["rows"] = json!(rows);
            value["inserted"] = json!(inserted);
            value["deleted"] = json!(deleted);
        }
        StepOutcome::Superseded { snapshot, run } => {
            value["snapshot"] = json!(snapshot.0);
            value["by_run"] = json!(run.as_str());
        }
        StepOutcome::Failed(failure) => value["error"] = failure_json(failure),
    }
    value["tests"] = report.tests.iter().map(test_json).collect();
    value["notes"] = json!(report.notes);
    value["seconds"] = json!(report.elapsed.as_secs_f64());
    value["phases"] =
        report.phases.iter().map(|(phase, took)| json!({"phase": phase, "seconds": took.as_secs_f64()})).collect();
    value
}

/// Returns a test's result for machines.
pub fn test_json(test: &TestResult) -> Value {
    json!({
        "name": test.name,
        "severity": test.severity.as_str(),
        "status": test.status.as_str(),
        "failures": test.failures,
        "nulls_ignored": test.nulls_ignored,
        "sample": test.sample_rows,
    })
}

/// Returns a failure for machines: the four things.
pub fn failure_json(failure: &StepFailure) -> Value {
    json!({
        "code": failure.code.as_str(),
        "stage": failure.stage,
        "message": failure.message,
        "span": failure.span.map(|span| json!({"start": span.start, "end": span.end})),
        "committed": failure.committed,
        "next": failure.help,
        "sample": failure.sample.as_ref().map(|sample| json!({"columns": sample.columns, "rows": sample.rows})),
    })
}

/// Returns a summary for machines.
pub fn summary_json(summary: &RunSummary, elapsed: Duration) -> Value {
    json!({
        "run": summary.run.as_str(),
        "status": summary.status.as_str(),
        "materialized": summary.materialized,
        "superseded": summary.superseded,
        "failed": summary.failed,
        "skipped": summary.skipped,
        "stopped": summary.cancelled,
        "up_to_date": summary.up_to_date,
        "seconds": elapsed.as_secs_f64(),
    })
}
