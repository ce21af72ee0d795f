//! `state rebuild`: writes the metadata store anew from the commits of the lakes.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::{count, thousands};

/// What to do with the state.
#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(subcommand)]
    action: Action,
}

/// The actions.
#[derive(Debug, Subcommand)]
enum Action {
    /// Write the store anew from the commits of the lakes; data is never touched
    #[command(after_help = "\
Each commit of Pintail says in the lake what it did. When the store is lost, this reads them all.
What other tools made is listed as of unknown origin; `pintail adopt` takes it over.")]
    Rebuild,
}

/// Runs the command.
pub fn run(args: &StateArgs, app: &App) -> Result<Exit, Failure> {
    match args.action {
        Action::Rebuild => rebuild(app),
    }
}

fn rebuild(app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let rebuilt = pintail.rebuild_state()?;
    if app.terminal.is_json {
        let lakes: Vec<_> = rebuilt
            .iter()
            .map(|lake| {
                json!({
                    "lake": lake.lake.as_str(),
                    "stamps": lake.stamps,
                    "materializations": lake.materializations,
                    "unknown": lake.unknown.iter().map(ToString::to_string).collect::<Vec<_>>(),
                })
            })
            .collect();
        app.terminal.json(&json!({"lakes": lakes}));
        return Ok(Exit::Ok);
    }
    if rebuilt.is_empty() {
        app.terminal.data("there is no lake yet, so there is no state to rebuild\n");
    }
    for lake in &rebuilt {
        let stamps = count(lake.stamps, "stamp");
        let versions = thousands(lake.materializations);
        app.terminal.data(&format!("lake {}: {stamps} read, {versions} materializations in the store\n", lake.lake));
        for asset in &lake.unknown {
            app.terminal.data(&format!("  of unknown origin: {asset}\n"));
        }
        if !lake.unknown.is_empty() {
            app.terminal.hint("`pintail adopt <asset>` takes over a table that a script is to write");
        }
    }
    Ok(Exit::Ok)
}
