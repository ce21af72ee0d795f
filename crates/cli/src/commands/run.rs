//! `run`: does the steps of the plan and says what became of each.

use clap::Args;
use pintail_core::plan::{Hint, Plan};
use pintail_runner::Pintail;
use pintail_runner::pintail::Observation;
use pintail_store::RunStatus;

use super::plan;
use crate::app::App;
use crate::args::PlanArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{Lines, Progress};
use crate::render::plan::step_name;
use crate::render::{diagnostics, findings, run};

/// What to run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail run                                    everything that is due
  pintail run --select +revenue                  one script and all that it needs
  pintail run --select orders+ --dry-run         what would be done, without doing it
  pintail run --partition 2026-06-01             one partition
  pintail run --select stale+                    every stale slice, and what reads it
  pintail run --select orders --full-refresh     write a merge or append target anew
  pintail run --atomic                           everything in one commit, or nothing

A step is one transaction: it is written, tested and recorded, or the old version stays.
A history, or a script with `if_changed`, that would change nothing ends as `unchanged`: nothing
is committed, and what was to run only because of it does not run.
Ctrl-C stops cleanly; `pintail run` goes on where it was. Exit code 1 when a step failed.")]
pub struct RunArgs {
    /// What to run.
    #[command(flatten)]
    plan: PlanArgs,
    /// Show the plan and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Show how long each phase of each step took
    #[arg(long)]
    timings: bool,
}

/// Runs the command.
pub fn run(args: &RunArgs, app: &App) -> Result<Exit, Failure> {
    let project = app.compile_checked(&args.plan.select)?;
    let pintail = app.open(project)?;
    let (plan, seen) =
        pintail.plan(&args.plan.request()?).map_err(|error| Failure::from(error).in_selection(&args.plan.select))?;
    if args.dry_run {
        plan::show(&pintail, &plan, &seen, false, app)?;
        return Ok(Exit::Ok);
    }
    if plan.steps.is_empty() {
        return Ok(say_nothing_to_do(&plan, &seen, !args.plan.select.is_empty(), app));
    }
    plan::show_healed(&seen, app);
    let shown = Shown { timings: args.timings, lines: Lines::Each };
    let exit = execute(&pintail, &plan, &seen, &shown, app)?;
    if !app.terminal.is_json {
        plan::show_hints(&plan, app);
    }
    Ok(exit)
}

fn say_nothing_to_do(plan: &Plan, seen: &Observation, is_selected: bool, app: &App) -> Exit {
    if app.terminal.is_json {
        app.terminal.json_line(&serde_json::json!({"event": "nothing_to_do", "up_to_date": plan.up_to_date}));
    } else {
        plan::show_healed(seen, app);
        app.terminal.data(&plan::nothing_to_do(plan));
        plan::show_hints(plan, app);
    }
    // Whoever names scripts wants them to run: a schedule whose scripts cannot must not look well.
    let cannot = plan.hints.iter().any(|hint| matches!(hint, Hint::LeftOut { .. }));
    if is_selected && cannot && plan.up_to_date == 0 { Exit::Usage } else { Exit::Ok }
}

/// What is shown of a run.
pub struct Shown {
    /// The phases of each step.
    pub timings: bool,
    /// Lines on the way.
    pub lines: Lines,
}

/// Does `plan`, shows what happens, and returns the exit code.
pub fn execute(pintail: &Pintail, plan: &Plan, seen: &Observation, shown: &Shown, app: &App) -> Result<Exit, Failure> {
    let mut progress = Progress::new(&app.terminal, &plan.steps, shown.lines);
    interrupt::listen(pintail.cancel(), progress.drawing())?;
    let summary = pintail.run(plan, seen, &mut |event| progress.see(event))?;
    if !app.terminal.is_json {
        show(pintail, plan, &progress, shown, app);
    }
    Ok(match summary.status {
        RunStatus::Succeeded => Exit::Ok,
        _ => Exit::Failed,
    })
}

/// Says what is left to say when the steps have ended: what they found, what failed, how it ended, what to do.
fn show(pintail: &Pintail, plan: &Plan, progress: &Progress<'_>, shown: &Shown, app: &App) {
    let terminal = &app.terminal;
    for note in findings::notes(&plan.steps, &progress.ended) {
        terminal.talk(&format!("note: {note}"));
    }
    let warnings = findings::warnings(&plan.steps, &progress.ended);
    warnings.iter().for_each(|warning| terminal.warning(warning));
    show_failures(pintail, plan, progress, app);
    if shown.timings {
        terminal.data(&format!("{}\n", run::timings(&plan.steps, &progress.ended)));
    }
    let Some((summary, elapsed)) = &progress.end else { return };
    let paint = |style, word: &str| terminal.paint_data(style, word);
    terminal.data(&format!("{}\n", run::totals(summary, *elapsed, paint)));
    if let Some(reason) = &summary.unrecorded {
        terminal.warning(&format!("the store does not know how this run ended: {reason}"));
        terminal.hint("the lake has all that was committed; the next command brings the store up to date from it");
    }
    match summary.status {
        RunStatus::Cancelled => {
            terminal.hint("what was written before stays written; the same command goes on where this one stopped");
        }
        RunStatus::Failed => terminal.hint("`pintail show last` has the errors, the failing rows and the log"),
        _ if !warnings.is_empty() => terminal.hint("`pintail show last` has the rows that the tests warn of"),
        _ => {}
    }
}

fn show_failures(pintail: &Pintail, plan: &Plan, progress: &Progress<'_>, app: &App) {
    let terminal = &app.terminal;
    let failures = findings::failures(&plan.steps, &progress.ended);
    for (step, failure) in failures.shown {
        let script = pintail.project().script(&step.name);
        let source = script.map(|script| (script.file.source.path.as_str(), script.file.source.text.as_str()));
        terminal.talk(&diagnostics::step_failure(failure, &step_name(step), source, terminal.colors_talk()));
    }
    failures.more.iter().for_each(|more| terminal.error(more));
}
