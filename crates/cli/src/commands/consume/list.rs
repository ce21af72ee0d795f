//! `consume list`: where consumers stand. The headline is the lag: how old the oldest snapshot is that was not consumed.

use std::time::Duration;

use clap::Args;
use pintail_core::stream::Kinds;
use pintail_runner::executors::duckdb::{stream_kinds, stream_spec};
use pintail_runner::project::CompiledScript;
use pintail_runner::{Pintail, duration_text};
use pintail_streams::consumer::{Condition, Spec, Start, State, state_of, system_now};
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

/// Runs `consume list`.
pub fn list(args: &ListArgs, app: &App) -> Result<Exit, Failure> {
    let found = states(&app.open_for_question()?, &args.names)?;
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

/// A consumer as it is listed: one with a decoder, or a script.
pub struct Listed {
    /// Its name, with the shard's.
    pub name: String,
    /// How it was asked to consume.
    pub spec: Spec,
    /// The way to its lake.
    pub way: Way,
    /// The decoder with its version.
    pub decoder: Option<(String, u32)>,
    /// The tables that it writes.
    pub writes: Vec<String>,
    /// After how long a silence expiry no longer waits for it, unless it is required.
    pub stale: Duration,
    kinds: Kinds,
}

impl Listed {
    fn of_decoder(opening: Opening, stale: Duration) -> Self {
        let decoder = &opening.decoder;
        Self {
            name: opening.spec.full_name(),
            decoder: Some((decoder.name().to_owned(), decoder.version())),
            writes: decoder.targets().into_iter().map(|target| target.table).collect(),
            stale: opening.spec.staleness.unwrap_or(stale),
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
            stale: pintail.project().project.config.maintain.stale,
        }))
    }

    /// Returns since when expiry no longer waits for it, in microseconds since 1970 UTC; `None` while it does.
    pub fn stale_since(&self, state: &State) -> Option<i64> {
        let told = state.progress.as_ref()?;
        let limit = i64::try_from(self.stale.as_micros()).unwrap_or(i64::MAX);
        let since = told.updated_micros.saturating_add(told.stale_after_micros.unwrap_or(limit));
        (!told.holds_at(system_now(), limit)).then_some(since)
    }
}

/// Returns the consumers named `names`, or all, and where each stands; without a state where there is no lake yet.
pub fn states(pintail: &Pintail, names: &[String]) -> Result<Vec<(Listed, Option<State>)>, Failure> {
    let mut found = Vec::new();
    let stale = pintail.project().project.config.maintain.stale;
    let decoded = openings(pintail, names)?.into_iter().map(|opening| Listed::of_decoder(opening, stale));
    let mut all: Vec<Listed> = decoded.collect();
    for script in stream_scripts(pintail) {
        if names.is_empty() || names.contains(&script.name().to_string()) {
            all.extend(Listed::of_script(pintail, script)?);
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

/// Returns where a consumer stands, for people.
pub fn condition_text(condition: &Condition) -> String {
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

/// Returns how old the oldest unread snapshot is; `None` where nothing is known of what is unread.
fn lag_micros(state: &State) -> Option<i64> {
    match state.condition {
        Condition::New | Condition::NoSource | Condition::Ahead | Condition::OtherSource => None,
        Condition::Idle | Condition::Lagging | Condition::Gap(_) => {
            Some(state.oldest_unread_micros.map_or(0, |oldest| system_now().saturating_sub(oldest).max(0)))
        }
    }
}

/// Returns the lag, for people.
pub fn lag_text(state: &State) -> String {
    or_dash(lag_micros(state).map(text_of))
}

/// Returns how long ago something was.
pub fn age(since_micros: i64) -> String {
    text_of(system_now().saturating_sub(since_micros).max(0))
}

/// Returns a time in whole seconds: below them nobody acts.
fn text_of(micros: i64) -> String {
    let seconds = u64::try_from(micros / 1_000_000).unwrap_or(0);
    duration_text(Duration::from_secs(seconds))
}

fn start_word(start: Start) -> String {
    match start {
        Start::Earliest => "earliest".to_owned(),
        Start::Head => "head".to_owned(),
        Start::After(snapshot) => snapshot.to_string(),
    }
}

/// Returns where a consumer stands, for programs.
pub fn state_json(listed: &Listed, state: Option<&State>) -> Value {
    let at = |micros: Option<i64>| micros.and_then(chrono::DateTime::from_timestamp_micros).map(rfc3339);
    let progress = state.and_then(|state| state.progress.as_ref());
    json!({
        "consumer": listed.name,
        "script": listed.decoder.is_none(),
        "source": listed.spec.source.asset(&listed.way.lake.name),
        "decoder": listed.decoder.as_ref().map(|(name, _)| name),
        "decoder_version": listed.decoder.as_ref().map(|(_, version)| version),
        "state": state.map_or("no_lake", |state| condition_word(&state.condition)),
        "lag_seconds": state.and_then(lag_micros).map(|micros| micros as f64 / 1e6),
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
        "stale_after_seconds": listed.stale.as_secs_f64(),
        "stale_since": at(state.and_then(|state| listed.stale_since(state))),
        "retention_seconds": listed.spec.retention.map(|kept| kept.as_secs_f64()),
        "start": start_word(listed.spec.start),
        "gap_policy": listed.spec.gap.word(),
        "owner": state.and_then(|state| state.owner.as_ref()).map(|owner| json!({
            "process": owner.process,
            "since": at(Some(owner.since_micros)),
        })),
        "dead_letters": state.map(|state| state.dead_letters),
    })
}

#[cfg(test)]
mod tests {
    use pintail_core::id::SnapshotId;

    use super::*;

    #[test]
    fn a_lag_is_told_only_where_it_is_known_what_is_unread() {
        let lag = |condition, oldest_unread_micros| {
            let state = State {
                condition,
                cursor: Some(SnapshotId(7)),
                moved_micros: None,
                head: SnapshotId(5),
                unread_snapshots: 0,
                unread_rows: 0,
                oldest_unread_micros,
                progress: None,
                dead_letters: 0,
                owner: None,
            };
            lag_text(&state)
        };
        let a_minute_ago = system_now() - 60_500_000;
        assert_eq!(lag(Condition::Idle, None), "0 ms");
        assert_eq!(lag(Condition::Lagging, Some(a_minute_ago)), "1 min 0 s");
        for unknown in [Condition::New, Condition::NoSource, Condition::Ahead, Condition::OtherSource] {
            assert_eq!(lag(unknown.clone(), None), "-", "{unknown:?}");
        }
    }
}
