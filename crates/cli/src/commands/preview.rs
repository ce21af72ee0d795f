//! `preview`: what a script's query gives, without writing it.

use clap::Args;

use super::query;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;

/// What to preview.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail preview orders_by_day
  pintail preview orders_daily --partition 2026-06-01 --limit 5

Reads what is committed now; nothing is written or recorded.")]
pub struct PreviewArgs {
    /// The script, or the asset that it writes
    script: String,
    /// The partition; otherwise the last one that has closed
    #[arg(short, long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Show at most so many rows
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    limit: u64,
}

/// Runs the command.
pub fn run(args: &PreviewArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_reading()?;
    let (path, text) = {
        let script = pintail.find_script(&args.script)?;
        (script.file.source.path.clone(), script.file.source.text.clone())
    };
    app.show_errors_of(pintail.project(), &path)?;
    interrupt::listen(pintail.cancel(), None)?;
    let rows = pintail
        .preview(&args.script, args.partition.as_deref(), args.limit)
        .map_err(|error| Failure::from(error).in_file(&path, &text))?;
    query::show(&rows, false, app)?;
    Ok(Exit::Ok)
}
