//! `test`: one command that installs and starts what the tests need and runs all of them.
//!
//! Every caller uses the one command shape `--workspace --all-targets`: another shape unifies features differently and
//! builds DuckDB's bindings once more.

use std::process::Command;

use anyhow::Context as _;

use crate::process;
use crate::repository::Repository;
use crate::services::Services;
use crate::setup::{self, Set};

/// The closing line of nextest, such as `Summary [ 0.6s] 12 tests run: 12 passed, 0 skipped`.
pub struct ClosingLine(pub String);

/// Runs every test, with `arguments` handed to nextest, and returns nextest's closing line.
///
/// Without arguments the behaviour on lakes is shown once more with every catalog on Postgres, and its core with all data
/// in an object store.
pub fn test(repository: &Repository, arguments: &[String]) -> anyhow::Result<ClosingLine> {
    setup::ensure(repository, &[Set::Engine, Set::Data])?;
    let services = Services::start(repository)?;
    if arguments.is_empty() {
        for again in AGAIN {
            eprintln!("--- {}", again.what);
            let mut command = nextest(repository, &services)?;
            command.args(["-E", again.tests]).env(again.variable, again.value);
            process::run(&mut command)?;
        }
    }
    let mut command = nextest(repository, &services)?;
    command.args(arguments);
    let closing = process::run_and_keep_line(&mut command, is_closing_line)?;
    closing.map(|line| ClosingLine(line.trim().to_owned())).context("nextest printed no closing line")
}

/// Tests that are run once more in another place.
struct Again {
    what: &'static str,
    tests: &'static str,
    variable: &'static str,
    value: &'static str,
}

/// What is about SQLite's files has nothing to show elsewhere; what brings a server of its own is shown by the whole run.
const AGAIN: &[Again] = &[
    Again {
        what: "the behaviour on lakes with catalogs on Postgres",
        tests: "package(pintail-runner) & binary(lake) - test(/on_sqlite_|^postgres::|^objects::|^outages::|^datatable::|^files::|^spill::/)",
        variable: "PINTAIL_TEST_CATALOG",
        value: "postgres",
    },
    Again {
        what: "its core with data in an object store",
        tests: "package(pintail-runner) & binary(lake) & test(/^basics::|^strategies::|^steps::|^schema_changes::/) - test(/on_local_files_/)",
        variable: "PINTAIL_TEST_DATA",
        value: "s3",
    },
];

fn nextest(repository: &Repository, services: &Services) -> anyhow::Result<Command> {
    let mut command = process::in_repository(repository, &setup::tool(repository, "cargo-nextest")?);
    command.args(["nextest", "run", "--workspace", "--all-targets"]);
    if process::stderr_is_terminal() {
        command.arg("--color=always");
    }
    services.name_to(&mut command);
    Ok(command)
}

fn is_closing_line(line: &str) -> bool {
    // Colour codes stand around the words, so the words are looked for one by one.
    line.contains("Summary") && line.contains(" run: ")
}

/// Runs the examples in the documentation, which nextest does not know.
pub fn doctests(repository: &Repository) -> anyhow::Result<()> {
    // The rpath of .cargo/config.toml does not reach the programs that rustdoc links.
    let libraries = repository.vendor().join("duckdb");
    process::run(
        process::cargo(repository).args(["test", "--quiet", "--workspace", "--doc"]).env("LD_LIBRARY_PATH", libraries),
    )
}
