//! Words that mean that something was left for later, or that a test waits instead of knowing.
//!
//! The words are spelled in two halves here, so that this file does not find itself.

use super::Finding;
use super::tree::Tree;

/// A word and what to write instead.
const SHORTCUTS: &[(&str, &str)] = &[
    (concat!("#[al", "low("), "use #[expect(lint, reason = \"…\")]"),
    (concat!("#![al", "low("), "use #[expect(lint, reason = \"…\")] where it is needed"),
    (concat!("to", "do!("), "finish it, or leave it out"),
    (concat!("unimpl", "emented!("), "finish it, or leave it out"),
    (concat!("db", "g!("), "remove it"),
    (concat!("thread::", "sleep"), "wait for a condition"),
    (concat!("#[ign", "ore"), "a test runs, or is deleted"),
];

/// Returns the lines of code that hold one of the words; comments may name them.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files() {
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for (word, instead) in SHORTCUTS.iter().filter(|(word, _)| line.contains(word)) {
                findings.push(Finding::error(path, index + 1, format!("`{word}`: {instead}")));
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
    fn shortcuts_are_found_in_code_and_not_in_comments() {
        let text = format!(
            "//! No {0}x) here.\nfn f() {{\n    {0}1);\n    std::{1}(d);\n}}\n",
            SHORTCUTS[4].0, SHORTCUTS[5].0
        );
        let tree = Tree::of(&[("crates/a/src/lib.rs", &text), ("docs/a.md", &text)]);
        let [debug, sleep] = [SHORTCUTS[4], SHORTCUTS[5]];
        let expected = format!(
            "error: crates/a/src/lib.rs:3: `{}`: {}\nerror: crates/a/src/lib.rs:4: `{}`: {}\n",
            debug.0, debug.1, sleep.0, sleep.1
        );
        assert_eq!(render(&check(&tree)), expected);
    }
}
