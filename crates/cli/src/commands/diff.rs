//! `diff`: what changed between two versions of an asset.

use clap::Args;
use pintail_runner::pintail::DiffRequest;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::diff;

/// What to compare.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail diff orders --from 7                        since snapshot 7: `pintail history orders`
  pintail diff orders --from 2026-06-01 --to 2026-06-08
  pintail diff orders --from 0198c1a2 --to head       since what a run wrote
  pintail diff orders_daily --from 7 --partition 2026-06-01

A version is a snapshot, a moment in UTC, a run, or `head`. Rows are told apart by the key of the
script or of its first `test unique`, else as a whole; the columns that both versions have are
compared. Exit code 0, also when they differ; with --exit-code 1 when they differ.")]
pub struct DiffArgs {
    /// The asset, a table of the default lake, or a script
    asset: String,
    /// The older version
    #[arg(long, value_name = "VERSION")]
    from: String,
    /// The newer version; otherwise the head
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Compare one partition
    #[arg(short, long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Show at most so many rows that were added, removed and changed, of each
    #[arg(long, value_name = "ROWS", default_value_t = 10)]
    limit: u64,
    /// Exit with 1 when the versions differ
    #[arg(long)]
    exit_code: bool,
}

/// Runs the command.
pub fn run(args: &DiffArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    interrupt::listen(pintail.cancel(), None)?;
    let found = pintail.diff(&DiffRequest {
        asset: args.asset.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        partition: args.partition.clone(),
        limit: args.limit,
    })?;
    match app.terminal.is_json {
        true => app.terminal.json(&diff::asset_json(&found)),
        false => app.terminal.data(&diff::of_asset(&found)),
    }
    Ok(if args.exit_code && !found.is_empty() { Exit::Failed } else { Exit::Ok })
}
