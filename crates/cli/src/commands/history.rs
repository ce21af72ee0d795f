//! `history`: the versions of an asset, each with what made it; without an asset, the last runs.

use clap::Args;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::nearest;
use pintail_runner::Pintail;
use pintail_store::{Materialization, Run, RunStatus};
use serde_json::{Value, json};

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::render::text::{count, moment, or_dash, rfc3339, thousands};

/// Whose history.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail history                     the last runs
  pintail history orders              the versions of a table
  pintail query --at 7 'FROM orders'  reads the version of a snapshot")]
pub struct HistoryArgs {
    /// An asset, a table of the default lake, or a script; the last runs without one
    asset: Option<String>,
    /// Show at most so many
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: u32,
}

/// Runs the command.
pub fn run(args: &HistoryArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_reading()?;
    let Some(text) = &args.asset else {
        let runs = pintail.runs(args.limit)?;
        show_runs(&runs, app);
        return Ok(Exit::Ok);
    };
    let asset = pintail.parse_asset(text)?;
    let versions = pintail.history(&asset, args.limit)?;
    if versions.is_empty() && pintail.find_script(text).is_err() && pintail.table(&asset)?.is_none() {
        return Err(unknown(&pintail, text, &asset));
    }
    if app.terminal.is_json {
        let versions: Vec<Value> = versions.iter().map(version_json).collect();
        app.terminal.json(&json!({"asset": asset.to_string(), "versions": versions}));
    } else if versions.is_empty() {
        app.terminal.data(&format!("{asset} has no versions: Pintail never wrote it\n"));
    } else {
        app.terminal.data(&format!("{asset}\n\n{}", version_list(&versions)));
    }
    Ok(Exit::Ok)
}

fn unknown(pintail: &Pintail, text: &str, asset: &Asset) -> Failure {
    let names = pintail.project().scripts.iter().filter_map(|script| script.target.as_ref());
    let names: Vec<String> = names.map(|asset| asset.short_name().to_owned()).collect();
    let failure = Failure::usage(format!("there is no script or table `{text}`"));
    match nearest(asset.short_name(), names.iter().map(String::as_str)) {
        Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
        None => failure.with_hint("`pintail list` names the scripts and what they write"),
    }
}

/// Returns versions as a list, newest first.
pub fn version_list(versions: &[Materialization]) -> String {
    let is_partitioned = versions.iter().any(|version| version.partition.is_some());
    let mut columns = vec![("snapshot", Align::Right), ("when (UTC)", Align::Left), ("result", Align::Left)];
    if is_partitioned {
        columns.push(("partition", Align::Left));
    }
    columns.extend([
        ("strategy", Align::Left),
        ("rows", Align::Right),
        ("inserted", Align::Right),
        ("deleted", Align::Right),
        ("columns", Align::Left),
        ("run", Align::Left),
    ]);
    let row = |version: &Materialization| {
        let mut row = vec![
            or_dash(version.snapshot.filter(|_| is_numbered(version))),
            moment(version.finished),
            version.status.as_str().replace('_', " "),
        ];
        if is_partitioned {
            row.push(or_dash(version.partition.as_ref()));
        }
        row.extend([
            version.strategy.clone(),
            or_dash(version.rows.map(thousands)),
            thousands(version.inserted),
            thousands(version.deleted),
            format!("v{}", version.schema_version),
            version.run.to_string(),
        ]);
        row
    };
    listing(&columns, versions.iter().map(row).collect())
}

/// Returns a version for machines.
pub fn version_json(version: &Materialization) -> Value {
    json!({
        "snapshot": version.snapshot.map(|snapshot| snapshot.0),
        "finished": rfc3339(version.finished),
        "status": version.status.as_str(),
        "partition": version.partition.as_ref().map(ToString::to_string),
        "script": version.script.as_str(),
        "run": version.run.as_str(),
        "strategy": version.strategy,
        "rows": version.rows,
        "inserted": version.inserted,
        "deleted": version.deleted,
        "schema_version": version.schema_version,
        "generation": version.generation,
        "origin": version.origin.as_str(),
        "inputs": version.inputs.iter().map(|(lake, snapshot)| (lake.to_string(), json!(snapshot.0)))
            .collect::<serde_json::Map<_, _>>(),
        "error": version.error.as_ref().map(|error| error.message.clone()),
    })
}

fn show_runs(runs: &[Run], app: &App) {
    if app.terminal.is_json {
        app.terminal.json(&json!({"runs": runs.iter().map(run_json).collect::<Vec<_>>()}));
        return;
    }
    if runs.is_empty() {
        app.terminal.data("there was no run yet\n");
        return;
    }
    let columns = [
        ("run", Align::Left),
        ("started (UTC)", Align::Left),
        ("result", Align::Left),
        ("command", Align::Left),
        ("time", Align::Left),
    ];
    let row = |run: &Run| {
        let command = run.command.iter().skip(1).cloned().collect::<Vec<_>>().join(" ");
        vec![run.id.to_string(), moment(run.started), run_result(run), command, run_time(run)]
    };
    app.terminal.data(&listing(&columns, runs.iter().map(row).collect()));
    app.terminal.talk(&format!("({})", count(runs.len(), "run")));
    app.terminal.hint("`pintail show <run>` tells all of one, `pintail show last` of the newest");
}

fn run_result(run: &Run) -> String {
    match (&run.error, run.status) {
        (Some(error), RunStatus::Failed) => format!("failed: {error}"),
        (_, status) => status.to_string(),
    }
}

/// Returns how long a run took.
pub fn run_time(run: &Run) -> String {
    let took = run.finished.and_then(|finished| (finished - run.started).to_std().ok());
    or_dash(took.map(pintail_runner::duration_text))
}

/// Returns a run for machines.
pub fn run_json(run: &Run) -> Value {
    json!({
        "run": run.id.as_str(),
        "status": run.status.as_str(),
        "command": run.command,
        "triggered_by": run.triggered_by,
        "started": rfc3339(run.started),
        "finished": run.finished.map(rfc3339),
        "pins": run.pins.iter().map(|(lake, snapshot)| (lake.to_string(), json!(snapshot.0)))
            .collect::<serde_json::Map<_, _>>(),
        "error": run.error,
    })
}

/// The version of a file is a time, which stands in the next column.
fn is_numbered(version: &Materialization) -> bool {
    let is_file = |place: &str| place.starts_with("s3://") || place.starts_with("volume://");
    !version.lake.as_ref().is_some_and(|place| is_file(place.as_str()))
}
