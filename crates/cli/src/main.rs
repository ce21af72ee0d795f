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

use std::io::Write as _;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::app::App;
use crate::args::Cli;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::terminal::Terminal;

fn main() -> ExitCode {
    panic::set_hook(Box::new(tell_panic));
    // A panic is a fault of Pintail, whose exit code is that of all such faults.
    panic::catch_unwind(start).unwrap_or(Exit::Internal).into()
}

fn start() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // A reader that closed the pipe has seen enough.
            let _ = error.print();
            return if is_answer { Exit::Ok } else { Exit::Usage };
        }
    };
    let environment = Environment::read();
    let terminal = Terminal::new(&cli.globals, &environment);
    terminal.listen_to_logs();
    let app = App { globals: cli.globals, environment, terminal };
    commands::run(cli.command, &app).unwrap_or_else(|failure| failure.tell(&app.terminal))
}

/// Says where a panic was; that of a step is told again with the step.
fn tell_panic(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map_or_else(String::new, |place| format!(" ({place})"));
    let _ = writeln!(std::io::stderr(), "error: Pintail panicked: {text}{place}");
}
