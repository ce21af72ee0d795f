//! `consume show`: all that is known of one consumer, shard by shard.

use std::time::Duration;

use chrono::DateTime;
use clap::Args;
use pintail_streams::consumer::{Holder, Start, State};
use serde_json::{Value, json};

use super::list::{Listed, age, condition_text, lag_text, state_json, states};
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::{count, moment, or_dash, thousands};

/// Which consumer.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The consumer
    name: String,
}

/// Runs the command.
pub fn run(args: &ShowArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let found = states(&pintail, std::slice::from_ref(&args.name))?;
    if app.terminal.is_json {
        let shards: Vec<Value> = found.iter().map(|(listed, state)| state_json(listed, state.as_ref())).collect();
        app.terminal.json(&json!({"consumer": args.name, "shards": shards}));
        return Ok(Exit::Ok);
    }
    for (listed, state) in &found {
        app.terminal.data(&format!("{}\n", listed.name));
        let found = match state {
            Some(state) => standing(listed, state),
            None => vec![("state", "its lake does not exist yet".to_owned())],
        };
        for (what, text) in found.into_iter().chain(settings(listed)) {
            app.terminal.data(&format!("  {what:<14} {text}\n"));
        }
    }
    Ok(Exit::Ok)
}

/// Where it stands.
fn standing(listed: &Listed, state: &State) -> Vec<(&'static str, String)> {
    let unread = format!("{} in {}", count_of(state.unread_rows, "row"), count_of(state.unread_snapshots, "snapshot"));
    let moved = state.moved_micros.map(|micros| format!(", written {} ago", age(micros))).unwrap_or_default();
    let mut facts = vec![
        ("lag", lag_text(state)),
        ("state", condition_text(&state.condition)),
        ("unread", unread),
        ("cursor", format!("{}{moved}; the head is {}", or_dash(state.cursor), state.head)),
        ("holds", holds(listed, state)),
        ("dead letters", thousands(state.dead_letters)),
    ];
    if listed.decoder.is_some() {
        facts.push(("run by", state.owner.as_ref().map_or_else(|| "nobody".to_owned(), holder_text)));
    }
    facts
}

/// What expiry waits for on its behalf.
fn holds(listed: &Listed, state: &State) -> String {
    let Some(told) = &state.progress else { return "nothing yet".to_owned() };
    let what = format!("snapshot {}, told {} ago", told.snapshot, age(told.updated_micros));
    match listed.stale_since(state) {
        None => what,
        Some(since) => {
            let since = DateTime::from_timestamp_micros(since).map(moment);
            format!("nothing: stale since {} UTC ({what})", or_dash(since))
        }
    }
}

/// How it is configured.
fn settings(listed: &Listed) -> Vec<(&'static str, String)> {
    let spec = &listed.spec;
    let mut facts = vec![("source", spec.source.asset(&listed.way.lake.name))];
    match &listed.decoder {
        Some((name, version)) => facts.push(("decoder", format!("{name} version {version}"))),
        None => facts.push(("cursor's name", spec.full_name())),
    }
    facts.push(("writes", listed.writes.join(", ")));
    if let Some(shard) = &spec.shard {
        facts.push(("shard", shard.to_string()));
    }
    facts.push(("starts", start_text(spec.start)));
    facts.push(("at a gap", spec.gap.word().to_owned()));
    facts.push((
        "expiry",
        match spec.required {
            true => "waits for it, however long it is silent".to_owned(),
            false => format!("waits for it until it is silent for {}", length(listed.stale)),
        },
    ));
    if listed.decoder.is_some() {
        let kept = spec.retention.map_or_else(|| "for ever".to_owned(), length);
        facts.push(("rows stay", kept));
    }
    facts
}

fn start_text(start: Start) -> String {
    match start {
        Start::Earliest => "with all that the table holds".to_owned(),
        Start::Head => "with what comes from then on".to_owned(),
        Start::After(snapshot) => format!("behind snapshot {snapshot}"),
    }
}

/// Returns a length of time as pintail.toml writes it: `400d`, `12h`, `90s`.
fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [("d", 86_400), ("h", 3_600), ("m", 60)];
    let whole = units.iter().find(|(_, unit)| 0 < seconds && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(name, unit)| format!("{}{name}", seconds / unit))
}

fn count_of(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

/// Returns who has a consumer and since when, such as `process 4711 since 2026-06-01 00:00:00 UTC`.
pub fn holder_text(holder: &Holder) -> String {
    let since = DateTime::from_timestamp_micros(holder.since_micros).map(moment);
    format!("process {} since {} UTC", holder.process, or_dash(since))
}
