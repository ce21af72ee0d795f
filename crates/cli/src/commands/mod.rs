//! The commands, one file each: its options, what it does, what it shows.

pub mod check;
pub mod history;
pub mod plan;
pub mod query;
pub mod run;

use crate::app::App;
use crate::args::Command;
use crate::exit::Exit;
use crate::failure::Failure;

/// Carries out `command`.
pub fn run(command: Command, app: &App) -> Result<Exit, Failure> {
    match command {
        Command::Check(args) => check::run(&args, app),
        Command::Plan(args) => plan::run(&args, app),
        Command::Run(args) => run::run(&args, app),
        Command::Query(args) => query::run(&args, app),
        Command::History(args) => history::run(&args, app),
    }
}
