//! `consume`: the consumers of change feeds, as `[consumer.<name>]` in pintail.toml configures them, and the scripts with
//! `stream`.

mod list;
pub mod opening;
mod rebuild;
mod remove;
mod reread;
mod reset;
mod run;
mod scripts;
mod show;

use clap::{Args, Subcommand};
use pintail_runner::Pintail;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do with consumers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail consume run                          every consumer until nothing is left
  pintail consume run decode --follow          one of them, for as long as nobody stops it
  pintail consume list                         where each stands, and how far behind it is
  pintail consume reset decode --to earliest   reads everything again; nothing is doubled
  pintail consume replay decode --from 2026-06-01 --to 2026-06-02

A consumer's rows and its cursor land in one commit, so it may be killed at any time.")]
pub struct ConsumeArgs {
    #[command(subcommand)]
    command: ConsumeCommand,
}

#[derive(Debug, Subcommand)]
enum ConsumeCommand {
    /// Consume what has come
    Run(run::RunArgs),
    /// List the consumers, where they stand and how far behind they are
    List(list::ListArgs),
    /// Show all that is known of one consumer
    Show(show::ShowArgs),
    /// Move a cursor, also back
    Reset(reset::ResetArgs),
    /// Decode a range again, and replace all that older versions of the decoder made of its events
    Replay(reread::RereadArgs),
    /// Decode a range again, and fill in what is missing
    Backfill(reread::RereadArgs),
    /// Remove a consumer's cursor and what it holds; the tables that it wrote stay
    Remove(remove::RemoveArgs),
    /// Compare rollups with the tables that they sum up, and make anew what differs
    Rebuild(rebuild::RebuildArgs),
}

/// Runs the command.
pub fn run(args: &ConsumeArgs, app: &App) -> Result<Exit, Failure> {
    match &args.command {
        ConsumeCommand::Run(args) => run::run(args, app),
        ConsumeCommand::List(args) => list::list(args, app),
        ConsumeCommand::Show(args) => show::run(args, app),
        ConsumeCommand::Reset(args) => reset::run(args, app),
        ConsumeCommand::Replay(args) => reread::run(args, true, app),
        ConsumeCommand::Backfill(args) => reread::run(args, false, app),
        ConsumeCommand::Remove(args) => remove::run(args, app),
        ConsumeCommand::Rebuild(args) => rebuild::run(args, app),
    }
}

/// Returns whether `name` is a script with `stream`.
fn is_script(pintail: &Pintail, name: &str) -> bool {
    scripts::stream_scripts(pintail).iter().any(|script| script.name().as_str() == name)
}

fn not_for_scripts(name: &str) -> Failure {
    Failure::usage(format!("`{name}` is a script, and what it has taken is not decoded again row by row"))
        .with_hint(format!("`pintail run --select {name} --full-refresh` reads its source from the beginning"))
}
