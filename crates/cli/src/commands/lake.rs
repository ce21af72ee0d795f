//! `lake health`: how a lake is doing, and what deserves attention.

use std::time::Duration;

use clap::{Args, Subcommand};
use pintail_core::retention::TableFiles;
use pintail_engine::lake::OWN_SCHEMA;
use pintail_runner::duration_text;
use pintail_runner::pintail::{Health, Standing};
use serde_json::{Value, json};

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::render::text::{bytes, count, or_dash, thousands};

/// What to look at.
#[derive(Debug, Args)]
pub struct LakeArgs {
    #[command(subcommand)]
    command: LakeCommand,
}

#[derive(Debug, Subcommand)]
enum LakeCommand {
    /// Show how a lake is doing: snapshots, files, consumers, and what deserves attention
    Health(HealthArgs),
}

/// Which lake.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail lake health               every lake of the project
  pintail lake health main --strict exit code 1 when something deserves attention

Only the catalog is read. `pintail audit` reads the data, too, and says what is wrong.")]
struct HealthArgs {
    /// One lake; otherwise all
    lake: Option<String>,
    /// End with exit code 1 when something deserves attention
    #[arg(long)]
    strict: bool,
}

/// Runs the command.
pub fn run(args: &LakeArgs, app: &App) -> Result<Exit, Failure> {
    let LakeCommand::Health(args) = &args.command;
    let pintail = app.open_for_question()?;
    let lakes = pintail.lake_health(args.lake.as_deref())?;
    match app.terminal.is_json {
        true => app.terminal.json(&json!({"lakes": lakes.iter().map(health_json).collect::<Vec<_>>()})),
        false if lakes.is_empty() => app.terminal.data("there is no lake yet\n"),
        false => lakes.iter().for_each(|health| show(health, app)),
    }
    let is_well = lakes.iter().all(|health| health.attention.is_empty());
    Ok(if is_well || !args.strict { Exit::Ok } else { Exit::Failed })
}

fn show(health: &Health, app: &App) {
    let (oldest, newest) = (health.oldest, health.head);
    app.terminal.data(&format!(
        "lake {}: {}, {} ({} old) to {} ({} old)\n",
        health.lake,
        count(health.snapshots, "snapshot"),
        oldest.0,
        age(oldest.1),
        newest.0,
        age(newest.1)
    ));
    let files: u64 = health.tables.iter().map(|table| table.files).sum();
    let size: u64 = health.tables.iter().map(|table| table.bytes).sum();
    app.terminal.data(&format!(
        "{}, {}; {} more only for older snapshots; {} still to be deleted\n",
        count(usize::try_from(files).unwrap_or(usize::MAX), "file"),
        bytes(size),
        bytes(health.old_bytes),
        count(usize::try_from(health.waiting_files).unwrap_or(usize::MAX), "file")
    ));
    if !health.tables.is_empty() {
        app.terminal.data(&format!("\n{}", tables(health)));
    }
    if !health.consumers.is_empty() {
        app.terminal.data(&format!("\n{}", consumers(&health.consumers)));
    }
    match health.attention.as_slice() {
        [] => app.terminal.data("\nnothing deserves attention\n"),
        found => {
            app.terminal.data("\ndeserves attention:\n");
            found.iter().for_each(|line| app.terminal.data(&format!("  {line}\n")));
        }
    }
}

fn age(time: Duration) -> String {
    duration_text(Duration::from_secs(time.as_secs()))
}

fn tables(health: &Health) -> String {
    let columns = [
        ("table", Align::Left),
        ("files", Align::Right),
        ("bytes", Align::Right),
        ("small, to merge", Align::Right),
        ("rows", Align::Right),
        ("deleted", Align::Right),
    ];
    let (own, tables): (Vec<&TableFiles>, Vec<&TableFiles>) =
        health.tables.iter().partition(|table| table.schema == OWN_SCHEMA);
    let mut rows: Vec<Vec<String>> =
        tables.iter().map(|table| row(format!("{}.{}", table.schema, table.table), &[table])).collect();
    if !own.is_empty() {
        rows.push(row(format!("{OWN_SCHEMA}, {}", count(own.len(), "table")), &own));
    }
    listing(&columns, rows)
}

fn row(name: String, tables: &[&TableFiles]) -> Vec<String> {
    let sum = |number: fn(&TableFiles) -> u64| tables.iter().map(|table| number(table)).sum::<u64>();
    vec![
        name,
        thousands(sum(|table| table.files)),
        bytes(sum(|table| table.bytes)),
        thousands(sum(|table| table.mergeable)),
        thousands(sum(|table| table.records.saturating_sub(table.deleted))),
        thousands(sum(|table| table.deleted)),
    ]
}

fn consumers(consumers: &[(Standing, Option<Duration>)]) -> String {
    let columns = [
        ("consumer", Align::Left),
        ("read up to", Align::Right),
        ("oldest unread", Align::Right),
        ("said so", Align::Right),
        ("", Align::Left),
    ];
    let rows = consumers
        .iter()
        .map(|(standing, lag)| {
            let words = match (standing.progress.required, standing.binds) {
                (true, true) => "required; expiry waits for it",
                (true, false) => "required",
                (false, true) => "expiry waits for it",
                (false, false) if standing.holds => "",
                (false, false) => "silent too long",
            };
            vec![
                standing.progress.consumer.clone(),
                standing.progress.snapshot.to_string(),
                or_dash(lag.map(age)),
                format!("{} ago", age(standing.silent)),
                words.to_owned(),
            ]
        })
        .collect();
    listing(&columns, rows)
}

fn health_json(health: &Health) -> Value {
    json!({
        "lake": health.lake.to_string(),
        "snapshots": health.snapshots,
        "oldest": {"snapshot": health.oldest.0.0, "age_seconds": health.oldest.1.as_secs_f64()},
        "newest": {"snapshot": health.head.0.0, "age_seconds": health.head.1.as_secs_f64()},
        "old_bytes": health.old_bytes,
        "waiting_files": health.waiting_files,
        "tables": health.tables.iter().map(|table| json!({
            "table": format!("{}.{}", table.schema, table.table),
            "files": table.files,
            "bytes": table.bytes,
            "mergeable_files": table.mergeable,
            "rows": table.records.saturating_sub(table.deleted),
            "deleted_rows": table.deleted,
        })).collect::<Vec<_>>(),
        "consumers": health.consumers.iter().map(|(standing, lag)| json!({
            "consumer": standing.progress.consumer,
            "snapshot": standing.progress.snapshot.0,
            "oldest_unread_seconds": lag.map(|lag| lag.as_secs_f64()),
            "silent_seconds": standing.silent.as_secs_f64(),
            "is_required": standing.progress.required,
            "holds": standing.holds,
            "binds": standing.binds,
        })).collect::<Vec<_>>(),
        "passed": health.passed.iter().map(|passed| json!({
            "consumer": passed.consumer,
            "snapshot": passed.snapshot_id,
        })).collect::<Vec<_>>(),
        "attention": health.attention,
    })
}
