//! `pin`, `unpin` and `pins`: holds on snapshots of a lake.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use pintail_core::annotation::parse_duration_text;
use pintail_engine::guard::PinKind;
use pintail_runner::pintail::PinInfo;
use serde_json::{Value, json};

use crate::app::App;
use crate::environment::now;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::render::text::{bytes, moment, or_dash, rfc3339};

/// What to hold.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail pin main --at 7 --reason 'the audit of June'
  pintail pin main --at 2026-06-30 --reason 'month end' --expires 90d

A pinned snapshot stays readable (`pintail query --at`, `diff`, `rollback`) until `pintail unpin`
or until it expires. It holds itself and nothing else: older and newer ones may go.")]
pub struct PinArgs {
    /// The lake
    lake: String,
    /// The snapshot, a moment in UTC, a run, or `head`
    #[arg(long, value_name = "VERSION")]
    at: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Let it go after this time, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = parse_duration_text)]
    expires: Option<Duration>,
}

/// What to let go.
#[derive(Debug, Args)]
pub struct UnpinArgs {
    /// The lake
    lake: String,
    /// The number of the pin: `pintail pins` lists them
    id: i64,
}

/// Which pins.
#[derive(Debug, Args)]
#[command(after_help = "\
The bytes are those of files that the newest version no longer needs and the pinned one does. Others
may hold the same files: what really becomes free, `pintail maintain --dry-run` says.")]
pub struct PinsArgs {
    /// One lake; otherwise all
    lake: Option<String>,
}

/// Runs `pin`.
pub fn pin(args: &PinArgs, app: &App) -> Result<Exit, Failure> {
    let reason = args.reason.trim();
    if reason.is_empty() {
        return Err(Failure::usage("a pin needs a reason: whoever finds it later must know whether it may go"));
    }
    let pintail = app.open_for_question()?;
    let owner = app.environment.get("USER").unwrap_or("somebody").to_owned();
    let (id, snapshot) = pintail.pin(&args.lake, &args.at, &owner, reason, args.expires)?;
    match app.terminal.is_json {
        true => app.terminal.json(&json!({"lake": args.lake, "pin": id.0, "snapshot": snapshot.0})),
        false => app.terminal.data(&format!("pin {} holds snapshot {snapshot} of lake {}\n", id.0, args.lake)),
    }
    Ok(Exit::Ok)
}

/// Runs `unpin`.
pub fn unpin(args: &UnpinArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let pin = pintail.unpin(&args.lake, args.id)?;
    match app.terminal.is_json {
        true => app.terminal.json(&json!({"lake": args.lake, "pin": pin.id.0, "snapshot": pin.snapshot.0})),
        false => app.terminal.data(&format!(
            "pin {} of snapshot {} is gone; `pintail maintain` may expire the snapshot now\n",
            pin.id.0, pin.snapshot
        )),
    }
    Ok(Exit::Ok)
}

/// Runs `pins`.
pub fn list(args: &PinsArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let pins = pintail.pins(args.lake.as_deref())?;
    if app.terminal.is_json {
        app.terminal.json(&json!({"pins": pins.iter().map(pin_json).collect::<Vec<_>>()}));
        return Ok(Exit::Ok);
    }
    if pins.is_empty() {
        app.terminal.data("nothing is pinned\n");
        return Ok(Exit::Ok);
    }
    let columns = [
        ("lake", Align::Left),
        ("pin", Align::Right),
        ("snapshot", Align::Right),
        ("age", Align::Right),
        ("until", Align::Left),
        ("holds", Align::Right),
        ("held by", Align::Left),
    ];
    let row = |info: &PinInfo| {
        let snapshot =
            if info.is_there { info.pin.snapshot.to_string() } else { format!("{} (gone)", info.pin.snapshot) };
        vec![
            info.lake.to_string(),
            info.pin.id.0.to_string(),
            snapshot,
            age(info.pin.since_micros),
            until(info.pin.kind),
            bytes(info.bytes),
            format!("{}: {}", info.pin.owner, info.pin.reason),
        ]
    };
    app.terminal.data(&listing(&columns, pins.iter().map(row).collect()));
    Ok(Exit::Ok)
}

fn at(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

fn age(since_micros: i64) -> String {
    let minutes = (now() - at(since_micros)).num_minutes().max(0);
    match minutes {
        ..60 => format!("{minutes} min"),
        60..2_880 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1_440),
    }
}

fn until(kind: PinKind) -> String {
    match kind {
        PinKind::Process => "its process ends".to_owned(),
        PinKind::Durable { expires_micros } => or_dash(expires_micros.map(|end| moment(at(end)))),
    }
}

fn pin_json(info: &PinInfo) -> Value {
    let (kind, expires) = match info.pin.kind {
        PinKind::Process => ("process", None),
        PinKind::Durable { expires_micros } => ("durable", expires_micros),
    };
    json!({
        "lake": info.lake.as_str(),
        "pin": info.pin.id.0,
        "snapshot": info.pin.snapshot.0,
        "is_there": info.is_there,
        "kind": kind,
        "owner": info.pin.owner,
        "reason": info.pin.reason,
        "since": rfc3339(at(info.pin.since_micros)),
        "expires": expires.map(|end| rfc3339(at(end))),
        "bytes": info.bytes,
    })
}
