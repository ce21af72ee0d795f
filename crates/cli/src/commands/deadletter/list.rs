//! `deadletter list`: one line a letter, as wide as a terminal; all of it is in `show` and in JSON.

use clap::Args;
use pintail_core::diagnostic::nearest;
use pintail_telemetry::letters::{CONSUMER, Letter, LetterFilter, ORIGINS, origins};
use serde_json::json;

use super::{find, letter_json, short_id};
use crate::commands::ingest::parts::Parts;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::render::text::shortened;

/// As wide as a line may be where nobody knows the terminal's width.
const WIDTH: usize = 80;

/// What id, time and the spaces between columns take.
const FIXED: usize = 12 + 2 + 16 + 2 + 2 + 2;

/// Which letters.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only of this origin, such as http, nats, kafka, file or "consumer decode"
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<String>,
    /// Also those that were replayed
    #[arg(long)]
    all: bool,
    /// The newest so many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: u64,
}

/// Shows the letters.
pub fn run(args: &ListArgs, parts: &Parts<'_>) -> Result<Exit, Failure> {
    if let Some(origin) = &args.origin {
        check_origin(parts, origin)?;
    }
    let filter = LetterFilter {
        origin: args.origin.clone(),
        with_replayed: args.all,
        limit: Some(args.limit),
        ..LetterFilter::default()
    };
    let found = find(parts, &filter)?;
    let terminal = &parts.app.terminal;
    if terminal.is_json {
        terminal.json(&json!({"letters": found.iter().map(letter_json).collect::<Vec<_>>()}));
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        let of = args.origin.as_ref().map(|origin| format!(" of origin `{origin}`")).unwrap_or_default();
        terminal.data(&format!("there are no dead letters{of}\n"));
        return Ok(Exit::Ok);
    }
    let columns = [
        ("id", Align::Left),
        ("at", Align::Left),
        ("origin", Align::Left),
        ("where", Align::Left),
        ("why", Align::Left),
    ];
    let width = terminal.width.map_or(WIDTH, |width| usize::from(width).max(WIDTH));
    terminal.data(&listing(&columns, found.iter().map(|letter| row(letter, width)).collect()));
    if found.len() as u64 == args.limit {
        terminal.hint(&format!("these are the newest {}; `--limit` shows more", args.limit));
    }
    terminal.hint("`pintail deadletter show <id>` shows the whole of one");
    Ok(Exit::Ok)
}

/// Returns the line of a letter, `width` wide.
fn row(letter: &Letter, width: usize) -> Vec<String> {
    let place = match &letter.part {
        Some(part) => format!("{}, {part}", letter.position),
        None => letter.position.clone(),
    };
    let room = width.saturating_sub(FIXED);
    let (origins, places) = (room / 4, room * 3 / 8);
    let at = letter.recorded_at.replace('T', " ").chars().take(16).collect();
    let origin = shortened(&letter.origin, origins);
    let why = shortened(&one_line(&letter.reason), room - origins - places);
    vec![short_id(&letter.id), at, origin, end_of(&one_line(&place), places), why]
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the end of `text`, which tells one place of a source from another, in so many characters.
fn end_of(text: &str, most: usize) -> String {
    let left_out = text.chars().count().saturating_sub(most);
    match left_out {
        0 => text.to_owned(),
        // One place is for the `…`.
        _ => format!("…{}", text.chars().skip(left_out + 1).collect::<String>()),
    }
}

/// Refuses an origin that neither ingest nor a consumer has, and that no letter is of.
pub fn check_origin(parts: &Parts<'_>, origin: &str) -> Result<(), Failure> {
    let consumers = parts.pintail.project().project.config.consumers.keys();
    let mut known: Vec<String> = ORIGINS.map(str::to_owned).to_vec();
    known.extend(consumers.map(|name| format!("{CONSUMER}{name}")));
    if parts.lake()?.exists()? {
        known.extend(origins(&parts.writer(1)?)?);
    }
    if known.iter().any(|known| known == origin) {
        return Ok(());
    }
    let near = nearest(origin, known.iter().map(String::as_str));
    let hint = near.map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
    Err(Failure::usage(format!("no dead letter has the origin `{origin}`")).with_hint(hint))
}
