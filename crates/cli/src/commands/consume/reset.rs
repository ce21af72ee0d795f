//! `consume reset`: a cursor is moved by hand.

use clap::Args;
use pintail_runner::workspace::parse_start;
use pintail_streams::consumer::{Consumer, Start};
use serde_json::json;

use super::opening::{failure, openings};
use super::show::holder_text;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where to.
#[derive(Debug, Args)]
#[command(after_help = "\
What is consumed again is not doubled: rows are known by their identity. What lies between the cursor
and a later place is left out. The consumer must not be running.")]
pub struct ResetArgs {
    /// The consumer; with several shards, each of them is moved
    name: String,
    /// `earliest` for all that the table holds, `head` for what comes from now on, or a snapshot
    #[arg(long, value_name = "PLACE", default_value = "earliest", value_parser = start)]
    to: Start,
}

fn start(text: &str) -> Result<Start, String> {
    parse_start(text).ok_or_else(|| format!("`{text}` is neither `earliest` nor `head` nor a snapshot"))
}

/// Runs the command.
pub fn run(args: &ResetArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    if super::is_script(&pintail, &args.name) {
        return Err(super::not_for_scripts(&args.name));
    }
    let mut moved = Vec::new();
    for opening in openings(&pintail, std::slice::from_ref(&args.name))? {
        let writer = opening.way.writer()?;
        let name = opening.spec.full_name();
        let opened =
            Consumer::open(&writer, opening.spec.clone(), &*opening.decoder).map_err(|error| failure(&error))?;
        let mut consumer = opened.map_err(|holder| {
            Failure::usage(format!("{} runs `{name}`", holder_text(&holder)))
                .with_hint("stop it first: what it commits would be from the old place")
        })?;
        let (was, is) = consumer.reset(args.to).map_err(|error| failure(&error))?;
        moved.push(json!({"consumer": name, "was": was.map(|was| was.0), "cursor": is.0}));
        if !app.terminal.is_json {
            let was = was.map_or_else(|| "it had never run".to_owned(), |was| format!("it was at {was}"));
            app.terminal.data(&format!("{name}: the cursor is at snapshot {is}; {was}\n"));
        }
    }
    if app.terminal.is_json {
        app.terminal.json(&json!({"moved": moved}));
    }
    Ok(Exit::Ok)
}
