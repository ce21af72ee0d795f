//! `show`: everything that is known of a script, an asset or a run.

mod asset;
mod run_detail;

use clap::Args;
use pintail_runner::{Pintail, RunnerError};

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to show.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail show orders          a script: header, reads, tests, columns, slices, versions
  pintail show ducklake://main/orders
  pintail show last            the newest run: its steps, attempts, tests and errors
  pintail show 0197 --sql      a run by the start of its id, with every statement that it sent")]
pub struct ShowArgs {
    /// A script, an asset, the start of a run's id, or `last`
    subject: String,
    /// With a run: the statements that were sent
    #[arg(long)]
    sql: bool,
}

/// Runs the command.
pub fn run(args: &ShowArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_reading()?;
    match find(&pintail, &args.subject)? {
        Subject::Script(name) => {
            let script = pintail.find_script(&name)?;
            asset::show_script(&pintail, script, app)?;
        }
        Subject::Asset(asset) => asset::show_asset(&pintail, &asset, app)?,
        Subject::Run(detail) => run_detail::show(&pintail, &detail, args.sql, app)?,
    }
    Ok(Exit::Ok)
}

enum Subject {
    Script(String),
    Asset(pintail_core::asset::Asset),
    Run(Box<pintail_runner::pintail::RunInfo>),
}

/// Finds what `text` names: a script or the asset that one writes, a run, a table that nothing here writes.
fn find(pintail: &Pintail, text: &str) -> Result<Subject, Failure> {
    if text == "last" {
        return match pintail.run_detail(text) {
            Err(RunnerError::NoRun(_)) => Err(Failure::usage("there was no run yet")),
            found => Ok(Subject::Run(Box::new(found?))),
        };
    }
    let no_script = match pintail.find_script(text) {
        Ok(script) => return Ok(Subject::Script(script.name().to_string())),
        Err(error) => error,
    };
    let looks_like_run = 4 <= text.len() && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if looks_like_run {
        match pintail.run_detail(text) {
            Err(RunnerError::NoRun(_)) => {}
            found => return Ok(Subject::Run(Box::new(found?))),
        }
    }
    let asset = pintail.parse_asset(text)?;
    let is_known = pintail.table(&asset)?.is_some() || !pintail.history(&asset, 1)?.is_empty();
    if is_known {
        return Ok(Subject::Asset(asset));
    }
    match no_script {
        RunnerError::NoScript { hint, .. } => {
            Err(Failure::usage(format!("there is no script, asset or run `{text}`{hint}")))
        }
        other => Err(other.into()),
    }
}
