//! `completions`: the script that lets a shell complete commands and options.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::app::App;
use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Failure;

/// For which shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail completions bash > ~/.local/share/bash-completion/completions/pintail
  pintail completions zsh > ~/.zfunc/_pintail")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Runs the command.
pub fn run(args: &CompletionsArgs, app: &App) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pintail", &mut script);
    app.terminal.data(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}
