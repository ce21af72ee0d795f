//! `cargo xtask`: everything that the repository does to itself.
//!
//! Set-up, tests, checks, generated files, the demo and the benchmarks are commands of one small program, so that a
//! person and a build server run the same thing. Invariant: nothing here links DuckDB, because `setup` is what fetches
//! DuckDB. What is deliberately not here: anything that a user of Pintail runs.

mod bench;
mod ci;
mod demo;
mod generate;
mod process;
mod repository;
mod services;
mod setup;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::repository::Repository;

/// Works on the Pintail repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetches DuckDB, its extensions and the demo's data into vendor/
    Setup,
    /// Runs every test; arguments go to nextest
    Test {
        /// Arguments for `cargo nextest run`, such as a filter
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Starts the servers that tests use and runs a command with them
    Services {
        /// The command, such as `cargo nextest run -p pintail-engine`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Runs what the build server runs, each step timed
    Ci,
    /// Checks the rules of the repository that no compiler knows
    Tidy,
    /// Writes the generated files
    Gen {
        /// Writes nothing; fails when a file would change
        #[arg(long)]
        check: bool,
    },
    /// Builds Pintail and shows it at work on real data
    Demo,
    /// Measures Pintail against hand-sent SQL, side by side
    Bench(bench::BenchArguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  because: {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let repository = Repository::find()?;
    match command {
        Command::Setup => setup::setup(&repository),
        Command::Test { arguments } => test::test(&repository, &arguments).map(drop),
        Command::Services { command } => services::run_with(&repository, &command),
        Command::Ci => ci::ci(&repository),
        Command::Tidy => tidy::tidy(&repository),
        Command::Gen { check: true } => generate::check(&repository),
        Command::Gen { check: false } => generate::write(&repository),
        Command::Demo => demo::demo(&repository),
        Command::Bench(arguments) => bench::bench(&repository, &arguments),
    }
}
