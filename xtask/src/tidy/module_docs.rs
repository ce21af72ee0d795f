//! Every module opens with `//!`: what it is for.

use super::Finding;
use super::tree::Tree;

/// Returns the Rust files that begin with something else.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| Finding::error(path, 1, "must open with `//!`: what the module is for"))
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::render;
    use super::*;

    #[test]
    fn a_module_without_its_purpose_is_named() {
        let tree = Tree::of(&[
            ("crates/a/src/said.rs", "//! Counts ducks.\n"),
            ("crates/a/src/unsaid.rs", "use std::fmt;\n\n//! Too late.\n"),
            ("crates/a/README.md", "A crate.\n"),
        ]);
        expect![[r"
            error: crates/a/src/unsaid.rs:1: must open with `//!`: what the module is for
        "]]
        .assert_eq(&render(&check(&tree)));
    }
}
