//! `consume run`: consumers at work, each shard on a thread and an instance of its own.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Args;
use pintail_core::annotation::parse_duration_text;
use pintail_runner::{duration_text, with_sources};
use pintail_streams::consumer::{Holder, Landed, PassError};
use pintail_streams::measures;
use pintail_streams::service::{Ended, Event, Mode, Stop, work};
use serde_json::{Value, json};

use super::opening::{Opening, failure, openings};
use super::scripts::Scripts;
use super::show::holder_text;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::metrics;
use crate::render::text::{count, thousands};

/// Which consumers, and for how long.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --follow it ends when nothing is left, and with exit code 1 when another process has a consumer.
With it, such a consumer is waited for, and taken over when that process is gone. Ctrl-C ends between two
windows; a window that is not committed is read again the next time, and so is everything after a kill.")]
pub struct RunArgs {
    /// The consumers; otherwise all
    names: Vec<String>,
    /// Go on until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// How often to look when nothing has come
    #[arg(long, value_name = "TIME", value_parser = parse_duration_text, default_value = "2s", requires = "follow")]
    poll: Duration,
    /// After so long a time of failures a consumer gives up
    #[arg(long, value_name = "TIME", value_parser = parse_duration_text, default_value = "1h", requires = "follow")]
    patience: Duration,
    /// Show metrics in Prometheus form at this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", value_parser = metrics::address, requires = "follow")]
    metrics: Option<SocketAddr>,
}

/// What a thread tells.
enum Told {
    Line(String),
    Landed(Landed),
    Ended(Result<Ended, PassError>),
}

/// What became of one consumer.
#[derive(Default)]
struct Summary {
    passes: Vec<Landed>,
    held: Option<Holder>,
    was_stopped: bool,
    failure: Option<Failure>,
    last_line: String,
}

/// Runs the command.
pub fn run(args: &RunArgs, app: &App) -> Result<Exit, Failure> {
    metrics::show_at(args.metrics)?;
    measures::describe();
    let pintail = app.open_for_question()?;
    let openings = openings(&pintail, &args.names)?;
    if !openings.is_empty() {
        app.require(pintail.project(), &pintail.project().project.config.ingest.blobs_unset)?;
    }
    let mut scripts = Scripts::of(&pintail, &args.names);
    if openings.is_empty() && scripts.is_none() {
        return Err(Failure::usage("there is no consumer").with_hint(
            "add a section `[consumer.<name>]` to pintail.toml, or a script with `-- stream`; docs/guides/streams.md shows both",
        ));
    }
    scripts.iter().for_each(|scripts| scripts.show_errors(app));
    let mode = match args.follow {
        true => Mode::Follow { poll: args.poll, patience: args.patience },
        false => Mode::Once,
    };
    let stop = Stop::default();
    interrupt::listen_to_stop(stop.clone(), pintail.cancel())?;
    let summaries = work_on_all(&openings, &mut scripts, mode, &stop, app)?;
    conclude(&openings, summaries, scripts.as_ref(), mode, app)
}

fn work_on_all(
    openings: &[Opening],
    scripts: &mut Option<Scripts<'_>>,
    mode: Mode,
    stop: &Stop,
    app: &App,
) -> Result<Vec<Summary>, Failure> {
    let (sender, receiver) = mpsc::channel::<(usize, Told)>();
    std::thread::scope(|scope| {
        for (index, opening) in openings.iter().enumerate() {
            let sender = sender.clone();
            scope.spawn(move || {
                // Nobody could want to hear what is told when the receiver is gone.
                let mut say = |told| drop(sender.send((index, told)));
                let mut tell = |event: Event<'_>| match event {
                    // Who does not follow waits for nobody; how it ended is said at the end.
                    Event::Held(_) if mode == Mode::Once => {}
                    event => tell(&event, opening, &mut say),
                };
                let ended = work(&|| opening.way.writer(), &opening.spec, &*opening.decoder, mode, stop, &mut tell);
                drop(sender.send((index, Told::Ended(ended))));
            });
        }
        drop(sender);
        let mut summaries: Vec<Summary> = openings.iter().map(|_| Summary::default()).collect();
        let mut hear = |(index, told): (usize, Told)| {
            let name = openings[index].spec.full_name();
            hear(told, &name, &mut summaries[index], mode, app);
        };
        let worked = match (mode, scripts) {
            (Mode::Follow { poll, patience }, Some(scripts)) => {
                follow(scripts, &receiver, &mut hear, (poll, patience), stop, app)
            }
            (_, scripts) => {
                receiver.iter().for_each(hear);
                // They read what the decoders have written.
                scripts.as_mut().map_or(Ok(()), |scripts| scripts.drain(app, false))
            }
        };
        // A fault of the scripts must not leave the decoders running for ever.
        if worked.is_err() {
            stop.stop();
        }
        worked.map(|()| summaries)
    })
}

/// Runs the scripts again and again, and hears what the decoders tell, until the end is asked for, or until the scripts
/// have failed for as long as patience lasts.
fn follow(
    scripts: &mut Scripts<'_>,
    receiver: &mpsc::Receiver<(usize, Told)>,
    hear: &mut impl FnMut((usize, Told)),
    (poll, patience): (Duration, Duration),
    stop: &Stop,
    app: &App,
) -> Result<(), Failure> {
    let mut failing: Option<Instant> = None;
    while !stop.is_stopped() {
        scripts.drain(app, true)?;
        receiver.try_iter().for_each(&mut *hear);
        failing = scripts.has_failed.then(|| failing.unwrap_or_else(Instant::now));
        if failing.is_some_and(|since| patience <= since.elapsed()) {
            app.terminal.error(&format!("scripts: nothing but failures for {}; the end", duration_text(patience)));
            stop.stop();
            break;
        }
        stop.wait(poll);
    }
    receiver.iter().for_each(hear);
    Ok(())
}

fn tell(event: &Event<'_>, opening: &Opening, say: &mut impl FnMut(Told)) {
    match event {
        Event::Landed(landed) => say(Told::Landed((*landed).clone())),
        Event::Held(holder) => say(Told::Line(format!("{} has it; it is waited for", holder_text(holder)))),
        Event::NoSource { near } => say(Told::Line(opening.absence(*near))),
        Event::Failed { error, pause } => {
            let text = with_sources(*error);
            say(Told::Line(format!("{text}; tried again in {}", duration_text(*pause))));
        }
        Event::Retired(rows) => say(Told::Line(format!("{} decoded rows went: their time is over", thousands(*rows)))),
        Event::Idle => {}
    }
}

fn hear(told: Told, name: &str, summary: &mut Summary, mode: Mode, app: &App) {
    match told {
        // The same again is no news: who waits for something says it once.
        Told::Line(text) if text == summary.last_line => {}
        Told::Line(text) => {
            app.terminal.talk(&format!("{name}: {text}"));
            summary.last_line = text;
        }
        Told::Landed(landed) => {
            match app.terminal.is_json {
                true if mode != Mode::Once => app.terminal.json_line(&landed_json(name, &landed)),
                true => {}
                false => app.terminal.data(&format!("{name}: {}\n", landed_text(&landed))),
            }
            summary.last_line.clear();
            // What goes on for ever is not kept.
            if mode == Mode::Once {
                summary.passes.push(landed);
            }
        }
        Told::Ended(Ok(Ended::Held(holder))) => summary.held = Some(holder),
        Told::Ended(Ok(Ended::Done)) => {}
        Told::Ended(Ok(Ended::Stopped)) => summary.was_stopped = true,
        Told::Ended(Err(error)) => {
            let failure = failure(&error);
            // The others go on, so it is said at once.
            app.terminal.error(&format!("{name}: {failure}"));
            summary.failure = Some(failure);
        }
    }
}

fn conclude(
    openings: &[Opening],
    summaries: Vec<Summary>,
    scripts: Option<&Scripts<'_>>,
    mode: Mode,
    app: &App,
) -> Result<Exit, Failure> {
    let scripts_failed = scripts.is_some_and(|scripts| scripts.has_failed);
    if app.terminal.is_json && mode == Mode::Once {
        let of = |(opening, summary): (&Opening, &Summary)| {
            let name = opening.spec.full_name();
            json!({
                "consumer": name,
                "passes": summary.passes.iter().map(|landed| landed_json(&name, landed)).collect::<Vec<_>>(),
                "held_by": summary.held.as_ref().map(|holder| holder.process),
                "error": summary.failure.as_ref().map(ToString::to_string),
            })
        };
        let consumers: Vec<Value> = openings.iter().zip(&summaries).map(of).collect();
        let written = scripts.map(|scripts| scripts.passes.as_slice()).unwrap_or_default();
        app.terminal.json(&json!({"consumers": consumers, "scripts": written}));
    }
    if mode != Mode::Once {
        // What is followed ends when it is asked to, and is taken up the next time.
        let has_failed = summaries.iter().any(|summary| summary.failure.is_some());
        return Ok(if has_failed || scripts_failed { Exit::Failed } else { Exit::Ok });
    }
    for (opening, summary) in openings.iter().zip(&summaries) {
        let name = opening.spec.full_name();
        if let Some(holder) = &summary.held {
            app.terminal.error(&format!("{name}: {} has it, so nothing was done", holder_text(holder)));
            app.terminal.hint("with `--follow`, a consumer is waited for, and taken over when its owner is gone");
        } else if summary.was_stopped {
            app.terminal.error(&format!("{name}: stopped; what is left is read the next time"));
        } else if summary.passes.is_empty() && summary.failure.is_none() && !app.terminal.is_json {
            app.terminal.data(&format!("{name}: nothing new\n"));
        }
    }
    let is_done = |summary: &Summary| summary.failure.is_none() && summary.held.is_none() && !summary.was_stopped;
    let scripts_stopped = scripts.is_some_and(|scripts| scripts.was_stopped);
    if scripts_stopped {
        app.terminal.error("scripts: stopped; what is left is read the next time");
    }
    let is_whole = summaries.iter().all(is_done) && !scripts_failed && !scripts_stopped;
    Ok(if is_whole { Exit::Ok } else { Exit::Failed })
}

/// Returns a pass in one line.
pub fn landed_text(landed: &Landed) -> String {
    let mut parts = Vec::new();
    match (&landed.gap, landed.range) {
        (Some(gap), (_, upto)) => parts.push(format!("over the gap of {gap} to snapshot {upto}")),
        (None, (after, upto)) if after < upto => parts.push(format!("up to snapshot {upto}")),
        _ => {}
    }
    parts.push(format!("{} read", count(usize::try_from(landed.rows).unwrap_or(usize::MAX), "row")));
    parts.extend(landed.written.iter().map(|(table, rows)| format!("{} in {table}", thousands(*rows))));
    let more = [("known already", landed.duplicates), ("replaced", landed.replaced)];
    parts.extend(more.iter().filter(|(_, rows)| 0 < *rows).map(|(what, rows)| format!("{} {what}", thousands(*rows))));
    if 0 < landed.letters {
        parts.push(count(usize::try_from(landed.letters).unwrap_or(usize::MAX), "dead letter"));
    }
    parts.join(", ")
}

/// Returns a pass as JSON.
pub fn landed_json(consumer: &str, landed: &Landed) -> Value {
    let seconds = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
    let written: serde_json::Map<String, Value> =
        landed.written.iter().map(|(table, rows)| (table.clone(), json!(rows))).collect();
    json!({
        "consumer": consumer,
        "after": landed.range.0,
        "upto": landed.range.1,
        "snapshot": landed.snapshot,
        "rows": landed.rows,
        "written": written,
        "duplicates": landed.duplicates,
        "replaced": landed.replaced,
        "dead_letters": landed.letters,
        "windows": landed.windows,
        "gap": landed.gap,
        "seconds": {
            "read": seconds(landed.phases.read),
            "decode": seconds(landed.phases.decode),
            "stage": seconds(landed.phases.stage),
            "commit": seconds(landed.phases.commit),
        },
    })
}
