//! The pintail command line: one file per command, rendering, exit codes.
//!
//! Invariant: only this crate knows the terminal and the environment. Data goes to stdout, talk to stderr; what a command
//! did is its exit code. What is computed is computed by the runner; here it is asked for and shown.

mod agreement;
mod app;
mod args;
mod commands;
mod environment;
mod exit;
mod failure;
mod interrupt;
mod metrics;
mod progress;
mod render;
mod terminal;

use std::io::Write as _;
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};

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
    let environment = Environment::read();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // A reader that closed the pipe has seen enough.
            let _ = error.print();
            if let Some(hint) = hint_for(&error, &environment) {
                let _ = writeln!(std::io::stderr(), "\nhint: {hint}");
            }
            return if is_answer { Exit::Ok } else { Exit::Usage };
        }
    };
    let terminal = Terminal::new(&cli.globals, &environment);
    terminal.listen_to_logs();
    let app = App { globals: cli.globals, environment, terminal };
    commands::run(cli.command, &app).unwrap_or_else(|failure| failure.tell(&app.terminal))
}

/// Returns what helps when a script was given where a selection is an option, as other tools do not ask for it.
fn hint_for(error: &clap::Error, environment: &Environment) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || word.starts_with('-') {
        return None;
    }
    let cli = Cli::command();
    let command = environment.arguments.iter().skip(1).find_map(|argument| cli.find_subcommand(argument))?;
    let selects = command.get_arguments().any(|argument| argument.get_id() == "select");
    selects.then(|| format!("scripts are named by an option: `pintail {} --select {word}`", command.get_name()))
}

/// Says where a panic was; that of a step is told again with the step.
fn tell_panic(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map_or_else(String::new, |place| format!(" ({place})"));
    let _ = writeln!(std::io::stderr(), "error: Pintail panicked: {text}{place}");
}
