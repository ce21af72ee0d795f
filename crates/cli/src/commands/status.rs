//! `status`: the state of every slice, and why; nothing is changed.

use clap::Args;
use pintail_core::plan::State;
use pintail_runner::pintail::ScriptStatus;

use super::plan;
use crate::app::App;
use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::status;
use crate::render::text::count;

/// What to show.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail status                           every asset, with how many slices are in which state
  pintail status orders_daily --partitions which partitions, as ranges
  pintail status --select stale            only what is stale
  pintail run --select stale+              makes it fresh, and what reads it

States: fresh; stale (the script or an input is newer), missing (expected, never written), failed (last
time), partial (written while its period was open), unknown (there, but not written by Pintail).")]
pub struct StatusArgs {
    /// Scripts, in the words of --select
    #[arg(value_name = "SELECTION", conflicts_with = "select")]
    scripts: Vec<String>,
    /// Which scripts.
    #[command(flatten)]
    select: SelectArgs,
    /// List the partitions, neighbours of one state as one range
    #[arg(long)]
    partitions: bool,
}

/// Runs the command.
pub fn run(args: &StatusArgs, app: &App) -> Result<Exit, Failure> {
    let select = match args.scripts.is_empty() {
        true => args.select.clone(),
        false => args.select.with(&args.scripts),
    };
    let pintail = app.open_for_question()?;
    let (statuses, seen) = pintail
        .status(select.select().as_deref(), select.exclude().as_deref())
        .map_err(|error| Failure::from(error).in_selection(&select))?;
    if app.terminal.is_json {
        app.terminal.json(&status::to_json(&statuses));
        return Ok(Exit::Ok);
    }
    plan::show_healed(&seen, app);
    if statuses.is_empty() {
        app.terminal.data("no scripts\n");
        return Ok(Exit::Ok);
    }
    let table = if args.partitions { status::partitions(&statuses) } else { status::groups(&statuses) };
    app.terminal.data(&table);
    app.terminal.talk(&format!("({}{})", count(statuses.len(), "script"), totals(&statuses)));
    Ok(Exit::Ok)
}

/// Returns how many slices are in which state, worst first.
fn totals(statuses: &[ScriptStatus]) -> String {
    let ranges = || statuses.iter().flat_map(|status| &status.ranges);
    let number = |state: State| ranges().filter(|range| range.state == state).map(|range| range.count).sum::<u64>();
    let parts = State::ALL.iter().filter_map(|(state, word)| {
        let number = number(*state);
        (0 < number).then(|| format!(", {} {word}", crate::render::text::thousands(number)))
    });
    parts.collect()
}
