//! `plan`: the steps that a run would do, in order, each with its reason; with `--sql`, what each would send.

use clap::Args;
use pintail_core::plan::Plan;
use pintail_core::sql::Statement;
use pintail_runner::Pintail;
use pintail_runner::pintail::Observation;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::PlanArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::plan::{self, hint_json, step_json, step_name};
use crate::render::text::count;

/// What to plan.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail plan                                   what `pintail run` would do
  pintail plan --select +revenue                 one script and all that it needs
  pintail plan --partition 2026-06-01 --sql      one partition, with every statement")]
pub struct PlanCommand {
    /// What to plan.
    #[command(flatten)]
    plan: PlanArgs,
    /// Show the statements of each step
    #[arg(long)]
    sql: bool,
}

/// Runs the command.
pub fn run(args: &PlanCommand, app: &App) -> Result<Exit, Failure> {
    let project = app.compile_checked(&args.plan.select)?;
    let pintail = app.open(project)?;
    let (plan, seen) =
        pintail.plan(&args.plan.request()?).map_err(|error| Failure::from(error).in_selection(&args.plan.select))?;
    show(&pintail, &plan, &seen, args.sql, app)?;
    Ok(Exit::Ok)
}

/// Shows a plan; a dry run shows the same.
pub fn show(pintail: &Pintail, plan: &Plan, seen: &Observation, with_sql: bool, app: &App) -> Result<(), Failure> {
    let statements = if with_sql { pintail.explain(plan, seen, None)? } else { Vec::new() };
    if app.terminal.is_json {
        let text = to_json(plan, &statements, pintail);
        app.terminal.json(&text);
        return Ok(());
    }
    show_healed(seen, app);
    if plan.steps.is_empty() {
        app.terminal.data(&nothing_to_do(plan));
    } else {
        app.terminal.data(&format!("{}\n{}\n", plan::steps(plan), plan::totals(plan)));
    }
    for (index, statements) in &statements {
        let step = &plan.steps[*index];
        let title = format!("step {}: {}", index + 1, step_name(step));
        app.terminal.data(&format!("\n{}", pintail.redactor().redact(&plan::statements(&title, statements))));
    }
    show_hints(plan, app);
    Ok(())
}

/// Says what a crash had left behind and was mended.
pub fn show_healed(seen: &Observation, app: &App) {
    if 0 < seen.crashed {
        app.terminal.warning(&format!("{} died before its end; it is marked as crashed", count(seen.crashed, "run")));
    }
    if 0 < seen.healed {
        let commits = count(usize::try_from(seen.healed).unwrap_or(usize::MAX), "commit");
        app.terminal.talk(&format!("note: {commits} of the lake had not been recorded; recorded now"));
    }
}

/// Returns the sentence for a plan without steps.
pub fn nothing_to_do(plan: &Plan) -> String {
    match plan.up_to_date {
        0 => "nothing to do: the selection has no script that can run\n".to_owned(),
        1 => "nothing to do: 1 step is up to date\n".to_owned(),
        number => format!("nothing to do: {number} steps are up to date\n"),
    }
}

/// Shows which reads go to another profile, and what else there would be to do.
pub fn show_hints(plan: &Plan, app: &App) {
    for line in plan::deferred(plan) {
        app.terminal.talk(&format!("note: {line}"));
    }
    for hint in &plan.hints {
        app.terminal.hint(&plan::hint(hint));
    }
}

fn to_json(plan: &Plan, explained: &[(usize, Vec<Statement>)], pintail: &Pintail) -> Value {
    let mut steps: Vec<Value> = plan.steps.iter().enumerate().map(|(index, step)| step_json(index, step)).collect();
    for (index, statements) in explained {
        steps[*index]["statements"] = statements
            .iter()
            .map(|statement| json!({"purpose": statement.purpose, "sql": pintail.redactor().redact(&statement.sql)}))
            .collect();
    }
    json!({
        "steps": steps,
        "up_to_date": plan.up_to_date,
        "pins": plan.pins.iter().map(|(lake, snapshot)| (lake.to_string(), json!(snapshot.0)))
            .collect::<serde_json::Map<_, _>>(),
        "deferred": plan.deferred.iter().map(|read| json!({
            "script": read.script.as_str(),
            "asset": read.asset.to_string(),
            "profile": read.profile,
        })).collect::<Vec<_>>(),
        "hints": plan.hints.iter().map(hint_json).collect::<Vec<_>>(),
    })
}
