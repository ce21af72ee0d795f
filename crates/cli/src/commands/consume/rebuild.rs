//! `consume rebuild`: rollups are compared with the tables that they sum up, and made anew.

use clap::Args;
use pintail_streams::consumer::{Consumer, Looked, Rebuild};
use serde_json::{Value, json};

use super::opening::{failure, openings};
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::thousands;

/// Which rollups.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail consume rebuild decode             makes anew what is not as its table says
  pintail consume rebuild decode --dry-run   only says what that is; exit code 1 when there is something
  pintail consume rebuild decode --force     makes all of them anew

The tables themselves stay as they are, and a consumer that runs meanwhile goes on.")]
pub struct RebuildArgs {
    /// The consumer; with several shards, the rollups of each
    name: String,
    /// Only compare
    #[arg(long)]
    dry_run: bool,
    /// Make anew also what is right
    #[arg(long, conflicts_with = "dry_run")]
    force: bool,
}

/// Runs the command.
pub fn run(args: &RebuildArgs, app: &App) -> Result<Exit, Failure> {
    let which = match (args.dry_run, args.force) {
        (true, _) => Rebuild::Nothing,
        (_, true) => Rebuild::All,
        _ => Rebuild::Wrong,
    };
    let pintail = app.open_for_question()?;
    if super::is_script(&pintail, &args.name) {
        return Err(Failure::usage(format!("`{}` is a script, which keeps no rollups", args.name)));
    }
    let mut looked = Vec::new();
    for opening in openings(&pintail, std::slice::from_ref(&args.name))? {
        let writer = opening.way.writer()?;
        let beside = Consumer::beside(&writer, opening.spec.clone(), &*opening.decoder);
        let more = beside.and_then(|mut consumer| consumer.rebuild(which)).map_err(|error| failure(&error))?;
        if !app.terminal.is_json {
            more.iter().for_each(|looked| app.terminal.data(&format!("{}\n", text(looked))));
        }
        looked.extend(more);
    }
    if app.terminal.is_json {
        app.terminal.json(&json!({"rollups": looked.iter().map(rollup_json).collect::<Vec<_>>()}));
    }
    let is_wrong = |looked: &Looked| !looked.is_rebuilt && looked.drift.is_any();
    Ok(if looked.iter().any(is_wrong) { Exit::Failed } else { Exit::Ok })
}

fn text(looked: &Looked) -> String {
    let drift = looked.drift;
    let found = match drift.is_any() {
        false => "as its table says".to_owned(),
        true => format!(
            "rows missing {}, too many {}, with other values {}",
            thousands(drift.missing),
            thousands(drift.extra),
            thousands(drift.different)
        ),
    };
    let done = if looked.is_rebuilt { "; made anew" } else { "" };
    format!("{}: {found}{done}", looked.table)
}

fn rollup_json(looked: &Looked) -> Value {
    json!({
        "rollup": looked.table,
        "missing": looked.drift.missing,
        "extra": looked.drift.extra,
        "different": looked.drift.different,
        "rebuilt": looked.is_rebuilt,
    })
}
