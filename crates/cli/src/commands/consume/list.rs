//! `consume list` and `consume show`: where consumers stand. The headline is the lag: how old the oldest snapshot is that
//! was not consumed.

use clap::Args;
use pintail_core::stream::Kinds;
use pintail_runner::executors::duckdb::{stream_kinds, stream_spec};
use pintail_runner::project::CompiledScript;
use pintail_runner::{Pintail, duration_text};
use pintail_streams::consumer::{Condition, Spec, State, state_of, system_now};
use serde_json::{Value, json};

use super::opening::{Opening, Way, failure, openings};
use super::scripts::stream_scripts;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::render::text::{or_dash, rfc3339, thousands};

/// Which consumers.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The consumers; otherwise all
    names: Vec<String>,
}

/// Which consumer.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The consumer
    name: String,
}

/// Runs `consume list`.
pub fn list(args: &ListArgs, app: &App) -> Result<Exit, Failure> {
    let found = states(&args.names, app)?;
    if app.terminal.is_json {
        let consumers: Vec<Value> = found.iter().map(|(listed, state)| state_json(listed, state.as_ref())).collect();
        app.terminal.json(&json!({"consumers": consumers}));
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        app.terminal.data("no consumer is configured\n");
        return Ok(Exit::Ok);
    }
    let columns = [
        ("consumer", Align::Left),
        ("state", Align::Left),
        ("lag", Align::Right),
        ("unread", Align::Right),
        ("cursor", Align::Right),
        ("head", Align::Right),
        ("dead letters", Align::Right),
        ("source", Align::Left),
    ];
    let row = |(listed, state): &(Listed, Option<State>)| {
        let source = listed.spec.source.asset(&listed.way.lake.name);
        let name = listed.name.clone();
        let Some(state) = state else {
            let dashes = std::iter::repeat_n("-".to_owned(), 5);
            return [name, "no lake yet".to_owned()].into_iter().chain(dashes).chain([source]).collect();
        };
        vec![
            name,
            condition_text(&state.condition),
            lag_text(state),
            thousands(state.unread_rows),
            or_dash(state.cursor),
            state.head.to_string(),
            thousands(state.dead_letters),
            source,
        ]
    };
    app.terminal.data(&listing(&columns, found.iter().map(row).collect()));
    Ok(Exit::Ok)
}

/// Runs `consume show`.
pub fn show(args: &ShowArgs, app: &App) -> Result<Exit, Failure> {
    let found = states(std::slice::from_ref(&args.name), app)?;
    if app.terminal.is_json {
        let shards: Vec<Value> = found.iter().map(|(listed, state)| state_json(listed, state.as_ref())).collect();
        app.terminal.json(&json!({"consumer": args.name, "shards": shards}));
        return Ok(Exit::Ok);
    }
    for (listed, state) in &found {
        app.terminal.data(&format!("{}\n", listed.name));
        for (what, text) in facts(listed, state.as_ref()) {
            app.terminal.data(&format!("  {what:<14} {text}\n"));
        }
    }
    Ok(Exit::Ok)
}

/// A consumer as it is listed: one with a decoder, or a script.
struct Listed {
    name: String,
    spec: Spec,
    kinds: Kinds,
    way: Way,
    /// The decoder with its version.
    decoder: Option<(String, u32)>,
    /// The tables that it writes.
    writes: Vec<String>,
}

impl Listed {
    fn of_decoder(opening: Opening) -> Self {
        let decoder = &opening.decoder;
        Self {
            name: opening.spec.full_name(),
            decoder: Some((decoder.name().to_owned(), decoder.version())),
            writes: decoder.targets().into_iter().map(|target| target.table).collect(),
            spec: opening.spec,
            kinds: Kinds::Inserts,
            way: opening.way,
        }
    }

    fn of_script(pintail: &Pintail, script: &CompiledScript) -> Result<Option<Self>, Failure> {
        let stream = script.header.stream.as_ref();
        let lake = stream.and_then(|stream| stream.value.asset.lake());
        let (Some(spec), Some(lake)) = (stream_spec(script), lake) else { return Ok(None) };
        let writes = script.target.iter().map(|target| target.short_name().to_owned()).collect();
        let way = Way::to(pintail, lake, 1)?;
        Ok(Some(Self {
            name: script.name().to_string(),
            spec,
            kinds: stream_kinds(script),
            way,
            decoder: None,
            writes,
        }))
    }
}

fn states(names: &[String], app: &App) -> Result<Vec<(Listed, Option<State>)>, Failure> {
    let pintail = app.open_for_question()?;
    let mut found = Vec::new();
    let decoded = openings(&pintail, names)?.into_iter().map(Listed::of_decoder);
    let mut all: Vec<Listed> = decoded.collect();
    for script in stream_scripts(&pintail) {
        if names.is_empty() || names.contains(&script.name().to_string()) {
            all.extend(Listed::of_script(&pintail, script)?);
        }
    }
    for listed in all {
        // To look must not make a lake.
        let state = match listed.way.lake.exists()? {
            false => None,
            true => Some(state_of(&listed.way.writer()?, &listed.spec, listed.kinds).map_err(|error| failure(&error))?),
        };
        found.push((listed, state));
    }
    Ok(found)
}

fn facts(listed: &Listed, state: Option<&State>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(state) = state {
        facts.push(("lag", lag_text(state)));
        facts.push(("state", condition_text(&state.condition)));
        let unread =
            format!("{} rows in {} snapshots", thousands(state.unread_rows), thousands(state.unread_snapshots));
        facts.push(("unread", unread));
        let moved = state.moved_micros.map(|micros| format!(", written {} ago", age(micros))).unwrap_or_default();
        facts.push(("cursor", format!("{}{moved}; the head is {}", or_dash(state.cursor), state.head)));
        let progress = state.progress.as_ref();
        let told = progress.map(|row| format!("snapshot {}, told {} ago", row.snapshot, age(row.updated_micros)));
        facts.push(("holds", or_dash(told)));
        facts.push(("dead letters", thousands(state.dead_letters)));
    } else {
        facts.push(("state", "its lake does not exist yet".to_owned()));
    }
    facts.push(("source", listed.spec.source.asset(&listed.way.lake.name)));
    match &listed.decoder {
        Some((name, version)) => facts.push(("decoder", format!("{name} version {version}"))),
        None => facts.push(("cursor's name", listed.spec.full_name())),
    }
    facts.push(("writes", listed.writes.join(", ")));
    if let Some(shard) = &listed.spec.shard {
        facts.push(("shard", shard.to_string()));
    }
    let required = if listed.spec.required { ", required: expiry waits for it however long it is silent" } else { "" };
    facts.push(("at a gap", format!("{}{required}", listed.spec.gap.word())));
    facts
}

fn condition_text(condition: &Condition) -> String {
    match condition {
        Condition::New => "never run".to_owned(),
        Condition::NoSource => "no source".to_owned(),
        Condition::Idle => "idle".to_owned(),
        Condition::Lagging => "lagging".to_owned(),
        Condition::Gap(gap) => format!("gap: {gap} expired"),
        Condition::Ahead => "ahead of the lake".to_owned(),
        Condition::OtherSource => "source made anew".to_owned(),
    }
}

fn condition_word(condition: &Condition) -> &'static str {
    match condition {
        Condition::New => "new",
        Condition::NoSource => "no_source",
        Condition::Idle => "idle",
        Condition::Lagging => "lagging",
        Condition::Gap(_) => "gap",
        Condition::Ahead => "ahead",
        Condition::OtherSource => "other_source",
    }
}

fn lag_micros(state: &State) -> i64 {
    state.oldest_unread_micros.map_or(0, |oldest| system_now().saturating_sub(oldest).max(0))
}

fn lag_text(state: &State) -> String {
    match state.condition {
        Condition::New | Condition::NoSource => "-".to_owned(),
        _ => text_of(lag_micros(state)),
    }
}

fn age(since_micros: i64) -> String {
    text_of(system_now().saturating_sub(since_micros).max(0))
}

/// Returns a time in whole seconds: below them nobody acts.
fn text_of(micros: i64) -> String {
    let seconds = u64::try_from(micros / 1_000_000).unwrap_or(0);
    duration_text(std::time::Duration::from_secs(seconds))
}

fn state_json(listed: &Listed, state: Option<&State>) -> Value {
    let at = |micros: Option<i64>| micros.and_then(chrono::DateTime::from_timestamp_micros).map(rfc3339);
    let progress = state.and_then(|state| state.progress.as_ref());
    json!({
        "consumer": listed.name,
        "script": listed.decoder.is_none(),
        "source": listed.spec.source.asset(&listed.way.lake.name),
        "decoder": listed.decoder.as_ref().map(|(name, _)| name),
        "decoder_version": listed.decoder.as_ref().map(|(_, version)| version),
        "state": state.map_or("no_lake", |state| condition_word(&state.condition)),
        "lag_seconds": state.map(|state| lag_micros(state) as f64 / 1e6),
        "unread_rows": state.map(|state| state.unread_rows),
        "unread_snapshots": state.map(|state| state.unread_snapshots),
        "oldest_unread": at(state.and_then(|state| state.oldest_unread_micros)),
        "cursor": state.and_then(|state| state.cursor).map(|cursor| cursor.0),
        "head": state.map(|state| state.head.0),
        "gap": state.and_then(|state| match &state.condition {
            Condition::Gap(gap) => Some(json!({"after": gap.after.0, "upto": gap.upto.0})),
            _ => None,
        }),
        "holds_snapshot": progress.map(|row| row.snapshot.0),
        "told_at": at(progress.map(|row| row.updated_micros)),
        "required": listed.spec.required,
        "dead_letters": state.map(|state| state.dead_letters),
    })
}
