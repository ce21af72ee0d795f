//! `gen`: files that are written from what the program knows, so that they cannot disagree with it.
//!
//! One table: a path and the function that renders it. `gen` writes, `gen --check` compares; both render alike.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use pintail_core::diagnostic::{CODES, Severity};

use crate::repository::Repository;
use crate::setup::{Manifest, Registry, Set};

/// One generated file.
struct Generator {
    path: &'static str,
    render: fn() -> String,
}

/// The generated files. A new reference is one line here.
const GENERATORS: &[Generator] = &[
    Generator { path: "docs/reference/annotations.md", render: pintail_core::annotation::reference_markdown },
    Generator { path: "docs/reference/diagnostics.md", render: diagnostics },
    Generator { path: "docs/reference/native-files.md", render: native_files },
];

/// Writes every generated file that differs.
pub fn write(repository: &Repository) -> anyhow::Result<()> {
    for generator in stale(repository.root(), GENERATORS)? {
        let place = repository.root().join(generator.path);
        let folder = place.parent().expect("every generated file lies in a folder");
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::write(&place, (generator.render)()).with_context(|| format!("cannot write {}", generator.path))?;
        println!("new {}", generator.path);
    }
    Ok(())
}

/// Fails when a generated file differs from what would be written.
pub fn check(repository: &Repository) -> anyhow::Result<()> {
    let stale: Vec<&str> = stale(repository.root(), GENERATORS)?.iter().map(|generator| generator.path).collect();
    if stale.is_empty() {
        return Ok(());
    }
    bail!("not as `cargo xtask gen` writes it: {}", stale.join(", "))
}

fn stale<'a>(root: &Path, generators: &'a [Generator]) -> anyhow::Result<Vec<&'a Generator>> {
    let mut stale = Vec::new();
    for generator in generators {
        let place = root.join(generator.path);
        let is_current = place.is_file()
            && fs::read_to_string(&place).with_context(|| format!("cannot read {}", generator.path))?
                == (generator.render)();
        if !is_current {
            stale.push(generator);
        }
    }
    Ok(stale)
}

const GENERATED: &str = "<!-- Written by `cargo xtask gen`; changes made here are lost. -->\n\n";

/// The list of diagnostic codes.
fn diagnostics() -> String {
    let mut page = format!("{GENERATED}# Diagnostics\n\n");
    page.push_str("`pintail explain P101` shows the page of a code in the terminal.\n\n");
    page.push_str("| code | severity | what |\n|---|---|---|\n");
    for code in CODES {
        let info = code.info();
        let severity = match info.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        writeln!(page, "| [{0}](../diagnostics/{0}.md) | {severity} | {1} |", code, info.summary)
            .expect("writing to a String never fails");
    }
    page
}

/// The list of files that set-up fetches.
fn native_files() -> String {
    let mut page = format!("{GENERATED}# Native files\n\n");
    page.push_str("What `cargo xtask` puts into `vendor/`, from `xtask/native.toml`. ");
    page.push_str("Why these, and how they move: [native.md](../design/native.md).\n\n");
    page.push_str("| file | version | package | licence | for | sha256 |\n|---|---|---|---|---|---|\n");
    for package in Manifest::read().packages {
        let registry = match package.registry {
            Registry::Npm => "npm",
            Registry::Pypi => "PyPI",
        };
        let purpose = match package.set {
            Set::Engine => "the engine",
            Set::Data => "the demo",
            Set::Tools => "tests and checks, unless installed",
        };
        for file in &package.files {
            writeln!(
                page,
                "| `{}` | {} | {registry} `{}` | {} | {purpose} | `{}` |",
                file.to, package.version, package.name, package.licence, file.sha256
            )
            .expect("writing to a String never fails");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[Generator] = &[Generator { path: "docs/one.md", render: || "one\n".into() }];

    #[test]
    fn a_missing_or_changed_file_is_stale_and_a_fresh_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        assert_eq!(stale(root.path(), ONE).unwrap().len(), 1);
        fs::write(root.path().join("docs/one.md"), "one\n").unwrap();
        assert_eq!(stale(root.path(), ONE).unwrap().len(), 0);
        fs::write(root.path().join("docs/one.md"), "two\n").unwrap();
        assert_eq!(stale(root.path(), ONE).unwrap().len(), 1);
    }

    #[test]
    fn writing_makes_the_check_pass() {
        let root = tempfile::tempdir().unwrap();
        let repository = Repository::at(root.path());
        assert!(check(&repository).is_err());
        write(&repository).unwrap();
        check(&repository).unwrap();
    }

    #[test]
    fn every_code_is_listed_with_its_page() {
        let page = diagnostics();
        for code in CODES {
            assert!(page.contains(&format!("[{code}](../diagnostics/{code}.md)")), "{code}");
        }
    }
}
