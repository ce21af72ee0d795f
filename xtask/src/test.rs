//! `test`: one command that installs and starts what the tests need and runs all of them.
//!
//! Every caller uses the one command shape `--workspace --all-targets`: another shape unifies features differently and
//! builds DuckDB's bindings once more.

use anyhow::Context as _;

use crate::process;
use crate::repository::Repository;
use crate::services::Services;
use crate::setup::{self, Set};

/// The closing line of nextest, such as `Summary [ 0.6s] 12 tests run: 12 passed, 0 skipped`.
pub struct ClosingLine(pub String);

/// Runs every test, with `arguments` handed to nextest, and returns nextest's closing line.
pub fn test(repository: &Repository, arguments: &[String]) -> anyhow::Result<ClosingLine> {
    setup::ensure(repository, &[Set::Engine, Set::Data])?;
    let mut command = process::in_repository(repository, &setup::tool(repository, "cargo-nextest")?);
    command.args(["nextest", "run", "--workspace", "--all-targets"]);
    if process::stderr_is_terminal() {
        command.arg("--color=always");
    }
    command.args(arguments);
    let services = Services::start(repository)?;
    services.name_to(&mut command);
    let closing = process::run_and_keep_line(&mut command, is_closing_line)?;
    closing.map(|line| ClosingLine(line.trim().to_owned())).context("nextest printed no closing line")
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
