//! No file of the crates is so long that nobody reads it through.

use super::Finding;
use super::tree::Tree;

/// Past this, ask which two things the file is.
const WARN_ABOVE: usize = 600;

/// Past this, the question is answered.
const FAIL_ABOVE: usize = 900;

/// Returns the long files.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            if FAIL_ABOVE < lines {
                Some(Finding::error(path, None, format!("has {lines} lines, more than {FAIL_ABOVE}: split it")))
            } else if WARN_ABOVE < lines {
                Some(Finding::warning(path, None, format!("has {lines} lines: which two things is it?")))
            } else {
                None
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::render;
    use super::*;

    #[test]
    fn long_files_warn_and_longer_ones_fail() {
        let of_lines = |count: usize| "line\n".repeat(count);
        let tree = Tree::of(&[
            ("crates/a/src/fine.rs", &of_lines(600)),
            ("crates/a/src/long.rs", &of_lines(601)),
            ("crates/a/src/longer.rs", &of_lines(901)),
            ("docs/long.md", &of_lines(2000)),
        ]);
        expect![[r"
            warning: crates/a/src/long.rs: has 601 lines: which two things is it?
            error: crates/a/src/longer.rs: has 901 lines, more than 900: split it
        "]]
        .assert_eq(&render(&check(&tree)));
    }
}
