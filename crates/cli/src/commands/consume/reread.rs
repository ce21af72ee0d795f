//! `consume replay` and `consume backfill`: a range of the source is decoded again, beside whoever consumes it.

use chrono::{DateTime, Utc};
use clap::Args;
use pintail_core::id::SnapshotId;
use pintail_core::version::parse_moment;
use pintail_streams::consumer::{Consumer, Existing, Landed, Range};
use serde_json::{Value, json};

use super::opening::{Opening, failure, openings};
use super::run::{landed_json, landed_text};
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to read again.
#[derive(Debug, Args)]
#[command(after_help = "\
A range is of time, `[from, to)`, by the source's column `time` (or `time_column` in pintail.toml), or
of snapshots, `(from, to]`. A moment is a day, or a time to the minute or the second. What is read is the
table as it is now. The cursor stays where it is, and a consumer that runs meanwhile goes on.")]
pub struct RereadArgs {
    /// The consumer
    name: String,
    /// From this moment on, in UTC unless it names a zone, or behind this snapshot
    #[arg(long, value_name = "TIME|SNAPSHOT")]
    from: String,
    /// Before this moment, or up to and including this snapshot
    #[arg(long, value_name = "TIME|SNAPSHOT")]
    to: String,
}

/// Runs the command; a replay also replaces what an older version of the decoder wrote.
pub fn run(args: &RereadArgs, is_replay: bool, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    if super::is_script(&pintail, &args.name) {
        return Err(super::not_for_scripts(&args.name));
    }
    app.require(pintail.project(), &pintail.project().project.config.ingest.blobs_unset)?;
    let existing = if is_replay { Existing::ReplaceOlder } else { Existing::Keep };
    let mut done: Vec<Value> = Vec::new();
    for opening in openings(&pintail, std::slice::from_ref(&args.name))? {
        let range = range(args, &opening)?;
        let landed = reread(&opening, &range, existing)?;
        let name = opening.spec.full_name();
        match app.terminal.is_json {
            true => done.push(landed_json(&name, &landed)),
            false => app.terminal.data(&format!("{name}: {}\n", landed_text(&landed))),
        }
    }
    if app.terminal.is_json {
        app.terminal.json(&json!({"consumers": done}));
    }
    Ok(Exit::Ok)
}

fn reread(opening: &Opening, range: &Range, existing: Existing) -> Result<Landed, Failure> {
    let writer = opening.way.writer()?;
    let beside = Consumer::beside(&writer, opening.spec.clone(), &*opening.decoder);
    let landed = beside.and_then(|mut consumer| consumer.reread(range, existing));
    landed.map_err(|error| failure(&error))
}

fn range(args: &RereadArgs, opening: &Opening) -> Result<Range, Failure> {
    let snapshot = |text: &str| text.parse::<i64>().ok().map(SnapshotId);
    match (snapshot(&args.from), snapshot(&args.to)) {
        (Some(after), Some(upto)) if after < upto => return Ok(Range::Snapshots { after, upto }),
        (Some(after), Some(upto)) => {
            return Err(Failure::usage(format!("no snapshot is behind {after} and not behind {upto}")));
        }
        (None, None) => {}
        _ => return Err(Failure::usage("`--from` and `--to` must both be moments, or both snapshots")),
    }
    let (from, to) = (moment("--from", &args.from)?, moment("--to", &args.to)?);
    if to <= from {
        return Err(Failure::usage(format!("`--to {}` is not after `--from {}`", args.to, args.from)));
    }
    Ok(Range::Time { column: opening.config.time_column.clone(), from, to })
}

fn moment(option: &str, text: &str) -> Result<DateTime<Utc>, Failure> {
    parse_moment(text.trim()).ok_or_else(|| {
        Failure::usage(format!("`{option} {text}` is neither a moment nor a snapshot")).with_hint(
            "such as `2026-06-01`, `2026-06-01 12:00`, `2026-06-01T12:00:00+02:00`, or a snapshot's number; without a zone, \
             a moment is in UTC",
        )
    })
}
