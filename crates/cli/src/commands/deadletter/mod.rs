//! `deadletter`: what could not be taken in, shown and tried again.

mod list;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use pintail_runner::with_sources;
use pintail_telemetry::letters::{self, CONSUMER, Letter, LetterFilter, Replayed};
use serde_json::{Value, json};

use super::ingest::parts::Parts;
use crate::app::App;
use crate::environment::now;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::{count, or_dash, rfc3339, thousands};

/// So much of an id is shown, and tells it from others.
const SHOWN: usize = 12;

/// What to do with dead letters.
#[derive(Debug, Args)]
pub struct DeadletterArgs {
    #[command(subcommand)]
    command: DeadletterCommand,
}

#[derive(Debug, Subcommand)]
enum DeadletterCommand {
    /// List what could not be taken in or decoded, the newest first
    List(list::ListArgs),
    /// Show one letter with its bytes
    Show(ShowArgs),
    /// Try again to take letters in as events
    Replay(ReplayArgs),
}

/// Which letter.
#[derive(Debug, Args)]
struct ShowArgs {
    /// The beginning of its id
    id: String,
}

/// Which letters, and how.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail deadletter replay 4f3a                     one letter
  pintail deadletter replay --origin kafka           all of one origin
  pintail deadletter replay 4f3a --with fixed.json   with what it should have been

A letter lands once, however often it is replayed. Letters of consumers are about rows that are in the
lake: `pintail consume replay` decodes those again.")]
struct ReplayArgs {
    /// Beginnings of ids
    #[arg(required_unless_present = "origin")]
    ids: Vec<String>,
    /// All of this origin
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<String>,
    /// A file with the event that the one letter should have been
    #[arg(long, value_name = "FILE", conflicts_with = "origin")]
    with: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &DeadletterArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let parts = Parts { app, pintail: &pintail };
    match &args.command {
        DeadletterCommand::List(args) => list::run(args, &parts),
        DeadletterCommand::Show(args) => show(args, &parts),
        DeadletterCommand::Replay(args) => replay(args, &parts),
    }
}

fn find(parts: &Parts<'_>, filter: &LetterFilter) -> Result<Vec<Letter>, Failure> {
    // There is nothing to look at, and nothing is made, in a lake that is not there.
    if !parts.lake()?.exists()? {
        return Ok(Vec::new());
    }
    Ok(letters::list(&parts.writer(1)?, filter)?)
}

fn show(args: &ShowArgs, parts: &Parts<'_>) -> Result<Exit, Failure> {
    let letter = only(parts, &args.id)?;
    let terminal = &parts.app.terminal;
    if terminal.is_json {
        terminal.json(&letter_json(&letter));
        return Ok(Exit::Ok);
    }
    let facts = [
        ("id", letter.id.clone()),
        ("recorded", letter.recorded_at.clone()),
        ("origin", letter.origin.clone()),
        ("where", letter.position.clone()),
        ("part", or_dash(letter.part.clone())),
        ("why", letter.reason.clone()),
        ("event", or_dash(letter.event.id.clone())),
        ("source", or_dash(letter.event.source.clone())),
        ("subject", or_dash(letter.event.subject.clone())),
        ("type", or_dash(letter.event.event_type.clone())),
        ("time", or_dash(time_of(&letter))),
        ("replayed", or_dash(letter.replayed_at.clone())),
        ("bytes", thousands(letter.raw.len() as u64)),
    ];
    let lines: String = facts.iter().map(|(name, value)| format!("{name:<9} {value}\n")).collect();
    terminal.data(&format!("{lines}\n{}\n", String::from_utf8_lossy(&letter.raw)));
    Ok(Exit::Ok)
}

fn replay(args: &ReplayArgs, parts: &Parts<'_>) -> Result<Exit, Failure> {
    let mut found = match (&args.with, args.ids.as_slice()) {
        (Some(_), [id]) => vec![only(parts, id)?],
        (Some(_), _) => return Err(Failure::usage("`--with` is for one letter: give the beginning of one id")),
        (None, ids) => {
            if let Some(origin) = &args.origin {
                list::check_origin(parts, origin)?;
            }
            let filter = LetterFilter { ids: ids.to_vec(), origin: args.origin.clone(), ..LetterFilter::default() };
            find(parts, &filter)?
        }
    };
    if let Some(file) = &args.with {
        let path = parts.app.environment.current_dir.join(file);
        let text = std::fs::read(&path)
            .map_err(|error| Failure::usage(format!("could not read {}: {error}", path.display())))?;
        found.iter_mut().for_each(|letter| text.clone_into(&mut letter.raw));
    }
    if found.is_empty() {
        return Err(Failure::usage("no dead letter is meant by that").with_hint("`pintail deadletter list` shows them"));
    }
    let done = letters::replay(parts.writer(1)?, parts.table(), &found, now().timestamp_micros());
    let done = done.map_err(|error| Failure::internal(with_sources(&error)))?;
    tell(&done, &found, parts);
    Ok(if done.refused.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn tell(done: &Replayed, letters: &[Letter], parts: &Parts<'_>) {
    let terminal = &parts.app.terminal;
    if terminal.is_json {
        let refused = done.refused.iter().map(|(id, reason)| json!({"id": id, "reason": reason}));
        terminal.json(&json!({"landed": done.landed, "refused": refused.collect::<Vec<_>>()}));
        return;
    }
    terminal.data(&format!("{} landed in {}\n", count(done.landed.len(), "letter"), parts.table()));
    for (id, reason) in &done.refused {
        terminal.warning(&format!("{} did not land: {reason}", short_id(id)));
    }
    // A consumer's letter is about a row that is there: another event in its place would be a second one.
    let consumer_of = |id: &String| letters.iter().find(|letter| letter.id == *id).and_then(consumer);
    let consumers: BTreeSet<Option<&str>> = done.refused.iter().map(|(id, _)| consumer_of(id)).collect();
    for consumer in consumers {
        match consumer {
            Some(name) => terminal
                .hint(&format!("`pintail consume replay {name} --from <time> --to <time>` decodes its rows again")),
            None => terminal.hint("`pintail deadletter replay <id> --with <file>` takes what it should have been"),
        }
    }
}

/// Returns the consumer whose letter it is, by the name that is configured: shards have one in common.
fn consumer(letter: &Letter) -> Option<&str> {
    let name = letter.origin.strip_prefix(CONSUMER)?;
    Some(name.split('.').next().unwrap_or(name))
}

/// Returns the one letter whose id begins with `id`.
fn only(parts: &Parts<'_>, id: &str) -> Result<Letter, Failure> {
    let filter = LetterFilter { ids: vec![id.to_owned()], with_replayed: true, ..LetterFilter::default() };
    let mut found = find(parts, &filter)?;
    match (found.pop(), found.len()) {
        (Some(letter), 0) => Ok(letter),
        (None, _) => Err(Failure::usage(format!("no dead letter has an id that begins with `{id}`"))
            .with_hint("`pintail deadletter list` shows them")),
        (Some(_), others) => Err(Failure::usage(format!("{} letters have ids that begin with `{id}`", others + 1))),
    }
}

/// Returns the time of the letter's event.
fn time_of(letter: &Letter) -> Option<String> {
    letter.event.time_micros.and_then(chrono::DateTime::from_timestamp_micros).map(rfc3339)
}

fn short_id(id: &str) -> String {
    id.chars().take(SHOWN).collect()
}

fn letter_json(letter: &Letter) -> Value {
    json!({
        "id": letter.id,
        "recorded_at": letter.recorded_at,
        "origin": letter.origin,
        "position": letter.position,
        "part": letter.part,
        "reason": letter.reason,
        "raw": String::from_utf8_lossy(&letter.raw),
        "replayed_at": letter.replayed_at,
        "event": {
            "id": letter.event.id,
            "source": letter.event.source,
            "subject": letter.event.subject,
            "type": letter.event.event_type,
            "time": time_of(letter),
        },
    })
}
