//! `audit`: every invariant of a lake that can be checked while it is in use.

mod blobs;
mod decoded;

use clap::Args;
use pintail_runner::pintail::{Audit, Finding};
use serde_json::{Value, json};

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::count;

/// What to check.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail audit           every lake of the project
  pintail audit main --json

Checked are the files that any snapshot shows, the rows of each table against the catalog and against
their partitions, the store against what the commits say, pins, consumers, positions and leases
against the snapshots and the commits that are there, dead letters, payloads outside the lake, and
what the consumers of pintail.toml have written: no row twice, each with its raw event and in its
bucket, each summary equal to its rows. Every table is scanned. Nothing is mended; exit code 1 when
something is not as it must be.")]
pub struct AuditArgs {
    /// One lake; otherwise all
    lake: Option<String>,
}

/// Runs the command.
pub fn run(args: &AuditArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    app.require(pintail.project(), &pintail.project().project.config.ingest.blobs_unset)?;
    let consumers = decoded::consumers(&pintail)?;
    let questions = |lake: &_, alias: &str| {
        let mut questions = decoded::questions(&consumers, lake, alias);
        questions.extend(blobs::questions(&pintail, lake, alias));
        questions
    };
    let audits = pintail.audit(args.lake.as_deref(), &questions)?;
    match app.terminal.is_json {
        true => app.terminal.json(&json!({"lakes": audits.iter().map(audit_json).collect::<Vec<_>>()})),
        false => show(&audits, app),
    }
    let is_clean = audits.iter().all(|audit| audit.findings.is_empty());
    Ok(if is_clean { Exit::Ok } else { Exit::Failed })
}

fn show(audits: &[Audit], app: &App) {
    if audits.is_empty() {
        app.terminal.data("there is no lake yet, so there is nothing to check\n");
    }
    for audit in audits {
        let found = match audit.findings.len() {
            0 => "clean".to_owned(),
            number => count(number, "finding"),
        };
        let checks = audit.checks.join(", ");
        app.terminal.data(&format!("lake {} at snapshot {}: {found} ({checks})\n", audit.lake, audit.head));
        for Finding { check, place, message } in &audit.findings {
            app.terminal.data(&format!("  {check}: {place}: {message}\n"));
        }
    }
}

fn audit_json(audit: &Audit) -> Value {
    json!({
        "lake": audit.lake.to_string(),
        "snapshot": audit.head.0,
        "checks": audit.checks,
        "findings": audit.findings.iter().map(|finding| json!({
            "check": finding.check,
            "place": finding.place,
            "message": finding.message,
        })).collect::<Vec<_>>(),
    })
}
