//! `maintain`: compacts files, expires what nobody needs, and deletes the files that are free then; once, or again and
//! again.

use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use clap::Args;
use pintail_core::annotation::parse_duration_text;
use pintail_runner::executors::Cancel;
use pintail_runner::pintail::{
    CompactedTable, Compaction, MaintainRequest, Maintained, Retired, Standing, describe_upkeep,
};
use pintail_runner::{Pintail, RunnerError, duration_text};
use serde_json::{Value, json};

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::metrics;
use crate::render::table::{Align, listing};
use crate::render::text::{bytes, count, thousands};

/// After so many failures in a row nothing is tried again.
const FAILURES: u32 = 4;

/// What to look after.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail maintain --dry-run          what would go, and who holds the rest
  pintail maintain                    every lake once, as `[maintain]` in pintail.toml says
  pintail maintain main --keep 30d
  pintail maintain --every 15m        again and again, until Ctrl-C

Kept are the newest snapshot, what is younger than --keep, pins, what running commands read, what
consumers have not read yet, and what the last runs of each asset read and made (`keep_runs`,
`keep_days` in pintail.toml). Expire snapshots with this command only: it keeps their stamps, so that
`pintail state rebuild` still knows everything. Of several at once, one works.")]
pub struct MaintainArgs {
    /// One lake; otherwise all
    lake: Option<String>,
    /// Show what would go and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Look after the lakes once and end, as without --every
    #[arg(long, conflicts_with = "every")]
    once: bool,
    /// Do it again after this time, until Ctrl-C; without a time, after `every` of `[maintain]`
    #[arg(long, value_name = "TIME", value_parser = parse_duration_text, num_args = 0..=1, conflicts_with = "dry_run")]
    every: Option<Option<Duration>>,
    /// Show metrics in Prometheus form at this address, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address, requires = "every")]
    metrics: Option<SocketAddr>,
    /// Keep snapshots younger than this; otherwise `keep` of `[maintain]`, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration_text)]
    keep: Option<Duration>,
    /// Keep files of expired snapshots for so long, for readers that are not Pintail; otherwise `grace`, 1d
    #[arg(long, value_name = "TIME", value_parser = parse_duration_text)]
    grace: Option<Duration>,
    /// Leave files as they are: merge none and write none again
    #[arg(long)]
    no_merge: bool,
}

/// Runs the command.
pub fn run(args: &MaintainArgs, app: &App) -> Result<Exit, Failure> {
    let Some(every) = args.every else {
        let pintail = app.open_for_question()?;
        let done = pintail.maintain(&request(args, &pintail, Cancel::default()))?;
        tell(&done, args.dry_run, app);
        return Ok(Exit::Ok);
    };
    let cancel = Cancel::default();
    let stopped = interrupt::listen_between_rounds(cancel.clone())?;
    metrics::show_at(args.metrics)?;
    describe_upkeep();
    let pintail = app.open_for_question()?;
    let every = every.unwrap_or(pintail.project().project.config.maintain.every);
    if every < Duration::from_secs(1) {
        return Err(
            Failure::usage("the time between two rounds is at least a second").with_hint("such as `--every 15m`")
        );
    }
    let request = request(args, &pintail, cancel);
    let mut failures = 0;
    loop {
        match pintail.maintain(&request) {
            Ok(done) => {
                failures = 0;
                tell(&done, args.dry_run, app);
            }
            // Another round would delete what the first has found to be needed.
            Err(error @ RunnerError::Damaged { .. }) => return Err(error.into()),
            Err(_) if request.cancel.is_set() => return Ok(Exit::Ok),
            Err(error) => {
                failures += 1;
                if FAILURES <= failures {
                    return Err(error.into());
                }
                Failure::from(error).tell(&app.terminal);
                app.terminal.talk(&format!("it is tried again in {}\n", duration_text(every)));
            }
        }
        // Whoever listens has gone only with the process.
        if stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
            return Ok(Exit::Ok);
        }
    }
}

fn request(args: &MaintainArgs, pintail: &Pintail, cancel: Cancel) -> MaintainRequest {
    let config = &pintail.project().project.config.maintain;
    let compaction = Compaction { small_bytes: config.small_files.0, rewrite: config.rewrite, budget: config.budget };
    MaintainRequest {
        lake: args.lake.clone(),
        keep: args.keep.unwrap_or(config.keep),
        grace: args.grace.unwrap_or(config.grace),
        stale_after: config.stale,
        compaction: (config.merge && !args.no_merge).then_some(compaction),
        dry_run: args.dry_run,
        cancel,
    }
}

fn tell(done: &[Maintained], is_dry: bool, app: &App) {
    if app.terminal.is_json {
        let lakes: Vec<Value> = done.iter().map(|lake| lake_json(lake, is_dry)).collect();
        app.terminal.json(&json!({"lakes": lakes}));
        return;
    }
    if done.is_empty() {
        app.terminal.data("there is no lake yet, so there is nothing to look after\n");
    }
    done.iter().for_each(|lake| show(lake, is_dry, app));
}

fn show(done: &Maintained, is_dry: bool, app: &App) {
    let lake = done.lake.as_ref().map_or_else(String::new, ToString::to_string);
    if done.is_led_elsewhere {
        app.terminal.data(&format!("lake {lake}: another process is at it; nothing was done\n"));
        return;
    }
    done.retired.iter().for_each(|retired| show_retired(retired, app));
    show_compacted(done, is_dry, app);
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
    show_consumers(&done.consumers, app);
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

fn show_retired(retired: &Retired, app: &App) {
    let (Some(first), Some(last)) = (retired.slices.first(), retired.slices.last()) else { return };
    let range = if first == last { first.to_string() } else { format!("{first} to {last}") };
    let slices = count(retired.slices.len(), "slice");
    let line = match (&retired.left, retired.rows) {
        (Some(left), _) => format!("{}: {slices} ({range}) whose time is over: {left}", retired.asset),
        (None, Some(rows)) => {
            format!("{}: {slices} ({range}) went with {} rows: their time is over", retired.asset, thousands(rows))
        }
        (None, None) => format!("{}: {slices} ({range}) would go: their time is over", retired.asset),
    };
    app.terminal.data(&format!("{line}\n"));
}

fn show_compacted(done: &Maintained, is_dry: bool, app: &App) {
    for table in &done.compacted {
        let name = format!("{}.{}", table.schema, table.table);
        if let Some(merged) = table.merged {
            let verb = if is_dry { "could be merged" } else { "were merged" };
            let (before, after) = (thousands(merged.files_before), thousands(merged.files_after));
            app.terminal.data(&format!("{name}: {before} small files {verb} into {after}\n"));
        }
        if let Some(rewritten) = table.rewritten {
            let verb = if is_dry { "could be" } else { "were" };
            let files = count(usize::try_from(rewritten.files_before).unwrap_or(usize::MAX), "file");
            app.terminal.data(&format!("{name}: {files} {verb} written again without deleted rows\n"));
        }
        if let Some(left) = &table.left {
            app.terminal.data(&format!("{name}: {left}\n"));
        }
    }
}

fn show_consumers(consumers: &[Standing], app: &App) {
    if consumers.is_empty() {
        return;
    }
    let columns =
        [("consumer", Align::Left), ("read up to", Align::Right), ("said so", Align::Left), ("", Align::Left)];
    let rows = consumers
        .iter()
        .map(|standing| {
            let words = match (standing.holds, standing.binds) {
                (true, true) => "expiry waits for it",
                (true, false) => "",
                (false, _) => "silent too long: expiry does not wait for it",
            };
            let ago = format!("{} ago", duration_text(Duration::from_secs(standing.silent.as_secs())));
            let progress = &standing.progress;
            vec![progress.consumer.clone(), progress.snapshot.to_string(), ago, words.to_owned()]
        })
        .collect();
    app.terminal.data(&format!("\n{}", listing(&columns, rows)));
}

fn compacted_json(table: &CompactedTable) -> Value {
    json!({
        "table": format!("{}.{}", table.schema, table.table),
        "merged": table.merged.map(|done| json!({"before": done.files_before, "after": done.files_after})),
        "rewritten": table.rewritten.map(|done| json!({"before": done.files_before, "after": done.files_after})),
        "left": table.left,
    })
}

fn consumer_json(standing: &Standing) -> Value {
    json!({
        "consumer": standing.progress.consumer,
        "snapshot": standing.progress.snapshot.0,
        "silent_seconds": standing.silent.as_secs_f64(),
        "is_required": standing.progress.required,
        "holds": standing.holds,
        "binds": standing.binds,
    })
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
        "retired": done.retired.iter().map(|retired| json!({
            "asset": retired.asset.to_string(),
            "slices": retired.slices.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "rows": retired.rows,
            "left": retired.left,
        })).collect::<Vec<_>>(),
        "compacted": done.compacted.iter().map(compacted_json).collect::<Vec<_>>(),
        "consumers": done.consumers.iter().map(consumer_json).collect::<Vec<_>>(),
        "held": done.held.iter().map(|held| json!({
            "owner": held.owner,
            "reason": held.reason,
            "snapshots": held.snapshots.iter().map(|id| id.0).collect::<Vec<_>>(),
            "bytes": held.bytes,
        })).collect::<Vec<_>>(),
    })
}
