//! `rollback`: shows what bringing an older version back would change, asks, and writes it as a new version.

use clap::Args;
use pintail_runner::Pintail;
use pintail_runner::pintail::{Rollback, RollbackRequest};
use serde_json::json;

use super::run::{Shown, execute};
use crate::agreement::{Question, is_agreed};
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Lines;
use crate::render::diff;
use crate::render::text::count;

/// What to bring back.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail rollback orders --to 7 --dry-run              what would change
  pintail rollback orders --to 7                        asks, then writes
  pintail rollback orders_daily --partition 2026-06-01 --to 7 --yes
  pintail rollback orders --to 2026-06-01 --yes --run-downstream

The old rows become a new version: nothing of the history goes. They are written like any version,
under the lease, and a run that came between stops the rollback. What reads the table is stale
afterwards. The script is due again when its text or its inputs change.")]
pub struct RollbackArgs {
    /// The asset, a table of the default lake, or a script
    asset: String,
    /// The version to bring back: a snapshot, a moment in UTC, or a run
    #[arg(long, value_name = "VERSION")]
    to: String,
    /// One partition; otherwise the whole table
    #[arg(short, long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Show what would change and do nothing
    #[arg(long, conflicts_with_all = ["yes", "run_downstream"])]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Then run what reads the table
    #[arg(long)]
    run_downstream: bool,
    /// Show at most so many rows of each kind of change
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    limit: u64,
}

/// Runs the command.
pub fn run(args: &RollbackArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let request = RollbackRequest {
        asset: args.asset.clone(),
        to: args.to.clone(),
        partition: args.partition.clone(),
        limit: args.limit,
    };
    let rollback = pintail.plan_rollback(&request)?;
    show(&rollback, args.dry_run, app);
    if args.dry_run || rollback.is_nothing() {
        return Ok(Exit::Ok);
    }
    if !args.yes && !ask(&rollback, app)? {
        app.terminal.talk("nothing was changed");
        return Ok(Exit::Failed);
    }
    let shown = Shown { timings: false, lines: Lines::Each };
    let exit = execute(&pintail, &rollback.plan, &rollback.seen, &shown, app)?;
    if exit != Exit::Ok || rollback.downstream.is_empty() {
        return Ok(exit);
    }
    if args.run_downstream {
        return run_downstream(&pintail, &rollback, app);
    }
    offer_downstream(&pintail, &rollback, app)?;
    Ok(exit)
}

fn show(rollback: &Rollback, is_dry: bool, app: &App) {
    if app.terminal.is_json {
        // With --json a rollback that is done tells the events of its run; the preview is the first of them.
        let value = json!({
            "event": "preview",
            "asset": rollback.asset.to_string(),
            "to": rollback.to.0,
            "diff": rollback.diff.as_ref().map(diff::asset_json),
            "downstream": rollback.downstream,
        });
        if is_dry {
            app.terminal.json(&value)
        } else {
            app.terminal.json_line(&value)
        }
        return;
    }
    match &rollback.diff {
        Some(_) if rollback.is_nothing() => {
            let partition = rollback.plan.steps.first().and_then(|step| step.partition.as_ref());
            let partition = partition.map_or_else(String::new, |key| format!(" [{key}]"));
            let (asset, to) = (&rollback.asset, rollback.to);
            app.terminal.data(&format!("nothing to do: {asset}{partition} is as it was at snapshot {to}\n"));
        }
        Some(found) => app.terminal.data(&diff::of_asset(found)),
        None => app
            .terminal
            .data(&format!("{} is gone; as it was at snapshot {} it is made again\n", rollback.asset, rollback.to)),
    }
}

fn ask(rollback: &Rollback, app: &App) -> Result<bool, Failure> {
    let question = Question {
        what: "a rollback",
        question: &format!("roll {} back to snapshot {}?", rollback.asset, rollback.to),
        otherwise: "`--yes` goes on without asking, `--dry-run` only shows what would change",
    };
    is_agreed(&question, app)
}

fn offer_downstream(pintail: &Pintail, rollback: &Rollback, app: &App) -> Result<(), Failure> {
    if app.terminal.is_json {
        return Ok(());
    }
    let readers = count(rollback.downstream.len(), "script");
    app.terminal.talk(&format!("note: {readers} downstream: {}", rollback.downstream.join(", ")));
    let Some(request) = pintail.downstream_request(&rollback.asset) else { return Ok(()) };
    let (plan, _) = pintail.plan(&request)?;
    if plan.steps.is_empty() {
        say_nothing_downstream(app);
        return Ok(());
    }
    let writer = rollback.plan.steps.first().map_or_else(String::new, |step| step.name.to_string());
    app.terminal.hint(&format!("`pintail run --select {writer}+ --exclude {writer}` brings them up to date"));
    Ok(())
}

/// A view shows the older rows at once; it is never out of date by itself.
fn say_nothing_downstream(app: &App) {
    if !app.terminal.is_json {
        app.terminal.talk("note: nothing downstream has to be written");
    }
}

fn run_downstream(pintail: &Pintail, rollback: &Rollback, app: &App) -> Result<Exit, Failure> {
    let Some(request) = pintail.downstream_request(&rollback.asset) else { return Ok(Exit::Ok) };
    let (plan, seen) = pintail.plan(&request)?;
    if plan.steps.is_empty() {
        say_nothing_downstream(app);
        return Ok(Exit::Ok);
    }
    execute(pintail, &plan, &seen, &Shown { timings: false, lines: Lines::Each }, app)
}
