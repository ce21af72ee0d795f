//! No file carries traces of the machine that it was written on, or names the host of a package registry.
//!
//! A checkout works wherever it is put, and packages come from whichever mirror a machine's clients are set up for.
//! Cargo.lock is left out: cargo writes the name of its index there. The traces are spelled in two halves here, so that
//! this file does not find itself.

use super::Finding;
use super::tree::Tree;

const TRACES: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Use", "rs/"),
    concat!("/tmp/", "exp"),
    concat!("registry.", "npmjs"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
];

/// Returns the lines that hold a trace.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| *path != "Cargo.lock") {
        for (index, line) in text.lines().enumerate() {
            for trace in TRACES.iter().filter(|trace| line.contains(**trace)) {
                findings.push(Finding::error(path, index + 1, format!("`{trace}` belongs to one machine or registry")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::render;
    use super::*;

    #[test]
    fn every_trace_is_found_outside_the_lock_file() {
        for trace in TRACES {
            let line = format!("see {trace}x\n");
            let tree = Tree::of(&[("docs/a.md", &line), ("Cargo.lock", &line)]);
            assert_eq!(
                render(&check(&tree)),
                format!("error: docs/a.md:1: `{trace}` belongs to one machine or registry\n")
            );
        }
    }
}
