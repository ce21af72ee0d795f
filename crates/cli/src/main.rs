//! The pintail command line: one file per command, rendering, exit codes.
//!
//! Invariant: only this crate knows the terminal and the environment. Data goes to stdout, talk to stderr; what a command
//! did is its exit code. What is computed is computed by the runner; here it is asked for and shown.

mod app;
mod args;
mod commands;
mod environment;
mod exit;
mod failure;
mod interrupt;
mod progress;
mod render;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::app::App;
use crate::args::Cli;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::terminal::Terminal;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // A reader that closed the pipe has seen enough.
            let _ = error.print();
            return if is_answer { Exit::Ok } else { Exit::Usage }.into();
        }
    };
    let environment = Environment::read();
    let terminal = Terminal::new(&cli.globals, &environment);
    terminal.listen_to_logs();
    let app = App { globals: cli.globals, environment, terminal };
    match commands::run(cli.command, &app) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.tell(&app.terminal).into(),
    }
}
