//! `tidy`: the rules of the repository that neither the compiler nor clippy knows.
//!
//! Each rule is a pure function from what was read to findings, in a file of its own, with the reason for the rule at
//! its top. Here they are only collected and printed.

mod code_pages;
mod crate_edges;
mod dependency_reasons;
mod lengths;
mod links;
mod local_traces;
mod module_docs;
mod shortcuts;
mod tree;

use std::fmt;

use anyhow::{Context as _, bail};

use crate::process;
use crate::repository::Repository;
use tree::Tree;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    level: Level,
    path: String,
    line: Option<usize>,
    message: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Warning,
    Error,
}

impl Finding {
    fn error(path: &str, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { level: Level::Error, path: path.to_owned(), line: line.into(), message: message.into() }
    }

    fn warning(path: &str, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Warning => "warning",
            Level::Error => "error",
        };
        write!(f, "{level}: {}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Checks every rule, prints what breaks it, and fails when something does.
pub fn tidy(repository: &Repository) -> anyhow::Result<()> {
    let tree = Tree::read(repository)?;
    let metadata = process::capture(process::cargo(repository).args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]))?;
    let codes: Vec<String> = pintail_core::diagnostic::CODES.iter().map(ToString::to_string).collect();
    let root_manifest = tree.text("Cargo.toml").context("the workspace has a Cargo.toml")?;

    let findings: Vec<Finding> = [
        crate_edges::check(&metadata)?,
        dependency_reasons::check("Cargo.toml", root_manifest),
        code_pages::check(&codes, &tree),
        lengths::check(&tree),
        module_docs::check(&tree),
        shortcuts::check(&tree),
        links::check(&tree),
        local_traces::check(&tree),
    ]
    .concat();

    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.iter().filter(|finding| finding.level == Level::Error).count() {
        0 => Ok(()),
        1 => bail!("1 rule of the repository is broken"),
        count => bail!("rules of the repository are broken in {count} places"),
    }
}

/// Prints findings one a line, for tests of the rules.
#[cfg(test)]
fn render(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}
