//! `backfill`: makes a range of partitions of one script, each in a commit of its own.
//!
//! It plans like any run, so what is up to date is skipped: a backfill that was stopped is resumed by giving it again.

use clap::Args;
use pintail_runner::pintail::{BackfillRange, PlanRequest};
use serde_json::json;

use super::plan;
use super::run::{Shown, execute};
use crate::app::App;
use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::Lines;
use crate::render::text::{count, thousands};

/// What to make.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail backfill flights_daily --from 2013-01-01 --to 2013-02-01   January: it stops before --to
  pintail backfill flights_daily --from 2013-01 --to 2013-02         the same
  pintail backfill flights_daily --missing                           all that should exist
  pintail backfill flights_daily --failed                            those that failed last time

Each partition is a commit of its own. Stopped by a crash or by Ctrl-C, the same command goes on
where it was.")]
pub struct BackfillArgs {
    /// The partitioned script, or the asset that it writes
    script: String,
    /// The first partition; otherwise that of `start=`
    #[arg(long, value_name = "PARTITION")]
    from: Option<String>,
    /// The partition to stop before; otherwise after the last one that has closed
    #[arg(long, value_name = "PARTITION")]
    to: Option<String>,
    /// Only partitions that were never written
    #[arg(long)]
    missing: bool,
    /// Only partitions that failed last time
    #[arg(long)]
    failed: bool,
    /// What the script reads, too
    #[arg(long)]
    upstream: bool,
    /// Also make what is up to date
    #[arg(long)]
    force: bool,
    /// Show the plan and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub fn run(args: &BackfillArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let name = pintail.find_script(&args.script)?.name().to_string();
    let select = SelectArgs::of(&if args.upstream { format!("+{name}") } else { name.clone() });
    app.stop_at_errors(pintail.project(), &select)?;
    let request = PlanRequest {
        force: args.force,
        backfill: Some(BackfillRange {
            script: name.clone(),
            from: args.from.clone(),
            to: args.to.clone(),
            missing: args.missing,
            failed: args.failed,
            upstream: args.upstream,
        }),
        ..PlanRequest::default()
    };
    let (plan, seen) = pintail.plan(&request)?;
    if args.dry_run {
        plan::show(&pintail, &plan, &seen, false, app)?;
        return Ok(Exit::Ok);
    }
    if plan.steps.is_empty() {
        say_nothing_to_do(&name, plan.up_to_date, app);
        return Ok(Exit::Ok);
    }
    plan::show_healed(&seen, app);
    if !app.terminal.is_json {
        let skipped = match plan.up_to_date {
            0 => String::new(),
            number => format!(", {} up to date", thousands(number as u64)),
        };
        app.terminal.talk(&format!("{} to make{skipped}", count(plan.steps.len(), "partition")));
    }
    let is_long = 20 < plan.steps.len();
    let lines = if is_long { Lines::Sparse } else { Lines::Each };
    execute(&pintail, &plan, &seen, &Shown { timings: false, lines }, app)
}

fn say_nothing_to_do(script: &str, up_to_date: usize, app: &App) {
    if app.terminal.is_json {
        app.terminal.json_line(&json!({"event": "nothing_to_do", "up_to_date": up_to_date}));
        return;
    }
    let why = match up_to_date {
        0 => format!("no partition of `{script}` is in what was asked for"),
        1 => "1 partition is up to date".to_owned(),
        number => format!("{} partitions are up to date", thousands(number as u64)),
    };
    app.terminal.data(&format!("nothing to do: {why}\n"));
}
