//! What a run did: a line per step, what failed and why, and the numbers at the end.

use std::time::Duration;

use pintail_core::plan::Step;
use pintail_core::write::ErrorClass;
use pintail_runner::duration_text;
use pintail_runner::executors::{StepFailure, StepOutcome, StepReport};
use pintail_runner::run::{RunSummary, StepState};
use pintail_store::{RunStatus, TestResult, TestStatus};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::plan::step_name;
use super::table::{Align, listing};
use super::text::{count, padded, thousands};
use crate::terminal::Style;

/// A longer name does not push the others to the right.
const WIDEST_NAME: usize = 48;

/// `materialized`
const LONGEST_WORD: usize = 12;

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

    /// Returns whether it has something to say besides its rows.
    pub fn has_findings(&self) -> bool {
        let is_quiet = |report: &StepReport| {
            report.notes.is_empty() && report.tests.iter().all(|test| test.status == TestStatus::Passed)
        };
        self.failure().is_some() || self.report.as_deref().is_some_and(|report| !is_quiet(report))
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
        StepState::Unchanged => "unchanged",
        StepState::Superseded => "superseded",
        StepState::Failed => "failed",
        StepState::RolledBack => "rolled back",
        StepState::Skipped => "skipped",
        StepState::Cancelled => "stopped",
    }
}

/// Returns how the word for `state` stands out.
pub fn style_of(state: StepState) -> Style {
    match state {
        StepState::Materialized | StepState::Unchanged => Style::Good,
        StepState::Failed => Style::Error,
        StepState::Superseded | StepState::RolledBack | StepState::Skipped | StepState::Cancelled => Style::Warning,
        StepState::Waiting | StepState::Running => Style::Dim,
    }
}

/// Returns how wide the names of `steps` are, so that what follows them stands in one column.
pub fn name_width(steps: &[Step]) -> usize {
    steps.iter().map(|step| step_name(step).width()).max().unwrap_or(0).min(WIDEST_NAME)
}

/// Returns one line for a step that ended: how, what it wrote, where it can be read, how long it took.
pub fn step_line(step: &Step, ended: &EndedStep, name_width: usize, paint: impl Fn(&str) -> String) -> String {
    let took = ended.elapsed().map_or_else(String::new, |elapsed| format!("({})", duration_text(elapsed)));
    let word = state_word(ended.state);
    let gap = " ".repeat(LONGEST_WORD.saturating_sub(word.len()));
    let name = padded(&step_name(step), name_width);
    let line = format!("{}{gap}  {name}  {}{took}", paint(word), written(step, ended));
    line.trim_end().to_owned()
}

/// Returns what a step wrote; nothing when it wrote nothing.
fn written(step: &Step, ended: &EndedStep) -> String {
    match ended.report.as_ref().map(|report| &report.outcome) {
        Some(StepOutcome::Materialized { snapshot, inserted, deleted, rows }) => {
            let mut parts = match rows {
                _ if step.strategy == "view" => vec!["the view".to_owned()],
                Some(rows) => vec![count_rows(*rows)],
                None => vec![format!("{} inserted", thousands(*inserted))],
            };
            // A history deletes nothing: its versions begin and end.
            let (began, ended) = if step.strategy == "history" { ("begun", "ended") } else { ("inserted", "deleted") };
            if rows.is_some_and(|rows| rows != *inserted) && step.strategy != "view" {
                parts.push(format!("{} {began}", thousands(*inserted)));
            }
            if 0 < *deleted {
                parts.push(format!("{} {ended}", thousands(*deleted)));
            }
            parts.extend(snapshot.map(|snapshot| format!("snapshot {snapshot}")));
            format!("{} ", parts.join(", "))
        }
        Some(StepOutcome::Unchanged { snapshot, rows }) => {
            let rows = rows.map_or_else(String::new, |rows| format!("{}, ", count_rows(rows)));
            format!("{rows}snapshot {snapshot} ")
        }
        None if ended.state == StepState::Unchanged => "nothing before it has changed anything".to_owned(),
        Some(StepOutcome::Superseded { snapshot, .. }) => format!("a newer run wrote snapshot {snapshot} "),
        Some(StepOutcome::RolledBack { because }) => format!("with {because} "),
        _ => String::new(),
    }
}

/// Returns `1 row`, `2 rows`.
pub fn count_rows(rows: u64) -> String {
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
pub fn totals(summary: &RunSummary, elapsed: Duration, paint: impl Fn(Style, &str) -> String) -> String {
    let style = if summary.status == RunStatus::Succeeded { Style::Good } else { Style::Error };
    let word = match summary.status {
        RunStatus::Succeeded => "succeeded",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "was stopped",
        RunStatus::Running | RunStatus::Crashed => "did not end",
    };
    let numbers = [
        (summary.materialized, "materialized"),
        (summary.unchanged, "unchanged"),
        (summary.superseded, "superseded"),
        (summary.rolled_back, "rolled back"),
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
    format!("run {} {}: {} in {}", summary.run, paint(style, word), numbers.join(", "), duration_text(elapsed))
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
        StepOutcome::Unchanged { snapshot, rows } => {
            value["snapshot"] = json!(snapshot.0);
            value["rows"] = json!(rows);
        }
        StepOutcome::Superseded { snapshot, run } => {
            value["snapshot"] = json!(snapshot.0);
            value["by_run"] = json!(run.as_str());
        }
        StepOutcome::RolledBack { because } => value["because"] = json!(because.as_str()),
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
        "unchanged": summary.unchanged,
        "superseded": summary.superseded,
        "rolled_back": summary.rolled_back,
        "failed": summary.failed,
        "skipped": summary.skipped,
        "stopped": summary.cancelled,
        "up_to_date": summary.up_to_date,
        "unrecorded": summary.unrecorded,
        "seconds": elapsed.as_secs_f64(),
    })
}
