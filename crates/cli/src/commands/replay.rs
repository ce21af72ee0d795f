//! `replay`: computes a past run again and says whether it gives the same.

use clap::Args;
use pintail_runner::pintail::{ReplayOutcome, ReplayRequest, Replayed, ReplayedStep};
use serde_json::{Value, json};

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::run::{count_rows, failure_json};
use crate::render::{diagnostics, diff};
use crate::terminal::Style;

/// What to replay.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail replay last                              the newest run: `pintail history` lists them
  pintail replay 0198c1a2 --step orders            the steps of one script
  pintail replay 0198c1a2 --into audit             keeps the results as tables of the schema `audit`

Each step is computed from the text that its script had, at the snapshots that it read, and compared
with what it wrote. Exit code 1 when a step gives something else, or cannot be computed.")]
pub struct ReplayArgs {
    /// The run: its id, the beginning of it, or `last`
    run: String,
    /// Only the steps of this script
    #[arg(long, value_name = "SCRIPT")]
    step: Option<String>,
    /// Write the results as new tables of this schema
    #[arg(long, value_name = "SCHEMA")]
    into: Option<String>,
    /// Show at most so many rows of each kind of difference
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    limit: u64,
}

/// Runs the command.
pub fn run(args: &ReplayArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    interrupt::listen(pintail.cancel(), None)?;
    let replayed = pintail.replay(&ReplayRequest {
        run: args.run.clone(),
        step: args.step.clone(),
        into: args.into.clone(),
        limit: args.limit,
    })?;
    match app.terminal.is_json {
        true => app.terminal.json(&to_json(&replayed)),
        false => replayed.steps.iter().for_each(|step| show(step, app)),
    }
    if !app.terminal.is_json && replayed.is_proven() {
        app.terminal.data(&format!("run {} is reproduced\n", replayed.run));
    }
    Ok(if replayed.is_proven() { Exit::Ok } else { Exit::Failed })
}

fn name(step: &ReplayedStep) -> String {
    match &step.partition {
        Some(partition) => format!("{} {partition}", step.script),
        None => step.script.to_string(),
    }
}

fn show(step: &ReplayedStep, app: &App) {
    let terminal = &app.terminal;
    let name = name(step);
    let paint = |style, word: &str| terminal.paint_data(style, word);
    match &step.outcome {
        ReplayOutcome::Equal { rows } => {
            let word = paint(Style::Good, "equal");
            terminal.data(&format!("{word}      {name}  {}, snapshot {}\n", count_rows(*rows), step.snapshot));
        }
        ReplayOutcome::Skipped(reason) => {
            terminal.data(&format!("{}    {name}  {reason}\n", paint(Style::Dim, "skipped")));
        }
        ReplayOutcome::Different { shape, rows } => {
            let word = paint(Style::Error, "different");
            terminal.data(&format!("{word}  {name}  from snapshot {} to the replay:\n", step.snapshot));
            for change in shape {
                terminal.data(&format!("  column {change}\n"));
            }
            terminal.data(&diff::rows(rows));
            step.hints.iter().for_each(|hint| terminal.hint(hint));
        }
        ReplayOutcome::Failed(failure) => {
            terminal.data(&format!("{}     {name}\n", paint(Style::Error, "failed")));
            terminal.talk(&diagnostics::question_failure(failure, None, terminal.colors_talk()));
        }
    }
    if let Some(table) = &step.table {
        terminal.data(&format!("  the result is in {table}\n"));
    }
}

fn to_json(replayed: &Replayed) -> Value {
    json!({
        "run": replayed.run.as_str(),
        "is_proven": replayed.is_proven(),
        "steps": replayed.steps.iter().map(step_json).collect::<Vec<_>>(),
    })
}

fn step_json(step: &ReplayedStep) -> Value {
    let mut value = json!({
        "script": step.script.as_str(),
        "asset": step.asset.to_string(),
        "partition": step.partition.as_ref().map(ToString::to_string),
        "snapshot": step.snapshot.0,
        "hints": step.hints,
        "table": step.table,
    });
    match &step.outcome {
        ReplayOutcome::Equal { rows } => {
            value["outcome"] = json!("equal");
            value["row_count"] = json!(rows);
        }
        ReplayOutcome::Skipped(reason) => {
            value["outcome"] = json!("skipped");
            value["reason"] = json!(reason);
        }
        ReplayOutcome::Different { shape, rows } => {
            value["outcome"] = json!("different");
            value["columns"] = json!(shape.iter().map(ToString::to_string).collect::<Vec<_>>());
            value["rows"] = diff::rows_json(rows);
        }
        ReplayOutcome::Failed(failure) => {
            value["outcome"] = json!("failed");
            value["error"] = failure_json(failure);
        }
    }
    value
}
