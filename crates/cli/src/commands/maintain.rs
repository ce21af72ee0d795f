//! `maintain`: expires what nobody needs, and deletes the files that are free then.

use std::time::Duration;

use clap::Args;
use pintail_runner::pintail::{MaintainRequest, Maintained};
use serde_json::{Value, json};

use super::pins::duration;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::render::text::{bytes, count, thousands};

/// What to look after.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail maintain --dry-run          what would go, and who holds the rest
  pintail maintain                    every lake: what is older than 7 days and nobody needs
  pintail maintain main --keep 30d

Kept are the newest snapshot, what is younger than --keep, pins, what running commands read, and what
the last runs of each asset read and made (`keep_runs`, `keep_days` in pintail.toml). Expire snapshots
with this command only: it keeps their stamps, so that `pintail state rebuild` still knows everything.")]
pub struct MaintainArgs {
    /// One lake; otherwise all
    lake: Option<String>,
    /// Show what would go and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Keep snapshots younger than this
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = duration)]
    keep: Duration,
    /// Keep files of expired snapshots for so long, for readers that are not Pintail
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration)]
    grace: Duration,
}

/// Runs the command.
pub fn run(args: &MaintainArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let done = pintail.maintain(&MaintainRequest {
        lake: args.lake.clone(),
        keep: args.keep,
        grace: args.grace,
        dry_run: args.dry_run,
    })?;
    if app.terminal.is_json {
        let lakes: Vec<Value> = done.iter().map(|lake| lake_json(lake, args.dry_run)).collect();
        app.terminal.json(&json!({"lakes": lakes}));
        return Ok(Exit::Ok);
    }
    if done.is_empty() {
        app.terminal.data("there is no lake yet, so there is nothing to look after\n");
    }
    done.iter().for_each(|lake| show(lake, args.dry_run, app));
    Ok(Exit::Ok)
}

fn show(done: &Maintained, is_dry: bool, app: &App) {
    let lake = done.lake.as_ref().map_or_else(String::new, ToString::to_string);
    if done.is_led_elsewhere {
        app.terminal.data(&format!("lake {lake}: another process is at it; nothing was done\n"));
        return;
    }
    let verb = if is_dry { "would go" } else { "went" };
    let expired = count(done.expired.len(), "snapshot");
    let mut line = format!("lake {lake}: {expired} {verb}, {} stay", thousands(done.kept as u64));
    line.push_str(&format!(" ({} young)", thousands(done.young as u64)));
    if !done.expired.is_empty() {
        line.push_str(&format!("; {} of files are free then", bytes(done.bytes_freed)));
    }
    app.terminal.data(&format!("{line}\n"));
    if !is_dry && 0 < done.files_deleted + done.orphans_deleted {
        let files = count(done.files_deleted, "file");
        let orphans = count(done.orphans_deleted, "file");
        app.terminal.data(&format!("deleted {files} that no snapshot shows, {orphans} without an owner\n"));
    }
    if done.held.is_empty() {
        return;
    }
    let columns = [("snapshots", Align::Right), ("bytes", Align::Right), ("held by", Align::Left)];
    let rows = done
        .held
        .iter()
        .map(|held| {
            let holder = format!("{}: {}", held.owner, held.reason);
            vec![thousands(held.snapshots.len() as u64), bytes(held.bytes), holder]
        })
        .collect();
    app.terminal.data(&format!("\n{}", listing(&columns, rows)));
}

fn lake_json(done: &Maintained, is_dry: bool) -> Value {
    json!({
        "lake": done.lake.as_ref().map(ToString::to_string),
        "is_dry_run": is_dry,
        "is_led_elsewhere": done.is_led_elsewhere,
        "expired": done.expired.iter().map(|id| id.0).collect::<Vec<_>>(),
        "kept": done.kept,
        "young": done.young,
        "bytes_freed": done.bytes_freed,
        "files_deleted": done.files_deleted,
        "orphans_deleted": done.orphans_deleted,
        "snapshots_checked": done.checked,
        "held": done.held.iter().map(|held| json!({
            "owner": held.owner,
            "reason": held.reason,
            "snapshots": held.snapshots.iter().map(|id| id.0).collect::<Vec<_>>(),
            "bytes": held.bytes,
        })).collect::<Vec<_>>(),
    })
}
