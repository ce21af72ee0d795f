//! `consume remove`: a consumer that is not needed any more gives up its cursor and what it holds.

use clap::Args;
use pintail_core::diagnostic::nearest;
use pintail_core::id::LakeName;
use pintail_runner::Pintail;
use pintail_runner::executors::duckdb::stream_spec;
use pintail_streams::Writer;
use pintail_streams::consumer::{Removed, known, remove};
use serde_json::{Value, json};

use super::opening::{Way, openings};
use super::scripts::stream_scripts;
use super::show::holder_text;
use crate::agreement::{Question, is_agreed};
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// Which consumer.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail consume remove decode-v1         asks, then removes it with all of its shards
  pintail consume remove decode.03 --yes   one shard, without asking

The name may be one that pintail.toml does not have any more: `pintail maintain --dry-run` lists all that
a lake knows. What goes is the cursor and what expiry waits for. The tables that it wrote and its dead
letters stay; a script with `-- materialize manual <uri>` can drop them. The consumer must not be running.")]
pub struct RemoveArgs {
    /// The consumer, one of its shards, or a script with `stream`
    name: String,
    /// Where several lakes know the name, the one that is meant
    #[arg(long, value_name = "LAKE")]
    lake: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// The consumers of one lake that a name means.
struct Found {
    lake: LakeName,
    writer: Writer,
    names: Vec<String>,
}

/// Runs the command.
pub fn run(args: &RemoveArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let found = find(args, &pintail)?;
    let names = found.names.join(", ");
    if !args.yes {
        let question = Question {
            what: "a removal",
            question: &format!("remove {names} from lake {}? nothing will wait for what it has not read", found.lake),
            otherwise: "`--yes` goes on without asking; the tables that it wrote stay",
        };
        if !is_agreed(&question, app)? {
            app.terminal.talk("nothing was changed");
            return Ok(Exit::Failed);
        }
    }
    let mut removed = Vec::new();
    for name in &found.names {
        let outcome = remove(&found.writer, name)?.map_err(|holder| {
            Failure::usage(format!("{} runs `{name}`{}", holder_text(&holder), done_so_far(&removed)))
                .with_hint("stop it first: it could not go on from a cursor that is gone")
        })?;
        removed.push((name.clone(), outcome));
    }
    conclude(args, &pintail, &found, &removed, app)
}

fn done_so_far(removed: &[(String, Removed)]) -> String {
    match removed {
        [] => "; nothing was removed".to_owned(),
        _ => {
            format!("; {} removed before", removed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Finds the name among all that the lakes know, whether it is configured or not.
fn find(args: &RemoveArgs, pintail: &Pintail) -> Result<Found, Failure> {
    let (mut found, mut all) = (Vec::new(), Vec::new());
    for lake in pintail.existing_lakes()? {
        if args.lake.as_ref().is_some_and(|asked| asked != lake.name.as_str()) {
            continue;
        }
        let writer = Way::to(pintail, &lake.name, 1)?.writer()?;
        let known = known(&writer)?;
        let names: Vec<String> = known.iter().filter(|name| is_meant(name, &args.name)).cloned().collect();
        all.extend(known);
        if !names.is_empty() {
            found.push(Found { lake: lake.name.clone(), writer, names });
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(unknown(args, pintail, &all)),
        _ => {
            let lakes: Vec<String> = found.iter().map(|found| format!("`--lake {}`", found.lake)).collect();
            let message = format!("{} lakes know a consumer `{}`", found.len(), args.name);
            Err(Failure::usage(message).with_hint(format!("say which one is meant: {}", lakes.join(" or "))))
        }
    }
}

/// Returns whether `asked` means the consumer `full_name`: it by name, all of its shards, or the script that it is.
fn is_meant(full_name: &str, asked: &str) -> bool {
    let is_shard = full_name.strip_prefix(asked).and_then(|rest| rest.strip_prefix('.')).is_some_and(is_number);
    full_name == asked || is_shard || full_name.strip_prefix("script.") == Some(&asked.replace('/', "."))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn unknown(args: &RemoveArgs, pintail: &Pintail, known: &[String]) -> Failure {
    let name = &args.name;
    if let Some(lake) = &args.lake
        && !pintail.lakes().keys().any(|known| known.as_str() == lake)
    {
        let near = nearest(lake, pintail.lakes().keys().map(LakeName::as_str));
        let failure = Failure::usage(format!("there is no lake `{lake}`"));
        return match near {
            Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
            None => failure,
        };
    }
    let is_configured = pintail.project().project.config.consumers.contains_key(name)
        || stream_scripts(pintail).iter().any(|script| script.name().as_str() == name);
    if is_configured {
        return Failure::usage(format!("`{name}` has never run, so there is nothing to remove"))
            .with_hint("take its section out of pintail.toml, or its script out of the project");
    }
    let failure = Failure::usage(format!("no lake knows a consumer `{name}`"));
    match (nearest(name, known.iter().map(String::as_str)), known) {
        (Some(near), _) => failure.with_hint(format!("did you mean `{near}`?")),
        (None, []) => failure.with_hint("no consumer has ever run"),
        (None, _) => failure.with_hint(format!("there is {}", known.join(", "))),
    }
}

fn conclude(
    args: &RemoveArgs,
    pintail: &Pintail,
    found: &Found,
    removed: &[(String, Removed)],
    app: &App,
) -> Result<Exit, Failure> {
    let (tables, configured) = left_behind(args, pintail, found)?;
    if app.terminal.is_json {
        let removed: Vec<Value> = removed
            .iter()
            .map(|(name, removed)| {
                json!({"consumer": name, "cursor": removed.had_cursor, "progress": removed.had_progress})
            })
            .collect();
        let (lake, stay) = (found.lake.as_str(), tables);
        app.terminal.json(&json!({"lake": lake, "removed": removed, "stay": stay, "configured": configured}));
        return Ok(Exit::Ok);
    }
    for (name, _) in removed {
        app.terminal.data(&format!("{name}: removed from lake {}; nothing waits for it any more\n", found.lake));
    }
    let stay = if tables.is_empty() { "the tables that it wrote".to_owned() } else { tables.join(", ") };
    app.terminal.talk(&format!("note: {stay} and its dead letters stay"));
    app.terminal.hint("a script with `-- materialize manual <uri>` can drop them, with `DROP TABLE <table>`");
    if let Some(place) = configured {
        app.terminal.warning(&format!("{place} is still there, and its next run begins anew"));
    }
    Ok(Exit::Ok)
}

/// Returns the tables that stay, as far as the project still says them, and where it still names the consumer.
fn left_behind(args: &RemoveArgs, pintail: &Pintail, found: &Found) -> Result<(Vec<String>, Option<String>), Failure> {
    let name = args.name.split('.').next().unwrap_or(&args.name);
    if pintail.project().project.config.consumers.contains_key(name) {
        let mut tables = Vec::new();
        for target in
            openings(pintail, &[name.to_owned()])?.iter().take(1).flat_map(|opening| opening.decoder.targets())
        {
            tables.extend(target.rollup.as_ref().map(|rollup| rollup.table().to_owned()));
            tables.push(target.table);
        }
        tables.sort();
        return Ok((tables, Some(format!("`[consumer.{name}]` in pintail.toml"))));
    }
    let is_this = |full_name: String| found.names.contains(&full_name);
    let script = stream_scripts(pintail)
        .into_iter()
        .find(|script| stream_spec(script).is_some_and(|spec| is_this(spec.full_name())));
    let Some(script) = script else { return Ok((Vec::new(), None)) };
    let tables = script.target.iter().map(|target| target.short_name().to_owned()).collect();
    Ok((tables, Some(format!("the script `{}`", script.name()))))
}
