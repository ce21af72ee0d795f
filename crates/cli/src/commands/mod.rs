//! The commands, one file each: its options, what it does, what it shows.

pub mod adopt;
pub mod audit;
pub mod backfill;
pub mod check;
pub mod completions;
pub mod consume;
pub mod deadletter;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod graph;
pub mod history;
pub mod ingest;
pub mod init;
pub mod lake;
pub mod list;
pub mod maintain;
pub mod new;
pub mod pins;
pub mod plan;
pub mod preview;
pub mod query;
pub mod replay;
pub mod rollback;
pub mod run;
pub mod show;
pub mod state;
pub mod status;
pub mod test;

use crate::app::App;
use crate::args::Command;
use crate::exit::Exit;
use crate::failure::Failure;

/// Carries out `command`.
pub fn run(command: Command, app: &App) -> Result<Exit, Failure> {
    match command {
        Command::Init(args) => init::run(&args, app),
        Command::New(args) => new::run(&args, app),
        Command::Check(args) => check::run(&args, app),
        Command::Plan(args) => plan::run(&args, app),
        Command::Status(args) => status::run(&args, app),
        Command::Run(args) => run::run(&args, app),
        Command::Backfill(args) => backfill::run(&args, app),
        Command::Preview(args) => preview::run(&args, app),
        Command::Query(args) => query::run(&args, app),
        Command::List(args) => list::run(&args, app),
        Command::Show(args) => show::run(&args, app),
        Command::Graph(args) => graph::run(&args, app),
        Command::History(args) => history::run(&args, app),
        Command::Diff(args) => diff::run(&args, app),
        Command::Rollback(args) => rollback::run(&args, app),
        Command::Replay(args) => replay::run(&args, app),
        Command::Pin(args) => pins::pin(&args, app),
        Command::Unpin(args) => pins::unpin(&args, app),
        Command::Pins(args) => pins::list(&args, app),
        Command::Ingest(args) => ingest::run(&args, app),
        Command::Deadletter(args) => deadletter::run(&args, app),
        Command::Audit(args) => audit::run(&args, app),
        Command::Lake(args) => lake::run(&args, app),
        Command::Maintain(args) => maintain::run(&args, app),
        Command::Consume(args) => consume::run(&args, app),
        Command::Test(args) => test::run(&args, app),
        Command::Adopt(args) => adopt::run(&args, app),
        Command::State(args) => state::run(&args, app),
        Command::Doctor(args) => doctor::run(&args, app),
        Command::Explain(args) => explain::run(&args, app),
        Command::Completions(args) => completions::run(&args, app),
    }
}
