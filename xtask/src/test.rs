//! `test`: one command that installs what the tests need and runs all of them.
//!
//! Every caller uses the one command shape `--workspace --all-targets`: another shape unifies features differently and
//! builds DuckDB's bindings once more.

use std::env;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::process;
use crate::repository::Repository;
use crate::setup::{self, Set};

/// The closing line of nextest, such as `Summary [ 0.6s] 12 tests run: 12 passed, 0 skipped`.
pub struct ClosingLine(pub String);

/// Runs every test, with `arguments` handed to nextest, and returns nextest's closing line.
pub fn test(repository: &Repository, arguments: &[String]) -> anyhow::Result<ClosingLine> {
    setup::ensure(repository, &[Set::Engine, Set::Data])?;
    let mut command = nextest(repository)?;
    command.args(["nextest", "run", "--workspace", "--all-targets"]);
    if process::stderr_is_terminal() {
        command.arg("--color=always");
    }
    command.args(arguments);
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

/// Returns a cargo command that finds `cargo-nextest`: the installed one, or else a fetched one.
fn nextest(repository: &Repository) -> anyhow::Result<Command> {
    let mut command = process::cargo(repository);
    if is_installed(repository) {
        return Ok(command);
    }
    setup::ensure(repository, &[Set::Tools])?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [repository.vendor().join("tools")].into_iter().chain(env::split_paths(&path));
    command.env("PATH", env::join_paths(folders).context("the path of this checkout holds a colon")?);
    Ok(command)
}

fn is_installed(repository: &Repository) -> bool {
    process::cargo(repository)
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
